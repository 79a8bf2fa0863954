"""Columns of text whose cells repeat few texts: each of these is looked at once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from dipriv._base.arrays import Counts

_SAMPLE = 1024
"""The number of cells to look at first."""


def coded(texts: pa.Array) -> pa.Array:
    """The same cells as a dictionary if each text occurs several times, else as they are.

    >>> coded(pa.array(["f", "m"] * 1000)).dictionary.to_pylist(), len(coded(pa.array(["f", "m"])))
    (['f', 'm'], 2)
    """
    if not (pt.is_string(texts.type) or pt.is_large_string(texts.type)) or len(texts) <= _SAMPLE:
        return texts
    if 2 * len(texts[:_SAMPLE].unique()) > _SAMPLE:
        return texts
    found = texts.dictionary_encode(null_encoding="encode")
    return found if 4 * len(found.dictionary) <= len(found) else texts


def distinct(texts: pa.Array) -> tuple[pa.Array, Counts]:
    """The texts of a column, each once where it is coded, and how many cells have each."""
    if not pt.is_dictionary(texts.type):
        return texts, np.ones(len(texts), dtype=np.int64)
    return texts.dictionary, np.bincount(texts.indices.to_numpy(), minlength=len(texts.dictionary))
