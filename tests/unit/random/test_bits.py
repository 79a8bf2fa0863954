"""Streams: bits depend on key, lane and row alone; secure ones never repeat; seeded ones repeat exactly."""

from __future__ import annotations

import multiprocessing
import os
from itertools import pairwise

import numpy as np
import pytest

from dipriv._random.bits import Bits, Draws, source
from dipriv.errors import InputError
from tests.support import chi_square_tail, dkw, ks_uniform


def test_seeded_streams_repeat_and_children_differ() -> None:
    assert np.array_equal(source(5).words(100), source(5).words(100))
    assert not np.array_equal(source(5).words(100), source(6).words(100))
    assert np.array_equal(source(5).child("a").words(100), source(5).child("a").words(100))
    assert not np.array_equal(source(5).child("a").words(100), source(5).child("b").words(100))
    assert not np.array_equal(source(5).child("a").words(100), source(5).words(100))


def test_loose_words_go_on_where_they_stopped() -> None:
    stream = source(1)
    words = np.concatenate([stream.words(k) for k in (2, 98, 900)])
    assert np.array_equal(words, source(1).words(1000))


@pytest.mark.parametrize("cuts", [(0, 1000), (0, 1, 2, 3, 1000), (0, 7, 513, 1000)])
def test_the_bits_of_a_row_do_not_depend_on_the_batch(cuts: tuple[int, ...]) -> None:
    whole = Draws(source(1), 0, 1000, column=3)
    parts = [Draws(source(1), low, high - low, column=3) for low, high in pairwise(cuts)]
    for use in (0, 5):
        assert np.array_equal(whole.words(use), np.concatenate([part.words(use) for part in parts]))
        assert np.array_equal(whole.blocks(use), np.concatenate([part.blocks(use) for part in parts]))
        assert np.array_equal(whole.uniforms(use), np.concatenate([part.uniforms(use) for part in parts]))


def test_scattered_blocks_are_the_blocks_of_the_lane() -> None:
    stream = source(2)
    positions = np.array([5, 0, 999, 123456789])
    for position, words in zip(positions, stream.blocks_at(9, positions), strict=True):
        assert np.array_equal(stream.blocks(9, int(position), 1)[0], words)


def test_lanes_columns_uses_and_attempts_never_share_bits() -> None:
    stream, rows = source(3), np.arange(50)
    lanes = [
        Draws(stream, 0, 50, column).blocks_again(use, attempt, rows)
        for column in (0, 1, 1000)
        for use in (0, 1, 4095)
        for attempt in (0, 1, 255)
    ]
    assert len(np.unique(np.concatenate(lanes))) == 27 * 100
    assert np.array_equal(lanes[0], Draws(stream, 0, 50).blocks())


@pytest.mark.slow
def test_long_lanes_are_seamless() -> None:
    """More blocks than the cipher is handed at once."""
    many = source(4).blocks(1, 0, 600_000)
    assert np.array_equal(many[599_990:], source(4).blocks(1, 599_990, 10))
    assert len(np.unique(many)) == 1_200_000


def test_secure_streams_never_repeat() -> None:
    words = np.concatenate([source(None).words(1000), source(None).words(1000), source(None).child("x").words(1000)])
    assert len(np.unique(words)) == 3000


def _words(stream: Bits) -> bytes:
    return stream.words(4).tobytes() + stream.child("noise").words(4).tobytes()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python warns that forking threads may deadlock
def test_forked_workers_never_share_a_stream() -> None:
    stream = source(None)
    inherited = stream.child("kept")
    pipes = []
    for _ in range(3):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(write, _words(stream) + _words(inherited))
            os._exit(0)
        os.waitpid(child, 0)
        pipes.append(os.read(read, 1024))
    drawn = np.frombuffer(b"".join([*pipes, _words(stream), _words(inherited)]), dtype=np.uint64)
    assert len(np.unique(drawn)) == len(drawn) == 4 * 16


@pytest.mark.slow
def test_spawned_workers_never_share_a_stream() -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        drawn = np.frombuffer(b"".join(pool.map(_words, [source(None)] * 4)), dtype=np.uint64)
    assert len(np.unique(drawn)) == len(drawn)


@pytest.mark.slow
def test_a_repeatable_stream_is_the_same_in_every_process() -> None:
    stream = source(None).repeatable()
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        drawn = pool.map(_words, [stream] * 3)
    assert drawn == [_words(stream)] * 3
    assert stream.secure
    assert _words(source(None).repeatable()) != drawn[0]


@pytest.mark.parametrize("seed", [None, 2], ids=["secure", "seeded"])
def test_words_are_uniform(seed: int | None) -> None:
    n = 200_000
    rows = Draws(source(seed), 0, n)
    assert ks_uniform(rows.uniforms()) < dkw(n)
    byte_counts = np.bincount(rows.words(1).copy().view(np.uint8), minlength=256)
    assert chi_square_tail(byte_counts, np.ones(256)) > 1e-6
    assert chi_square_tail(np.append(byte_counts[1:], byte_counts[0] * 2), np.ones(256)) < 1e-6  # control


@pytest.mark.parametrize("rng", ["seed", 1.5, -1, True, np.random.default_rng(0)])
def test_other_seeds_are_refused(rng: object) -> None:
    with pytest.raises(InputError, match="seed must be"):
        source(rng)  # type: ignore[arg-type]
