"""Random bits: from the operating system's secure source, or from a seed for experiments.

Randomness is always an argument. `rng=None` means secure bits: an AES-256-CTR keystream whose key and
nonce come from the operating system. An integer seed gives repeatable bits and takes the guarantee away:
whoever knows or guesses the seed can subtract the noise.
"""

from __future__ import annotations

import os
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dipriv.errors import InputError

Rng = int | np.random.SeedSequence | None
FloatArray = NDArray[np.float64]

_CHUNK_WORDS = 1 << 16


class Bits(Protocol):
    """A stream of independent, uniform 64-bit words."""

    @property
    def secure(self) -> bool: ...

    def words(self, count: int) -> NDArray[np.uint64]:
        """The next `count` words of the stream."""
        ...

    def child(self, label: str) -> Bits:
        """An independent stream for one purpose, so that purposes never share words."""
        ...


class SecureBits:
    """AES-256-CTR keystream, keyed afresh by the operating system; never shared between streams."""

    secure = True

    def __init__(self) -> None:
        self._rekey()

    def _rekey(self) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        self._process = os.getpid()
        self._keystream = Cipher(algorithms.AES(os.urandom(32)), modes.CTR(os.urandom(16))).encryptor()

    def words(self, count: int) -> NDArray[np.uint64]:
        if os.getpid() != self._process:  # a forked copy would repeat its parent's noise
            self._rekey()
        out = np.empty(count, dtype=np.uint64)
        for start in range(0, count, _CHUNK_WORDS):
            zeros = bytes(8 * min(_CHUNK_WORDS, count - start))
            out[start : start + _CHUNK_WORDS] = np.frombuffer(self._keystream.update(zeros), dtype="<u8")
        return out

    def child(self, label: str) -> SecureBits:
        del label  # every secure stream has its own key
        return SecureBits()


class SeededBits:
    """Philox, a counter-based generator: repeatable, for experiments and tests only."""

    secure = False

    def __init__(self, seed: np.random.SeedSequence) -> None:
        self._seed = seed
        self._generator = np.random.Philox(seed)

    def words(self, count: int) -> NDArray[np.uint64]:
        return self._generator.random_raw(count)

    def child(self, label: str) -> SeededBits:
        key = (*self._seed.spawn_key, *label.encode())
        return SeededBits(np.random.SeedSequence(self._seed.entropy, spawn_key=key))


def source(rng: Rng) -> Bits:
    """The stream that `rng` asks for: secure bits for None, repeatable bits for a seed.

    >>> source(None).secure, source(7).secure
    (True, False)
    """
    if rng is None:
        return SecureBits()
    if isinstance(rng, np.random.SeedSequence):
        return SeededBits(rng)
    if isinstance(rng, bool) or not isinstance(rng, (int, np.integer)) or rng < 0:
        raise InputError(
            f"rng must be None or a whole number >= 0, not {type(rng).__name__}.",
            "Leave rng out for secure randomness; give a seed only for experiments.",
        )
    return SeededBits(np.random.SeedSequence(int(rng)))


def uniforms(bits: Bits, count: int) -> FloatArray:
    """`count` independent uniforms on [0, 1), multiples of 2^-53."""
    return (bits.words(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53
