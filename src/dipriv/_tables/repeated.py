"""Columns of text whose cells repeat few texts: each of these is looked at once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from dipriv._base.arrays import Counts

SAMPLE = 1024
"""The number of cells to look at first."""


def coded(texts: pa.Array) -> pa.Array:
    """The same cells as a dictionary if each text occurs several times, else as they are.

    >>> coded(pa.array(["f", "m"] * 1000)).dictionary.to_pylist(), len(coded(pa.array(["f", "m"])))
    (['f', 'm'], 2)
    """
    if not (pt.is_string(texts.type) or pt.is_large_string(texts.type)) or len(texts) <= SAMPLE:
        return texts
    if not may_repeat(texts[:SAMPLE]):
        return texts
    found = texts.dictionary_encode(null_encoding="encode")
    return found if repeats(found) else texts


def may_repeat(cells: pa.Array | pa.ChunkedArray) -> bool:
    """Whether these cells, the first ones of a column, have each value twice on average."""
    return 2 * len(cells.unique()) <= len(cells)


def repeats(texts: pa.DictionaryArray) -> bool:
    """Whether each text of a dictionary stands for several cells, on average."""
    return 4 * len(texts.dictionary) <= len(texts)


def without_null_labels(texts: pa.DictionaryArray) -> pa.DictionaryArray:
    """The same cells, where none is null by its label: Arrow cannot put such dictionaries together."""
    labels = texts.dictionary
    if not labels.null_count:
        return texts
    there = labels.is_valid()
    numbers = pc.subtract(pc.cumulative_sum(there.cast(pa.int32())), 1)
    places = pc.if_else(there, numbers, pa.scalar(None, pa.int32()))
    return pa.DictionaryArray.from_arrays(places.take(texts.indices), labels.drop_null())


def compact(texts: pa.DictionaryArray) -> pa.DictionaryArray:
    """The same cells, with indices that are as narrow as the labels allow.

    >>> compact(pa.array(["f", None]).dictionary_encode()).type
    DictionaryType(dictionary<values=string, indices=int8, ordered=0>)
    """
    texts = without_null_labels(texts)
    narrow = next((of for of in (pa.int8(), pa.int16()) if len(texts.dictionary) <= room(of)), pa.int32())
    return pa.DictionaryArray.from_arrays(texts.indices.cast(narrow), texts.dictionary)


def room(index_type: pa.DataType) -> int:
    """How many labels indices of this type can number."""
    return int(np.iinfo(index_type.to_pandas_dtype()).max) + 1


def distinct(texts: pa.Array) -> tuple[pa.Array, Counts]:
    """The texts of a column, each once where it is coded, and how many cells have each."""
    if not pt.is_dictionary(texts.type):
        return texts, np.ones(len(texts), dtype=np.int64)
    labels, indices = texts.dictionary, texts.indices
    counts = np.bincount(indices.drop_null().to_numpy(), minlength=len(labels))
    if not indices.null_count:
        return labels, counts
    return pa.concat_arrays([labels, pa.nulls(1, labels.type)]), np.append(counts, indices.null_count)
