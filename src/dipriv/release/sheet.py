"""The data sheet of a released file: all that an analyst needs beside the rows, and nothing private.

OUTPUT.sheet.json has what the sidecar has, the declared kinds, the measured pairs, how to cite and how to analyse, and
the model of the private reference, from which intervals are computed. OUTPUT.sheet.html is for reading. Both are
functions of private output and of public facts.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import isclose
from pathlib import Path
from typing import Any

from dipriv._tables.frames import check_names
from dipriv.errors import DiprivError, InputError
from dipriv.guarantee import Guarantee
from dipriv.guarantee.guarantee import ReferenceSource, UnitKind
from dipriv.guarantee.sidecar import SHEET_SUFFIX, Sidecar
from dipriv.guarantee.wording import claim
from dipriv.release.analysis import Analysable, Analysis
from dipriv.release.bootstrap import BootstrapModel
from dipriv.release.model_file import dump_model, load_model
from dipriv.schema import Schema
from dipriv.sources import read_table
from dipriv.utility.verdict import Verdict

FORMAT = 1
MAX_SHEET = 1 << 28
"""The largest size of a data sheet, in bytes."""


@dataclass(frozen=True, eq=False)
class Sheet(Analysable):
    """The data sheet of a released file; `load_sheet` reads one.

    Attributes
    ----------
    released : the name of the released file.
    sidecar : the guarantee, the rows, the kinds of columns, fidelity and verdict.
    schema : what each column was taken as, as far as it may be published.
    declared : the columns whose kinds were declared.
    no_model : why there is no model for intervals and answers; None where there is one.
    """

    released: str
    sidecar: Sidecar
    schema: Schema
    declared: tuple[str, ...] = ()
    no_model: str | None = None
    _model: BootstrapModel | None = field(default=None, repr=False)
    _table: Any = field(default=None, repr=False)

    @property
    def guarantee(self) -> Guarantee:
        """What is guaranteed, and to whom."""
        return self.sidecar.guarantee

    @property
    def verdict(self) -> Verdict | None:
        """What the release is good for."""
        return None if self.sidecar.verdict is None else Verdict.from_dict(self.sidecar.verdict)

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The pairs of columns whose two-way tables were measured."""
        if self._model is not None:
            return self._model.pairs
        return () if self.verdict is None else tuple(pair.columns for pair in self.verdict.pairs)

    @property
    def citation(self) -> str:
        """How to cite the released file; who made the table is for its keeper to fill in."""
        made = self.sidecar.provenance
        year = "year" if made is None else made.date[:4]
        return (
            f"[authors of the table] ({year}). {self.released}: {self.sidecar.rows_released:,} rows released under "
            f"differential privacy ({claim(self.guarantee)}) [data set]. Made with dipriv "
            f"{self.sidecar.version}, after X. Bi and X. Shen (2023), Distribution-Invariant Differential Privacy, "
            "Journal of Econometrics 235(2), 444-453."
        )

    @cached_property
    def _analysis(self) -> Analysis:
        if self._model is None:
            raise InputError(f"the data sheet has no model: {self.no_model}", "Use the verdict and the fidelity.")
        return Analysis(self._model, self._rows)

    def _rows(self) -> Any:
        if self._table is None:
            raise InputError(
                f"the released file {self.released} is not beside its data sheet.",
                "Put it there, or give it: load_sheet(path, table=...).",
                command="Put it there.",
            )
        facts = () if self._model is None else self._model.facts
        return read_table(self._table, facts).native

    def value(self, column: str, text: str) -> Any:
        """The value of a column that a text stands for: a number, yes or no, or the text itself.

        Parameters
        ----------
        column : of the released table.
        text : as it is written in a text file.

        Returns
        -------
        The value, for `dipriv.statistics.Share`.

        Raises
        ------
        InputError : there is no such column, or the text is none of its values.
        """
        model = self._analysis.model
        check_names([column], model.released_names, "the question")
        family = next(facts.storage.family for facts in model.facts if facts.name == column)
        try:
            if family == "boolean":
                return {"true": True, "false": False}[text.lower()]
            number = text if family == "label" else float(text)
            return int(number) if isinstance(number, float) and number.is_integer() else number
        except (KeyError, ValueError):
            raise InputError(f"{text!r} is not a value of column {column!r}.", "Write it as it is released.") from None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON.

        Returns
        -------
        dict : what `load_sheet` reads.
        """
        return {
            "format": FORMAT,
            "released": self.released,
            "cite": self.citation,
            "analyse": HOW_TO_ANALYSE,
            "release": self.sidecar.to_dict(),
            "schema": self.schema.to_dict(),
            "declared": list(self.declared),
            "pairs": [list(pair) for pair in self.pairs],
            "options": options_of(self._model),
            "no_model": self.no_model,
            "model": None if self._model is None else base64.b64encode(dump_model(self._model)).decode(),
        }

    def to_json(self) -> str:
        """The text of `to_dict` as JSON.

        Returns
        -------
        str : the content of OUTPUT.sheet.json.
        """
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, default=str) + "\n"

    def to_html(self) -> str:
        """A page to read.

        Returns
        -------
        str : the content of OUTPUT.sheet.html.
        """
        from dipriv.release.sheet_page import page

        return page(self)


HOW_TO_ANALYSE = [
    "Released rows have noise: ordinary standard errors and tests are too optimistic.",
    "Use dipriv.load_sheet(PATH).interval(...) for intervals that contain the noise; it says where there can be none.",
    "Use dipriv.load_sheet(PATH).reference for probabilities, means and crosstabs without the noise of sampled rows.",
    "Pairs of columns that were not measured are as if independent, given those that were.",
]


def described(name: str, schema: Schema, declared: Sequence[str]) -> str:
    """What a column was taken as, and where that comes from."""
    how = schema.rules.derived.get(name)
    said = " (declared)" if name in declared else ""
    return schema[name].name + (said if how is None else f" (derived: {printable([how])[0]})")


def printable(texts: Iterable[str]) -> tuple[str, ...]:
    """Texts on one line each."""
    return tuple("".join(c if c.isprintable() else " " for c in text) for text in texts)


def options_of(model: BootstrapModel | None) -> dict[str, Any]:
    """The options of a release with a private reference, all of them public."""
    if model is None:
        return {}
    spec = model.spec
    return {
        "reference": spec.describe(),
        "kernel": model.kernel.describe(),
        "epsilon of a row": model.epsilon,
        "delta of a row": model.delta,
        "target": spec.target,
        "pairs": [list(pair) for pair in spec.pairs],
        "labels": spec.labels,
        "reference_share": spec.reference_share,
        "rows learned from": model.n_learned,
    }


def why_no_model(guarantee: Guarantee) -> str:
    """Why a release has no model that intervals are computed from."""
    if guarantee.reference.source is not ReferenceSource.PRIVATE:
        return "the reference is not private, so it has rows, or facts about rows, that may not be published."
    if guarantee.unit.kind is not UnitKind.ROW:
        return "rows of one person are alike, and the release does not say how much: their spread is not known."
    return "the reference was not learned in a way that can be repeated."


def load_sheet(path: str | Path, *, table: Any = None, largest: int = MAX_SHEET) -> Sheet:
    """Read the data sheet beside a released file, for an analyst who has only the published files.

    The file is data, never code, and each part is checked. Whether it belongs to the released rows is not known: take
    both from the same place.

    Parameters
    ----------
    path : of the released file, or of its data sheet, which is called like it with the ending .sheet.json.
    table : the released rows as a dataframe, or where they are, if they are not beside the data sheet.
    largest : how many bytes the data sheet may have, packed and unpacked.

    Returns
    -------
    Sheet : guarantee, verdict, pairs; `interval`, `intervals` and `reference`.

    Raises
    ------
    InputError : there is no data sheet, it is too large, or not one that dipriv wrote.
    """
    given = Path(path)
    file = given if given.name.endswith(SHEET_SUFFIX) else given.with_name(given.name + SHEET_SUFFIX)
    if not file.is_file():
        raise InputError(f"{file} is not a file.", "Check the path; dipriv writes the data sheet beside its output.")
    if file.stat().st_size > largest:
        raise InputError(f"{file.name} has more than {largest:,} bytes.", "Load it with a larger limit, largest=...")
    released = file.with_name(file.name.removesuffix(SHEET_SUFFIX))
    rows = table if table is not None else released if released.exists() else None
    try:
        sheet = read_sheet(json.loads(file.read_bytes()), largest)
    except DiprivError:
        raise
    except (ValueError, RecursionError):
        raise _not_ours("is not JSON") from None
    return replace(sheet, _table=rows)


def read_sheet(plain: Any, largest: int = MAX_SHEET) -> Sheet:
    """What `Sheet.to_dict` returned; texts are made anew, never read."""
    if not isinstance(plain, dict) or type(plain.get("format")) is not int or plain["format"] != FORMAT:
        raise _not_ours("has another form than this version of dipriv reads")
    released, model, declared, reason = (plain.get(name) for name in ("released", "model", "declared", "no_model"))
    texts = [released, *([] if reason is None else [reason])]
    names: list[Any] = declared if isinstance(declared, list) else [None]
    if not all(isinstance(text, str) for text in (*texts, *names)) or not all(map(str.isprintable, texts)):
        raise _not_ours("has something else where a line of text belongs")
    sidecar, schema = Sidecar.from_dict(plain.get("release")), Schema.from_dict(plain.get("schema", {}))
    if model is None:
        return Sheet(str(released), sidecar, schema, tuple(names), reason)
    try:
        data = base64.b64decode(model, validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise _not_ours("has a model that is not in base 64") from None
    found = load_model(data, largest)
    if found.n_released != sidecar.rows_released or not isclose(found.epsilon, sidecar.guarantee.epsilon, rel_tol=1e-6):
        raise _not_ours("has a model that is not of the release that it describes")
    return Sheet(str(released), sidecar, schema, tuple(names), None, found)


def _not_ours(fault: str) -> InputError:
    return InputError(f"the data sheet {fault}.", "Use the file that dipriv wrote beside its output, unchanged.")
