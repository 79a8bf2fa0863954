"""The sidecar file beside a released file, OUT.dipriv.json: the guarantee, and what was released; no private value."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
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
FORMAT = 4
"""Of the JSON. Format 1, which had no number, called rows that contribution bounding dropped "cut"; format 2 had no
verdict; format 3 neither a schema nor where the release comes from."""
MAX_SIDECAR = 1 << 24


@dataclass(frozen=True)
class Provenance:
    """How and when a release was made, for those who want to repeat it on other rows.

    Parameters
    ----------
    command : the command line, without paths, seed and ledger; None for a release from Python.
    date : of the release, in UTC.
    versions : of Python and of the packages that compute.
    """

    command: str | None
    date: str
    versions: Mapping[str, str]

    @classmethod
    def now(cls, command: str | None = None) -> Provenance:
        """Of a release that is made now, with what is installed here."""
        versions = {"python": platform.python_version()} | {name: version(name) for name in ("numpy", "pyarrow")}
        return cls(command, datetime.now(UTC).date().isoformat(), versions)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"command": self.command, "date": self.date, "versions": dict(self.versions)}

    @classmethod
    def from_dict(cls, plain: Any) -> Provenance:
        """What `to_dict` wrote."""
        content = _mapping(plain)
        command = content.get("command")
        versions = {name: _text(of) for name, of in _mapping(content.get("versions")).items()}
        return cls(None if command is None else _text(command), _text(content.get("date")), versions)


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
    rules : the rules between columns that hold in every released row.
    version : of the dipriv that made the release.
    schema : what the columns were taken as, as far as the release publishes it, as `dipriv.Schema.to_dict` has it; None
        in older files, and in data sheets, which have it themselves.
    declared : the columns whose kinds were declared.
    provenance : how and when it was made; None in older files.
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
    rules: tuple[str, ...] = ()
    version: str = __version__
    schema: Mapping[str, Any] | None = None
    declared: tuple[str, ...] = ()
    provenance: Provenance | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; `statement` has the guarantee in words, for readers."""
        found: dict[str, Any] = {}
        if self.formulas:
            found["formulas"] = {"texts": dict(self.formulas), "escaped": self.formulas_escaped}
        if self.rules:
            found["rules"] = list(self.rules)
        if self.schema is not None:
            found |= {"schema": dict(self.schema), "declared": list(self.declared)}
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
            "provenance": None if self.provenance is None else self.provenance.to_dict(),
        }

    @classmethod
    def from_dict(cls, plain: Any) -> Sidecar:
        """What `to_dict` wrote, in this format or an older one. Fidelities that are no correlations are left out.

        Verdict and schema are not looked into: `dipriv.Verdict.from_dict` and `dipriv.Schema.from_dict` check them.

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
        schema, provenance = content.get("schema"), content.get("provenance")
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
            rules=tuple(map(_text, _list(content.get("rules", [])))),
            version=_text(content.get("dipriv")),
            schema=None if schema is None else _mapping(schema),
            declared=tuple(map(_text, _list(content.get("declared", [])))),
            provenance=None if provenance is None else Provenance.from_dict(provenance),
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


def _list(plain: Any) -> list[Any]:
    if not isinstance(plain, list):
        raise _not_ours("has something else where a JSON array belongs")
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
