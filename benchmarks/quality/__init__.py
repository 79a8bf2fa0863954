"""The private reference on record: its quality beside peers. `python -m benchmarks.quality [PART ...]`.

Writes docs/private-reference.json, docs/private-reference.md and two figures; `make quality` installs the peers first.
"""
