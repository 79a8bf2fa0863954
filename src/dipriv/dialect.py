"""How a file is written: separator, decimal mark, encoding, marks of missing cells, order of dates.

All this is public: it is given by the keeper, by options or by the section `[file]` of a schema, or found out in a way
that no single row can change. The separator and the quote are found in the first line, which has the columns' names;
the encoding by a byte order mark; decimal marks, thousands, signs of currencies and the order of dates by nearly all
cells of a column (`dipriv._tables.notation`).
"""

from __future__ import annotations

import codecs
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, TypeAlias

from dipriv._base.near_names import did_you_mean
from dipriv.errors import SchemaError

DateOrder: TypeAlias = Literal["ymd", "dmy", "mdy"]
SEPARATORS = (",", ";", "\t", "|")
"""What the first line is searched for."""
_NAMED_SEPARATORS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|"}
_MAX_SKIP = 10_000


@dataclass(frozen=True)
class Dialect:
    r"""How a file is written; what is None is found out.

    Parameters
    ----------
    separator : between cells of a text file: one character, or "tab". By default that of , ; | and tab which occurs
        most often in the first line.
    quote : around cells of a text file that have the separator in them: " or '. By default ' if all names of columns in
        the first line are in such quotes, else ".
    decimal : "." or ",". The other one may stand between thousands, and so may spaces and apostrophes.
    encoding : of a text file, such as "latin-1", "cp1252" or "utf-16"; by default what a byte order mark says, else
        UTF-8.
    missing : texts that mark missing cells, beside those of `dipriv.schema.MISSING_MARKS`.
    dates : "dmy" for 31/12/2024, "mdy" for 12/31/2024, "ymd" for neither; 2024-12-31 and 2024/12/31 are read always.
    skip : how many lines there are before that with the names of the columns.
    sheet : of a workbook, by its name.

    Raises
    ------
    SchemaError : a value cannot be used.

    Examples
    --------
    >>> Dialect(separator=";", decimal=",", missing=("-9",))
    Dialect(separator=';', decimal=',', missing=('-9',))
    >>> Dialect(separator="tab").separator
    '\t'
    """

    separator: str | None = None
    quote: str | None = None
    decimal: Literal[".", ","] | None = None
    encoding: str | None = None
    missing: tuple[str, ...] = ()
    dates: DateOrder | None = None
    skip: int | None = None
    sheet: str | None = None

    def __post_init__(self) -> None:
        separator = self.separator
        if isinstance(separator, str):
            object.__setattr__(self, "separator", _NAMED_SEPARATORS.get(separator, separator))
        missing: Any = self.missing
        if isinstance(missing, list):
            object.__setattr__(self, "missing", tuple(missing))
        _check(separator is None or _is_separator(self.separator), "separator", 'one character such as ";", or "tab"')
        _check(self.quote in (None, '"', "'"), "quote", "one of \" and '")
        _check(self.decimal in (None, ".", ","), "decimal", '"." or ","')
        _check(self.encoding is None or _is_encoding(self.encoding), "encoding", 'one such as "latin-1" or "utf-16"')
        are_texts = isinstance(self.missing, tuple) and all(isinstance(mark, str) for mark in self.missing)
        _check(are_texts, "missing", 'a list of texts, such as ["-9"]')
        _check(self.dates in (None, "ymd", "dmy", "mdy"), "dates", '"dmy", "mdy" or "ymd"')
        is_count = isinstance(self.skip, int) and not isinstance(self.skip, bool) and 0 <= self.skip <= _MAX_SKIP
        _check(self.skip is None or is_count, "skip", f"a number of lines, up to {_MAX_SKIP:,}")
        _check(self.sheet is None or (isinstance(self.sheet, str) and self.sheet != ""), "sheet", "a name")
        if self.quote is not None and self.quote == self.separator:
            raise SchemaError("separator and quote are the same.", "Give two different ones.")

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self._given().items())
        return f"Dialect({given})"

    def __bool__(self) -> bool:
        """Whether something is given."""
        return bool(self._given())

    def over(self, other: Dialect | None) -> Dialect:
        """What this one says, and of `other` what it leaves open; marks of missing cells are those of both.

        Parameters
        ----------
        other : a dialect with less precedence, if there is one.

        Returns
        -------
        The dialect of both.

        Examples
        --------
        >>> Dialect(decimal=",").over(Dialect(decimal=".", skip=2))
        Dialect(decimal=',', skip=2)
        """
        if other is None:
            return self
        missing = tuple(dict.fromkeys((*self.missing, *other.missing)))
        return Dialect(**{**other._given(), **self._given(), "missing": missing})

    def only(self, names: Collection[str]) -> Dialect:
        """What is given in these fields, and the marks of missing cells.

        Parameters
        ----------
        names : of fields.

        Returns
        -------
        The dialect without its other fields.

        Examples
        --------
        >>> Dialect(separator=";", skip=2, missing=("-9",)).only(("skip", "sheet"))
        Dialect(missing=('-9',), skip=2)
        """
        return Dialect(**{name: of for name, of in self._given().items() if name in (*names, "missing")})

    def to_dict(self) -> dict[str, Any]:
        """What is given, as plain data."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in self._given().items()}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Dialect:
        """The dialect that `to_dict` wrote.

        Parameters
        ----------
        plain : {field: value}; it may come from anybody.

        Returns
        -------
        The dialect.

        Raises
        ------
        SchemaError : a field is unknown, or its value cannot be used.
        """
        known = [field.name for field in fields(cls)]
        if unknown := [name for name in plain if name not in known]:
            raise SchemaError(
                f"[file] has no field {unknown[0]!r:.60}{did_you_mean(unknown[0], known)}.",
                f"It takes {', '.join(known)}.",
            )
        return cls(**plain)

    def _given(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value not in (None, ())}


def _check(holds: bool, field: str, use: str) -> None:
    if not holds:
        raise SchemaError(f"{field} of a file cannot be that.", f"Use {use}.")


def _is_separator(text: object) -> bool:
    one = isinstance(text, str) and len(text) == 1 and text.isascii()
    return one and not (text.isalnum() or text in "\"'\r\n\0.-+_")  # type: ignore[attr-defined, operator]


def _is_encoding(name: object) -> bool:
    """Whether Python decodes bytes to text by this name; some of its codecs do other things."""
    try:
        return isinstance(name, str) and codecs.lookup(name)._is_text_encoding
    except (LookupError, ValueError):
        return False


DETECTED = Dialect()
