"""The sidecar file beside a released file, OUT.dipriv.json: the guarantee, and what was released; no private value."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dipriv._version import __version__
from dipriv.errors import InputError
from dipriv.guarantee._checks import LONGEST_TEXT, MAX_COUNT
from dipriv.guarantee.guarantee import Guarantee

SIDECAR_SUFFIX = ".dipriv.json"
"""A sidecar has the name of the output and this ending."""
SHEET_SUFFIX, PAGE_SUFFIX = ".sheet.json", ".sheet.html"
"""So do data sheets, and their pages to read."""
ENDINGS = (SIDECAR_SUFFIX, SHEET_SUFFIX, PAGE_SUFFIX)
FORMAT = 3
"""Of the JSON. Format 1, which had no number, called rows that contribution bounding dropped "cut"; format 2 had no
verdict."""
MAX_SIDECAR = 1 << 24


@dataclass(frozen=True)
class Sidecar:
    """What is published about a released file.

    Parameters
    ----------
    guarantee : the guarantee of the release.
    rows_read, rows_dropped, rows_released : counts of rows; contribution bounding dropped the second.
    columns : the kind that each released column was taken as.
    fidelity : the expected correlation of each released column with the true one; NaN where there is none.
    verdict : what the release is good for, as `dipriv.Verdict.to_dict` has it; None in older files.
    dataset : the name of the data set in the ledger.
    formulas : how many released texts of each column a spreadsheet would take for formulas.
    formulas_escaped : whether these have an apostrophe before them.
    version : of the dipriv that made the release.
    """

    guarantee: Guarantee
    rows_read: int
    rows_dropped: int
    rows_released: int
    columns: Mapping[str, str] = field(default_factory=dict)
    fidelity: Mapping[str, float] = field(default_factory=dict)
    verdict: Mapping[str, Any] | None = None
    dataset: str | None = None
    formulas: Mapping[str, int] = field(default_factory=dict)
    formulas_escaped: bool = False
    version: str = __version__

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; `statement` has the guarantee in words, for readers."""
        found = {"formulas": {"texts": dict(self.formulas), "escaped": self.formulas_escaped}} if self.formulas else {}
        return found | {
            "format": FORMAT,
            "dipriv": self.version,
            "guarantee": self.guarantee.to_dict(),
            "statement": str(self.guarantee).splitlines(),
            "rows": {"read": self.rows_read, "dropped": self.rows_dropped, "released": self.rows_released},
            "columns": dict(self.columns),
            "fidelity": {name: None if math.isnan(kept) else kept for name, kept in self.fidelity.items()},
            "verdict": None if self.verdict is None else dict(self.verdict),
            "dataset": self.dataset,
        }

    @classmethod
    def from_dict(cls, plain: Any) -> Sidecar:
        """What `to_dict` wrote, in this format or an older one. Fidelities that are no correlations are left out.

        The verdict is not looked into: `dipriv.Verdict.from_dict` checks it.

        Raises
        ------
        InputError
            If this is not what a version of dipriv writes.
        """
        content = _mapping(plain)
        written = content.get("format", 1)
        if type(written) is not int or not 1 <= written <= FORMAT:
            raise _not_ours(f"has a format that is not from 1 to {FORMAT}")
        rows, formulas = _mapping(content.get("rows")), _mapping(content.get("formulas", {}))
        escaped = formulas.get("escaped", False)
        if type(escaped) is not bool:
            raise _not_ours("does not say whether formulas are escaped")
        dataset, verdict = content.get("dataset"), content.get("verdict")
        return cls(
            guarantee=Guarantee.from_dict(content.get("guarantee", {})),
            rows_read=_count(rows.get("read")),
            rows_dropped=_count(rows.get("cut" if written == 1 else "dropped")),
            rows_released=_count(rows.get("released")),
            columns={name: _text(kind) for name, kind in _mapping(content.get("columns")).items()},
            fidelity={name: kept for name, kept in _mapping(content.get("fidelity")).items() if _is_correlation(kept)},
            verdict=None if verdict is None else _mapping(verdict),
            dataset=None if dataset is None else _text(dataset),
            formulas={name: _count(texts) for name, texts in _mapping(formulas.get("texts", {})).items()},
            formulas_escaped=escaped,
            version=_text(content.get("dipriv")),
        )


def sidecar_path(released: str | Path) -> Path:
    """Where the sidecar of a released file is."""
    return Path(f"{released}{SIDECAR_SUFFIX}")


def read_sidecar(released: str | Path) -> Sidecar | None:
    """The sidecar beside a released file; None if there is none that dipriv could have written.

    Anybody may have written it, so a file that is not well formed counts as absent.
    """
    path = sidecar_path(released)
    try:
        if not path.is_file() or path.stat().st_size > MAX_SIDECAR:
            return None
        return Sidecar.from_dict(json.loads(path.read_bytes()))
    except (OSError, ValueError, RecursionError):
        return None


def _mapping(plain: Any) -> Mapping[str, Any]:
    if not isinstance(plain, Mapping) or not all(isinstance(name, str) for name in plain):
        raise _not_ours("has something else where a JSON object belongs")
    return plain


def _count(plain: Any) -> int:
    if type(plain) is not int or not 0 <= plain <= MAX_COUNT:
        raise _not_ours("has a count that is not a whole number from 0 to 2^62")
    return plain


def _text(plain: Any) -> str:
    if not isinstance(plain, str) or len(plain) > LONGEST_TEXT or not plain.isprintable():
        raise _not_ours("has a text that is not one printable line")
    return plain


def _is_correlation(plain: Any) -> bool:
    return isinstance(plain, float) and abs(plain) <= 1


def _not_ours(fault: str) -> InputError:
    return InputError(f"the sidecar file {fault}.", "Use the file that dipriv wrote beside its output, unchanged.")
