"""No two uses of random bits share a block: recorded while all codecs and kernels draw, side by side."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from dipriv._base.arrays import FloatArray, Words
from dipriv._base.atoms_line import AtomsLine
from dipriv._base.columns import NULL, PRESENT, ColumnValues
from dipriv._random import streams
from dipriv._random.bits import Bits, Draws
from dipriv._random.discrete_gaussian import discrete_gaussian
from dipriv._random.streams import LOOSE_LANE, NoiseUse, SplitLane, SpreadUse, Stream, column_stream
from dipriv.codecs import Codec
from dipriv.codecs.levels import LatticeCodec, LevelsCodec
from dipriv.codecs.missing import MissingCodec
from dipriv.codecs.one_hot import OneHotCodec
from dipriv.codecs.real import RealCodec
from dipriv.kernels import Kernel, KernelSpec, Laplace, OptimalColumns, OptimalJoint, Transition
from dipriv.kernels.laplace import LaplaceKernel
from dipriv.mechanism import Chain, compose
from dipriv.references import Known, ReferenceRows

ROWS = 1001
FIRST = 10


class Recorded(Bits):
    """Bits that note each block that is drawn: its key, lane and position."""

    def __init__(self, key: bytes, log: Counter[tuple[bytes, int, int]]) -> None:
        super().__init__(key, secure=False)
        self.log = log

    def blocks(self, lane: int, start: int, count: int) -> Words:
        self.log.update((self._key, int(lane), start + row) for row in range(count))
        return super().blocks(lane, start, count)

    def blocks_at(self, lane: int, positions: NDArray[np.int64]) -> Words:
        self.log.update((self._key, int(lane), int(position)) for position in positions)
        return super().blocks_at(lane, positions)

    def child(self, label: str) -> Recorded:
        return Recorded(super().child(label)._key, self.log)


def recorded() -> Recorded:
    return Recorded(bytes(32), Counter())


def most_uses(bits: Recorded) -> int:
    """How often the most used block is drawn."""
    return max(bits.log.values())


REAL = RealCodec(AtomsLine.around(np.array([0.0, 1.0])), np.dtype(np.float64), floor=-5.0)
CODECS: list[Codec] = [
    MissingCodec(REAL, (NULL,), -5.0),
    OneHotCodec(np.arange(4.0), (NULL,)),
    MissingCodec(LatticeCodec(1, 1, np.dtype(np.int64), -1.0), (NULL,), -1.0),
]
COLUMNS = [
    ColumnValues((np.arange(ROWS) % 4).astype(dtype), np.where(np.arange(ROWS) % 3, PRESENT, NULL).astype(np.uint8))
    for dtype in (np.float64, np.float64, np.int64)
]
WIDTH = sum(codec.dims for codec in CODECS)
KERNELS: dict[str, KernelSpec] = {"laplace": Laplace(), "columns": OptimalColumns(), "joint": OptimalJoint()}


def reference(width: int) -> object:
    laws = {f"c{i}": stats.norm() for i in range(width)}
    return Known(laws).fit(ReferenceRows(np.empty((0, width)), np.full(width, -np.inf), tuple(laws)))


@pytest.mark.parametrize("name", KERNELS)
def test_a_release_draws_every_block_once(name: str) -> None:
    kernel = KERNELS[name].build(1.0, [f"c{i}" for i in range(WIDTH)])
    fitted = reference(WIDTH)
    bits = recorded()
    Chain(tuple(CODECS), fitted, kernel, tuple(range(WIDTH))).privatize(COLUMNS, bits, FIRST)  # type: ignore[arg-type]
    assert most_uses(bits) == 1


def test_columns_that_are_released_one_by_one_have_streams_of_their_own() -> None:
    codecs: list[Codec] = [RealCodec(AtomsLine.around(np.empty(0)), np.dtype(np.float64)), LevelsCodec(np.arange(4.0))]
    kernel = OptimalColumns().build(1.0, ["c0", "c1"])
    bits = recorded()
    columns = [ColumnValues(np.arange(ROWS) % 4.0), ColumnValues(np.arange(ROWS) % 4.0)]
    compose(codecs, reference(2), kernel, (0, 1)).privatize(columns, bits, FIRST)  # type: ignore[arg-type]
    assert most_uses(bits) == 1
    assert len({key for key, _, _ in bits.log}) == 3  # two of noise, and one of a codec that spreads levels


def test_digits_that_decide_a_draw_are_drawn_once() -> None:
    """Few digits in the tables leave many draws to further digits."""
    bits = recorded()
    Transition(Laplace().build(1.0, ["c0"]).on_levels(np.full(4, 0.25)).budget, ((3, 2), (2, 3)), digits=3).perturb(
        np.arange(ROWS) % 2, Draws(bits, FIRST, ROWS)
    )
    assert any(lane >> 16 & 0xFFFFFF == NoiseUse.FURTHER_DIGITS for _, lane, _ in bits.log)
    assert most_uses(bits) == 1


def test_discrete_gaussian_noise_draws_every_block_once() -> None:
    """All draws are left to further digits, and one in four is rejected."""
    bits = recorded()
    discrete_gaussian(Draws(bits, FIRST, ROWS), Fraction(10**6, 3), band=math.inf)
    uses = Counter(lane >> 16 & 0xFFFFFF for _, lane, _ in bits.log)
    assert uses[NoiseUse.DRAW] > ROWS
    assert most_uses(bits) == 1


class Reuses(LaplaceKernel):
    """The mutant: another draw from the bits that the noise has used."""

    def perturb(self, u: FloatArray, draws: Draws) -> FloatArray:
        draws.of_column(0).blocks(NoiseUse.DRAW)
        return super().perturb(u, draws)


def test_a_kernel_that_uses_bits_twice_is_found() -> None:
    own = Laplace().build(1.0, ["c0"])
    mutant: Kernel = Reuses(own.epsilon, own.lattice_bits, own.scales)
    bits = recorded()
    mutant.perturb(np.full((ROWS, 1), 0.5), Draws(bits, FIRST, ROWS))
    assert most_uses(bits) == 2


def test_labels_and_lanes_are_what_seeded_releases_depend_on() -> None:
    """Changed values would change every seeded release."""
    assert [stream.value for stream in Stream] == [
        "fit", "order", "reference", "noise", "spread", "missing", "split", "persons", "rows of persons", "rows",
        "places", "rounding",
    ]  # fmt: skip
    assert column_stream(3) == "column 3"
    assert [(use.name, use.value) for use in SpreadUse] == [("PLACE", 0), ("MISSING", 1)]
    assert [(use.name, use.value) for use in NoiseUse] == [("DRAW", 0), ("FURTHER_DIGITS", 1), ("PLACE_IN_BIN", 2)]
    assert [(lane.name, lane.value) for lane in SplitLane] == [("ROWS", 0), ("KEYS", 1)]
    last = Draws(recorded(), 0, 1, column=(1 << 24) - 1)._lane((1 << 16) - 1, (1 << 16) - 1)
    assert last < LOOSE_LANE == streams.LOOSE_LANE
