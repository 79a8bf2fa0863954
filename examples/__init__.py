"""Worked examples of dipriv; each runs with `python -m examples.NAME`. See README.md."""
