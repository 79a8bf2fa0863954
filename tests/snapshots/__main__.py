"""Rewrite the snapshots, and show what changed."""

from __future__ import annotations

import difflib

from tests.snapshots.surface import snapshots, stored, write

before, after = stored(), snapshots()
for name in sorted(before | after):
    old, new = before.get(name, ""), after.get(name, "")
    print(
        "".join(difflib.unified_diff(old.splitlines(True), new.splitlines(True), f"old {name}", f"new {name}")), end=""
    )
write(after)
