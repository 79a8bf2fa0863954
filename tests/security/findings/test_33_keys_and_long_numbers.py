"""Whole numbers of 19 digits are the same cells as text and as int64, and a hold-out has the same persons in both."""

from __future__ import annotations

import pickle
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dipriv
from dipriv._tables import frames
from dipriv.errors import BudgetError, DisclosureError
from dipriv.ledger import Ledger
from dipriv.references import Grouped
from dipriv.sources._cells import cell_hashes
from dipriv.sources.holdout import Split

KEY = np.array([3, 5], np.uint64)
RNG = np.random.default_rng(33)
LEAST, MOST = -(2**63), 2**63 - 1
RANGES = {
    "19 digits": (10**18, MOST),
    "negative": (LEAST, -(10**18)),
    "the largest": (MOST - 50, MOST),
    "the smallest": (LEAST, LEAST + 50),
    "18 digits": (10**17, 10**18),
}


@pytest.mark.parametrize("ends", RANGES.values(), ids=RANGES)
def test_long_whole_numbers_are_one_cell_in_every_form(ends: tuple[int, int]) -> None:
    numbers = pa.array(RNG.integers(*ends, 500, endpoint=True))
    texts = numbers.cast(pa.string())
    forms = [numbers, texts, pa.array([f" {text}" for text in texts.to_pylist()]), numbers.cast(pa.decimal128(19, 0))]
    expected = cell_hashes(numbers, KEY)
    for form in forms[1:]:
        assert np.array_equal(cell_hashes(form, KEY).high, expected.high)
    others = pa.array(numbers.to_numpy() ^ 1)  # control: neighbours are other cells
    assert not (cell_hashes(others, KEY).high == expected.high).any()


def test_numbers_beyond_64_bits_are_doubles_in_every_form() -> None:
    numbers = pa.array([2**63, 2**63 + 4096, 2**64 - 1], pa.uint64())
    assert np.array_equal(cell_hashes(numbers, KEY).high, cell_hashes(numbers.cast(pa.string()), KEY).high)


def test_a_table_with_long_ids_has_no_second_budget(tmp_path: Path) -> None:
    votes = pd.DataFrame({"user": RNG.integers(10**18, MOST, 600), "vote": RNG.choice(["yes", "no"], 600)})
    votes.to_csv(tmp_path / "votes.csv", index=False)
    votes.to_parquet(tmp_path / "poll.parquet")
    with Ledger.create(tmp_path / "ledger.db") as ledger:
        asked: dict[str, Any] = {"drop": ["user"], "ledger": ledger, "force": True}
        ledger.set_budget("votes", 1.0)
        dipriv.privatize_file(tmp_path / "votes.csv", tmp_path / "out.csv", 1.0, **asked)
        with pytest.raises(BudgetError, match="votes"):
            dipriv.privatize_file(tmp_path / "poll.parquet", tmp_path / "out.csv", 1.0, **asked)
        with pytest.raises(BudgetError, match="votes"):
            dipriv.privatize(votes[:300], 1.0, drop=["user"], ledger=ledger, dataset="survey")


PERSONS = np.repeat(np.arange(1, 401), 2)
FORMS: dict[str, Any] = {
    "with zeros before": [f"{person:05}" for person in PERSONS],
    "with a point": [f"{person}.0" for person in PERSONS],
    "with a space": [f" {person}" for person in PERSONS],
    "in quotes": [f'"{person}"' for person in PERSONS],
    "as a real": PERSONS.astype(float),
    "as text": [str(person) for person in PERSONS],
    "as categories": pd.Categorical([f"{person:05}" for person in PERSONS]),
}
DAYS = pd.date_range("2020-01-01", periods=400)
MOMENTS: dict[str, Any] = {
    "text": [f"{day:%Y-%m-%d}" for day in DAYS],
    "with a time": [f"{day:%Y-%m-%d} 00:00:00" for day in DAYS],
    "date": pa.array(DAYS.date, pa.date32()),
}


def held_out(split: Split, keys: Any) -> list[bool]:
    return [bool(held) for held in split.held_out(frames.read(pa.table({"id": pa.array(keys)})))]


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_person_is_on_one_side_however_the_key_is_written(form: Any) -> None:
    split = Split.new(0.3, by="id")
    assert held_out(split, form) == held_out(split, PERSONS)
    assert held_out(split, form) != held_out(split, PERSONS + 1000)  # control: other persons


@pytest.mark.parametrize("form", MOMENTS.values(), ids=MOMENTS)
def test_a_day_is_on_one_side_however_it_is_written(form: Any) -> None:
    split = Split.new(0.3, by="id")
    assert held_out(split, form) == held_out(split, pa.array(DAYS.to_numpy()))


def test_nobody_is_promised_protection_and_exposed_later(tmp_path: Path) -> None:
    visits = pd.DataFrame({"id": FORMS["with zeros before"], "age": RNG.integers(18, 90, len(PERSONS))})
    visits.to_csv(tmp_path / "visits.csv", index=False)
    with Ledger.create(tmp_path / "ledger.db") as ledger:
        asked: dict[str, Any] = {"reference": "holdout", "unit": "id", "ledger": ledger, "dataset": "visits"}
        dipriv.privatize_file(tmp_path / "visits.csv", tmp_path / "out.csv", 1.0, **asked)
        release = dipriv.privatize(pd.read_csv(tmp_path / "visits.csv"), 1.0, **asked)
        split = release.secrets.split
    assert split is not None
    assert np.array_equal(split.held_out(frames.read(visits)), ~release.secrets.released)


def test_a_hold_out_of_an_earlier_version_is_continued_or_refused() -> None:
    earlier = replace(Split.new(0.3, by="id"), as_written=True)
    for plain in (PERSONS, FORMS["as text"], FORMS["as a real"], [f"p{person}" for person in PERSONS]):
        assert held_out(earlier, plain) == held_out(replace(earlier, as_written=False), plain)
    for form in ("with zeros before", "with a point", "with a space"):
        with pytest.raises(DisclosureError, match="earlier version"):
            held_out(earlier, FORMS[form])


def test_a_hold_out_by_groups_of_an_earlier_version_is_continued_or_refused() -> None:
    earlier = replace(Split.new(0.3, by="id"), as_written=True)
    visits = pd.DataFrame({"g": RNG.choice(["a", "b"], 400), "x": RNG.normal(size=400)})
    reference = Grouped(by="g", first=30, pick="random")
    plain, padded = (visits.assign(id=[form.format(row) for row in range(400)]) for form in ("{}", "{:04}"))
    dipriv.privatize(plain, 1.0, split=earlier, reference=reference)
    with pytest.raises(DisclosureError, match="earlier version"):
        dipriv.privatize(padded, 1.0, split=earlier, reference=reference)
    dipriv.privatize(padded, 1.0, split=replace(earlier, as_written=False), reference=reference)  # control


def test_a_pickle_of_an_earlier_version_is_one_as_written() -> None:
    split = Split.new(0.3, by="id")
    assert pickle.loads(pickle.dumps(split)) == split
    state = {name: value for name, value in vars(split).items() if name != "as_written"}
    earlier = Split.__new__(Split)
    earlier.__setstate__(state)
    assert earlier == replace(split, as_written=True)


IDS: dict[str, Any] = {
    "20 digits": [f"8949{number:016}" for number in range(10**9, 10**9 + 500)],
    "beyond 2^63": pa.array([2**63 + number for number in range(500)], pa.uint64()),
    "decimals": [f"0.123456789{number:03}" for number in range(500)],
    "reals": np.arange(500) * 1e-9 + 0.1,
    "with an e": [f"{number}e{300 + number}" for number in range(1, 501)],
    "marks": ["NA", "-", "n/a", "", "null", "?"],
}


@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
def test_different_persons_stay_different(ids: Any) -> None:
    scores = Split.new(by="id").scores(frames.read(pa.table({"id": pa.array(ids)})))
    assert len(np.unique(scores)) == len(scores)


def test_nobody_is_dropped_because_ids_are_long() -> None:
    table = pa.table({"id": IDS["20 digits"], "x": list(range(500))})
    release = dipriv.privatize(table, 1.0, unit="id", rows_per_unit=2)
    assert release.row_counts.dropped == 0


@pytest.mark.parametrize("number", [0, 1000, 2**53, 2**60, -(2**60), 10**17, 2**62 + 2**20])
def test_a_whole_number_is_one_person_in_every_type(number: int) -> None:
    split = Split(0.25, bytes(32), "id")
    forms = [
        pa.array([number], pa.int64()),
        pa.array([float(number)]),
        pa.array([str(number)]),
        pa.array([f"{number}.000"]),
        pa.array([Decimal(number)], pa.decimal128(38, 0)),
        pa.array([Decimal(number)], pa.decimal128(38, 10)),
    ]
    assert len({int(split.scores(frames.read(pa.table({"id": form})))[0]) for form in forms}) == 1
    assert (
        split.scores(frames.read(pa.table({"id": [number + 1]})))[0]
        != split.scores(frames.read(pa.table({"id": [number]})))[0]
    )
