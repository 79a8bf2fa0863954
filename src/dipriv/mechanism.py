"""The five arrows composed: cells in, cells out.

    Z --encode--> V --to_uniform--> U --perturb--> Ũ --from_uniform--> Ṽ --decode--> Z̃

The privacy proof in three lines: given the codecs, the reference and the order, a released row depends on its
private row through U alone; `perturb` is ε-private for any U; all that follows is post-processing. Every row has a U,
null, infinite and out-of-range cells included: a row that is refused would be an output that others do not have. So
the codecs and the reference must not depend on rows that are released, unless they were themselves learned under
differential privacy and their ε is accounted for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import FloatArray, Mask, Words, first_not_below
from dipriv._base.columns import ColumnValues
from dipriv._base.jit import jit
from dipriv._random.bits import Bits, Draws
from dipriv._random.streams import Stream, column_stream
from dipriv.codecs import Codec
from dipriv.codecs.levels import LevelsCodec
from dipriv.errors import InputError
from dipriv.kernels import Kernel, Transition
from dipriv.kernels.transition import bin_shift, sample_alias
from dipriv.references import Reference
from dipriv.references._models.distributions import Distribution, LevelsDistribution
from dipriv.references._models.independent import Independent


class Mechanism(Protocol):
    """Releases some columns of rows: one `ColumnValues` per column in, one out, row by row."""

    def privatize(self, columns: Sequence[ColumnValues], bits: Bits, first: int = 0) -> list[ColumnValues]:
        """`first` is the number of the first row: the bits of a row depend on its number alone."""
        ...


@dataclass(frozen=True, eq=False)
class Chain:
    """DIP for rows of cells (Algorithm 1). `order` lists the columns of V in the order of the chain rule."""

    codecs: tuple[Codec, ...] = field(repr=False)
    reference: Reference = field(repr=False)
    kernel: Kernel = field(repr=False)
    order: tuple[int, ...] = field(repr=False)

    def privatize(self, columns: Sequence[ColumnValues], bits: Bits, first: int = 0) -> list[ColumnValues]:
        return self.restore(self.perturb(columns, bits, first))

    def perturb(self, columns: Sequence[ColumnValues], bits: Bits, first: int = 0) -> FloatArray:
        """The first three arrows: Ũ, its columns in the order of the chain rule. All that is private ends here."""
        spread = Draws(bits.child(Stream.SPREAD), first, len(columns[0]))
        noise = Draws(bits.child(Stream.NOISE), first, len(columns[0]))
        v = encode(self.codecs, columns, spread)
        u = self.reference.to_uniform(v if self._in_order else v[:, self.order])
        return self.kernel.perturb(u, noise)

    def restore(self, u: FloatArray) -> list[ColumnValues]:
        """The last two arrows: cells from Ũ."""
        released = self.reference.from_uniform(u)
        if self._in_order:
            return decode(self.codecs, released)
        in_place = np.full_like(released, np.nan)  # never over the private cells: what is not released is not there
        in_place[:, self.order] = released
        return decode(self.codecs, in_place)

    @property
    def _in_order(self) -> bool:
        return self.order == tuple(range(len(self.order)))


@dataclass(frozen=True, eq=False)
class Levels:
    """One column of levels with known or estimated probabilities: the chain in one step, by its transition matrix."""

    codec: LevelsCodec = field(repr=False)
    transition: Transition = field(repr=False)

    def __post_init__(self) -> None:
        if self.codec.states != len(self.transition.weights):
            raise InputError("the codec and the transition matrix differ in their levels.", "Fit anew.")

    def privatize(self, columns: Sequence[ColumnValues], bits: Bits, first: int = 0) -> list[ColumnValues]:
        noise = Draws(bits.child(Stream.NOISE), first, len(columns[0]))
        if self.codec.missing or columns[0].missing is not None:
            return [self.codec.from_states(self.transition.perturb(self.codec.to_states(columns[0]), noise))]
        values, levels, words = columns[0].values, self.codec.levels, noise.words()
        released = np.empty(len(values), dtype=levels.dtype)
        tables = self.transition.digits, self.transition.thresholds, self.transition.aliases
        row = swap_levels(values, levels, words, *tables, 0, released)
        while row < len(values):
            state = int(self.codec.to_states(columns[0].take(slice(row, row + 1)))[0])
            released[row] = levels[self.transition.decide(state, int(words[row]), noise, row)]
            row = swap_levels(values, levels, words, *tables, row + 1, released)
        return [ColumnValues(released)]


@jit
def swap_levels(
    values: NDArray[Any],
    levels: NDArray[Any],
    words: Words,
    digits: int,
    thresholds: Words,
    aliases: NDArray[np.int64],
    start: int,
    released: NDArray[Any],
) -> int:
    """To states, through the transition matrix and back, in one pass; as `sample_aliases`."""
    unused, shift = np.uint64(64 - digits), bin_shift(digits, thresholds.shape[1])
    for i in range(start, len(values)):
        state = first_not_below(values[i], levels, len(levels) - 1)
        found = sample_alias(state, words[i], unused, shift, thresholds, aliases)
        if found < 0:
            return i
        released[i] = levels[found]
    return len(values)


@dataclass(frozen=True, eq=False)
class Separate:
    """Independent columns, each with a mechanism and random bits of its own."""

    parts: tuple[Mechanism, ...] = field(repr=False)

    def privatize(self, columns: Sequence[ColumnValues], bits: Bits, first: int = 0) -> list[ColumnValues]:
        return [
            part.privatize([cells], bits.child(column_stream(number)), first)[0]
            for number, (part, cells) in enumerate(zip(self.parts, columns, strict=True))
        ]


def compose(codecs: Sequence[Codec], reference: Reference, kernel: Kernel, order: Sequence[int]) -> Mechanism:
    """The mechanism for these arrows: independent columns one by one, columns of levels by transition matrices."""
    alone = [kernel.of_column(number) for number in range(len(order))]
    if not isinstance(reference, Independent) or None in alone:
        return Chain(tuple(codecs), reference, kernel, tuple(order))
    columns = zip(codecs, reference.laws, alone, strict=True)
    return Separate(tuple(_one_column(codec, marginal, of) for codec, marginal, of in columns if of is not None))


def _one_column(codec: Codec, marginal: Distribution, kernel: Kernel) -> Mechanism:
    if isinstance(codec, LevelsCodec) and isinstance(marginal, LevelsDistribution):
        try:
            return Levels(codec, kernel.on_levels(marginal.probabilities))
        except InputError:
            pass  # too many levels, or too little probability for integer weights: the chain has the same distribution
    return Chain((codec,), Independent((marginal,)), kernel, (0,))


def fill_missing(
    columns: Sequence[ColumnValues], codecs: Sequence[Codec], reference: Reference, order: Sequence[int], draws: Draws
) -> list[ColumnValues]:
    """A draw from the reference in place of each missing cell that its codec has no atom for.

    So every row has a U, and a null under a reference without nulls is released as a draw: refusing it would disclose
    a protected row. The guarantee stands. Given the draws, which do not depend on the row, each row has one U in the
    cube, and the kernel's bound holds for any two points of it; averaging over the draws keeps a bound on ratios. In
    columns that are independent under the reference, the cell's U is uniform and so is what the kernel makes of it:
    these cells leave the released distribution as it is.
    """
    absent = [_without_atom(codec, cells) for codec, cells in zip(codecs, columns, strict=True)]
    if all(cells is None for cells in absent):
        return list(columns)
    u = np.stack([draws.of_column(number).uniforms() for number in range(len(order))], axis=1)
    v = np.empty_like(u)
    v[:, order] = reference.from_uniform(np.maximum(u, 2.0**-53))  # 0 would be minus infinity on unbounded lines
    return [
        cells if here is None else _replaced(cells, here, drawn)
        for cells, here, drawn in zip(columns, absent, decode(codecs, v), strict=True)
    ]


def _without_atom(codec: Codec, cells: ColumnValues) -> Mask | None:
    """Which cells are missing and have no atom; None where there are none."""
    kinds = [kind for kind in cells.kinds_missing if kind not in codec.missing]
    return np.isin(cells.missing, kinds) if cells.missing is not None and kinds else None


def _replaced(cells: ColumnValues, where: Mask, by: ColumnValues) -> ColumnValues:
    """The cells, and others where the mask is true."""
    new, old = (np.zeros(len(some), dtype=np.uint8) if some.missing is None else some.missing for some in (by, cells))
    return ColumnValues(np.where(where, by.values, cells.values), np.where(where, new, old))


def encode(codecs: Sequence[Codec], columns: Sequence[ColumnValues], draws: Draws) -> FloatArray:
    """Cells of all columns -> V, one after the other."""
    v = [
        codec.encode(cells, draws.of_column(number))
        for number, (codec, cells) in enumerate(zip(codecs, columns, strict=True))
    ]
    return v[0] if len(v) == 1 else np.concatenate(v, axis=1)


def decode(codecs: Sequence[Codec], v: FloatArray) -> list[ColumnValues]:
    """V -> cells of all columns."""
    ends = np.cumsum([codec.dims for codec in codecs])
    return [codec.decode(v[:, end - codec.dims : end]) for codec, end in zip(codecs, ends, strict=True)]
