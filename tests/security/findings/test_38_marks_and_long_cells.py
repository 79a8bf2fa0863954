"""Marks of missing cells that another row's cell made match, and cells of many lines in columns that are not read:
findings of a reading by somebody who looked for rows that decide about others.
"""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dipriv
from dipriv import Dialect
from dipriv._tables import frames
from dipriv._tables.column_types import TypeRules, parse
from dipriv._tables.decorated import DAY_FIRST, MONTH_FIRST, POINT, YEAR_FIRST, count_shapes, rewritten_cells
from dipriv._tables.notation import Notation
from dipriv._tables.typed_tables import settle_table
from dipriv.errors import InputError
from dipriv.ledger import Ledger
from dipriv.schema import MISSING_MARKS, ColumnType
from dipriv.sources._formats.quotes import MAX_LINES, CheckedQuotes, no_ends, scan, scan_quotes
from dipriv.sources.files import File
from dipriv.sources.stream import open_file

RNG = np.random.default_rng(38)

# ---- marks of missing cells ----

TYPES = [
    pa.int64(),
    pa.float64(),
    pa.bool_(),
    pa.date32(),
    pa.timestamp("s"),
    pa.timestamp("us"),
    pa.timestamp("us", "UTC"),
    pa.time32("s"),
]
PARTS = [
    *"00123456789",
    *".., -+eE:/T$%'",
    *("\u2212", "\u00a0", "\t", "\x0b", "999", ".0", "inf", "true"),
    *("2024-03-05", "2024-03-05 12:30", "12:30:05", "9007199254740993"),
]
MARKS = ["999", "-9", "0.5", ".5", "5.", "+5", "7.0", "1e5", "0", "1", "9", "true", "2024-03-05", "2024-03-05 12:30"]
REWRITTEN = ["$5", "1,000", "\u22125", "5 €", "12%", "1'000"]


def cells_of(array: pa.Array) -> list[Any]:
    numbers = array.cast(pa.int64()) if pa.types.is_timestamp(array.type) else array
    return [repr(cell) for cell in numbers.to_pylist()]


@pytest.mark.parametrize("order", [YEAR_FIRST, DAY_FIRST, MONTH_FIRST])
def test_a_cell_that_is_written_plainly_is_read_alike_in_every_notation(order: int) -> None:
    compared = missing = 0
    for _ in range(40):
        cells = ["".join(RNG.choice(PARTS, RNG.integers(0, 6))) for _ in range(300)]
        cells += [*MARKS, "9007199254740993.\x0b"]
        marks = tuple(map(str, [*RNG.choice(MARKS, 3), *RNG.choice(cells, 3)]))
        every = (*MISSING_MARKS, *marks)
        plain = [cell for cell in cells if not rewritten_cells(count_shapes(pa.array([cell]), every))]
        texts = pa.array([*plain, None])
        for notation in (Notation(order=order, reads_any_decoration=True), Notation(POINT, ",", 1, 2, order)):
            written = notation.plainly(texts, every)
            for of in TYPES:
                alone = parse(texts, of, marks)
                assert cells_of(parse(written, of, ())) == cells_of(alone), (marks, of)
                compared, missing = compared + len(alone), missing + alone.null_count
    assert min(missing, compared - missing) > 5000  # control


def changes(tmp_path: Path, cells: list[str], last: str, rules: TypeRules) -> tuple[pa.Array, pa.Array]:
    """A column of a file as it is read, and the same with another last row; without that row."""
    found = []
    for cell in (cells[-1], last):
        pd.DataFrame({"x": [*cells[:-1], cell], "g": "a"}).to_csv(tmp_path / "in.csv", index=False)
        found.append(File.at(tmp_path / "in.csv").read(rules)["x"].combine_chunks())
    one, other = found
    assert one.type == other.type
    return one[:-1], other[:-1]


@pytest.mark.parametrize("last", REWRITTEN)
@pytest.mark.parametrize(
    ("often", "mark", "missing"),
    [
        ("+999", "999", False),
        ("999.", "999", False),
        (".5", "0.5", False),
        ("+999", "+999", True),
        ("999", "999", True),
    ],
)
@pytest.mark.parametrize(
    ("types", "decimal"), [({}, None), ({}, "."), ({"x": "decimal"}, "."), ({"x": "number"}, None)]
)
def test_one_row_decides_not_whether_cells_of_others_are_missing(
    often: str, mark: str, missing: bool, last: str, types: dict[str, ColumnType], decimal: Any, tmp_path: Path
) -> None:
    cells = [often if row % 3 else f"{RNG.integers(-90, 90):+d}.5" for row in range(600)]
    rules = TypeRules.of({}, types, Dialect(missing=(mark,), decimal=decimal))
    one, other = changes(tmp_path, cells, last, rules)
    assert one.equals(other)
    assert one.null_count == (400 - 1 if missing else 0)  # the last cell is such a one


def test_the_number_of_released_cells_that_are_missing(tmp_path: Path) -> None:
    cells = ["+999" if row % 3 else f"{RNG.integers(0, 900):+d}" for row in range(2000)]
    for last in ("+5", "$5"):
        pd.DataFrame({"change": [*cells[:-1], last]}).to_csv(tmp_path / "in.csv", index=False)
        out = tmp_path / f"{last}.csv"
        dipriv.privatize_file(tmp_path / "in.csv", out, 8.0, dialect=Dialect(missing=("999",)))
        released = out.read_text().splitlines()[1:]
        assert len(released) == 2000
        assert released.count("") + released.count('""') < 50  # some, by chance, where missing cells are counted


@pytest.mark.parametrize("of", ["object", "string", "arrow", "polars"])
@pytest.mark.parametrize("last", ["+5", *REWRITTEN])
def test_columns_of_text_in_tables(of: str, last: str) -> None:
    cells = ["+999" if row % 3 else "999" if row % 2 else f"{row:+d}" for row in range(600)]
    column: Any = [*cells[:-1], last]
    table: Any = pa.table({"x": column})
    if of == "polars":
        table = pytest.importorskip("polars").DataFrame({"x": column})
    elif of != "arrow":
        table = pd.DataFrame({"x": pd.Series(column, dtype=of)})
    rules = TypeRules.of({}, {"x": "number"}, Dialect(missing=("999",)))
    read, _ = settle_table(frames.read(table), ["x"], rules)
    expected = [None if cell == "999" else int(cell) for cell in cells[:-1]]
    assert read.array("x")[:-1].to_pylist() == expected


# ---- cells of many lines ----


def height_file(path: Path, rows: int, closed: int | None, end: str = "\n", first: int = 10) -> Path:
    """A stray quote begins the note of one row, and one that stands for inches ends a later one."""
    notes = {first: '"fine'} if closed is None else {first: '"fine', closed: "about 5'10\""}
    lines = [f"{notes.get(row, 'ok')},{150 + row % 50},{20 + row % 60}" for row in range(rows)]
    path.write_bytes(end.join(["notes,height,age", *lines, ""]).encode())
    return path


def read_ages(path: Path) -> int:
    return sum(batch.num_rows for batch in open_file(File.at(path)).rows.batches(["age"]))


def checked_alone(path: Path) -> None:
    """As for Spark, which reads the files itself."""
    file = File.at(path)
    format_: Any = file.format
    format_.check_quotes(file)


@pytest.mark.parametrize("read", [read_ages, checked_alone])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("rows", [600, 400_000])
def test_no_rows_are_lost_in_a_column_that_is_not_read(
    read: Callable[[Path], Any], end: str, rows: int, tmp_path: Path
) -> None:
    path = height_file(tmp_path / "in.csv", rows, rows - 20, end, first=rows - 20 - MAX_LINES - 1)
    line = rows - 20 + 1
    said = f"line {line}: .*a cell has more than 100 lines: a quote is not closed"
    with pytest.raises(InputError, match=said) as caught:
        read(path)
    assert "fine" not in str(caught.value)
    assert "about" not in str(caught.value)
    read(height_file(path, rows, rows - 20, end, first=rows - 20 - MAX_LINES))  # control: as many as may be


@pytest.mark.parametrize("with_ledger", [False, True])
def test_a_dropped_column_takes_no_rows_away(with_ledger: bool, tmp_path: Path) -> None:
    path = height_file(tmp_path / "in.csv", 6000, 5500)
    ledger = Ledger.create(tmp_path / "ledger.db") if with_ledger else None
    with pytest.raises(InputError, match="more than 100 lines"):
        dipriv.privatize_file(path, tmp_path / "out.csv", 1.0, drop=["notes"], ledger=ledger)
    assert not (tmp_path / "out.csv").exists()
    if ledger is not None:
        ledger.close()


def test_lines_of_several_cells_are_no_lines_of_one(tmp_path: Path) -> None:
    cell = '"' + "line\n" * MAX_LINES + '"'
    for between in (",", "\n"):
        text = "a,b\n" + "\n".join(f"{cell}{between}{cell}" if between == "," else f"{cell},1" for _ in range(50))
        (tmp_path / "in.csv").write_text(f"{text}\n")
        assert sum(batch.num_rows for batch in open_file(File.at(tmp_path / "in.csv")).rows.batches(["b"])) == 50


@pytest.mark.parametrize("size", [1, 3, 64, 1000, -1])
def test_lines_are_counted_alike_in_blocks_of_all_sizes(size: int) -> None:
    """Also where a carriage return and a line feed, or two quotes, are in different blocks."""
    for line in ("x\n", "x\r\n", "\r\r\n", '""\r\n'):
        most = MAX_LINES // max(1, line.count("\r"))
        for lines, is_right in ((most, True), (most + 1, False)):
            content = f'a,b\r\n1,"first"\r\n2,"{line * lines}"\r\n3,"last"\r\n'.encode()
            stream = CheckedQuotes(io.BytesIO(content), "a.csv", '"', ",")
            with nullcontext() if is_right else pytest.raises(InputError, match="more than 100 lines"):
                while stream.read(size):
                    pass


def test_lines_are_counted_alike_by_the_places_of_quotes() -> None:
    faults = compared = 0
    for _ in range(5000):
        letters = ['"', '""', ",", *["\n"] * 3, *["\r\n"] * 3, "a", "b"]
        text = "a" + "".join(RNG.choice(letters, RNG.integers(1, 60)))
        checked = CheckedQuotes(io.BytesIO(), "a.csv", '"', ",")
        cells, state = np.frombuffer(text.encode(), np.uint8), int(RNG.integers(4))
        so_far = int(RNG.integers(MAX_LINES - 5, MAX_LINES + 1))
        ends = [no_ends() + so_far, no_ends() + so_far]
        by_letters = scan(cells, 0, state, checked._kinds, checked._next, ends[0])
        by_places = scan_quotes(cells, 0, np.flatnonzero(cells == ord('"')), state, ord(","), ends[1])
        assert by_places == by_letters, (text, state)
        assert np.array_equal(ends[0], ends[1]), (text, state)
        compared, faults = compared + 1, faults + (by_letters[0] == 10)
    assert compared - 500 > faults > 500  # control


# ---- scalars of numpy ----


@pytest.mark.parametrize("odd", ["datetime64('2024-01-02')", "datetime64('NaT')", "timedelta64(3, 'D')", "bool_(True)"])
def test_a_scalar_of_numpy_ends_no_process(odd: str) -> None:
    """Arrow crashes at a column of numpy's scalars whose first one is a datetime64."""
    program = f"""
import warnings
import numpy as np, pandas as pd, dipriv
warnings.simplefilter("ignore")
for place in (0, 150, -1):
    cells = [np.int64(row % 9) for row in range(300)]
    cells[place] = np.{odd}
    table = pd.DataFrame({{"a": np.arange(300) % 40, "x": pd.Series(cells, dtype=object)}})
    print(dipriv.privatize(table, 1.0).data.x.dtype, dipriv.privatize(table, 1.0, keep=["x"]).n_rows)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["Int64", "300"] * 3


def test_ends_of_lines_of_two_kinds_are_counted_together(tmp_path: Path) -> None:
    rows = [f"{row},x" for row in range(400)]
    rows[10], rows[210] = '10,"x', '210,x"'
    place = tmp_path / "mixed.csv"
    place.write_bytes(("a,b\r" + "".join(f"{row}{end}" for row, end in zip(rows, "\r\n" * 200, strict=True))).encode())
    with pytest.raises(InputError, match="more than 100 lines"):
        dipriv.privatize_file(place, tmp_path / "out.csv", 1.0)
    plain = "a,b\r\n" + "".join(f"{row}\r\n" for row in [*rows[:10], '10,"x', *rows[11:100], '100,x"', *rows[101:200]])
    place.write_bytes(plain.encode())
    dipriv.privatize_file(place, tmp_path / "out.csv", 1.0)  # control: 90 ends of CR LF
