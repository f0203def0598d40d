"""Grids of training runs: a study as data, run side by side, resumed, collected."""
