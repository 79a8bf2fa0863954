"""Benchmarks: costs as ratios, peers and the machine's own limits measured side by side in one run.

`make bench` writes docs/benchmarks.md, docs/benchmarks.json and a plot.
"""
