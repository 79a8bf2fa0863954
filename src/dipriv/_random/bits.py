"""Random bits: from the operating system's secure source, or from a seed for experiments.

All bits come from AES-256 in counter mode. A stream has *lanes* (one per column and purpose) and in each lane one
128-bit block per row, addressed by its position. So the bits of a row depend on the key, the lane and the row alone:
not on batch sizes, threads, or the order of work. `seed=None` keys the stream by the operating system. A seed derives
the key from the seed, which makes a run repeatable and takes the guarantee away: whoever knows or guesses the seed can
subtract the noise. Proofs are for ideal random bits, so guarantees are computational: they assume that AES-256 is a
pseudorandom function.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dipriv._base.arrays import FloatArray, Words
from dipriv._random.streams import LOOSE_LANE
from dipriv.errors import InputError

Seed: TypeAlias = int | np.random.SeedSequence | None

_ZEROS = bytes(1 << 22)


class Bits:
    """A keyed stream of independent, uniform 128-bit blocks, addressed by lane and position."""

    def __init__(self, key: bytes, *, secure: bool, repeats: bool = False) -> None:
        self._key = key
        self._process = os.getpid()
        self._next = 0
        self._repeats = repeats
        self.secure = secure

    def blocks(self, lane: int, start: int, count: int) -> Words:
        """(count, 2) words: the blocks at positions start, start + 1, ... of a lane."""
        from cryptography.hazmat.primitives.ciphers import modes

        cipher = self._cipher(modes.CTR((lane << 64 | start).to_bytes(16, "big")))
        words = np.empty((count + 1, 2), dtype="<u8")  # the cipher asks for room beyond what it writes
        room = memoryview(words.data).cast("B")
        done = 0
        while done < 16 * count:
            piece = min(len(_ZEROS), 16 * count - done)
            done += cipher.update_into(memoryview(_ZEROS)[:piece], room[done:])
        return words[:count]

    def blocks_at(self, lane: int, positions: NDArray[np.int64]) -> Words:
        """(len(positions), 2) words: blocks at scattered positions, the same as `blocks` gives there."""
        from cryptography.hazmat.primitives.ciphers import modes

        counters = np.empty((len(positions), 2), dtype=">u8")
        counters[:, 0], counters[:, 1] = lane, positions
        words = np.empty((len(positions) + 1, 2), dtype="<u8")  # as above; `update` would take new memory, slowly
        cipher = self._cipher(modes.ECB())  # noqa: S305 (the counter blocks of the mode above)
        cipher.update_into(counters.tobytes(), memoryview(words.data).cast("B"))
        return words[:-1]

    def words(self, count: int) -> Words:
        """The next `count` words of a lane of their own, for uses that have no rows."""
        start, self._next = self._next, self._next + (count + 1) // 2
        return self.blocks(LOOSE_LANE, start, (count + 1) // 2).reshape(-1)[:count]

    def child(self, label: str) -> Bits:
        """An independent stream for one purpose, a `Stream`, so that purposes never share bits."""
        self._rekey_after_fork()
        key = hashlib.blake2b(label.encode(), key=self._key, digest_size=32).digest()
        return Bits(key, secure=self.secure, repeats=self._repeats)

    def repeatable(self) -> Bits:
        """The same stream, with the same bits in any process: for work that another process may have to do again.

        Give it away only for rows that are numbered once and for all: each copy has the same bits for the same row.
        """
        self._rekey_after_fork()
        return Bits(self._key, secure=self.secure, repeats=True)

    def _cipher(self, mode: Any) -> Any:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

        self._rekey_after_fork()
        return Cipher(algorithms.AES(self._key), mode).encryptor()

    def _rekey_after_fork(self) -> None:
        """A forked copy of a secure stream would repeat its parent's noise: give it a key of its own."""
        if self.secure and not self._repeats and os.getpid() != self._process:
            self._key, self._process = os.urandom(32), os.getpid()


@dataclass(frozen=True)
class Draws:
    """The bits of some consecutive rows in one column, addressed by what they are used for: the uses in `streams`.

    Words and blocks of one use share bits: a use has either.
    """

    bits: Bits
    first: int
    count: int
    column: int = 0

    def of_column(self, column: int) -> Draws:
        """The same rows, another column."""
        return Draws(self.bits, self.first, self.count, column)

    def words(self, use: int = 0) -> Words:
        """One word a row; two rows share a block."""
        skip = self.first % 2
        blocks = self.bits.blocks(self._lane(use, 0), self.first // 2, (self.count + skip + 1) // 2)
        return blocks.reshape(-1)[skip : skip + self.count]

    def uniforms(self, use: int = 0) -> FloatArray:
        """One uniform on [0, 1) a row, a multiple of 2^-53."""
        return (self.words(use) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def blocks(self, use: int = 0) -> Words:
        """One block a row, (count, 2) words."""
        return self.bits.blocks(self._lane(use, 0), self.first, self.count)

    def blocks_again(self, use: int, attempt: int, rows: NDArray[np.int64]) -> Words:
        """Further blocks for some of the rows, (len(rows), 2) words; attempts count from 1."""
        return self.bits.blocks_at(self._lane(use, attempt), self.first + rows)

    def runs(self, use: int, length: int) -> Words:
        """`length` blocks a row, (count, 2 length) words. A use has runs of one length."""
        blocks = self.bits.blocks(self._lane(use, 0), self.first * length, self.count * length)
        return blocks.reshape(self.count, 2 * length)

    def runs_again(self, use: int, length: int, rows: NDArray[np.int64]) -> Words:
        """The same for some of the rows, (len(rows), 2 length) words."""
        positions = (self.first + rows)[:, np.newaxis] * length + np.arange(length)
        return self.bits.blocks_at(self._lane(use, 0), positions.ravel()).reshape(len(rows), 2 * length)

    def _lane(self, use: int, attempt: int) -> int:
        return self.column << 40 | use << 16 | attempt


def source(seed: Seed) -> Bits:
    """The stream that `seed` asks for: secure bits for None, repeatable bits for a seed.

    >>> source(None).secure, source(7).secure
    (True, False)
    """
    if seed is None:
        return Bits(os.urandom(32), secure=True)
    if isinstance(seed, np.random.SeedSequence):
        return Bits(seed.generate_state(4, np.uint64).astype("<u8").tobytes(), secure=False)
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise InputError(
            f"seed must be None or a whole number >= 0, not {type(seed).__name__}.",
            "Leave seed out for secure randomness; give a seed only for experiments.",
        )
    return source(np.random.SeedSequence(int(seed)))
