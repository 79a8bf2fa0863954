"""Columns that point to single people: identifiers, near-unique keys and free text; and the refusal of free text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dipriv._tables.frames import Column, Table, contains_text
from dipriv._tables.value_counts import count_values
from dipriv.codecs.fit import MAX_LEVELS, ROWS_PER_LEVEL, SAMPLE
from dipriv.errors import SchemaError, refuse_all
from dipriv.schema import Categorical, Discrete, Kind, Schema

MIN_VALUES = 20
"""From fewer values nothing is concluded about how many of them are distinct."""
NEAR_UNIQUE = 0.9
FREE_TEXT_DISTINCT = 0.5
FREE_TEXT_LENGTH = 40
FREE_TEXT_WORDS = 4
MAX_LONG_LABELS = 10
EXPECTED_REPEATS = 7.0
"""Where seven repeats are expected by chance, there are none with probability below exp(-7) < 0.1%."""
SPREAD_PER_ROW = 1.5
MIN_DIGITS = 12
"""Whole numbers of that many digits and of one length, all distinct, are no measurements."""

Warned: TypeAlias = Literal["identifier", "free text", "near-unique key"]
_ID_WORDS = frozenset({"id", "uuid", "guid", "key"})
_NUMBER_WORDS = frozenset({"nr", "number"})
NAMES = frozenset(
    {
        "name",
        "names",
        "surname",
        "forename",
        "lastname",
        "firstname",
        "fullname",
        "vorname",
        "nachname",
        "familienname",
        "nom",
        "prenom",
    }
)
_CONTACTS = frozenset(
    {
        "email",
        "emails",
        "mail",
        "phone",
        "telephone",
        "tel",
        "telefon",
        "telefonnummer",
        "mobile",
        "address",
        "addresses",
        "adresse",
        "anschrift",
    }
)
PERSONS = frozenset(
    {"person", "patient", "subject", "household", "client", "customer", "member", "user", "participant", "respondent"}
)
_OF_PEOPLE = NAMES | _CONTACTS | {"patient", "customer", "client"}
_BESIDE_NAMES = PERSONS | {"first", "last", "middle", "full", "given", "family", "maiden", "e", "no", "number", "nr"}
"""Words that leave a column what it is: first_name is a name of people, country_name is not."""
_BETWEEN_WORDS = re.compile(r"[\W\d_]+|(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_HEX = r"^([0-9a-fA-F]{8,}|\{?[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\}?)$"


@dataclass(frozen=True, eq=False)
class Counts:
    """A column's distinct values, how many times each occurs, and how many cells hold a value. All exact."""

    values: pa.Array = field(repr=False)
    times: NDArray[np.int64] = field(repr=False)
    present: int

    @property
    def distinct(self) -> int:
        return len(self.times)

    def over(self, share: float) -> bool:
        """Whether there are enough values to decide, and more than this share of them are distinct."""
        return self.present >= MIN_VALUES and self.distinct > share * self.present

    def some(self) -> pa.Array:
        """All distinct values, or about 65,536 of very many."""
        return self.values[:: 1 + self.distinct // SAMPLE]


def count(table: Table, column: Column) -> Counts:
    """Count the values of a column's selected rows; text as text, in every storage, other types as numbers."""
    found = count_values(table, [column.name])[column.name]
    values = found.values.cast(pa.large_string()) if contains_text(column) else found.values
    return Counts(values, found.counts, int(found.counts.sum()))


def free_text(table: Table, name: str) -> bool:
    """Whether a column is text that people typed, or text keys, rather than labels from a list.

    So it is if there are 20 values or more and over half of them are distinct; or if there are more than 10 distinct
    values and these have over 40 characters, or 4 words or more, on average (of about 65,536 where there are more).
    """
    return _why_free_text(table, name) is not None


def refuse_free_text(table: Table, names: Sequence[str], schema: Schema, keep: Sequence[str]) -> None:
    """Refuse to privatize free text among `names` that is neither kept nor declared with its levels.

    A refusal discloses something about the rows of `table`: give the reference rows, not the rows that are released.
    """
    found = []
    for name in names:
        declared = schema.get(name)
        listed = isinstance(declared, Categorical) and declared.levels is not None
        if name in keep or listed or name not in table.names:
            continue
        if (why := _why_free_text(table, name)) is not None:
            found.append(_free_text(name, why))
    refuse_all(found)


def refuse_free_text_labels(labels: Sequence[tuple[Column, pa.Array]], rows: int) -> None:
    """The same by the labels alone, where these and the number of rows are public; all columns at once."""
    found = []
    for column, of in labels:
        if not contains_text(column):
            continue
        counts = Counts(of.cast(pa.large_string()), np.zeros(len(of), dtype=np.int64), rows)
        if (why := _why_long_or_distinct(counts)) is not None:
            found.append(_free_text(column.name, why))
    refuse_all(found)


def _free_text(name: str, why: str) -> SchemaError:
    return SchemaError(
        f"column {name!r} looks like free text: {why}.",
        "Leave it out with drop=[...], keep it as it is, unprotected, with keep=[...], or declare its public labels in "
        "a schema: Categorical(levels=...).",
        command="Leave it out with --drop, keep it as it is, unprotected, with --keep, or list its public labels as "
        "levels in a schema, with --schema.",
    )


def warning(table: Table, column: Column, kind: Kind, counts: Counts) -> Warned | None:
    """What a column that would be taken as `kind` is suspected to be, if anything.

    identifier: at least 20 values, all distinct, and
        its name has id, uuid, guid, key, nr or number as a word (but not "number of"), or
        they are hexadecimal texts of one length or UUIDs, or
        they are whole numbers so close together that chance would repeat some, as row numbers are in any order, or
        whole numbers of one length, 12 digits or more, as account numbers are.
        Also, by a name with id, uuid, guid or key, a column whose values repeat but are at least 20 and too many to
        be levels: the key of people who have several rows each.
    near-unique key: at least 20 values, over 90% of them distinct, and
        they are labels that are not long, or
        they are whole numbers that rise or fall from row to row, or that are spread over at most 1.5 times as many
        multiples of their step as there are rows. Others, such as incomes, are measurements.
    free text: see `free_text`.
    """
    text = contains_text(column)
    long = text and _are_long(counts)
    if column.storage.family == "label" or (isinstance(kind, Discrete) and isinstance(kind.step, int)):
        if _is_identifier(column, kind, counts):
            return "identifier"
        if counts.over(NEAR_UNIQUE) and not long and _is_key(table, kind, column.name):
            return "near-unique key"
    return "free text" if text and (long or counts.over(FREE_TEXT_DISTINCT)) else None


def _why_free_text(table: Table, name: str) -> str | None:
    column = table.column(name)
    return _why_long_or_distinct(count(table, column)) if contains_text(column) else None


def _why_long_or_distinct(counts: Counts) -> str | None:
    if counts.over(FREE_TEXT_DISTINCT):
        return f"{counts.distinct} of {counts.present} values are distinct, over {FREE_TEXT_DISTINCT:.0%}"
    if _are_long(counts):
        return (
            f"its {counts.distinct} distinct values have over {FREE_TEXT_LENGTH} characters or at least "
            f"{FREE_TEXT_WORDS} words on average"
        )
    return None


def _are_long(counts: Counts) -> bool:
    """Judged by the distinct values, so that remarks are seen for what they are even if most of them are empty."""
    if counts.distinct <= MAX_LONG_LABELS:
        return False
    some = counts.some()
    words = pc.mean(pc.count_substring_regex(some, r"\S+")).as_py()
    return bool(pc.mean(pc.utf8_length(some)).as_py() > FREE_TEXT_LENGTH or words >= FREE_TEXT_WORDS)


def _is_identifier(column: Column, kind: Kind, counts: Counts) -> bool:
    if counts.present < MIN_VALUES:
        return False
    words = name_words(column.name)
    if counts.distinct < counts.present:
        too_many = counts.distinct > MAX_LEVELS or counts.distinct * ROWS_PER_LEVEL > counts.present
        return bool(words & _ID_WORDS) and counts.distinct >= MIN_VALUES and too_many
    if words & _ID_WORDS or (words & _NUMBER_WORDS and "of" not in words):
        return True
    if isinstance(kind, Discrete):
        # independent draws from any distribution have no repeat with probability at most exp(-expected)
        values = counts.values.to_numpy()
        expected = counts.present * (counts.present - 1) / 2 / _spread(values, kind)
        return expected >= EXPECTED_REPEATS or _have_many_digits(values)
    return contains_text(column) and _is_hex(counts.some())


def name_words(name: str) -> set[str]:
    """The words of a column's name, in small letters.

    >>> sorted(name_words("patientID_2 nr"))
    ['id', 'nr', 'patient']
    """
    return {word.lower() for word in _BETWEEN_WORDS.split(name)}


def is_named_identifier(name: str) -> bool:
    """Whether a column's name alone, which is public, says that it identifies rows or people."""
    return bool(name_words(name) & _ID_WORDS)


def is_named_person(name: str) -> bool:
    """Whether a column's name alone, which is public, says that it holds names of people, or how to reach them.

    >>> names = "Name", "last_name", "E-Mail", "patient", "patient_age", "country_name"
    >>> [name for name in names if is_named_person(name)]
    ['Name', 'last_name', 'E-Mail', 'patient']
    """
    words = name_words(name) - {""}
    return bool(words & _OF_PEOPLE) and words <= _OF_PEOPLE | _BESIDE_NAMES


def _is_hex(texts: pa.Array) -> bool:
    lengths = pc.min_max(pc.utf8_length(texts)).as_py()
    return lengths["min"] == lengths["max"] and bool(pc.all(pc.match_substring_regex(texts, _HEX)).as_py())


def _have_many_digits(z: NDArray[Any]) -> bool:
    """Whether all are positive and have the same number of digits, 12 or more, as account numbers have."""
    low, high = z.min().item(), z.max().item()
    return bool(low >= 10 ** (MIN_DIGITS - 1) and len(str(int(low))) == len(str(int(high))))


def _is_key(table: Table, kind: Kind, name: str) -> bool:
    """Whether nearly distinct values are a key: labels, and numbers that are sorted or dense."""
    if not isinstance(kind, Discrete):
        return True
    z = table.cells(name).present
    is_sorted = np.all(z[1:] >= z[:-1]) or np.all(z[1:] <= z[:-1])
    return bool(is_sorted or _spread(z, kind) <= SPREAD_PER_ROW * len(z))


def _spread(z: NDArray[Any], kind: Discrete) -> float:
    """How many multiples of its step there are from the smallest value to the largest."""
    return float((z.max().item() - z.min().item()) / (kind.step or 1) + 1)
