"""`make audit`: bounds, attacks, judges and fuzzing; writes docs/audit/ and docs/audit.md."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from benchmarks.audit import attacks, bounds, canaries, fuzz, judges, labels, ledger, persons, rows
from benchmarks.audit.setting import Setting
from benchmarks.parts import Found, asked, measure, write_folder

PARTS: dict[str, Callable[[Setting], Found]] = {
    "bounds": bounds.run,
    "rows": rows.run,
    "canaries": canaries.run,
    "labels": labels.run,
    "persons": persons.run,
    "ledger": ledger.run,
    "attacks": attacks.run,
    "judges": judges.run,
    "fuzz": fuzz.run,
}
TRIALS = {"seeds": "how many seeds", "rows": "how many rows of each table"}


def main() -> None:
    """Parse, measure, write."""
    measure(PARTS, asked("audit", PARTS, Setting, TRIALS), partial(write_folder, "audit"))


if __name__ == "__main__":
    main()
