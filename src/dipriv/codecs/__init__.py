"""Codecs: one column's cells <-> continuous reals."""

from dipriv._base.atoms_line import AtomsLine
from dipriv._base.columns import NAN, NULL, PRESENT, ColumnValues
from dipriv.codecs.binned import BinnedCodec, RankedLevelsCodec
from dipriv.codecs.fit import fit_codec, infer_kind
from dipriv.codecs.levels import LatticeCodec, LevelsCodec
from dipriv.codecs.missing import MissingCodec
from dipriv.codecs.one_hot import OneHotCodec
from dipriv.codecs.ordered_codes import FloatBitCodes, GridCodes, OrderedCodes
from dipriv.codecs.protocol import Codec
from dipriv.codecs.real import RealCodec

__all__ = [
    "NAN",
    "NULL",
    "PRESENT",
    "AtomsLine",
    "BinnedCodec",
    "Codec",
    "ColumnValues",
    "FloatBitCodes",
    "GridCodes",
    "LatticeCodec",
    "LevelsCodec",
    "MissingCodec",
    "OneHotCodec",
    "OrderedCodes",
    "RankedLevelsCodec",
    "RealCodec",
    "fit_codec",
    "infer_kind",
]
