"""Workers of Spark that read and write Parquet files themselves: the rows of one machine, in files of one size."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import dipriv
from dipriv._sinks import FolderSink
from dipriv.errors import BudgetError, InputError, SchemaError, SourceChangedError
from dipriv.ledger import Ledger
from dipriv.release.options import ReleaseOptions
from dipriv.release.plan import prepare
from dipriv.release.privatize import release_file
from dipriv.sources._blocks import cut
from dipriv.sources.spark import parquet, workspace
from dipriv.sources.spark.files import SparkFiles
from dipriv.sources.spark.frame import SparkRows
from dipriv.sources.spark.parquet import RangedRows
from dipriv.sources.spark.ranges import RangeReader, ranges_of
from dipriv.sources.spark.tasks import BLOCK_ROWS
from dipriv.sources.stream import open_path
from tests import spark_support

RNG = np.random.default_rng(20)
N = 2 * BLOCK_ROWS + 5000
TABLE = pa.table(
    {
        "key": np.arange(N),
        "age": RNG.integers(18, 90, N),
        "pay": pa.array(RNG.lognormal(10, 1, N).round(2), mask=RNG.random(N) < 0.1),
        "city": pa.array(RNG.choice(["Bonn", "Köln", "Ulm"], N), mask=RNG.random(N) < 0.1),
        "note": [f"note {number}" for number in range(N)],
        "day": pa.array(RNG.integers(0, 9000, N).astype(np.int32), pa.date32()),
    }
)


def write_files(folder: Path, table: pa.Table, sizes: list[int], group: int) -> list[Path]:
    folder.mkdir(exist_ok=True, parents=True)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    paths = [folder / f"{number}.parquet" for number in range(len(sizes))]
    for path, start, size in zip(paths, starts, sizes, strict=False):
        pq.write_table(table.slice(int(start), size), path, row_group_size=group)
    return paths


@pytest.mark.parametrize("seed", range(20))
def test_ranges_are_all_rows_in_their_order(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 400, rng.integers(1, 6)).tolist()
    rows, size = sum(sizes), int(rng.integers(60, 300))
    paths = write_files(tmp_path / "in", TABLE.slice(0, rows), sizes, int(rng.integers(1, 200)))
    ranges = ranges_of(paths, size)
    assert ranges is not None
    read = RangeReader(("key", "city"), "mark")
    found = [next(cut(read([one]), size)) for one in ranges]
    assert [part.num_rows for part in found] == [min(size, rows - at) for at in range(0, rows, size)]
    for one, part in zip(ranges, found, strict=True):
        numbers = list(range(one.first, one.first + part.num_rows))
        assert part["mark"].to_pylist() == part["key"].to_pylist() == numbers
        assert part["city"].to_pylist() == TABLE["city"].slice(one.first, part.num_rows).to_pylist()


def test_row_groups_that_would_be_read_often_are_left_to_spark(tmp_path: Path) -> None:
    paths = write_files(tmp_path / "in", TABLE.slice(0, 1000), [1000], 500)
    assert ranges_of(paths, 125) is not None
    assert ranges_of(paths, 124) is None


def test_a_file_that_became_shorter_is_told(tmp_path: Path) -> None:
    (path,) = write_files(tmp_path / "in", TABLE.slice(0, 1000), [1000], 100)
    ranges = ranges_of([path], 300)
    assert ranges is not None
    for rows, group in ((900, 100), (990, 99), (1000, 1000)):
        write_files(tmp_path / "in", TABLE.slice(0, rows), [rows], group)
        with pytest.raises(SourceChangedError, match=r"0\.parquet"):
            list(RangeReader(("key",), "mark")(ranges))


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install dipriv[spark]")
    local = str(tmp_path_factory.mktemp("local"))
    yield from spark_support.session(tmp_path_factory.mktemp("events"), spark_local_dir=local)


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "PART_ROWS", BLOCK_ROWS)


@pytest.fixture
def files(tmp_path: Path, small_parts: None) -> Path:
    write_files(tmp_path / "in", TABLE, [70_000, 0, 1, N - 70_001], 30_000)
    return tmp_path / "in"


def release(files: Path, out: Path, **options: Any) -> dipriv.Release[Any]:
    asked: Any = {"seed": 7, "drop": ["note"], "keep": ["key"]} | options
    return release_file(SparkFiles.find(str(files)).open(), FolderSink.at(out), ReleaseOptions(1.0, **asked))


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_the_rows_of_one_machine_in_files_of_one_size(session: Any, files: Path, tmp_path: Path) -> None:
    there = release(files, tmp_path / "out")
    here: Any = dipriv.privatize(str(files), 1.0, seed=7, drop=["note"], keep=["key"])
    parts = sorted((tmp_path / "out").iterdir())
    assert [path.name for path in parts] == [f"part-{number:05}.parquet" for number in range(3)]
    assert [pq.read_metadata(path).num_rows for path in parts] == [BLOCK_ROWS, BLOCK_ROWS, 5000]
    written = pa.concat_tables(map(pq.read_table, parts))
    assert written.equals(here.data.to_table())
    assert written.schema.names == ["key", "age", "pay", "city", "day"]
    assert there.guarantee == here.guarantee
    note = json.loads((tmp_path / "out.dipriv.json").read_text())
    assert note["rows"]["released"] == N
    other: Any = dipriv.privatize(str(files), 1.0, seed=8, drop=["note"], keep=["key"])
    assert not written.equals(other.data.to_table())  # control: the noise is there


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_the_ledger_knows_the_files_of_every_engine(session: Any, files: Path, tmp_path: Path) -> None:
    with Ledger.create(tmp_path / "ledger.db") as ledger:
        asked: dict[str, Any] = {"seed": None, "ledger": ledger}
        release(files, tmp_path / "out", dataset="people", **asked)
        assert ledger.dataset("people").releases == 1
        with pytest.raises(BudgetError, match="people"):
            dipriv.privatize(TABLE, 1.0, drop=["note"], ledger=ledger, dataset="others")
        ledger.set_budget("people", 1.5)
        with pytest.raises(BudgetError):
            release(files, tmp_path / "more", dataset="people", **asked)
    assert not (tmp_path / "more").exists()


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_blocks_that_are_packed_again_must_be_the_same(session: Any, files: Path, tmp_path: Path) -> None:
    options = ReleaseOptions(1.0, seed=7, drop=["note"])
    with closing(prepare(SparkFiles.find(str(files)).open(), options)) as plan:
        assert isinstance(plan._rows, RangedRows)
        plan._rows.packs.unpersist(True)  # as if a worker was lost
        data: Any = plan.run("out").data
        data.write(tmp_path / "first")  # control: files that did not change are read again
        ages = TABLE["age"].to_numpy().copy()
        ages[N - 1] = 99 - ages[N - 1]
        write_files(files, TABLE.set_column(1, "age", pa.array(ages)), [70_000, 0, 1, N - 70_001], 30_000)
        plan._rows.packs.unpersist(True)
        with pytest.raises(SourceChangedError, match="changed"):
            data.write(tmp_path / "second")
    assert not [path for path in (tmp_path / "second").iterdir() if path.suffix != ".parquet"]


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_files_that_change_after_the_first_pass_do_not_matter(session: Any, files: Path, tmp_path: Path) -> None:
    options = ReleaseOptions(1.0, seed=7, drop=["note"], keep=["key"])
    release(files, tmp_path / "out")
    with closing(prepare(SparkFiles.find(str(files)).open(), options)) as plan:
        for path in files.iterdir():
            path.unlink()
        plan.run("later").data.write(tmp_path / "later")
    assert pq.read_table(tmp_path / "later").equals(pq.read_table(tmp_path / "out"))


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_columns_in_names_of_folders_are_those_of_spark(session: Any, tmp_path: Path, small_parts: None) -> None:
    for year in (2024, 2025):
        write_files(tmp_path / "in" / f"year={year}", TABLE.slice(0, 2000).select(["age", "city"]), [2000], 1000)
    cases: list[tuple[dict[str, Any], list[str]]] = [({"keep": ["year"]}, ["year"]), ({"drop": ["year"]}, [])]
    for asked, extra in cases:
        with closing(
            prepare(SparkFiles.find(str(tmp_path / "in")).open(), ReleaseOptions(1.0, seed=7, **asked))
        ) as plan:
            assert isinstance(plan._rows, SparkRows)
            assert plan.run().data.columns == ["age", "city", *extra]
    with pytest.raises(SchemaError, match="names of folders give 'year'"):
        prepare(SparkFiles.find(str(tmp_path / "in")).open(), ReleaseOptions(1.0))


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_the_first_pass_counts_few_labels_and_leaves_many_to_a_later_one(
    session: Any, tmp_path: Path, small_parts: None
) -> None:
    villages = pa.array([f"village number {number}" for number in RNG.zipf(1.3, N) % 20_000])
    write_files(tmp_path / "in", TABLE.select(["age", "city"]).append_column("village", villages), [N], 30_000)
    here: Any = dipriv.privatize(str(tmp_path / "in"), 1.0, seed=7)
    with closing(prepare(SparkFiles.find(str(tmp_path / "in")).open(), ReleaseOptions(1.0, seed=7))) as plan:
        assert isinstance(plan._rows, RangedRows)
        counts = plan._rows.label_counts
        assert [*counts] == ["city"]
        assert sum(counts["city"].counts.tolist()) == N - TABLE["city"].null_count
        released: Any = plan.run("out").data
        released.write(tmp_path / "out")
    written = pq.read_table(tmp_path / "out")
    assert written.equals(here.data.to_table())
    assert written["village"].value_counts()[0]["counts"].as_py() > 1000  # control: labels were found


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_text_that_looks_like_numbers_is_asked_about(session: Any, tmp_path: Path, small_parts: None) -> None:
    texts = pa.array([str(number % 1000) for number in range(N - 1)] + ["none of them"])
    write_files(tmp_path / "in", TABLE.select(["age"]).append_column("code", texts), [N], 30_000)
    faults = []
    for source in (SparkFiles.find(str(tmp_path / "in")).open(), open_path(str(tmp_path / "in"))):
        with pytest.raises(SchemaError, match="column 'code': it is text") as refused:
            prepare(source, ReleaseOptions(1.0))
        faults.append(str(refused.value))
    assert faults[0] == faults[1]
    assert not session.sparkContext._jsc.getPersistentRDDs()
    asked = ReleaseOptions(1.0, types={"code": "text"})
    with closing(prepare(SparkFiles.find(str(tmp_path / "in")).open(), asked)) as plan:
        assert plan.output_schema.field("code").type == pa.string()


OTHERWISE: dict[str, tuple[Callable[[pa.Table], pa.Table], dict[str, Any]]] = {
    "a hold-out": (lambda table: table, {"reference": "holdout"}),
    "times in milliseconds": (
        lambda table: table.append_column("at", pa.array(range(len(table)), pa.timestamp("ms"))),
        {},
    ),
    "text that is read as numbers": (
        lambda table: table.append_column("code", table["age"].cast(pa.string())),
        {"types": {"code": "whole"}},
    ),
}


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("case", OTHERWISE)
def test_other_releases_go_through_the_reader_of_spark(
    session: Any, case: str, tmp_path: Path, small_parts: None
) -> None:
    change, asked = OTHERWISE[case]
    table = change(TABLE.slice(0, 4000).select(["age", "city"]))
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "in" / "0.parquet")
    with closing(prepare(SparkFiles.find(str(tmp_path / "in")).open(), ReleaseOptions(1.0, seed=7, **asked))) as plan:
        assert isinstance(plan._rows, SparkRows)
        assert plan.run().data.count() == plan.row_counts.released


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_nothing_stays_on_disks(session: Any, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(session.sparkContext.getConf().get("spark.local.dir"))
    monkeypatch.setattr(workspace, "LEVEL", "DISK_ONLY")

    def blocks() -> list[str]:
        return [
            path.name for path in folder.rglob("*") if path.is_file() and path.name.startswith(("rdd_", "broadcast"))
        ]

    with closing(prepare(SparkFiles.find(str(files)).open(), ReleaseOptions(1.0, seed=7, drop=["note"]))):
        assert [name for name in blocks() if name.startswith("rdd_")]  # control: this is where they are
    assert not blocks()
    release(files, tmp_path / "out")
    assert not blocks()
    monkeypatch.setattr(FolderSink, "check_written", lambda *_: (_ for _ in ()).throw(InputError("no.", "no")))
    with pytest.raises(InputError):
        release(files, tmp_path / "failed")
    assert not blocks()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "in",
        "out",
        "out.dipriv.json",
        "out.sheet.html",
        "out.sheet.json",
    ]


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("form", ["csv", "parquet", "hold-out", "large strings"])
def test_files_in_folders_of_folders_are_all_released(session: Any, form: str, tmp_path: Path) -> None:
    table = TABLE.select(["key", "age", "city"]).slice(0, 900)
    if form == "large strings":  # as polars writes them
        table = table.set_column(2, "city", table["city"].cast(pa.large_string()))
    for number, place in enumerate(["", "2024", "2025/may"]):
        (tmp_path / "in" / place).mkdir(parents=True, exist_ok=True)
        part, path = table.slice(300 * number, 300), tmp_path / "in" / place / f"rows.{form[:3]}"
        if form == "csv":
            pacsv.write_csv(part, path)
        else:
            pq.write_table(part, path.with_suffix(".parquet"))
    files = SparkFiles.find(str(tmp_path / "in")).open()
    options = ReleaseOptions(1.0, keep=["key"], reference="holdout" if form == "hold-out" else None)
    found = release_file(files, FolderSink.at(tmp_path / "out"), options)
    assert found.row_counts.read == 900
    if form != "hold-out":
        keys = pq.read_table(tmp_path / "out")["key"].to_pylist()
        assert sorted(map(int, keys)) == table["key"].to_pylist()


def test_files_that_spark_would_leave_out_are_refused(tmp_path: Path) -> None:
    for odd in ("", "other", "month=5", "year=2026/more"):
        folder = tmp_path / (odd.replace("/", "-") or "top")
        for place in ("year=2024", "year=2025", odd):
            write_files(folder / place, TABLE.slice(0, 10), [10], 10)
        with pytest.raises(InputError, match="Spark would leave out"):
            SparkFiles.find(str(folder))
    write_files(tmp_path / "years" / "year=2024", TABLE.slice(0, 10), [10], 10)
    write_files(tmp_path / "years" / "year=2025", TABLE.slice(0, 10), [10], 10)
    assert len(SparkFiles.find(str(tmp_path / "years")).paths) == 2  # control


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_a_table_without_rows_is_refused(session: Any, tmp_path: Path) -> None:
    write_files(tmp_path / "in", TABLE.slice(0, 0), [0, 0], 10)
    with pytest.raises(InputError, match="the table has no rows"):
        release_file(SparkFiles.find(str(tmp_path / "in")).open(), FolderSink.at(tmp_path / "out"), ReleaseOptions(1.0))
