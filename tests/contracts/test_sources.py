"""What every source of rows promises: the rows of the table in memory, the same in every pass, or an error.

A new source is one more entry in `CASES`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from scipy import stats

import dipriv
from dipriv._tables import frames
from dipriv._tables.frames import Table
from dipriv._tables.value_counts import RunningCounts, count_values
from dipriv.errors import SourceChangedError
from dipriv.guarantee import Assumption, AssumptionKind
from dipriv.references import Known
from dipriv.release.options import ReleaseOptions
from dipriv.release.plan import prepare
from dipriv.sources import open_source, stream
from dipriv.sources._blocks import block_digest, cut
from dipriv.sources.contribution_bound import ContributionBound
from dipriv.sources.holdout import Split
from dipriv.sources.in_memory import TableSource
from dipriv.sources.protocol import CountedTables, Rows, Scan
from dipriv.sources.spark.files import SparkFiles
from tests import spark_support
from tests.support import TEXT_HAS_A_TYPE, bits

N, BLOCK, CHANGED = 3000, 700, 2500
_RNG = np.random.default_rng(3)
TABLE = pa.table(
    {
        "who": _RNG.integers(0, N // 4, N),
        "age": _RNG.integers(18, 90, N),
        "pay": np.where(_RNG.random(N) < 0.2, 0.0, _RNG.lognormal(10, 1, N)),
        "city": _RNG.choice(["Bonn", "Köln", "Ulm"], N),
    }
)
NUMBERS = pa.table({f"x{place}": TABLE.column(place).cast(pa.float64()) for place in range(3)})
LAWS = {"age": stats.norm(50, 20), "pay": stats.norm(0, 1e5), "x1": stats.norm(50, 20), "x2": stats.norm(0, 1e5)}
SPLIT = Split(0.3, bytes(range(32)))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "MIN_BLOCK_ROWS", BLOCK)
    monkeypatch.setattr(stream, "MAX_BLOCK_ROWS", BLOCK)


# ---- the sources ----


def _csv(folder: Path, table: pa.Table = TABLE) -> Path:
    pacsv.write_csv(table, folder / "people.csv")
    return folder / "people.csv"


def _parquet(folder: Path, table: pa.Table = TABLE) -> Path:
    pq.write_table(table, folder / "people.parquet", row_group_size=333)
    return folder / "people.parquet"


def _parts(folder: Path, table: pa.Table = TABLE) -> Path:
    (folder / "people").mkdir(exist_ok=True)
    for number in range(3):
        pq.write_table(table.slice(number * 1000, 1000), folder / "people" / f"{number}.parquet", row_group_size=450)
    return folder / "people"


def _function(folder: Path) -> Callable[[], Iterator[pa.RecordBatch]]:
    """Batches of odd sizes; those of another table once there is a flag in the folder."""

    def batches() -> Iterator[pa.RecordBatch]:
        yield from (changed() if (folder / "flag").exists() else TABLE).to_batches(max_chunksize=321)

    return batches


def _spark(folder: Path, session: Any) -> Any:
    flag = str(folder / "flag")

    def maybe_changed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch.take(pa.array(range(batch.num_rows)[::-1])) if Path(flag).exists() else batch

    frame = spark_support.in_partitions(session, TABLE, [0, 700, 1, 2299])
    return frame.mapInArrow(maybe_changed, frame.schema)


def changed() -> pa.Table:
    """The table with another age in one row, written with as many digits."""
    ages = TABLE["age"].to_numpy().copy()
    ages[CHANGED] = 99 - ages[CHANGED] if ages[CHANGED] < 89 else 55
    return TABLE.set_column(1, "age", pa.array(ages))


def _in_place(path: Path, write: Callable[[], object]) -> None:
    """Change a file so that it has the same number, size and time as before."""
    before = path.stat()
    copy = path.read_bytes()
    write()
    after = path.read_bytes()
    assert len(after) == len(copy)
    assert after != copy
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@dataclass(frozen=True)
class Case:
    """How a source is opened in a folder, the same rows as an Arrow table, and how the source changes."""

    open: Callable[..., Any]
    table: pa.Table = field(default_factory=lambda: TABLE)
    change: Callable[[Path], object] | None = None
    not_nullable: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()

    @property
    def unit(self) -> str:
        return str(self.table.column_names[0])

    @property
    def privatized(self) -> tuple[str, ...]:
        return tuple(self.table.column_names[1:])

    @property
    def numbers(self) -> list[str]:
        return [name for name in self.privatized if name in LAWS]

    @property
    def twin(self) -> pa.Table:
        """The same rows in memory, nullable where the source is: a column without nulls is released without."""
        fields = [one.with_nullable(one.name not in self.not_nullable) for one in self.table.schema]
        return self.table.cast(pa.schema(fields))


CASES: dict[str, Case] = {
    "pandas": Case(lambda folder: TABLE.to_pandas(), not_nullable=("who", "age")),
    "polars": Case(lambda folder: pl.DataFrame(TABLE)),
    "pyarrow": Case(lambda folder: TABLE),
    "numpy": Case(lambda folder: np.stack([NUMBERS[name].to_numpy() for name in NUMBERS.column_names], 1), NUMBERS),
    "csv": Case(_csv, change=lambda folder: _csv(folder, changed())),
    "csv, the same size and time": Case(
        _csv, change=lambda folder: _in_place(folder / "people.csv", lambda: _csv(folder, changed()))
    ),
    "parquet": Case(_parquet, change=lambda folder: _parquet(folder, changed())),
    "folder": Case(_parts, change=lambda folder: _parts(folder, changed())),
    "pattern": Case(lambda folder: str(_parts(folder) / "*.parquet"), change=lambda folder: _parts(folder, changed())),
    "lazy frame": Case(
        lambda folder: pl.scan_parquet(_parts(folder) / "*.parquet"), change=lambda folder: _parts(folder, changed())
    ),
    "data set": Case(lambda folder: ds.dataset(_parts(folder)), change=lambda folder: _parts(folder, changed())),
    "function": Case(_function, change=lambda folder: (folder / "flag").touch()),
    "spark": Case(_spark, change=lambda folder: (folder / "flag").touch(), limits=("unit",)),
}
_SLOW = [pytest.mark.slow, pytest.mark.xdist_group("spark")]
_IDS = [pytest.param(name, marks=_SLOW if name == "spark" else []) for name in CASES]
every_source = pytest.mark.parametrize("name", _IDS)
may_change = pytest.mark.parametrize("name", [one for one in _IDS if CASES[str(one.values[0])].change is not None])


@pytest.fixture(scope="module")
def spark_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install dipriv[spark]")
    yield from spark_support.session(tmp_path_factory.mktemp("events"))


@pytest.fixture
def opened(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """What `dipriv.privatize` is given."""
    if name == "spark":
        return CASES[name].open(tmp_path, request.getfixturevalue("spark_session"))
    return CASES[name].open(tmp_path)


def scanned(name: str, opened: Any, labels_of: tuple[str, ...] = ()) -> tuple[Rows[Any], Rows[Any]]:
    """The rows after the first pass: of the source, and of its twin in memory."""
    case = CASES[name]
    labels_of = tuple(column for column in labels_of if column in case.privatized)
    request = Scan(case.privatized, keys=(case.unit,), labels_of=labels_of)
    return open_source(opened).scan(request), TableSource.open(case.twin).scan(request)


def counted(table: Table) -> list[Any]:
    """Counts of ages and of zeros, and how many rows there are."""
    ages, pay = (table.cells(name).values for name in table.names if name in LAWS)
    return [
        np.bincount(ages.astype(np.int64), minlength=100),
        np.array([np.sum(pay == 0), table.rows]),
    ]


SELECTIONS: dict[str, tuple[Split | None, int | None]] = {
    "all rows": (None, None),
    "hold-out": (SPLIT, None),
    "contribution bounding": (None, 2),
    "both": (SPLIT, 2),
}
every_selection = pytest.mark.parametrize("selected", SELECTIONS)


def choose(name: str, selected: str) -> tuple[Split | None, ContributionBound | None]:
    split, most = SELECTIONS[selected]
    if most is not None and "unit" in CASES[name].limits:
        pytest.skip("this source refuses privacy units")
    return split, None if most is None else ContributionBound(CASES[name].unit, most)


# ---- the contract ----


@every_source
def test_the_first_pass_finds_rows_names_and_public_facts(name: str, opened: Any) -> None:
    source, case = open_source(opened), CASES[name]
    assert source.column_names == tuple(case.table.column_names)
    rows, memory = scanned(name, opened)
    assert rows.n_rows == memory.n_rows == N
    facts, expected = rows.columns(case.privatized), memory.columns(case.privatized)
    for found, known in zip(facts, expected, strict=True):
        assert (found.name, found.storage, found.nullable) == (known.name, known.storage, known.nullable)
        assert found.labels is None
    assert tuple(rows.empty.names) == source.column_names or set(case.privatized) <= set(rows.empty.names)
    rows.close()


@every_source
@every_selection
def test_the_same_rows_are_selected_counted_and_gathered(name: str, selected: str, opened: Any) -> None:
    split, unit = choose(name, selected)
    rows, memory = scanned(name, opened)
    found, expected = (each.select(split, unit, None, bits(5)) for each in (rows, memory))
    counts = ("n_rows", "n_held_out", "n_reference", "n_released", "n_dropped")
    assert [getattr(found, count) for count in counts] == [getattr(expected, count) for count in counts]
    table = frames.read(CASES[name].twin)
    for side in ("reference_rows", "released_rows"):
        here, there = (getattr(each, side)(table, 0) for each in (found, expected))
        everybody = np.ones(N, dtype=bool)
        assert np.array_equal(everybody if here is None else here, everybody if there is None else there)
    sums, wanted = rows.countable(found).count(counted), memory.countable(expected).count(counted)
    assert all(np.array_equal(one, other) for one, other in zip(sums, wanted, strict=True))
    assert sums[1][1] == rows.countable(found).n_rows == memory.countable(expected).n_rows
    if split is not None:
        gathered, held = rows.gather(found), memory.gather(expected)
        for column in CASES[name].privatized:
            assert gathered.array(column).to_pylist() == held.array(column).to_pylist()
    rows.close()


@every_source
@every_selection
def test_values_are_counted_as_in_plain_python(name: str, selected: str, opened: Any) -> None:
    case = CASES[name]
    split, unit = choose(name, selected)
    rows, memory = scanned(name, opened, labels_of=("city",))
    found, expected = (each.select(split, unit, None, bits(5)) for each in (rows, memory))
    table = frames.read(case.twin)
    side = expected.released_rows(table, 0) if split is None else expected.reference_rows(table, 0)
    some = case.table if side is None else case.table.filter(pa.array(side))
    counts = rows.countable(found).value_counts(case.privatized)
    frequent = rows.countable(found).value_counts(case.privatized, at_least=20)
    assert list(counts) == list(case.privatized)
    for column in case.privatized:
        plain = sorted(Counter(some[column].to_pylist()).items())
        assert list(zip(counts[column].values.to_pylist(), counts[column].counts.tolist(), strict=True)) == plain
        assert counts[column].counts.dtype == np.int64
        assert frequent[column].values.to_pylist() == [value for value, times in plain if times >= 20]
        assert 0 < len(frequent[column]) < len(counts[column]) or column in ("age", "city", "x1")
    rows.close()


OPTIONS: dict[str, dict[str, Any]] = {
    "private": {},
    "private from a hold-out": {"holdout": 0.3},
    "hold-out": {"reference": "holdout", "kernel": "laplace"},
    "privacy unit": {"reference": "holdout", "rows_per_unit": 2},
}


def as_arrow(data: Any) -> pa.Table:
    """Released rows of any kind, as an Arrow table."""
    if hasattr(data, "to_table"):
        return data.to_table()
    return data.toArrow() if hasattr(data, "toArrow") else pa.table(frames.read(data).batch())


@TEXT_HAS_A_TYPE
@every_source
@pytest.mark.parametrize("asked", OPTIONS)
def test_a_seeded_release_has_the_rows_of_the_table_in_memory(name: str, asked: str, opened: Any) -> None:
    case = CASES[name]
    options: Any = {"columns": list(CASES[name].privatized), "seed": 7} | OPTIONS[asked]
    if "rows_per_unit" in options:
        if "unit" in case.limits:
            pytest.skip("this source refuses privacy units")
        options = {key: value for key, value in options.items() if key != "columns"} | {"unit": case.unit}
    there: Any = dipriv.privatize(opened, 1.5, **options)
    here: Any = dipriv.privatize(case.twin, 1.5, **options)
    released = as_arrow(there.data)
    if name == "numpy":  # which has no names
        released = released.rename_columns(here.data.column_names)
    assert released.to_pylist() == here.data.to_pylist()
    assert there.row_counts == here.row_counts
    assert there.schema == here.schema
    inferred = {Assumption(AssumptionKind.FILE_TYPES_PUBLIC)} if name.startswith("csv") else set()
    assert set(there.guarantee.assumptions) == {*here.guarantee.assumptions} | inferred
    other: Any = dipriv.privatize(case.twin, 1.5, **options | {"seed": 8})  # control: the noise is there
    assert other.data.to_pylist() != here.data.to_pylist()


ODD_CELLS = (
    *('"', '""', 'say "hi"', '"q"', "\\", "a\\", '\\"', 'a\\"b', "a\nb", "a\r\nb", "a\n,c\t", '"\n"', "x,y", "x\ty"),
    *(" before", "after ", "  ", "#c", "'", "Köln", "NULL", "\u2028", "=1+1", ""),
)
TEXTS: dict[str, Callable[[Path, str], Any]] = {
    "file": lambda file, separator: file,
    "pandas": lambda file, separator: pd.read_csv(
        file, sep=separator, dtype="str", keep_default_na=False, na_values=[""]
    ),
    "polars": lambda file, separator: pl.read_csv(file, separator=separator, infer_schema=False),
    "spark": lambda file, separator: SparkFiles.find(str(file)).open(),
}


def as_text(cell: str, separator: str, always: bool) -> str:
    """A cell as RFC 4180 writes it: in quotes, with doubled quotes inside, or as it is where that is possible."""
    return '"' + cell.replace('"', '""') + '"' if always or {*cell} & {*'"\r\n', separator} else cell


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("quoted", [True, False], ids=["quoted", "bare"])
@pytest.mark.parametrize("format", ["csv", "tsv"])
@pytest.mark.parametrize("engine", [pytest.param(name, marks=_SLOW if name == "spark" else []) for name in TEXTS])
def test_a_text_file_is_the_same_table_in_every_engine(
    engine: str, format: str, quoted: bool, line_end: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Quotes, backslashes, lines and separators inside of cells are read alike, and released alike."""
    if engine == "spark":
        request.getfixturevalue("spark_session")
    separator = "," if format == "csv" else "\t"
    rows = [(str(n), ODD_CELLS[n % len(ODD_CELLS)], f"end {n % 3}") for n in range(600)]
    lines = [separator.join(as_text(cell, separator, quoted and cell != "") for cell in row) for row in rows]
    file = tmp_path / f"t.{format}"
    file.write_text(line_end.join([separator.join(("pay", "note", "last")), *lines, ""]), "utf-8", newline="")
    options = ReleaseOptions(
        1.0, types={"pay": "whole", "note": "text", "last": "text"}, labels="public", seed=7, kernel="laplace"
    )
    given = TEXTS[engine](file, separator)
    source = given if engine == "spark" else open_source(given)
    there = as_arrow(prepare(source, options).run().data).to_pylist()
    notes = [row[1] or None for row in rows]
    if engine == "spark" and line_end == "\r\n":  # Spark's one difference: it reads such an end as \n in cells, too
        notes = [note and note.replace(line_end, "\n") for note in notes]
    table = pa.table({"pay": [int(row[0]) for row in rows], "note": notes})
    table = table.append_column("last", pa.array([row[2] for row in rows]))
    here = prepare(open_source(table), replace(options, types={"note": "text", "last": "text"})).run()
    assert there == here.data.to_pylist()


@pytest.mark.usefixtures("no_room_for_rows")
@may_change
def test_changed_rows_never_meet_the_noise_of_others(name: str, opened: Any, tmp_path: Path) -> None:
    """All that was seen before the error are rows of unchanged blocks, as at the first reading."""
    case = CASES[name]
    assert case.change is not None
    law = Known({column: LAWS[column] for column in case.numbers})
    release: Any = dipriv.privatize(opened, 1.0, reference=law, columns=case.numbers)
    first = as_arrow(release.data)
    assert first.num_rows == N
    assert as_arrow(release.data).equals(first)  # control: a source that did not change is read again
    case.change(tmp_path)
    seen = []

    def again() -> None:
        if name == "spark":
            from dipriv.sources.spark import collect

            seen.extend(collect(release.data.select("*")).to_pylist())  # else Spark takes the rows it has shuffled
        for batch in release.data:
            seen.extend(batch.to_pylist())

    with pytest.raises(SourceChangedError, match="changed"):
        again()
    assert len(seen) <= CHANGED // BLOCK * BLOCK
    assert seen == first.to_pylist()[: len(seen)]


@pytest.mark.usefixtures("no_room_for_rows")
@may_change
def test_changed_rows_are_not_learned_from(name: str, opened: Any, tmp_path: Path) -> None:
    case = CASES[name]
    assert case.change is not None
    rows, memory = scanned(name, opened)
    selection = rows.select(None, None, None, bits(5))
    before = rows.countable(selection).count(counted)
    assert np.array_equal(before[0], memory.countable(selection).count(counted)[0])  # control
    if name == "spark":
        pytest.skip("packed rows stay on the workers' disks, as they were")
    case.change(tmp_path)
    with pytest.raises(SourceChangedError, match="changed"):
        rows.countable(selection).count(counted)
    with pytest.raises(SourceChangedError, match="changed"):
        rows.select(SPLIT, None, None, bits(5))
    rows.close()


ODD: dict[str, tuple[pa.Array, list[tuple[Any, int]]]] = {
    "reals": (
        pa.array([0.0, -0.0, np.inf, np.inf, -np.inf, np.nan, None, 1.5], from_pandas=False),
        [(-np.finfo(np.float64).max, 1), (0.0, 2), (1.5, 1), (np.finfo(np.float64).max, 2)],
    ),
    "halves": (pa.array(np.array([0.5, np.inf, np.nan, 0.5], np.float16)), [(0.5, 2), (np.finfo(np.float32).max, 1)]),
    "large whole numbers": (pa.array([2**63 + 1, 2**63, 2**63], pa.uint64()), [(2**63, 2), (2**63 + 1, 1)]),
    "days": (pa.array([1, 0, None, 1], pa.date32()), [(0, 1), (1, 2)]),
    "booleans": (pa.array([True, False, None, True]), [(0, 1), (1, 2)]),
    "texts": (pa.array(["b", "", None, "b", "Ärger"]), [("", 1), ("b", 2), ("Ärger", 1)]),
    "views": (pa.array(["b", "a", None, "b"], pa.string_view()), [("a", 1), ("b", 2)]),
    "nothing": (pa.array([None, None], pa.string()), []),
    "labels": (
        pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None, 3, 3]), pa.array(["b", "a", "unused but once", None])),
        [("a", 1), ("b", 1), ("unused but once", 1)],
    ),
    "a label twice": (pa.DictionaryArray.from_arrays(pa.array([0, 1, 1]), pa.array(["b", "b", "c"])), [("b", 3)]),
    "labels of numbers": (pa.DictionaryArray.from_arrays(pa.array([1, 0, 0]), pa.array([7, 3])), [(3, 1), (7, 2)]),
}


@pytest.mark.parametrize("of", ODD)
@pytest.mark.parametrize("size", [1, 3, 100])
def test_odd_values_are_counted_as_their_cells_are_read(of: str, size: int) -> None:
    array, expected = ODD[of]
    table = pa.table({"x": array})
    blocks = [frames.read(table.slice(start, size)) for start in range(0, len(array), size)]
    found = CountedTables(len(array), lambda: blocks).value_counts(["x"])["x"]
    assert list(zip(found.values.to_pylist(), found.counts.tolist(), strict=True)) == expected
    assert repr(found) == "ValueCounts()"


def test_memory_for_counts_is_bounded_by_the_distinct_values() -> None:
    """2,000 blocks of 50 values each, of which 1,000 are distinct: parts are added up on the way."""
    rng, running, waiting = np.random.default_rng(1), RunningCounts(), []
    for _ in range(2000):
        running.add(count_values(frames.read(pa.table({"x": rng.integers(0, 1000, 50)})), ["x"]))
        waiting.append(sum(len(part["x"]) for part in running._parts))
    assert max(waiting) <= 3 * 1000
    assert running.total()["x"].counts.sum() == 2000 * 50


# ---- digests of blocks ----


def digests(table: pa.Table, size: int, key: bytes, names: tuple[str, ...] = ("age", "pay", "city")) -> list[bytes]:
    batches = table.to_batches(max_chunksize=size)
    return [block_digest(frames.read(block), names, key) for block in cut(batches, BLOCK)]


@pytest.mark.parametrize("encoded", [False, True], ids=["texts", "dictionaries"])
def test_digests_of_blocks_are_keyed_and_independent_of_batches(encoded: bool) -> None:
    def stored(table: pa.Table) -> pa.Table:
        return table.set_column(3, "city", table["city"].dictionary_encode()) if encoded else table

    one, other = bytes(32), bytes(31) + b"\1"
    known = digests(stored(TABLE), N, one)
    assert len(set(known)) == len(known) == -(-N // BLOCK)
    for size in (1, 7, BLOCK - 1, BLOCK, BLOCK + 1):
        assert digests(stored(TABLE), size, one) == known
    assert not set(digests(stored(TABLE), N, other)) & set(known)
    found = digests(stored(changed()), N, one)
    assert [place for place in range(len(known)) if known[place] != found[place]] == [CHANGED // BLOCK]


def test_digests_tell_apart_what_the_mechanism_tells_apart() -> None:
    def digest(cells: pa.Array) -> bytes:
        return block_digest(frames.read(pa.table({"x": cells})), ("x",), bytes(32))

    apart = [
        pa.array(["ab", "c"]),
        pa.array(["a", "bc"]),
        pa.array(["", "abc"]),
        pa.array([None, "abc"]),
        pa.array(["abc", None]),
        pa.array([1.0, 0.0]),
        pa.array([1.0, None]),
        pa.array([1.0, float("nan")]),
        pa.array([0.0, 1.0]),
    ]
    assert len({digest(cells) for cells in apart}) == len(apart)
    assert digest(pa.array(["ab", "c"])) == digest(pa.array(["ab", "c"]))  # control
