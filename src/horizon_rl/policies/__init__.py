"""Policies: what acts, wherever it comes from, and as one file for a robot."""
