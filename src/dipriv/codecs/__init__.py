"""Codecs: one column's cells <-> continuous reals."""

from dipriv.codecs.categorical import OneHotCodec
from dipriv.codecs.cells import CellsCodec, RanksCodec
from dipriv.codecs.discrete import LatticeCodec, LevelsCodec
from dipriv.codecs.fit import fit_codec, infer_kind
from dipriv.codecs.lines import BitsLine, Line, StepsLine
from dipriv.codecs.mixed import MixedLine, RealCodec
from dipriv.codecs.nulls import NullsCodec
from dipriv.codecs.protocol import NAN, NULL, PRESENT, Cells, Codec

__all__ = [
    "NAN",
    "NULL",
    "PRESENT",
    "BitsLine",
    "Cells",
    "CellsCodec",
    "Codec",
    "LatticeCodec",
    "LevelsCodec",
    "Line",
    "MixedLine",
    "NullsCodec",
    "OneHotCodec",
    "RanksCodec",
    "RealCodec",
    "StepsLine",
    "fit_codec",
    "infer_kind",
]
