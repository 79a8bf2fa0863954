"""What a column may be beyond its type, judged by its name and its cells: for the keeper of the table alone.

Nothing of a release depends on it: a schema says what a column is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dipriv._tables.cell_classes import CellClass, classify
from dipriv._tables.decorated import (
    POINT,
    YEAR_FIRST,
    class_counts,
    count_shapes,
    decoration,
    decoration_counts,
    rewritten_cells,
    write_plainly,
)
from dipriv._tables.frames import Column, contains_text
from dipriv._tables.identifiers import MIN_VALUES, NAMES, PERSONS, Counts, Warned, is_named_person, name_words
from dipriv.codecs.fit import MAX_LEVELS, ROWS_PER_LEVEL
from dipriv.schema import MISSING_MARKS, Code, Discrete, Identifier, Kind, Meaning, Money, Percent, Postal, Text, Year

NEARLY_ALL = 0.95
"""Nearly all cells are at least this share of them."""
FEW_CODES = 12
"""So few whole numbers are often codes."""
WIDE_GAPS = 2
"""More are, if their range has more than this many times as many whole numbers: ages have few gaps."""
MAX_SHOWN = 3
_POSTAL = frozenset({"zip", "zipcode", "postal", "postcode", "plz", "cep", "pin", "puma"})
_CODES = frozenset({"code", "codes", "cd", "icd", "naics", "sic", "soc", "fips", "indp", "occp", "isco", "nace"})
_YEARS = frozenset({"year", "yr", "jahr", "annee"})
_A: dict[Warned, str] = {
    "identifier": "an identifier",
    "near-unique key": "a near-unique key",
    "free text": "free text",
}
_DIGITS, _LEADING_ZERO = r"^[0-9]+$", r"^0[0-9]"


@dataclass(frozen=True)
class Suggestion:
    """What a column may be, and what else its keeper may want to know. The notes may have cells in them.

    `advice` is what may be declared where nothing is; `unit` is about a key that several rows share.
    """

    meaning: Meaning | None = None
    why: str = ""
    notes: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    unit: str = ""


def suggest(column: Column, kind: Kind, counts: Counts, suspected: Warned | None, written: str) -> Suggestion:
    """What a column may be that would be taken as `kind`; `written` is how its numbers are, in words."""
    words = name_words(column.name)
    unit = _may_be_unit(column, words, counts)
    if contains_text(column):
        notes = [*near_duplicates(counts), *_marks_as_labels(counts), *_looks_like_numbers(counts)]
        return Suggestion(*_of_text(column.name, counts, suspected), tuple(notes), unit=unit)
    meaning, why = _of_numbers(words, column, kind, counts, suspected, written)
    return Suggestion(meaning, why, advice=_may_be_codes(kind, counts, meaning), unit=unit)


def _of_text(name: str, counts: Counts, suspected: Warned | None) -> tuple[Meaning | None, str]:
    texts, words = counts.some(), name_words(name)
    if len(texts) and _share(texts, _DIGITS) >= NEARLY_ALL:
        zeros = "digits, some with leading zeros" if _share(texts, _LEADING_ZERO) > 0 else "digits, stored as text"
        if words & _POSTAL:
            return Postal(), f"{zeros}, and its name"
        if suspected is None:
            return Code(), zeros
    if words & NAMES or is_named_person(name):
        return Text(), "its name says that these are names of people, or how to reach them"
    if suspected in ("identifier", "near-unique key"):
        return Identifier(), _why(suspected, counts)
    return (Text(), _why(suspected, counts)) if suspected == "free text" else (None, "")


def _of_numbers(
    words: set[str], column: Column, kind: Kind, counts: Counts, suspected: Warned | None, written: str
) -> tuple[Meaning | None, str]:
    if column.storage.family not in ("integer", "real"):
        return None, ""
    if suspected is not None:
        return Identifier(), _why(suspected, counts)
    if "%" in written:
        return Percent(), "written with %"
    if any(sign in written for sign in ("$", "€", "£", "¥", "₹", "EUR", "USD", "GBP", "CHF", "JPY")):
        return Money(), f"written with {written.rpartition(', ')[2]}"
    low, high = (float(end) for end in (counts.values.to_numpy().min(), counts.values.to_numpy().max()))
    if words & _YEARS and low >= 1800 and high <= 2199 and isinstance(kind, Discrete):
        return Year(), "its name, and whole numbers such as years"
    is_coded = words & (_POSTAL | _CODES) and isinstance(kind, Discrete)
    return (Code(), "its name says that these are codes") if is_coded else (None, "")


def _why(suspected: Warned, counts: Counts) -> str:
    return f"looks like {_A[suspected]}: {counts.distinct:,} distinct values in {counts.present:,} cells"


def _share(texts: pa.Array, pattern: str) -> float:
    return float(pc.mean(pc.match_substring_regex(texts, pattern).cast(pa.float64())).as_py())


SOME_LABELS = 20_000
"""Of more labels, those that are alike are not looked for."""


def near_duplicates(counts: Counts) -> list[str]:
    """Labels that differ in nothing but capitals and spaces.

    >>> counts = Counts(pa.array(["F", "F ", "f", "M"]), np.array([5, 1, 2, 4]), 12)
    >>> near_duplicates(counts)
    ["labels that differ in capitals or spaces alone: 'F', 'f', 'F '"]
    """
    if counts.distinct > SOME_LABELS:
        return []
    alike: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for label, times in zip(counts.values.to_pylist(), counts.times.tolist(), strict=True):
        alike[" ".join(label.split()).casefold()].append((times, label))
    groups = [sorted(group, key=lambda one: (-one[0], one[1])) for group in alike.values() if len(group) > 1]
    shown = ["; ".join(", ".join(repr(label) for _, label in group) for group in groups[:MAX_SHOWN])] if groups else []
    more = f" and {len(groups) - MAX_SHOWN} more" if len(groups) > MAX_SHOWN else ""
    return [f"labels that differ in capitals or spaces alone: {text}{more}" for text in shown]


def _marks_as_labels(counts: Counts) -> list[str]:
    marks = {*MISSING_MARKS} - {""}
    found = [
        (label, times / counts.present)
        for label, times in zip(counts.values.to_pylist(), counts.times.tolist(), strict=True)
        if label.strip() in marks
    ]
    return [
        f"{label!r} ({share:.1%} of the cells) is a label, as the column is text; if it marks missing cells, say so: "
        f"--na {label!r}"
        for label, share in found[:MAX_SHOWN]
    ]


def _looks_like_numbers(counts: Counts) -> list[str]:
    """Text that people write numbers or dates in, in a table where text stays text."""
    texts = counts.some()
    if not len(texts):
        return []
    shapes = count_shapes(texts.cast(pa.large_string()), MISSING_MARKS)
    cells = int(class_counts(shapes, POINT)[CellClass.WHOLE :].sum())
    if not cells or rewritten_cells(shapes) < NEARLY_ALL * cells:
        return []
    signs = "".join(decoration(int(np.argmax(decoration_counts(shapes))))).strip()
    what = "percentages" if signs == "%" else f"money ({signs})" if signs else "numbers or dates as people write them"
    return [f"these are {what}, as text: give dipriv the file, or convert them, so that they are released as numbers"]


def _may_be_codes(kind: Kind, counts: Counts, meaning: Meaning | None) -> tuple[str, ...]:
    """Few whole numbers, or few with wide gaps between them, may be codes, which would be released as amounts."""
    values = counts.values
    if meaning is not None or not isinstance(kind, Discrete) or not pa.types.is_primitive(values.type):
        return ()
    numbers = np.sort(values.to_numpy().astype(np.float64))
    few = 2 <= len(numbers) <= MAX_LEVELS and len(numbers) * ROWS_PER_LEVEL <= counts.present
    if not few or np.any(numbers != np.rint(numbers)):
        return ()
    has_gaps = numbers[-1] - numbers[0] + 1 > WIDE_GAPS * len(numbers)
    if len(numbers) > FEW_CODES and not (has_gaps and len(np.unique(np.diff(numbers))) > 2):
        return ()
    return (f'{len(numbers)} different whole numbers: if they are codes, not amounts, declare kind = "code"',)


def _may_be_unit(column: Column, words: set[str], counts: Counts) -> str:
    """A key that several rows share, as persons in a panel have."""
    if counts.distinct < MIN_VALUES or counts.distinct >= counts.present or column.storage.family == "real":
        return ""
    rows = counts.present / counts.distinct
    named = words & (PERSONS | {"id", "uuid", "guid", "key"})
    equal = rows >= 2 and counts.times.min() == counts.times.max()
    if rows < 1.5 or not (named or equal):
        return ""
    most = int(counts.times.max())
    return (
        f"{rows:.1f} rows for each of {counts.distinct:,} values, at most {most}: if these are persons, protect them, "
        f"not rows, with unit={column.name!r} (--unit)"
    )


def odd_cells(texts: pa.Array, marks: Sequence[str]) -> list[str]:
    """The most frequent cells of a text column whose type is undecided that are no numbers, dates or times."""
    some = texts.cast(pa.large_string())
    every = (*MISSING_MARKS, *marks)
    unread = pc.equal(pc.binary_length(write_plainly(some, every, POINT, None, YEAR_FIRST)), 0)
    odd = some.filter(pc.and_(unread, pa.array(classify(some, every).classes == CellClass.OTHER)))
    if not len(odd):
        return []
    found = pc.value_counts(odd).to_pylist()
    found = sorted(found, key=lambda one: (-one["counts"], one["values"]))[:MAX_SHOWN]
    shown = ", ".join(f"{one['values']!r:.30} ({one['counts'] / len(texts):.1%})" for one in found)
    return [
        f"cells that are something else: {shown}. If one marks missing cells, say so: --na {found[0]['values']!r:.30}"
    ]


def read_as_missing(
    texts: pa.Array, typed: pa.Array, marks: Sequence[str], labels: Mapping[str, pa.Array]
) -> list[str]:
    """Cells of a text file that are missing because they are not of their column's type, nor marks of missing cells.

    `labels` are those of the columns of text, where the same text is a label.
    """
    odd = texts.filter(pc.and_(pc.is_null(typed), pc.is_valid(texts)))
    odd = odd.filter(pc.invert(pc.is_in(pc.utf8_trim_whitespace(odd), pa.array([*MISSING_MARKS, *marks], odd.type))))
    found = sorted(pc.value_counts(odd).to_pylist(), key=lambda one: (-one["counts"], one["values"]))[:MAX_SHOWN]
    if not found:
        return []
    times = {one["values"]: one["counts"] for one in found}
    note = f"missing: {', '.join(f'{text!r:.30} ({count:,} cells)' for text, count in times.items())}"
    for text in times:
        where = [name for name, of in labels.items() if pc.is_in(pa.scalar(text, of.type), of).as_py()]
        if where:
            note += f"; the same text is a label in {', '.join(map(repr, where))}: --na {text!r:.30}"
    return [note]
