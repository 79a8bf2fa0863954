"""What the ledger says of a release: reserved before any row, done when the rows are there, else failed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

import dipriv
from dipriv._sinks import FileSink
from dipriv.errors import BudgetError, InputError, SourceChangedError, StorageError
from dipriv.ledger import Ledger
from dipriv.references import Known
from dipriv.sources import stream

N = 3000
RNG = np.random.default_rng(6)
TABLE = pa.table({"age": RNG.integers(18, 90, N), "pay": RNG.normal(size=N)})
LAW = Known({"age": stats.norm(50, 20), "pay": stats.norm()})


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.create(tmp_path / "ledger.db") as opened:
        yield opened


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "MIN_BLOCK_ROWS", 700)
    monkeypatch.setattr(stream, "MAX_BLOCK_ROWS", 700)


def states(ledger: Ledger) -> list[tuple[str, int | None]]:
    """State and rows of each record, the oldest first."""
    return [(record.state, record.rows) for record in sorted(ledger.records("people"), key=lambda one: one.number)]


def spent_note(error: BaseException) -> str:
    (note,) = [note for note in error.__notes__ if "spent" in note]
    return str(note)


IN_MEMORY: dict[str, Callable[[], Any]] = {
    "pandas": TABLE.to_pandas,
    "polars": lambda: pl.DataFrame(TABLE),
    "pyarrow": lambda: TABLE,
}


@pytest.mark.parametrize("frame", IN_MEMORY.values(), ids=IN_MEMORY.keys())
def test_a_table_in_memory_is_done_at_once(frame: Callable[[], Any], ledger: Ledger) -> None:
    release = dipriv.privatize(frame(), 0.5, ledger=ledger, dataset="people")
    assert release.dataset == "people"
    assert states(ledger) == [("done", N)]


def test_writing_a_release_that_is_done_spends_nothing_and_fails_nothing(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = dipriv.privatize(TABLE, 0.5, ledger=ledger, dataset="people")
    release.write(tmp_path / "out.csv")
    full_disk(monkeypatch)
    with pytest.raises(StorageError):
        release.write(tmp_path / "other.csv")
    assert states(ledger) == [("done", N)]
    assert ledger.dataset("people").spent == 0.5


def test_a_stream_is_reserved_until_it_was_read_to_the_end(ledger: Ledger) -> None:
    release = dipriv.privatize(TABLE.to_batches, 0.5, reference=LAW, ledger=ledger, dataset="people")
    rows: Any = release.data
    assert states(ledger) == [("reserved", None)]
    reader = rows.reader()
    reader.read_next_batch()
    del reader  # somebody who stops reading saw some rows: neither done nor failed
    assert states(ledger) == [("reserved", None)]
    assert rows.to_table().num_rows == N
    assert states(ledger) == [("done", N)]
    rows.to_table()  # the same release: nothing is spent again
    assert states(ledger) == [("done", N)]
    assert ledger.dataset("people").spent == 0.5


def changing(since: int) -> Callable[[], Iterator[pa.RecordBatch]]:
    """Rows of which one changes after some readings: opening the function is the first, the first pass the second."""
    readings = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal readings
        readings += 1
        ages = TABLE["age"].to_numpy().copy()
        ages[2500] += readings > since
        yield from TABLE.set_column(0, "age", pa.array(ages)).to_batches()

    return batches


@pytest.mark.usefixtures("no_room_for_rows")
def test_a_source_that_changes_while_it_is_read_makes_the_release_fail(ledger: Ledger) -> None:
    release = dipriv.privatize(changing(2), 0.5, reference=LAW, ledger=ledger, dataset="people")
    rows: Any = release.data
    assert states(ledger) == [("reserved", None)]
    with pytest.raises(SourceChangedError) as caught:
        rows.to_table()
    assert states(ledger) == [("failed", None)]
    assert "ε = 0.5 is spent in the ledger, as release 1 of data set 'people'" in spent_note(caught.value)
    assert ledger.dataset("people").spent == 0.5


@pytest.mark.usefixtures("no_room_for_rows")
def test_a_source_that_changes_before_epsilon_is_spent_costs_nothing(ledger: Ledger) -> None:
    with pytest.raises(SourceChangedError) as caught:
        dipriv.privatize(changing(2), 0.5, reference="holdout", ledger=ledger, dataset="people")
    assert not hasattr(caught.value, "__notes__")
    assert ledger.datasets() == []


@pytest.mark.usefixtures("no_room_for_rows")
def test_a_source_that_changes_while_a_reference_is_learned_is_spent(ledger: Ledger) -> None:
    """The labels, and all that is public, come first; then ε is reserved, and the rows are counted."""
    with pytest.raises(SourceChangedError) as caught:
        dipriv.privatize(changing(2), 0.5, ledger=ledger, dataset="people")
    assert states(ledger) == [("failed", None)]
    assert "ε = 0.5 is spent" in spent_note(caught.value)


@pytest.mark.usefixtures("no_room_for_rows")
def test_without_a_ledger_the_note_says_that_epsilon_is_spent_too() -> None:
    release: Any = dipriv.privatize(changing(2), 0.5, reference=LAW)
    with pytest.raises(SourceChangedError) as caught:
        release.data.to_table()
    assert spent_note(caught.value).startswith("ε = 0.5 is spent: ")


def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def write(self: FileSink, batch: pa.RecordBatch) -> None:
        raise StorageError(f"{self.name}: No space left on device.", "Check the space on the disk.")

    monkeypatch.setattr(FileSink, "write", write)


def broken_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    def commit(self: FileSink, sidecar: str | None = None) -> None:
        raise RuntimeError

    monkeypatch.setattr(FileSink, "commit", commit)


@pytest.mark.parametrize("name", ["out.parquet", "out.csv"])
def test_a_file_is_done_once_it_has_its_name(name: str, ledger: Ledger, tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "people.parquet")
    seen = []
    release = dipriv.privatize_file(
        tmp_path / "people.parquet",
        tmp_path / name,
        0.5,
        ledger=ledger,
        progress=lambda what, done, total: seen.append((what, states(ledger) if ledger.datasets() else [])),
    )
    assert states(ledger) == [("done", N)]
    assert {state for what, state in ((what, tuple(found)) for what, found in seen) if what == "releasing"} == {
        (("reserved", None),)
    }
    assert release.dataset == "people"
    assert ledger.records("people")[0].output == name


@pytest.mark.parametrize(
    ("breaks", "error"), [(full_disk, StorageError), (broken_commit, RuntimeError)], ids=["full disk", "sink"]
)
def test_a_file_that_cannot_be_written_fails_and_is_spent(
    breaks: Callable[[pytest.MonkeyPatch], None],
    error: type[Exception],
    ledger: Ledger,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pq.write_table(TABLE, tmp_path / "people.parquet")
    breaks(monkeypatch)
    with pytest.raises(error) as caught:
        dipriv.privatize_file(tmp_path / "people.parquet", tmp_path / "out.csv", 0.5, ledger=ledger)
    assert states(ledger) == [("failed", None)]
    assert "ε = 0.5 is spent in the ledger, as release 1 of data set 'people'" in spent_note(caught.value)
    assert not list(tmp_path.glob("*out*"))


@pytest.mark.parametrize("breaks", [full_disk, broken_commit], ids=["full disk", "sink"])
def test_a_stream_that_cannot_be_written_fails_and_is_spent(
    breaks: Callable[[pytest.MonkeyPatch], None], ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = dipriv.privatize(TABLE.to_batches, 0.5, ledger=ledger, dataset="people")
    breaks(monkeypatch)
    with pytest.raises((StorageError, RuntimeError)) as caught:
        release.write(tmp_path / "out.csv")
    assert states(ledger) == [("failed", None)]
    assert "is spent in the ledger" in spent_note(caught.value)


def test_a_place_that_cannot_be_used_is_refused_before_anything_is_spent(ledger: Ledger, tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "people.parquet")
    with pytest.raises(InputError) as caught:
        dipriv.privatize_file(tmp_path / "people.parquet", tmp_path / "no" / "out.csv", 0.5, ledger=ledger)
    assert not hasattr(caught.value, "__notes__")
    assert ledger.datasets() == []


# ---- the estimator ----


def test_an_estimator_reserves_with_fit_and_is_done_with_the_first_transform(ledger: Ledger) -> None:
    frame = TABLE.to_pandas()
    dip = dipriv.DIP(0.5, ledger=ledger, dataset="people").fit(frame)
    assert states(ledger) == [("reserved", None)]
    assert ledger.dataset("people").spent == 0.5
    dip.transform(frame)
    assert states(ledger) == [("done", N)]
    assert ledger.dataset("people").spent == 0.5


def test_each_further_transform_adds_the_epsilon_of_the_rows(ledger: Ledger) -> None:
    frame = TABLE.to_pandas()
    dip = dipriv.DIP(0.5, ledger=ledger, dataset="people").fit(frame)
    rows = dip.mechanism_.kernel.epsilon
    assert 0 < rows < 0.5  # the rest of it went into the reference
    ledger.set_budget("people", 0.5 + 1.5 * rows)
    dip.transform(frame)
    dip.transform(frame)
    assert states(ledger) == [("done", N), ("done", N)]
    assert 0 <= ledger.dataset("people").spent - (0.5 + rows) < 1e-9
    with pytest.raises(BudgetError):
        dip.transform(frame)
    with pytest.raises(BudgetError):
        next(iter(dip.transform_batches(TABLE.to_batches())))
    assert states(ledger) == [("done", N), ("done", N)]


def test_batches_of_an_estimator_are_done_when_they_were_read(ledger: Ledger) -> None:
    dip = dipriv.DIP(0.5, ledger=ledger, dataset="people").fit(TABLE)
    released = dip.transform_batches(TABLE.to_batches(max_chunksize=1000))
    assert next(released).num_rows == 1000
    assert states(ledger) == [("reserved", None)]
    assert sum(batch.num_rows for batch in released) == N - 1000
    assert states(ledger) == [("done", N)]


def test_a_transform_that_fails_is_spent_and_the_next_is_counted_anew(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = TABLE.to_pandas()
    dip = dipriv.DIP(0.5, ledger=ledger, dataset="people").fit(frame)

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr(type(dip.mechanism_), "release", broken)
        with pytest.raises(RuntimeError) as caught:
            dip.transform(frame)
    assert "ε = 0.5 is spent in the ledger" in spent_note(caught.value)
    dip.transform(frame)
    assert states(ledger) == [("failed", None), ("done", N)]


def test_rows_that_are_refused_cost_nothing(ledger: Ledger) -> None:
    frame = TABLE.to_pandas()
    dip = dipriv.DIP(0.5, ledger=ledger, dataset="people").fit(frame)
    with pytest.raises(InputError):
        dip.transform(pd.DataFrame({"age": frame["age"]}))
    assert states(ledger) == [("reserved", None)]
    dip.transform(frame)
    assert states(ledger) == [("done", N)]


def test_a_budget_that_does_not_suffice_for_fit_spends_nothing(ledger: Ledger) -> None:
    ledger.set_budget("people", 0.4)
    with pytest.raises(BudgetError) as caught:
        dipriv.DIP(0.5, ledger=ledger, dataset="people").fit(TABLE)
    assert not hasattr(caught.value, "__notes__")
    assert ledger.dataset("people").spent == 0
