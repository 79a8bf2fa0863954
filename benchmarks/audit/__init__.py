"""The audit on record: `python -m benchmarks.audit [PART ...]` measures, `python -m benchmarks.audit page` writes.

A part leaves docs/audit/PART.json; docs/audit.md is rendered from the files that are there. `make audit` does it all.
"""
