"""The private reference on record: its quality beside peers. `python -m benchmarks.quality [PART ...]`.

Writes docs/private-reference.json, docs/private-reference.md and two figures; `make quality PARTS=peers` measures the
peers anew.
"""
