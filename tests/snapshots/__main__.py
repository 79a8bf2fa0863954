"""Rewrite the snapshots, and show what changed."""

from __future__ import annotations

import difflib

from tests.snapshots.surface import COMMANDS, page_of_commands, snapshots, stored, write

before, after = stored(), snapshots()
for name in sorted(before | after):
    old, new = (side.get(name, "").splitlines(keepends=True) for side in (before, after))
    print("".join(difflib.unified_diff(old, new, f"old {name}", f"new {name}")), end="")
write(after)
COMMANDS.write_text(page_of_commands(after), encoding="utf-8")
