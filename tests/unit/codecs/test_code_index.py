"""The guide table of sorted codes finds what a plain search finds, wherever codes crowd."""

from __future__ import annotations

import numpy as np
import pytest

from dipriv.codecs.code_index import CodeIndex

RNG = np.random.default_rng(8)
ENDS = np.array([-(2**63), 2**63 - 1])
POWERS = np.concatenate([2 ** np.arange(62), -(2 ** np.arange(63)), [0]])
ENTRIES = {
    "everywhere": RNG.integers(-(2**63), 2**63 - 1, 500),
    "both ends": ENDS,
    "one": np.array([0]),
    "octaves and a crowd": np.concatenate([POWERS, RNG.integers(-(10**6), 10**7, 900)]),
    "a narrow crowd": RNG.integers(10**9, 10**9 + 50_000, 700),
    "beyond exact doubles": np.arange(2**53 - 3, 2**53 + 9),
}


@pytest.mark.parametrize("name", ENTRIES)
@pytest.mark.parametrize("octave_bits", [0, 23, 52])
def test_it_finds_what_a_plain_search_finds(name: str, octave_bits: int) -> None:
    entries = np.unique(ENTRIES[name])
    if octave_bits == 23:  # bits of float32
        entries = entries[np.abs(entries.astype(np.float64)) < 2.0**31]
    near = entries[(entries > ENDS[0]) & (entries < ENDS[1])]
    codes = np.concatenate([*ENTRIES.values(), near - 1, near + 1, ENDS, [0, -1, 1]])
    index = CodeIndex.over(entries, octave_bits)
    assert np.array_equal(index.up_to(codes), np.searchsorted(entries, codes, side="right"))
    assert index.below(codes).tolist() == np.searchsorted(np.sort(codes), entries).tolist()


def test_no_entries_are_found_nowhere() -> None:
    index = CodeIndex.over(np.empty(0, dtype=np.int64), 0)
    assert index.up_to(np.array([-5, 0, 5])).tolist() == [0, 0, 0]
    assert index.below(np.array([1])).tolist() == []


def test_crowded_entries_have_cells_of_their_own() -> None:
    """Else a search would take as long as without the guide."""
    entries = np.unique(ENTRIES["a narrow crowd"])
    index = CodeIndex.over(entries, 0)
    assert np.diff(index.starts).max() <= 8
    assert len(index.starts) <= 8 * len(entries)
