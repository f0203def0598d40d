"""Benchmarks: what the parts cost on this machine, as ratios where machines differ."""
