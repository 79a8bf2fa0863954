"""The five arrows composed: cells in, cells out.

    Z --encode--> V --to_uniform--> U --perturb--> Ũ --from_uniform--> Ṽ --decode--> Z̃

The privacy proof in three lines: given the codecs, the reference and the order, a released row depends on its
private row through U alone; `perturb` is ε-private whatever U is; all that follows is post-processing. So the
codecs and the reference must not depend on rows that are released.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dipriv.codecs.protocol import Cells, Codec
from dipriv.kernels.protocol import Kernel
from dipriv.randomness import Bits, FloatArray
from dipriv.references.protocol import Reference


@dataclass(frozen=True, eq=False)
class Mechanism:
    """DIP for rows of cells (Algorithm 1). `order` lists the columns of V in the order of the chain rule."""

    codecs: tuple[Codec, ...] = field(repr=False)
    reference: Reference = field(repr=False)
    kernel: Kernel = field(repr=False)
    order: tuple[int, ...] = field(repr=False)

    def privatize(self, columns: Sequence[Cells], bits: Bits) -> list[Cells]:
        """Release these rows: one `Cells` per column in, one out, row by row."""
        v = encode(self.codecs, columns, bits)
        released = self.chain(v[:, self.order], bits)
        v[:, self.order] = released
        return decode(self.codecs, v)

    def chain(self, v: FloatArray, bits: Bits) -> FloatArray:
        """V -> Ṽ in the order of the chain rule: eq. (cond_priv)."""
        u = self.reference.to_uniform(v)
        return self.reference.from_uniform(self.kernel.perturb(u, bits))


def encode(codecs: Sequence[Codec], columns: Sequence[Cells], bits: Bits) -> FloatArray:
    """Cells of all columns -> V, one after the other."""
    v = [codec.encode(cells, bits) for codec, cells in zip(codecs, columns, strict=True)]
    return np.concatenate(v, axis=1)


def decode(codecs: Sequence[Codec], v: FloatArray) -> list[Cells]:
    """V -> cells of all columns."""
    ends = np.cumsum([codec.dims for codec in codecs])
    return [codec.decode(v[:, end - codec.dims : end]) for codec, end in zip(codecs, ends, strict=True)]
