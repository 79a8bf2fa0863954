"""The page of coverage adds up what coverage.py counted."""

from __future__ import annotations

import json
from pathlib import Path

from tests.coverage_page import main, share


def counts(*numbers: int) -> dict[str, int]:
    names = ("num_statements", "covered_lines", "num_branches", "covered_branches")
    return dict(zip(names, numbers, strict=True))


def test_modules_of_a_package_are_added_up(tmp_path: Path) -> None:
    found = {
        "meta": {"timestamp": "2030-01-02T03:04:05", "version": "7"},
        "files": {
            "src/dipriv/errors.py": {"summary": counts(10, 10, 0, 0)},
            "src/dipriv/ledger/tables.py": {"summary": counts(30, 20, 4, 3)},
            "src/dipriv/ledger/values.py": {"summary": counts(10, 9, 4, 4)},
        },
        "totals": counts(50, 39, 8, 7),
    }
    (tmp_path / "c.json").write_text(json.dumps(found), encoding="utf-8")
    main(tmp_path / "c.json", tmp_path / "c.md")
    rows = (tmp_path / "c.md").read_text(encoding="utf-8").splitlines()[-3:]
    assert rows == [
        "| `dipriv.ledger` | 40 | 72.5% | 8 | 87.5% |",
        "| `dipriv`, modules | 10 | 100.0% | 0 | - |",
        "| **in total** | 50 | 78.0% | 8 | 87.5% |",
    ]


def test_nothing_is_rounded_up_to_all() -> None:
    assert share(9999, 10_000) == "99.9%"
