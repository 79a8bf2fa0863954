"""Codecs: one column's cells <-> continuous reals."""

from dipriv._base.columns import NAN, NULL, PRESENT, ColumnValues
from dipriv.codecs.protocol import Codec

__all__ = [
    "NAN",
    "NULL",
    "PRESENT",
    "Codec",
    "ColumnValues",
]
