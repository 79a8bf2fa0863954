"""All uses of random bits, in one place: two uses of one stream must never share bits.

A release has one `Bits`. `Bits.child(label)` is an independent stream for each `Stream`. Inside a stream the bits of a
row are addressed by the column and by what they are used for, which is a number below. Seeded releases depend on every
value here: they must not change.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum, unique


@unique
class Stream(StrEnum):
    """Labels of `Bits.child`."""

    FIT = "fit"
    """Learning the reference: noise of private measurements, and the streams ORDER and REFERENCE."""
    ORDER = "order"
    """The order of the chain rule, where it is drawn at random."""
    REFERENCE = "reference"
    """Encoding of reference rows; uses as in SPREAD."""
    NOISE = "noise"
    """The release, and in it, as a stream of its own, the noise of rows; see `NoiseUse`."""
    SPREAD = "spread"
    """Encoding of private rows, by codecs; see `SpreadUse`."""
    MISSING = "missing"
    """Draws from the reference in place of missing cells that it has no atom for: one use, each column of U."""
    SPLIT = "split"
    """The rows that are held out; see `SplitLane`."""
    PERSONS = "persons"
    """Contribution bounding: the scores of privacy units."""
    ROWS_OF_PERSONS = "rows of persons"
    """Contribution bounding: the scores of the rows of a privacy unit."""
    ROWS = "rows"
    """Simulated rows by which fidelity is estimated."""
    PLACES = "places"
    """The order of released rows on Spark: one use, a block a row."""
    ROUNDING = "rounding"
    """Rounding of weights that are rescaled to a total: one use, for each such column."""


def column_stream(number: int) -> str:
    """The label of the stream of a column that is released by itself.

    >>> column_stream(2)
    'column 2'
    """
    return f"column {number}"


@unique
class SpreadUse(IntEnum):
    """What codecs draw for a cell. `OneHotCodec`, which has no inner codec, draws for dummy number k by use k."""

    PLACE = 0
    """The place of a value inside its interval: all codecs."""
    MISSING = 1
    """The place inside the interval of a missing value: `MissingCodec`, whose inner codec uses PLACE."""


@unique
class NoiseUse(IntEnum):
    """What kernels and measurements draw for a column of a row.

    The joint kernel draws its flips as one column more, by the uses 0, 1, ... of that column, and the cap kernel its
    trials.
    """

    DRAW = 0
    """The random words that decide nearly all draws: `discrete_laplace`, `discrete_gaussian`, `Transition`, low bits of
    `JointKernel`, columns that take no part in `CapKernel`."""
    FURTHER_DIGITS = 1
    """Digits for draws that these words leave undecided: `discrete_laplace`, `discrete_gaussian`, `Transition`."""
    PLACE_IN_BIN = 2
    """The place inside the bin that comes out: `ColumnsKernel`."""


@unique
class SplitLane(IntEnum):
    """Lanes of the stream that holds out rows, addressed without columns."""

    ROWS = 0
    """Rows by their position: `Draws` of column 0 and use 0."""
    KEYS = 1
    """Rows by a key that is a whole number."""


LOOSE_LANE = (1 << 64) - 1
"""The lane of words that belong to no row: `Bits.words`. No column and use have this number."""
