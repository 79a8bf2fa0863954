"""CSV injection: a spreadsheet evaluates a cell such as `=HYPERLINK(...)` when a CSV file is opened.

Labels are public facts and are written unchanged by default; such cells are counted and reported. With
`escape_formulas` they are prefixed with an apostrophe, which makes spreadsheets treat them as text.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

_STARTS = "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"
_FORMULA = rf"(?s)^[{_STARTS.replace('-', chr(92) + '-')}]."
_NUMBER = r"^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$"
_FIRST_BYTES = np.zeros(256, dtype=np.bool_)
_FIRST_BYTES[[character.encode()[0] for character in _STARTS]] = True


def as_text(array: pa.Array) -> pa.Array:
    """Convert text, labels and views to large strings for the CSV writer; leave other types unchanged."""
    of = array.type.value_type if pt.is_dictionary(array.type) else array.type
    if not (pt.is_string(of) or pt.is_large_string(of) or pt.is_string_view(of)):
        return array
    plain = array.dictionary_decode() if pt.is_dictionary(array.type) else array
    return plain.cast(pa.large_string())


def formulas_in(array: pa.Array) -> NDArray[np.bool_] | None:
    """Which texts a spreadsheet would take for formulas, if any; numbers with a sign, and signs alone, are none."""
    if not pt.is_large_string(array.type) or not (suspects := _by_first_byte(array)).any():
        return None
    some = array.filter(pa.array(suspects))
    formulas = pc.and_not(pc.match_substring_regex(some, _FORMULA), pc.match_substring_regex(some, _NUMBER))
    suspects[suspects] = formulas.fill_null(False).to_numpy(zero_copy_only=False)
    return suspects if suspects.any() else None


def formula_names(names: list[str]) -> list[str]:
    """The names of columns that are like formulas themselves."""
    found = formulas_in(pa.array(names, pa.large_string()))
    return [] if found is None else [names[place] for place in np.flatnonzero(found)]


def escaped(texts: pa.Array, formulas: NDArray[np.bool_]) -> pa.Array:
    """The same texts, formulas behind an apostrophe."""
    mark, nothing = (pa.scalar(text, pa.large_string()) for text in ("'", ""))
    return pc.if_else(pa.array(formulas), pc.binary_join_element_wise(mark, texts, nothing), texts)


def _by_first_byte(texts: pa.Array) -> NDArray[np.bool_]:
    _, offsets, content = texts.buffers()
    ends = np.frombuffer(offsets, dtype="<i8")[texts.offset : texts.offset + len(texts) + 1]
    if content is None or not content.size:
        return np.zeros(len(texts), dtype=np.bool_)
    first = np.frombuffer(content, dtype=np.uint8)[np.minimum(ends[:-1], content.size - 1)]
    suspects: NDArray[np.bool_] = _FIRST_BYTES[first] & (ends[1:] > ends[:-1])
    return suspects
