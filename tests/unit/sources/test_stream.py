"""Tables larger than memory: the same rows as in memory, whatever the source; read in blocks, and always the same."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from scipy import stats

import dipriv
from dipriv.errors import BudgetError, InputError, ReferenceDataError, SchemaError, SourceChangedError
from dipriv.ledger import Ledger
from dipriv.references import Grouped, Known, Private
from dipriv.release.result import Release
from dipriv.sources import stream
from dipriv.sources._blocks import cut
from dipriv.sources.files import File
from tests.unit.refusal import NUMBER, SECRET, refused

N = 4001
BLOCK = 700


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "MIN_BLOCK_ROWS", BLOCK)
    monkeypatch.setattr(stream, "MAX_BLOCK_ROWS", BLOCK)


def people(seed: int = 0, rows: int = N) -> pa.Table:
    rng = np.random.default_rng(seed)
    gone = rng.random(rows) < 0.1
    return pa.table(
        {
            "id": np.arange(rows),
            "age": rng.integers(18, 90, rows).astype(np.int16),
            "pay": np.where(rng.random(rows) < 0.2, 0.0, rng.lognormal(10, 1, rows)),
            "cents": pa.array(np.round(rng.lognormal(3, 1, rows), 2), mask=gone),
            "city": rng.choice(["Bonn", "Köln", "Ulm"], rows),
            "kind": pa.array(rng.choice(["a", "b"], rows), mask=gone).dictionary_encode(),
            "born": pa.array(rng.integers(0, 9000, rows).astype("datetime64[D]")),
            "ok": rng.random(rows) < 0.5,
        }
    )


def pieces(table: pa.Table, size: int = 333) -> list[pa.RecordBatch]:
    """Batches of odd sizes, some empty, each with a dictionary of its own."""
    batches = []
    for start in range(0, table.num_rows, size):
        part = table.slice(start, size).to_pydict()
        batches += [pa.RecordBatch.from_pydict(part, table.schema), pa.RecordBatch.from_pylist([], table.schema)]
    return batches


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


# ---- the same rows as in memory ----

OPTIONS: dict[str, dict[str, Any]] = {
    "private": {"keep": ["id"]},
    "private with a target, some columns": {"reference": Private("pay"), "columns": ["city", "pay", "age"]},
    "private from a hold-out": {"keep": ["id"], "holdout": 0.3},
    "hold-out": {"reference": "holdout", "keep": ["id"], "kernel": "laplace"},
    "known law": {"reference": Known(stats.lognorm(1, scale=np.exp(10))), "columns": ["pay"]},
    "public": {"public": people(9), "keep": ["id"]},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
def test_a_seeded_stream_gives_the_rows_of_the_table_in_memory(options: dict[str, Any]) -> None:
    table = people()
    expected = dipriv.privatize(table, 1.5, seed=7, **options)
    release = dipriv.privatize(lambda: iter(pieces(table)), 1.5, seed=7, **options)
    released = release.data.to_table()
    assert released.schema.equals(expected.data.schema)
    assert rows_of(released) == rows_of(expected.data)
    assert release.n_rows == expected.data.num_rows
    assert release.guarantee == expected.guarantee
    assert release.schema == expected.schema


def test_fidelity_is_that_of_the_table_in_memory() -> None:
    table = people().select(["ok"])
    release = dipriv.privatize(table.to_batches, 1.0, seed=7)
    assert release.fidelity == dipriv.privatize(table, 1.0, seed=7).fidelity
    assert 0 < release.fidelity["ok"] < 1


@pytest.mark.parametrize("options", [{}, {"reference": "holdout"}], ids=["private", "hold-out"])
def test_a_second_pass_gives_identical_rows(options: dict[str, Any]) -> None:
    release = dipriv.privatize(lambda: pieces(people()), 1.0, **options)
    assert release.guarantee.secure_randomness
    first, second = release.data.to_table(), release.data.to_table()
    assert first.equals(second)
    other = dipriv.privatize(lambda: pieces(people()), 1.0, **options).data.to_table()
    assert not first.equals(other)  # control: another release has other noise


def test_blocks_do_not_change_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for size in (7, 50, 10**6):
        monkeypatch.setattr(stream, "MIN_BLOCK_ROWS", size)
        monkeypatch.setattr(stream, "MAX_BLOCK_ROWS", size)
        table = people(rows=201)
        release = dipriv.privatize(partial(pieces, table, 44), 1.0, seed=3)
        found.append(rows_of(release.data.to_table()))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("size", [1, 10, 333, N - 1, N, N + 1])
def test_cutting_keeps_rows_and_fills_blocks(size: int) -> None:
    table = people().select(["id", "kind"])
    found = list(cut(pieces(table), size))
    assert [part.num_rows for part in found[:-1]] == [size] * (len(found) - 1)
    assert 0 < found[-1].num_rows <= size
    assert rows_of(pa.concat_tables(found)) == rows_of(table)
    assert all(column.num_chunks == 1 for part in found for column in part.columns)


# ---- sources ----


def written(folder: Path, table: pa.Table, files: int = 3) -> Path:
    folder.mkdir()
    size = -(-table.num_rows // files)
    for number in range(files):
        pq.write_table(table.slice(number * size, size), folder / f"part-{number}.parquet", row_group_size=500)
    return folder


@pytest.mark.slow
def test_parquet_files_as_a_data_set_a_folder_a_pattern_and_one_file(tmp_path: Path) -> None:
    table = people()
    folder = written(tmp_path / "people", table)
    expected = rows_of(dipriv.privatize(table, 1.0, keep=["id"], seed=4).data)
    pq.write_table(table, tmp_path / "all.parquet")
    for source in (
        ds.dataset(folder),
        ds.dataset(table),
        folder,
        str(folder / "*.parquet"),
        tmp_path / "all.parquet",
    ):
        assert rows_of(dipriv.privatize(source, 1.0, keep=["id"], seed=4).data.to_table()) == expected
    some = ds.dataset(folder).filter(ds.field("id") < 2500)
    kept = dipriv.privatize(some, 1.0, columns=["age"], keep=["id"]).data.to_table()
    assert kept["id"].to_pylist() == list(range(2500))


def test_the_folders_of_a_partitioned_data_set_are_a_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = people().select(["age", "ok"]).append_column("land", pa.array(["de", "fr", "it", "pl"] * 1000 + ["de"]))
    ds.write_dataset(table, tmp_path / "x", format="parquet", partitioning=["land"], partitioning_flavor="hive")
    data = ds.dataset(tmp_path / "x", partitioning="hive")
    monkeypatch.chdir(tmp_path / "x")
    lazy = [pl.scan_parquet("land=*/*.parquet", hive_partitioning=True), pl.scan_parquet(".")]
    lazy += [pl.scan_parquet(tmp_path / "x"), pl.scan_parquet(tmp_path / "x" / "**/*.parquet", hive_partitioning=True)]
    for source in (*lazy, tmp_path / "x", data, data.filter(ds.field("age") > -1), ds.dataset([data])):
        released = dipriv.privatize(source, 1.0, keep=["land"]).data.to_table()
        assert set(released.column_names) == {"age", "ok", "land"}
        assert released.num_rows == N
        assert dipriv.privatize(source, 1.0, drop=["land"]).data.to_table().column_names == ["age", "ok"]
        with pytest.raises(SchemaError, match="names of folders give 'land'"):
            dipriv.privatize(source, 1.0)


@pytest.mark.parametrize("name", ["gr\u00f6sse", "a b", "x%20y", "p/q"])
def test_columns_that_folders_name_are_found_however_they_are_written(name: str, tmp_path: Path) -> None:
    table = people().select(["age"]).append_column(name, pa.array(["u", "v", "w", "x"] * 1000 + ["u"]))
    ds.write_dataset(table, tmp_path / "x", format="parquet", partitioning=[name], partitioning_flavor="hive")
    data = ds.dataset(tmp_path / "x", partitioning="hive")
    lazy = pl.scan_parquet(tmp_path / "x")
    for source, columns in ((lazy, lazy.collect_schema().names()), (data, data.schema.names)):
        assert len(columns) == 2
        with pytest.raises(SchemaError, match="names of folders give"):
            dipriv.privatize(source, 1.0)
    pq.write_table(table.rename_columns(["age", "year"]), tmp_path / "year=2025.parquet")
    own = pl.scan_parquet(tmp_path / "year=2025.parquet").filter(pl.col("age") > -1)
    assert dipriv.privatize(own, 1.0).data.to_table().column_names == ["age", "year"]  # control: the file's own column


def test_a_lazy_frame_gives_the_rows_of_the_frame() -> None:
    frame = pl.DataFrame(people()).with_columns(
        pl.col("kind").cast(pl.Categorical),
        size=pl.col("age").mod(2).replace_strict({0: "s", 1: "l"}, return_dtype=pl.Enum(["s", "m", "l"])),
        at=pl.col("born").cast(pl.Datetime("us", "Europe/Paris")),
    )
    expected = dipriv.privatize(frame, 2.0, keep=["id"], reference=Private(), seed=5)
    release = dipriv.privatize(frame.lazy(), 2.0, keep=["id"], seed=5)
    released = pl.DataFrame(release.data.to_table())
    assert released.drop("kind", "size").equals(expected.data.drop("kind", "size"))
    for name in ("kind", "size"):
        assert released[name].cast(pl.String).equals(expected.data[name].cast(pl.String))
    assert release.guarantee == expected.guarantee  # the type's categories count as declared, as in memory
    assert release.schema == expected.schema


def test_a_lazy_query_over_files_is_streamed(tmp_path: Path) -> None:
    table = people()
    folder = written(tmp_path / "people", table)
    query = pl.scan_parquet(folder / "*.parquet").filter(pl.col("age") >= 30).select("id", "age", "pay")
    release = dipriv.privatize(query, 1.0, keep=["id"], seed=6)
    expected = dipriv.privatize(query.collect(), 1.0, keep=["id"], seed=6).data
    assert pl.DataFrame(release.data.to_table()).equals(expected)


# ---- memory ----


class Spring:
    """A source of fresh random batches, the same each time, that notes how it is read."""

    def __init__(self, batches: int, rows: int) -> None:
        self.batches, self.rows = batches, rows
        self.given = self.passes = self.most_bytes = 0
        self.base = pa.total_allocated_bytes()

    def __call__(self) -> Iterator[pa.RecordBatch]:
        return self._fresh()

    def _fresh(self) -> Iterator[pa.RecordBatch]:
        self.given, self.passes = 0, self.passes + 1
        for number in range(self.batches):
            rng = np.random.default_rng(number)
            values = {name: pa.array(rng.normal(size=self.rows).tolist()) for name in "abc"}  # in Arrow's own memory
            self.given += 1
            self.most_bytes = max(self.most_bytes, pa.total_allocated_bytes() - self.base)
            yield pa.record_batch(values)


@pytest.mark.slow
@pytest.mark.usefixtures("no_room_for_rows")
@pytest.mark.parametrize(
    "options", [{"delta": 0.0}, {"reference": Known({name: stats.norm() for name in "abc"})}], ids=["private", "law"]
)
def test_memory_holds_few_blocks_and_the_source_is_read_lazily(options: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under δ a table of few rows has its distinct values counted, too, which takes memory for all of them."""
    monkeypatch.setenv("DIPRIV_THREADS", "2")
    spring = Spring(60, BLOCK)
    release = dipriv.privatize(spring, 1.0, **options)
    reader = release.data.reader()
    assert spring.given in (0, 60)  # nothing is read before it is asked for
    for number, batch in enumerate(reader, start=1):
        assert batch.num_rows == BLOCK
        assert spring.given <= number + 3  # a block for each thread, and one that waits
    assert spring.given == number == 60
    block = 3 * 8 * BLOCK
    assert spring.most_bytes < 8 * block < spring.batches * block


@pytest.mark.slow
def test_a_data_set_is_not_read_ahead_of_the_release(tmp_path: Path) -> None:
    rows, files = 20_000, 120  # a few files are read ahead whatever their number, never a quarter of them
    folder = written(tmp_path / "x", pa.table({"a": np.random.default_rng(0).normal(size=rows * files)}), files)
    reader = dipriv.privatize(folder, 1.0, reference=Known(stats.norm()), kernel="laplace").data.reader()
    base, most = pa.total_allocated_bytes(), 0
    for _ in range(rows * files // BLOCK):
        reader.read_next_batch()
        most = max(most, pa.total_allocated_bytes() - base)
    assert most < files // 4 * rows * 8


@pytest.mark.usefixtures("no_room_for_rows")
def test_a_hold_out_is_all_that_is_gathered() -> None:
    spring = Spring(60, BLOCK)
    release = dipriv.privatize(spring, 1.0, reference="holdout", holdout=0.05, kernel="laplace")
    rows = sum(batch.num_rows for batch in release.data)
    assert rows == release.n_rows
    assert abs(rows / (60 * BLOCK) - 0.95) < 0.01
    assert spring.most_bytes < 20 * 3 * 8 * BLOCK


# ---- a source that is not the same twice ----


def changing(change: Callable[[pa.Table, int], pa.Table], since: int) -> Callable[[], list[pa.RecordBatch]]:
    """Batches that are changed from a reading on; opening a function looks at it twice."""
    calls = 0

    def source() -> list[pa.RecordBatch]:
        nonlocal calls
        calls += 1
        table = people().select(["id", "age", "pay"])
        return pieces(change(table, calls) if calls > since else table)

    return source


def one_older(table: pa.Table, _: int = 0) -> pa.Table:
    ages = table["age"].to_numpy().copy()
    ages[3000] += 1
    return table.set_column(1, "age", pa.array(ages))


@pytest.mark.usefixtures("no_room_for_rows")
def test_other_rows_never_meet_the_same_noise() -> None:
    """The first block of which a cell changed is refused before it is released; so are rows more or fewer."""
    law = {"age": stats.norm(50, 20), "pay": stats.norm(0, 1e5)}
    for change in (one_older, lambda table, _: table.slice(0, 3500), lambda table, _: pa.concat_tables([table, table])):
        release = dipriv.privatize(changing(change, 4), 1.0, reference=Known(law), keep=["id"])
        once = release.data.to_table()
        assert once.num_rows == N
        seen = 0

        def again(release: Release[Any] = release) -> None:
            nonlocal seen
            for batch in release.data:
                seen += batch.num_rows

        refused(SourceChangedError, "changed between two readings", call=again)
        assert seen in (2800, 3500, 4001)
    seen_ids = dipriv.privatize(
        changing(lambda table, _: table.set_column(0, "id", pa.array(np.arange(N) + 1)), 4),
        1.0,
        reference=Known(law),
        keep=["id"],
    )
    seen_ids.data.to_table()  # kept columns are not protected: they may change
    assert seen_ids.data.to_table()["id"].to_pylist()[0] == 1


@pytest.mark.usefixtures("no_room_for_rows")
def test_rows_that_change_while_a_reference_is_learned_are_refused() -> None:
    refused(SourceChangedError, "changed", call=lambda: dipriv.privatize(changing(one_older, 4), 1.0))
    shuffled = pl.LazyFrame({"a": np.arange(2000.0)}).select(pl.col("a").shuffle())
    refused(SourceChangedError, "changed", "sort the query", call=lambda: dipriv.privatize(shuffled, 1.0))


def test_another_process_does_not_draw_new_noise() -> None:
    release = dipriv.privatize(ds.dataset(people().select(["age"])), 1.0)
    child = os.fork()
    if child == 0:
        try:
            release.data.to_table()
        except InputError:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


# ---- files ----


@pytest.mark.usefixtures("no_room_for_rows")
@pytest.mark.parametrize("name", ["out.parquet", "out.csv"])
def test_a_file_appears_whole_with_its_sidecar_or_not_at_all(name: str, tmp_path: Path) -> None:
    table = people().drop_columns("kind")
    release = dipriv.privatize(lambda: pieces(table), 1.0, keep=["id"])
    path = tmp_path / name
    assert release.write(path).path == path
    assert rows_of(File.at(path).read().cast(release.data.schema)) == rows_of(release.data.to_table())
    sidecar = json.loads((tmp_path / f"{name}.dipriv.json").read_text(encoding="utf-8"))
    assert sidecar["guarantee"] == release.guarantee.to_dict()
    refused(InputError, "exists", call=lambda: release.write(path))
    refused(InputError, "*.parquet", call=lambda: release.write(tmp_path / "out.table"))
    refused(InputError, "does not exist", call=lambda: release.write(tmp_path / "no" / name))
    law = Known({"age": stats.norm(50, 20), "pay": stats.norm(0, 1e5)})
    broken = dipriv.privatize(changing(one_older, 3), 1.0, reference=law, keep=["id"])
    error = refused(SourceChangedError, "changed", call=lambda: broken.write(tmp_path / f"broken-{name}"))
    assert [note for note in error.__notes__ if "ε = 1 is spent" in note]
    beside = [f"{name}.{ending}" for ending in ("dipriv.json", "sheet.html", "sheet.json")]
    assert sorted(os.listdir(tmp_path)) == [name, *beside]


# ---- the ledger ----


def test_the_ledger_knows_the_table_in_memory_and_counts_once(tmp_path: Path) -> None:
    table = people().drop_columns("kind")
    with Ledger.create(tmp_path / "ledger.db") as ledger:
        dipriv.privatize(table, 1.0, columns=["age"], ledger=ledger, dataset="people")
        ledger.set_budget("people", 2.5)
        release = dipriv.privatize(lambda: pieces(table), 1.0, columns=["age", "pay"], ledger=ledger)
        release.data.to_table()
        release.data.to_table()
        with pytest.raises(BudgetError):
            dipriv.privatize(lambda: pieces(table), 1.0, columns=["age"], ledger=ledger, dataset="people")
        dipriv.privatize(lambda: pieces(table), 0.4, columns=["age"], ledger=ledger, dataset="people")


def test_the_ledger_fixes_the_hold_out(tmp_path: Path) -> None:
    table = people().select(["id", "age", "pay"])
    with Ledger.create(tmp_path / "ledger.db") as ledger:
        options: dict[str, Any] = {"reference": "holdout", "keep": ["id"], "ledger": ledger, "dataset": "people"}
        one = dipriv.privatize(table, 1.0, **options).data
        two = dipriv.privatize(lambda: pieces(table), 1.0, **options).data.to_table()
    assert one["id"].to_pylist() == two["id"].to_pylist()


# ---- errors ----


def test_what_cannot_be_streamed_is_refused() -> None:
    batch = pa.record_batch({"a": [1.0, 2.0]})
    once = iter([batch])
    nothing: Any
    for nothing in ([batch], once, None, 7, pa.Table):
        refused(InputError, "table", call=lambda thing=nothing: dipriv.privatize(thing, 1.0))  # type: ignore[misc]
    wrong: dict[str, Any] = {
        "one and the same iterator": lambda: once,
        "function, got Table": people,
        "iterator, got Table": lambda: [people()],
        "got int": lambda: 7,
        "no batch": lambda: iter(()),
        "no rows": lambda: [batch.slice(0, 0)],
        "batch 2": lambda: [batch, pa.record_batch({"a": [1, 2]})],
        "missing": lambda: [batch, pa.record_batch({"b": [1.0]})],
        "occurs twice": lambda: [pa.RecordBatch.from_arrays([pa.array([1]), pa.array([1])], names=["a", "a"])],
    }
    for needle, source in wrong.items():
        refused(InputError, needle, call=lambda source=source: dipriv.privatize(source, 1.0))  # type: ignore[misc]
    refused(InputError, "no rows", call=lambda: dipriv.privatize(pl.LazyFrame({"a": [1.0]}).head(0), 1.0))


def test_files_of_other_columns_or_no_files_are_told(tmp_path: Path) -> None:
    refused(InputError, "no file", call=lambda: dipriv.privatize(str(tmp_path / "*.parquet"), 1.0))
    one, two = pa.table({"a": [1, 2], "b": [SECRET, "y"]}), pa.table({"a": [NUMBER + 0.5, 2.0], "b": ["x", SECRET]})
    for name, other in {
        "type": two,
        "fewer": one.select(["a"]),
        "more": one.append_column("c", pa.array([1, 2])),
    }.items():
        (tmp_path / name).mkdir()
        pq.write_table(one, tmp_path / name / "1.parquet")
        pq.write_table(other, tmp_path / name / "2.parquet")
        for source in (tmp_path / name, ds.dataset(tmp_path / name)):
            refused(InputError, "2.parquet", "column", call=lambda source=source: dipriv.privatize(source, 1.0))  # type: ignore[misc]
    mixed = ds.dataset(tmp_path / "type").filter(ds.field("b") != "")  # its files are not listed
    refused(InputError, "cannot be read", call=lambda: dipriv.privatize(mixed, 1.0, schema={}, columns=["a"]))
    (tmp_path / "text.parquet").write_text(SECRET)
    refused(InputError, "not a whole Parquet file", call=lambda: dipriv.privatize(tmp_path / "text.parquet", 1.0))
    query = pl.LazyFrame({"a": [SECRET]}).select(pl.col("a").cast(pl.Int64))
    refused(InputError, "the LazyFrame", "cannot be read", call=lambda: dipriv.privatize(query, 1.0))


def test_infinities_are_refused_in_a_hold_out_alone(tmp_path: Path) -> None:
    """Before anything is spent: half of the rows are infinite, so that some are held out."""
    values = np.where(np.arange(2000) % 2, np.arange(2000.0), np.inf)
    table = pa.table({"a": values, "b": values})
    with Ledger.create(tmp_path / "ledger.db") as ledger:
        options: dict[str, Any] = {"ledger": ledger, "dataset": "people"}
        release = partial(dipriv.privatize, table.to_batches, 1.0, reference="holdout", **options)
        refused(InputError, "'a'", "infinite", call=release)
        assert not list(ledger.datasets())
    for reference, columns in (("private", ["a", "b"]), (Known({"a": stats.norm()}), ["a"])):
        released = dipriv.privatize(table.to_batches, 1.0, reference=reference, columns=columns)
        assert np.isfinite(released.data.to_table()["a"].to_numpy()).all()


def test_what_a_stream_has_no_way_for_is_told() -> None:
    def source() -> list[pa.RecordBatch]:
        return pieces(people())

    refused(InputError, "in memory", call=lambda: dipriv.privatize(source, 1.0, reference=Grouped("city", 5)))
    refused(InputError, "not a column", call=lambda: dipriv.privatize(source, 1.0, keep=["nobody"]))
    refused(SchemaError, "declared", call=lambda: dipriv.privatize(source, 1.0, labels="declared"))
    one = pa.record_batch({"a": [1.0]})
    refused(
        ReferenceDataError, "of 1 rows", call=lambda: dipriv.privatize(lambda: [one], 1.0, reference="holdout", seed=0)
    )
    texts = pa.record_batch({"a": [f"{SECRET} {number}" for number in range(300)]})
    refused(SchemaError, "free text", call=lambda: dipriv.privatize(lambda: [texts], 1.0, labels="public"))


def test_a_release_shows_no_key() -> None:
    release = dipriv.privatize(lambda: pieces(people()), 1.0, reference="holdout")
    assert "key" not in repr(release)
    assert repr(release).startswith(f"Release({release.n_rows} rows")
    assert repr(release.data) == f"ReleasedBatches({release.n_rows} rows, 8 columns)"
    for shown in (release, release.data):
        with pytest.raises(TypeError, match="not pickled"):
            pickle.dumps(shown)
