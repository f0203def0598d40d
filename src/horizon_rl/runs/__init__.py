"""Runs on disk: the only room that knows file names. Needs numpy and nothing else."""
