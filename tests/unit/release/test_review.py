"""Faults that a hostile reading found, each with what must hold instead."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone

import dipriv
from dipriv.errors import BudgetError, DisclosureError, InputError, LedgerError
from dipriv.ledger import Ledger
from dipriv.references import Grouped
from dipriv.release.options import ReleaseOptions

ROWS = 400
RNG = np.random.default_rng(3)
FRAME = pd.DataFrame({"a": RNG.normal(size=ROWS), "b": RNG.integers(0, 5, ROWS)})
TABLE = pa.table(FRAME)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "ledger.db")


def test_each_transform_of_one_fit_is_counted(ledger: Ledger) -> None:
    dip = dipriv.DIP(1.0, ledger=ledger, dataset="people").fit(TABLE)
    first, second = (dip.transform_batches(TABLE.to_batches(100)) for _ in range(2))
    next(first)
    next(second)  # a second release, while the first is not finished
    more = dip.mechanism_.kernel.epsilon
    assert ledger.dataset("people").releases == 2
    assert ledger.dataset("people").spent == pytest.approx(1.0 + more)
    for rows in (first, second):
        for _ in rows:
            pass
    assert [record.state for record in ledger.records("people")] == ["done", "done"]


def test_a_transform_beside_another_needs_budget_of_its_own(ledger: Ledger) -> None:
    ledger.set_budget("people", 1.0)
    dip = dipriv.DIP(1.0, ledger=ledger, dataset="people").fit(TABLE)
    next(dip.transform_batches(TABLE.to_batches(100)))
    with pytest.raises(BudgetError):
        dip.transform(TABLE)


def test_batches_of_the_rows_that_were_fitted_on_are_refused() -> None:
    dip = dipriv.DIP(1.0, reference="holdout").fit(TABLE)
    with pytest.raises(DisclosureError, match="Discard"):
        list(dip.transform_batches(TABLE.to_batches(150)))
    assert len(list(dip.transform_batches(TABLE.slice(0, 200).to_batches()))) == 1  # control: other rows


def test_options_are_those_of_the_fit() -> None:
    dip = dipriv.DIP(1.0, drop=["b"], seed=None).fit(FRAME)
    dip.set_params(drop=(), keep=["b"], seed=1)
    one, two = dip.transform(FRAME), dip.transform(FRAME)
    assert list(one.columns) == ["a"]
    assert not one.equals(two)  # fresh noise


def test_a_transformer_with_a_ledger_is_cloned_and_does_not_release_from_a_pickle(
    ledger: Ledger, tmp_path: Path
) -> None:
    assert clone(dipriv.DIP(1.0, ledger=ledger, dataset="people")).ledger is ledger
    dip = dipriv.DIP(1.0, ledger=str(tmp_path / "ledger.db"), dataset="people").fit(TABLE)
    with pytest.raises(InputError, match="Fit it again"):
        pickle.loads(pickle.dumps(dip)).transform(TABLE)
    assert pickle.loads(pickle.dumps(dipriv.DIP(1.0).fit(TABLE))).transform(TABLE).num_rows == ROWS  # control


def test_no_password_is_shown() -> None:
    url = "postgresql://user:hunter2@host/db"
    assert "hunter2" not in repr(ReleaseOptions(1.0, ledger=url, dataset="d"))
    assert "hunter2" not in repr(dipriv.DIP(ledger=url))


@pytest.mark.parametrize("make", [pickle.dumps, lambda release: pickle.dumps(copy.deepcopy(release))])
def test_a_label_of_the_hold_out_alone_is_in_no_pickle(make: Any) -> None:
    for seed in range(150):
        split = dipriv.Split.new(0.5)
        frame = FRAME.assign(word=np.where(np.arange(ROWS) == 7, "SECRETLABEL", RNG.choice(["x", "y"], ROWS)))
        release: Any = dipriv.privatize(frame, 1.0, reference="holdout", split=split, seed=seed)
        if not release.secrets.released[7] and not (release.data["word"] == "SECRETLABEL").any():
            assert b"SECRETLABEL" not in make(release)
            assert "SECRETLABEL" in release.secrets.schema["word"].levels  # control
            return
    pytest.fail("the label was released in every try")


def test_the_schema_of_a_private_release_lists_its_levels() -> None:
    frame = FRAME.assign(word=RNG.choice(["x", "y"], ROWS))
    assert dipriv.privatize(frame, 1.0, labels="public").schema["word"] == dipriv.Categorical(("x", "y"))


def test_options_without_effect_are_refused() -> None:
    for options in (
        {"reference": Grouped(by="b"), "holdout": 0.5},
        {"columns": ["a", "b"], "reference": "holdout", "split": dipriv.Split.new(by="b")},
        {"reference_share": 0.0},
        {"public": FRAME, "reference_share": 0.0},
    ):
        with pytest.raises(InputError):
            dipriv.privatize(FRAME, 1.0, **options)
    with pytest.raises(InputError, match="escape_formulas"):
        dipriv.privatize_file(TABLE, "-", 1.0, format="parquet", escape_formulas=True)


def test_a_table_in_memory_is_written_before_it_is_done(ledger: Ledger, tmp_path: Path) -> None:
    release = dipriv.privatize_file(FRAME, tmp_path / "out.csv", 1.0, ledger=ledger, dataset="people")
    assert release.n_rows == ROWS
    assert [record.state for record in ledger.records("people")] == ["done"]
    assert (tmp_path / "out.csv.dipriv.json").exists()


def test_a_commit_that_fails_says_that_epsilon_is_spent(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    def locked(self: Ledger, number: int, rows: int) -> None:
        raise LedgerError("the ledger is locked.", "Try again.")

    monkeypatch.setattr(Ledger, "commit", locked)
    with pytest.raises(LedgerError) as caught:
        dipriv.privatize(FRAME, 1.0, ledger=ledger, dataset="people")
    assert "ε = 1 is spent" in caught.value.__notes__[0]


def test_columns_that_cannot_be_written_are_refused_and_the_release_is_not_lost(tmp_path: Path) -> None:
    things: Any = [object()] * ROWS
    frame = FRAME.assign(odd=things)
    release = dipriv.privatize(frame, 1.0, keep=["odd"])
    with pytest.raises(InputError, match="'odd' has no Arrow type"):
        release.write(tmp_path / "out.csv")
    lists: Any = pa.table({"a": FRAME["a"], "l": [[1]] * ROWS})
    with pytest.raises(InputError, match="cannot hold"):
        dipriv.privatize(lists, 1.0, keep=["l"]).write(tmp_path / "out.csv")
    assert list(tmp_path.iterdir()) == []


def test_a_private_file_is_not_replaced_by_its_release(tmp_path: Path) -> None:
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(InputError, match="same file"):
        dipriv.privatize_file(tmp_path / "t.csv", tmp_path / "t.csv", 1.0, force=True)


def test_progress_is_reported_for_reading_learning_and_releasing() -> None:
    seen: list[str] = []
    dipriv.privatize(FRAME, 1.0, progress=lambda what, done, total: seen.append(what))
    assert list(dict.fromkeys(seen)) == ["reading", "learning", "releasing"]
