"""Finding 31: what a file cannot hold was found out after ε was spent: a column whose first dates are missing, too."""

from __future__ import annotations

import datetime as dt
import warnings
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dipriv
from dipriv import Ledger
from dipriv._sinks.file import FileSink
from dipriv.errors import InputError, PrivacyWarning
from dipriv.sources._formats.whole import TableWriter
from dipriv.sources.files import File, FileBatches
from tests.unit.refusal import refused

STATISTICS = [".sav", ".dta", ".xpt"]
SUFFIXES = [".csv", ".tsv", ".xlsx", ".jsonl", ".parquet", ".arrow", ".orc", *STATISTICS]
READ_AGAIN = [".sav", *(pytest.param(suffix, marks=pytest.mark.slow) for suffix in (".dta", ".xpt"))]
LEADING = 1000
DAY = dt.date(2024, 2, 29)
MOMENT = dt.datetime(1931, 5, 4, 3, 2, 1)
TIME = dt.time(23, 59, 58)
CLOCKS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "date32": (pa.date32(), [DAY, dt.date.min, dt.date.max]),
    "date64": (pa.date64(), [DAY, dt.date.min, dt.date.max]),
    "time32": (pa.time32("s"), [TIME, dt.time.min, None]),
    "time64": (pa.time64("ns"), [TIME, dt.time.min, None]),
    "moment": (pa.timestamp("s"), [MOMENT, dt.datetime(1, 1, 1, 0, 0, 1), dt.datetime(9999, 12, 31, 23, 59, 59)]),
    "finer": (pa.timestamp("ns"), [MOMENT, MOMENT + dt.timedelta(microseconds=500_000), None]),
}
OTHERS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "bool": (pa.bool_(), [True, False]),
    "duration": (pa.duration("us"), [dt.timedelta(days=3), dt.timedelta(seconds=-1)]),
    "far": (pa.date32(), [2**31 - 1, -(2**31)]),
    "far64": (pa.date64(), [86_400_000 * 10**11, -86_400_000 * 10**11]),
    "labels": (pa.dictionary(pa.int8(), pa.string()), ["a", "b"]),
}


SHAPES = ["none", "sparse", "dense"]


def column(of: pa.DataType, cells: list[Any], shape: str) -> pa.Array:
    before = {"none": len(cells), "sparse": LEADING, "dense": 0}[shape]
    return pa.array([None] * before + ([] if shape == "none" else cells), of)


def written(path: Path, **columns: pa.Array) -> Path:
    """A file with these columns, in two batches, as a release writes it."""
    batch = pa.record_batch(columns)
    with FileSink.at(path) as sink:
        sink.check(batch.schema, len(batch))
        sink.write(batch.slice(0, 1))
        sink.write(batch.slice(1))
        sink.commit()
    return path


def texts(path: Path) -> pa.Table:
    """The cells of a file as its format reads them."""
    rows = FileBatches.of(File.at(path))
    return pa.Table.from_batches(rows.batches(rows.schema.names))


@pytest.mark.parametrize("suffix", READ_AGAIN)
def test_sparse_dates_are_released(suffix: str, tmp_path: Path) -> None:
    """The package took a column for text by its first cells, which are missing, and failed at the first date."""
    pytest.importorskip("pyreadstat")
    rows = (f"{20 + k % 60},{'2020-03-01' if k % 99 == 98 else ''}" for k in range(500))
    (tmp_path / "in.csv").write_text("\n".join(["age,died", *rows]))
    output = tmp_path / f"out{suffix}"
    with pytest.warns(PrivacyWarning, match="seeded"):
        dipriv.privatize_file(tmp_path / "in.csv", output, 1.0, types={"died": "date"}, seed=1)
    died = texts(output)["died"].to_pylist()
    assert len(died) == 500
    assert died[:100] == [None] * 100  # the case of the finding
    assert {dt.date.fromisoformat(day) for day in died if day is not None}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("suffix", READ_AGAIN)
def test_dates_and_times_are_read_as_they_were_written(suffix: str, shape: str, tmp_path: Path) -> None:
    """The formats are those of dates and times, whatever cells there are."""
    pyreadstat = pytest.importorskip("pyreadstat")
    columns = {name: column(of, cells, shape) for name, (of, cells) in CLOCKS.items()}
    path = written(tmp_path / f"t{suffix}", **columns)
    read, *shown = {
        ".sav": (pyreadstat.read_sav, "DATE11", "TIME8", "DATETIME20"),
        ".dta": (pyreadstat.read_dta, "%td", "%tcHH:MM:SS", "%tc"),
        ".xpt": (pyreadstat.read_xport, "DATE", "TIME", "DATETIME"),
    }[suffix]
    formats = read(path, metadataonly=True)[1].original_variable_types
    assert list(formats.values()) == [of for of in shown for _ in range(2)]
    found = texts(path)
    for of, cells in columns.items():
        assert found[of].to_pylist() == [None if cell is None else str(cell) for cell in cells.to_pylist()]


@pytest.mark.parametrize("name", [*CLOCKS, *OTHERS])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_type_is_refused_before_the_first_row_or_written(suffix: str, name: str, tmp_path: Path) -> None:
    """The same for cells that are all missing, for those after many missing ones, and for all that are there."""
    pytest.importorskip("pyreadstat"), pytest.importorskip("openpyxl")
    of, cells = (CLOCKS | OTHERS)[name]
    verdicts = set()
    for shape in SHAPES:
        array = column(of, cells, shape)
        try:
            FileSink.at(tmp_path / f"{shape}{suffix}").check(pa.schema({"x": of}))
        except InputError:
            verdicts.add("refused")
            continue
        assert written(tmp_path / f"{shape}{suffix}", x=array).stat().st_size
        verdicts.add("written")
    unknown = {".orc": ("time32", "time64", "duration"), ".xlsx": ("duration",)}
    assert verdicts == {"refused" if name in unknown.get(suffix, ()) else "written"}


# ---- types that no cell of can be written ----

INTERVAL = pa.array([(1, 2, 3)] * 300, pa.month_day_nano_interval())
MILLIONS = pa.array([Decimal("1E5")] * 300, pa.decimal128(2, -5))
BYTES = pa.array([b"\xff"] * 300)
UNWRITABLE: dict[str, tuple[pa.Array, list[str]]] = {
    "interval": (INTERVAL, [".csv", ".xlsx", ".parquet", ".orc", *STATISTICS]),
    "negative scale": (MILLIONS, [".orc", ".parquet"]),
    "nested": (pa.array([[Decimal("1E5")]] * 300, pa.list_(pa.decimal128(2, -5))), [".orc", ".parquet"]),
    "bytes": (BYTES, [".csv", ".xlsx", ".jsonl", *STATISTICS]),
    "large bytes": (BYTES.cast(pa.large_binary()), [".csv", ".xlsx", *STATISTICS]),
}


@pytest.mark.parametrize("name", UNWRITABLE)
def test_types_without_a_place_are_refused_before_spending(name: str, tmp_path: Path) -> None:
    """Writers were opened, and no row was written: some failed at the first one, and that of ORC ended the process."""
    pytest.importorskip("pyreadstat"), pytest.importorskip("openpyxl")
    kept, suffixes = UNWRITABLE[name]
    table = pa.table({"age": [20 + k % 60 for k in range(300)], "odd": kept})
    with pa.ipc.new_file(tmp_path / "in.arrow", table.schema) as writer:
        writer.write_table(table)
    book = Ledger.create(tmp_path / "ledger.db")

    def release(output: str) -> Any:
        return dipriv.privatize_file(
            tmp_path / "in.arrow", tmp_path / output, 1.0, keep=["odd"], ledger=book, dataset="people"
        )

    for suffix in suffixes:
        refused(InputError, "column 'odd'", "type", call=partial(release, f"out{suffix}"))
    assert sum(of.spent for of in book.datasets()) == 0
    assert not list(tmp_path.glob("out*"))
    release("out.arrow")  # control
    assert book.dataset("people").spent == 1
    book.close()


def test_dictionaries_of_dates_are_written(tmp_path: Path) -> None:
    """They were refused, as Arrow makes no empty one."""
    days = pa.DictionaryArray.from_arrays(pa.array([0, None, 1], pa.int8()), pa.array([DAY, dt.date.max]))
    for suffix in SUFFIXES:
        assert written(tmp_path / f"t{suffix}", x=days, k=pa.array([0, 1, 2])).stat().st_size
    assert pq.read_table(tmp_path / "t.parquet")["x"].to_pylist() == [DAY, None, dt.date.max]
    assert "2024-02-29,0" in (tmp_path / "t.csv").read_text()


def test_an_error_while_writing_is_not_one_of_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It said that the file cannot be read, and is to be repaired."""

    def fails(writer: TableWriter, table: pa.Table) -> bytes:
        raise AttributeError("'SECRET' is not in UTF-8")

    sink = FileSink.at(tmp_path / "t.xlsx")
    monkeypatch.setattr("dipriv.sources._formats.excel._Writer.written", fails)
    with sink:
        sink.write(pa.record_batch({"x": [1]}))
        error = refused(InputError, "t.xlsx", "cannot be written", "Write another format", call=sink.commit)
    assert "SECRET" not in str(error)
    assert "read" not in str(error)
    assert not (tmp_path / "t.xlsx").exists()


def _times(last: int) -> pa.Table:
    seconds = [1_600_000_000 + 1000 * row for row in range(59)]
    return pa.table({"x": [float(row) for row in range(60)], "at": pa.array([*seconds, last]).cast(pa.timestamp("s"))})


@pytest.mark.parametrize("last", [2**62, -(2**62), 2**63 - 1, 1_700_000_000])
@pytest.mark.parametrize("how", ["private", "holdout", "public", "keep", "keep labels"])
def test_no_time_in_seconds_ends_a_release_to_parquet(how: str, last: int, tmp_path: Path) -> None:
    """Parquet stores seconds as milliseconds, of which there may be too many."""
    table = _times(last)
    if how == "keep labels":
        table = table.set_column(1, "at", table["at"].dictionary_encode())
    public = {"public": _times(2**62)}
    options: Any = {"public": public, "holdout": {"reference": "holdout"}, "private": {}}.get(how, {"keep": ["at"]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = dipriv.privatize(table, 200.0, **options)
    release.write(tmp_path / "out.parquet")
    at = pq.read_table(tmp_path / "out.parquet")["at"].combine_chunks()
    assert len(at) == release.n_rows
    assert not at.null_count
    if how == "keep" and last == 1_700_000_000:  # control: ordinary times stay as they are
        assert at.cast(pa.timestamp("s")).equals(table["at"].combine_chunks())


def test_lists_of_seconds_are_refused_before_anything_is_spent(tmp_path: Path) -> None:
    nested = pa.array([[1_700_000_000]] * 60, pa.list_(pa.timestamp("s")))
    table = pa.table({"x": list(range(60)), "at": nested})
    with Ledger.create(tmp_path / "ledger.db") as ledger:
        with pytest.raises(InputError, match="cannot hold"):
            dipriv.privatize_file(
                lambda: iter(table.to_batches()), tmp_path / "o.parquet", 1.0, keep=["at"], ledger=ledger, dataset="d"
            )
        assert not ledger.datasets()
