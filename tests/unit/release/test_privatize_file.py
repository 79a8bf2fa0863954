"""From file to file: the same rows as in memory, the same split for ever, ε spent first, nothing private beside it."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dipriv
from dipriv._sinks import FileSink
from dipriv._tables.frames import read
from dipriv.errors import (
    BudgetError,
    DisclosureError,
    InputError,
    LedgerError,
    ReferenceDataError,
    SchemaError,
    StorageError,
)
from dipriv.guarantee import Assumption, AssumptionKind, PrivacyUnit, ReferenceFacts, ReferenceSource
from dipriv.ledger import Ledger
from dipriv.release.accounting import LedgerSession, fingerprint_request
from dipriv.release.options import ReleaseOptions
from dipriv.release.result import Release
from dipriv.sources import open_source, stream
from dipriv.sources.contribution_bound import ContributionBound
from dipriv.sources.files import File
from dipriv.sources.holdout import Split
from dipriv.sources.protocol import Scan
from tests.support import ALARM
from tests.unit.refusal import refused

MARKER = 987_654.25


def people(rows: int = 3000, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "row": np.arange(rows) + 10_000_000,
            "person": rng.integers(0, rows // 3, rows),
            "age": rng.integers(18, 90, rows),
            "income": np.append(rng.lognormal(10, 1, rows - 1), MARKER),
            "sex": pa.array(np.array(["f", "m"])[rng.integers(0, 2, rows)]),
        }
    )


def run(
    folder: Path, table: pa.Table, name: str = "in.parquet", out: str = "out.parquet", **asked: Any
) -> Release[Any]:
    file = folder / name
    if not file.exists():
        with FileSink.at(file) as sink:
            for batch in table.to_batches(max_chunksize=1000):
                sink.write(batch)
            sink.commit()
    options: dict[str, Any] = {"epsilon": 1.0, "reference": "holdout", "keep": ("row",), "drop": ("person",)} | asked
    return dipriv.privatize_file(file, folder / out, force=True, **options)


@pytest.mark.parametrize("extension", ["parquet", "csv", "arrow", "csv.gz"])
def test_a_file_gives_the_rows_of_a_table_in_memory(extension: str, tmp_path: Path) -> None:
    table = people()
    done = run(tmp_path, table, f"in.{extension}", f"out.{extension}", seed=7)
    released = File.at(tmp_path / f"out.{extension}").read()
    same = dipriv.privatize(table.drop_columns(["person"]), 1.0, reference="holdout", keep=["row"], seed=7)
    assert released.to_pydict() == same.data.to_pydict()
    extra = (Assumption(AssumptionKind.FILE_TYPES_PUBLIC),) if extension.startswith("csv") else ()
    assert done.guarantee == replace(same.guarantee, assumptions=(*same.guarantee.assumptions, *extra))
    assert done.row_counts == same.row_counts
    assert (done.row_counts.read, done.n_rows) == (table.num_rows, len(same.secrets.row_positions))


def test_batches_and_blocks_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = people(5000)
    done = run(tmp_path, table, seed=3)
    pq.write_table(table, tmp_path / "other.parquet", row_group_size=777)
    monkeypatch.setattr(stream, "MIN_BLOCK_ROWS", 1100)
    monkeypatch.setattr(stream, "MAX_BLOCK_ROWS", 1100)
    run(tmp_path, table, "other.parquet", "other-out.parquet", seed=3)
    assert pq.read_table(tmp_path / "out.parquet").equals(pq.read_table(tmp_path / "other-out.parquet"))
    assert done.n_rows == pq.read_metadata(tmp_path / "out.parquet").num_rows


def test_a_public_table_releases_every_row(tmp_path: Path) -> None:
    public = people(seed=5).drop_columns(["person", "row"])
    done = run(tmp_path, people(), reference=None, public=public)
    assert done.n_rows == done.row_counts.read
    assert not done.guarantee.has_unprotected_rows


def test_the_sidecar_has_the_guarantee_and_no_value(tmp_path: Path) -> None:
    done = run(tmp_path, people(), schema=dipriv.Schema({"sex": dipriv.Categorical(("f", "m"))}))
    text = (tmp_path / "out.parquet.dipriv.json").read_text(encoding="utf-8")
    note = json.loads(text)
    assert note["guarantee"] == done.guarantee.to_dict()
    assert note["columns"] == {"age": "discrete", "income": "continuous", "sex": "categorical (declared)"}
    assert note["rows"] == {"read": 3000, "dropped": 0, "released": done.n_rows}
    assert str(MARKER) not in text
    beside = [f"out.parquet{ending}" for ending in ("", ".dipriv.json", ".sheet.html", ".sheet.json")]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["in.parquet", *beside]
    assert all(str(MARKER) not in (tmp_path / name).read_text(encoding="utf-8") for name in beside[1:])


def test_sampled_rows_match(tmp_path: Path) -> None:
    done = run(tmp_path, people(), sample=True)
    assert done.written is not None
    assert done.written.sample is not None
    before, after = done.written.sample
    assert before.column_names == after.column_names == ["row", "age", "income", "sex"]
    assert before["row"].equals(after["row"])
    assert len(before) == done.n_rows


def test_a_ledger_counts_and_holds_out_the_same_rows_for_ever(tmp_path: Path) -> None:
    with Ledger.create(tmp_path / "ledger.db") as ledger:
        ledger.set_budget("in", 2.5)
        first = run(tmp_path, people(), ledger=ledger, dataset="in")
        rows = pq.read_table(tmp_path / "out.parquet")["row"]
        run(tmp_path, people(), out="again.parquet", ledger=ledger)  # recognized by its content
        assert pq.read_table(tmp_path / "again.parquet")["row"].equals(rows)
        more = pa.concat_tables([people(), people(500, seed=9)])
        assert first.dataset == "in"
        refused(
            BudgetError,
            "0.5",
            call=lambda: run(tmp_path, more, "more.parquet", "third.parquet", ledger=ledger, dataset="in"),
        )
        run(tmp_path, more, "more.parquet", "third.parquet", ledger=ledger, dataset="in", epsilon=0.5)
        appended = pq.read_table(tmp_path / "third.parquet")["row"].to_pylist()[: len(rows)]
        assert appended == rows.to_pylist()
        assert ledger.dataset("in").left == 0
        assert [record.state for record in ledger.records("in")] == ["done", "done", "done"]
        assert ledger.records("in")[0].output == "out.parquet"


@pytest.mark.slow
@pytest.mark.parametrize("change", ["sorted", "one row less", "one cell", "one column less"])
def test_rows_that_moved_are_not_released(change: str, tmp_path: Path) -> None:
    changed = {
        "sorted": lambda table: table.sort_by("age"),
        "one row less": lambda table: pa.concat_tables([table.slice(1), people(5, seed=3)]),
        "one cell": lambda table: pa.concat_tables([people(9, seed=8).slice(0, 1), table.slice(1)]),
        "one column less": lambda table: table.drop_columns(["income"]),
    }[change](people())
    with Ledger.create(tmp_path / "ledger.db") as ledger:
        run(tmp_path, people(), ledger=ledger, dataset="in")
        refused(
            DisclosureError,
            "data set 'in'",
            "Add rows at the end",
            call=lambda: run(tmp_path, changed, "changed.parquet", "other.parquet", ledger=ledger, dataset="in"),
        )
        assert ledger.dataset("in").spent == 1
        other = partial(run, tmp_path, changed, "changed.parquet", "other.parquet", ledger=ledger)
        refused(BudgetError, "data set 'in'", "--new-dataset", call=lambda: other(dataset="another"))
        assert other(new_dataset="another").dataset == "another"


def test_rows_held_out_by_person_may_move(tmp_path: Path) -> None:
    with Ledger.create(tmp_path / "ledger.db") as ledger:
        asked: dict[str, Any] = {"ledger": ledger, "dataset": "in", "unit": "person", "drop": ()}
        run(tmp_path, people(), **asked)
        before = set(pq.read_table(tmp_path / "out.parquet")["row"].to_pylist())
        run(tmp_path, people().sort_by("age"), "sorted.parquet", **asked)
        persons = dict(zip(people()["row"].to_pylist(), people()["person"].to_pylist(), strict=True))
        after = set(pq.read_table(tmp_path / "out.parquet")["row"].to_pylist())
        assert {persons[row] for row in before} == {persons[row] for row in after}


def test_a_key_is_the_same_person_in_any_type(tmp_path: Path) -> None:
    split = Split.new(0.25, by="k")
    keys = [0, 7, -3, 10**14, 123_456]
    arrays = [pa.array(keys), pa.array(keys, pa.float64()), pa.array([str(key) for key in keys])]
    scores = [split.scores(read(pa.table({"k": array}))).tolist() for array in (*arrays, arrays[2].dictionary_encode())]
    assert scores[0] == scores[1] == scores[2] == scores[3]
    mixed = split.scores(read(pa.table({"k": ["7", "X100", "7.5"]}))).tolist()
    assert mixed[0] == scores[0][1]  # whatever else is in the batch
    assert mixed[2] == split.scores(read(pa.table({"k": [7.5, 1.0]}))).tolist()[0]
    assert len({*scores[0], *mixed}) == len(keys) + 2


def test_no_row_is_held_out_and_released(tmp_path: Path) -> None:
    public = people(seed=5).drop_columns(["person", "row"])
    everybody: dict[str, Any] = {"reference": None, "public": public}
    with Ledger.create(tmp_path / "ledger.db") as ledger:
        run(tmp_path, people(), ledger=ledger, dataset="in")
        for asked in (everybody, {"unit": "person", "drop": ()}, {"holdout": 0.5}):
            call = partial(run, tmp_path, people(), out="b.parquet", ledger=ledger, **asked)
            refused(DisclosureError, "data set 'in'", call=call)
        run(tmp_path, people(seed=2), "two.parquet", ledger=ledger, new_dataset="two", **everybody)
        call = partial(run, tmp_path, people(seed=2), "two.parquet", "c.parquet", ledger=ledger)
        refused(DisclosureError, "held out none", call=call)
        assert (ledger.dataset("in").releases, ledger.dataset("two").releases) == (1, 1)
    split = Split.new(0.25)
    refused(
        InputError,
        "keeps the hold-out",
        call=lambda: dipriv.privatize(people(), 1.0, reference="holdout", split=split, ledger=tmp_path / "ledger.db"),
    )


def test_a_mistake_registers_nothing(tmp_path: Path) -> None:
    with Ledger.create(tmp_path / "ledger.db") as ledger:
        for wrong in ({"unit": "persn"}, {"holdout": 0.9999, "drop": ()}, {"keep": ("nobody",)}):
            with pytest.raises(InputError):
                run(tmp_path, people(9), "few.parquet", ledger=ledger, dataset="typo", **wrong)
        assert ledger.datasets() == []
        run(tmp_path, people(), ledger=ledger, dataset="right")


@pytest.mark.parametrize("extension", ["csv", "arrow"])
def test_a_table_is_known_in_any_format(extension: str, tmp_path: Path) -> None:
    odd = pa.table(
        {
            "real": pa.array([1.5, None, 3.0] * 200),
            "whole": pa.array([1, None, 3] * 200),
            "when": pa.array([0, 86_400, 10**9] * 200, pa.timestamp("us")),
        }
    )
    with Ledger.create(tmp_path / "ledger.db") as ledger:
        run(tmp_path, odd, ledger=ledger, dataset="odd", keep=(), drop=())
        run(tmp_path, odd, f"odd.{extension}", f"o.{extension}", ledger=ledger, keep=(), drop=())
        dipriv.privatize(odd.to_pandas(), 1.0, reference="holdout", ledger=ledger)
        assert [(found.name, found.releases) for found in ledger.datasets()] == [("odd", 3)]
        call = partial(dipriv.privatize, people(), 1.0, reference="holdout", ledger=ledger)
        refused(InputError, "does not know this table", "dataset=", call=call)


def test_two_first_releases_at_once_do_not_mix(tmp_path: Path) -> None:
    """Both look before either enters: the second to enter is refused."""
    with Ledger.create(tmp_path / "ledger.db") as ledger:
        sessions = []
        for table in (people(), people().sort_by("age")):
            found = open_source(table).scan(Scan(("age",), fingerprint=fingerprint_request(ledger))).fingerprint
            assert found is not None
            options = ReleaseOptions(1.0, ledger=ledger, dataset="in")
            sessions.append(LedgerSession.identify(ledger, options, found, None))
            sessions[-1].split(None, None, 0.25)
        guarantee = dipriv.Guarantee(1.0, "", ReferenceFacts(ReferenceSource.NONE))
        sessions[0].reserve(guarantee).commit(1)
        with pytest.raises((LedgerError, DisclosureError)):
            sessions[1].reserve(guarantee)
        assert ledger.dataset("in").spent == 1


def test_a_replaced_output_never_has_the_guarantee_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path, people(), epsilon=5.0)
    note = tmp_path / "out.parquet.dipriv.json"

    def crash(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dipriv._sinks.file.commit_file", crash)
    with pytest.raises(StorageError):
        run(tmp_path, people(), epsilon=0.1)
    assert not note.exists() or json.loads(note.read_text(encoding="utf-8"))["guarantee"]["epsilon"] == 5.0


def test_infinite_numbers_in_the_hold_out_cost_nothing(tmp_path: Path) -> None:
    table = pa.table({"a": np.where(np.arange(501) % 2, np.arange(501.0), np.inf)})
    with Ledger.create(tmp_path / "ledger.db") as ledger:
        call = partial(run, tmp_path, table, ledger=ledger, dataset="inf", keep=(), drop=())
        refused(InputError, "'a' holds infinite values", call=call)
        assert ledger.datasets() == []
        both = table.append_column("b", [np.arange(501) % 7])
        run(tmp_path, both, "both.parquet", ledger=ledger, dataset="kept", keep=("a",), drop=())
        run(tmp_path, both, "both.parquet", ledger=ledger, keep=(), drop=("a",))


def test_a_refused_release_writes_nothing(tmp_path: Path) -> None:
    with Ledger.create(tmp_path / "ledger.db") as ledger:
        ledger.set_budget("in", 0.5)
        with pytest.raises(BudgetError):
            run(tmp_path, people(), ledger=ledger, dataset="in")
        assert ledger.dataset("in").spent == 0
    assert not list(tmp_path.glob("*out*"))


def test_a_failure_while_writing_stays_spent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise StorageError("out.parquet: No space left on device.", "Make room.")

    monkeypatch.setattr(FileSink, "write", full)
    file = tmp_path / "in.parquet"
    pq.write_table(people(), file)
    with Ledger.create(tmp_path / "ledger.db") as ledger:
        error = refused(
            StorageError, "No space left", call=partial(run, tmp_path, people(), ledger=ledger, dataset="in")
        )
        spent, written = error.__notes__
        assert "ε = 1 is spent in the ledger" in spent
        assert written == "out.parquet is not written."
        assert ledger.dataset("in").spent == 1
        assert [record.state for record in ledger.records("in")] == ["failed"]
    assert sorted(found.name for found in tmp_path.iterdir() if "out" in found.name) == []


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_tables_in_memory_are_counted_too(library: str, tmp_path: Path) -> None:
    table: Any = people()
    frame = {"pandas": table.to_pandas, "polars": lambda: pl.from_arrow(table), "pyarrow": lambda: table}[library]()
    url = f"sqlite:///{tmp_path}/ledger.db"
    Ledger.create(url).close()
    first = dipriv.privatize(frame, 1.0, reference="holdout", keep=["row"], ledger=url, dataset="people")
    second = dipriv.privatize(frame, 0.25, reference="holdout", keep=["row"], ledger=url)
    assert list(first.data["row"]) == list(second.data["row"])
    with Ledger.open(url) as ledger:
        assert ledger.dataset("people").spent == 1.25
        ledger.set_budget("people", 1.5)
    with pytest.raises(BudgetError):
        dipriv.privatize(frame, 0.3, reference="holdout", keep=["row"], ledger=url)


def test_rows_of_a_person_share_epsilon(tmp_path: Path) -> None:
    table = people()
    done = run(tmp_path, table, unit="person", rows_per_unit=2, drop=())
    released = pq.read_table(tmp_path / "out.parquet")
    assert released.column_names == ["row", "person", "age", "income", "sex"]
    persons = pd.Series(table["person"].to_numpy(), index=table["row"].to_numpy())
    there = persons[released["row"].to_numpy()]
    assert there.value_counts().max() == 2
    assert released["person"].to_pylist() == (pd.factorize(there)[0] + 1).tolist()
    held = set(persons) - set(there)
    assert not held & set(there)
    share = len(held) / persons.nunique()
    assert abs(share - 0.25) < np.sqrt(np.log(2 / ALARM) / (2 * persons.nunique()))  # Hoeffding
    assert done.guarantee.epsilon == 1.0
    assert done.guarantee.unit == PrivacyUnit.rows_of("person", 2)
    assert Assumption(AssumptionKind.UNIT_SIZES_PUBLIC, ("person",)) in done.guarantee.assumptions


def test_in_memory_and_in_files_persons_are_treated_alike(tmp_path: Path) -> None:
    table = people()
    run(tmp_path, table, unit="person", rows_per_unit=2, drop=(), seed=4)
    same = dipriv.privatize(
        table, 1.0, reference="holdout", keep=["row"], unit="person", rows_per_unit=2, seed=4, columns=None
    )
    assert pq.read_table(tmp_path / "out.parquet").equals(same.data)


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 10, 49, 1000])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.3, 1e-6])
def test_a_persons_rows_never_cost_more_than_epsilon(rows: int, epsilon: float) -> None:
    share = ContributionBound("person", rows).row_epsilon(epsilon)
    assert Fraction(share) * rows <= Fraction(epsilon)
    assert share * rows > epsilon * (1 - 1e-15 * rows)


def test_the_picked_rows_of_a_person_do_not_depend_on_values() -> None:
    keys = np.repeat(np.arange(300, dtype=np.uint64), 5)
    scores = np.random.default_rng(1).integers(0, 1 << 63, len(keys)).astype(np.uint64)
    kept = ContributionBound("person", 2).kept(keys, scores).reshape(300, 5)
    assert (kept.sum(axis=1) == 2).all()
    counts = kept.sum(axis=0)  # each place is picked with probability 2/5
    assert np.abs(counts / 300 - 0.4).max() < np.sqrt(np.log(2 * 5 / ALARM) / (2 * 300))


def test_bad_requests(tmp_path: Path) -> None:
    table = people()
    refused(InputError, "rows_per_unit=0", call=lambda: run(tmp_path, table, unit="person", rows_per_unit=0, drop=()))
    refused(InputError, "'nobody'", "not a column", call=lambda: run(tmp_path, table, drop=("nobody",)))
    refused(InputError, "'nobody'", call=lambda: run(tmp_path, table, unit="nobody"))
    refused(InputError, "in drop, but it is used", call=lambda: run(tmp_path, table, keep=("person",)))
    refused(ReferenceDataError, "hold-out has", call=lambda: run(tmp_path, table.slice(0, 1), "one.parquet"))
    texts = pa.table({"note": [f"met {i} people on the way home and told them {i * 7}" for i in range(400)]})
    refused(SchemaError, "'note'", call=lambda: run(tmp_path, texts, "texts.parquet", keep=(), drop=()))
    assert not list(tmp_path.glob("out*"))
