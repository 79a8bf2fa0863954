"""The split is a keyed hash: repeatable, stable when rows are appended, and of the share asked for."""

from __future__ import annotations

import stat
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dipriv
from dipriv._tables import frames as tables
from dipriv.sources.holdout import Split
from tests.support import bits


def table(n: int) -> tables.Table:
    return tables.read(pd.DataFrame({"id": np.arange(n) * 7, "name": [f"p{i}" for i in range(n)]}))


@pytest.mark.parametrize("by", [None, "id", "name"])
def test_appended_rows_leave_the_sides_as_they_were(by: str | None) -> None:
    split = Split.new(0.3, by=by)
    assert np.array_equal(split.held_out(table(5000))[:1000], split.held_out(table(1000)))
    assert not np.array_equal(Split.new(0.3, by=by).held_out(table(1000)), split.held_out(table(1000)))


@pytest.mark.parametrize("by", ["id", "name"])
def test_a_row_keeps_its_side_when_rows_move(by: str) -> None:
    split = Split.new(0.3, by=by)
    frame = table(2000).native
    shuffled = frame.sample(frac=1.0, random_state=1)
    sides = pd.Series(split.held_out(tables.read(frame)), index=frame.index)
    moved = pd.Series(split.held_out(tables.read(shuffled)), index=shuffled.index)
    assert sides.equals(moved.sort_index())


def test_rows_of_one_key_stay_together() -> None:
    frame = pd.DataFrame({"who": np.arange(3000) % 100, "z": np.arange(3000.0)})
    held = Split.new(0.5, by="who").held_out(tables.read(frame))
    assert frame.assign(held=held).groupby("who")["held"].nunique().eq(1).all()


@pytest.mark.parametrize("by", [None, "id", "name"])
@pytest.mark.parametrize("share", [0.05, 0.25, 0.9])
def test_the_share_is_the_one_asked_for(by: str | None, share: float) -> None:
    n = 20_000
    held = int(Split.new(share, by=by, bits=bits(1)).held_out(table(n)).sum())
    assert stats.binomtest(held, n, share).pvalue > 1e-6
    assert stats.binomtest(held, n, share + 0.03).pvalue < 1e-6  # control


def test_a_saved_split_is_the_same_and_private(tmp_path: Path) -> None:
    split = Split.new(0.25, by="id")
    split.save(tmp_path / "split.json")
    assert stat.S_IMODE((tmp_path / "split.json").stat().st_mode) == 0o600
    assert Split.load(tmp_path / "split.json") == split
    assert split.key.hex() not in repr(split)


def test_a_split_is_never_saved_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("mine")
    (tmp_path / "split.json").symlink_to(tmp_path / "other")
    Split.new(0.25).save(tmp_path / "split.json")
    assert (tmp_path / "other").read_text() == "mine"
    assert Split.load(tmp_path / "split.json").holdout == 0.25


def test_a_second_release_holds_out_the_same_rows() -> None:
    frame = pd.DataFrame({"z": np.arange(400.0)})
    first = dipriv.privatize(frame, 1.0, reference="holdout")
    second = dipriv.privatize(frame, 1.0, reference="holdout", split=first.secrets.split)
    assert np.array_equal(first.secrets.row_positions, second.secrets.row_positions)
    assert not np.array_equal(
        dipriv.privatize(frame, 1.0, reference="holdout").secrets.row_positions, first.secrets.row_positions
    )


@pytest.mark.parametrize(
    "text",
    ["", "{}", '{"holdout": 2, "key": "00", "by": null}', "[1]", "[" * 100_000, f'{{"holdout": 1{"0" * 400}}}', "\xff"],
)
def test_a_file_that_is_no_split_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "split.json").write_text(text, encoding="latin-1")
    with pytest.raises(dipriv.InputError, match="not a saved split"):
        Split.load(tmp_path / "split.json")
