"""Streams: secure ones never repeat, not even in a forked copy; seeded ones repeat exactly."""

from __future__ import annotations

import os

import numpy as np
import pytest

from dipriv.errors import InputError
from dipriv.randomness import SecureBits, source, uniforms
from tests.support import bits, chi_square_tail, dkw, ks_uniform


def test_seeded_streams_repeat_and_children_differ() -> None:
    assert np.array_equal(source(5).words(100), source(5).words(100))
    assert not np.array_equal(source(5).words(100), source(6).words(100))
    assert np.array_equal(source(5).child("a").words(100), source(5).child("a").words(100))
    assert not np.array_equal(source(5).child("a").words(100), source(5).child("b").words(100))
    assert not np.array_equal(source(5).child("a").words(100), source(5).words(100))


def test_a_seeded_stream_does_not_depend_on_how_it_is_cut() -> None:
    whole, parts = bits(1), bits(1)
    assert np.array_equal(whole.words(1000), np.concatenate([parts.words(k) for k in (1, 99, 900)]))


def test_secure_streams_never_repeat() -> None:
    words = np.concatenate([SecureBits().words(1000), SecureBits().words(1000), source(None).child("x").words(1000)])
    assert len(np.unique(words)) == 3000


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python warns that forking threads may deadlock
def test_a_forked_copy_does_not_repeat_its_parents_noise() -> None:
    stream = SecureBits()
    stream.words(10)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, stream.words(4).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = np.frombuffer(os.read(read, 32), dtype=np.uint64)
    assert not np.intersect1d(theirs, stream.words(4)).size


@pytest.mark.parametrize("stream", [SecureBits(), bits(2)], ids=["secure", "seeded"])
def test_words_are_uniform(stream: SecureBits) -> None:
    n = 200_000
    assert ks_uniform(uniforms(stream, n)) < dkw(n)
    byte_counts = np.bincount(stream.words(n).view(np.uint8), minlength=256)
    assert chi_square_tail(byte_counts, np.ones(256)) > 1e-6
    assert chi_square_tail(np.append(byte_counts[1:], byte_counts[0] * 2), np.ones(256)) < 1e-6  # control


@pytest.mark.parametrize("rng", ["seed", 1.5, -1, True, np.random.default_rng(0)])
def test_other_seeds_are_refused(rng: object) -> None:
    with pytest.raises(InputError, match="rng must be"):
        source(rng)  # type: ignore[arg-type]
