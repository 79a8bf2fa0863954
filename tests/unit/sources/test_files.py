"""Files: every format in and out, whole or not at all, and errors that name the place and never a cell."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dipriv import inspect, privatize_file
from dipriv._base.atomic_write import write_text
from dipriv._sinks import FileSink
from dipriv._tables.column_types import TypeRules
from dipriv.errors import InputError, SourceChangedError, StorageError
from dipriv.sources.files import File, FileBatches
from dipriv.sources.typed import settle_texts
from tests.unit.refusal import refused

MARKER = "zq7-marker-xv"
TABLE = pa.table(
    {
        "number": pa.array([1, 2, None, 4]),
        "real": [0.5, 1.5, 2.5, None],
        "text": ["a", "b,c", "two\nlines", 'say "x"'],
        "when": pa.array([0, 86_400, None, 10], pa.timestamp("s")),
    }
)
NAMES = ["t.csv", "t.tsv", "t.parquet", "t.arrow", "t.feather", "t.csv.gz", "t.csv.zst", "t.tsv.bz2", "t.arrow.lz4"]


def put(path: Path, table: pa.Table = TABLE, format: str | None = None) -> Path:
    with FileSink.at(path, format, force=True) as sink:
        for batch in table.to_batches(max_chunksize=2):
            sink.write(batch)
        sink.commit()
    return path


@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_is_read_back(name: str, tmp_path: Path) -> None:
    file = put(tmp_path / name)
    assert [found.name for found in tmp_path.iterdir()] == [name]
    assert File.at(file).read().to_pydict() == TABLE.to_pydict()
    assert File.at(file).read().to_pydict() == TABLE.to_pydict()  # a source is read as often as needed


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz"])
@pytest.mark.parametrize("cells", [[1, None, 3, None], ["a", None, None, "b"], [None, 0.5, 1.5, 2.5]])
def test_a_missing_cell_of_a_single_column_is_a_row(name: str, cells: list[Any], tmp_path: Path) -> None:
    table = pa.table({"x": cells})
    assert File.at(put(tmp_path / name, table)).read(TypeRules.like(table.schema)).to_pydict() == table.to_pydict()


@pytest.mark.parametrize("start", ["", "\n", "\r\n\n", "\ufeff", "\ufeff\n"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_empty_lines_are_rows_of_a_single_column_below_its_name(start: str, end: str, tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text(start + end.join(["x", "1", "", "3", "", ""]), encoding="utf-8", newline="")
    assert File.at(file).read_with_questions()[0].to_pydict() == {"x": [1, None, 3, None]}
    assert inspect(file).rows == 4
    file.write_text(start + end.join(["x,y", "1,2", "", "3,4", "", ""]), encoding="utf-8", newline="")
    assert File.at(file).read_with_questions()[0].num_rows == 2  # a control: a row of two columns has a separator


def test_the_number_of_rows_tells_of_no_cell(tmp_path: Path) -> None:
    file, out = tmp_path / "t.csv", tmp_path / "out.csv"
    for cell in ("7", ""):
        file.write_text("x\n" + "1\n2\n\n" * 30 + cell + "\n")
        release = privatize_file(file, out, 1.0, force=True)
        assert release.row_counts.read == 91
        assert File.at(out).read().num_rows == 91


def test_streams_of_arrow_are_read(tmp_path: Path) -> None:
    with pa.OSFile(str(tmp_path / "t.arrow"), "wb") as stream, pa.ipc.new_stream(stream, TABLE.schema) as writer:
        writer.write_table(TABLE)
    assert File.at(tmp_path / "t.arrow").read().equals(TABLE)


def test_a_format_can_be_given(tmp_path: Path) -> None:
    file = put(tmp_path / "t.data", format="parquet")
    assert File.at(file, "parquet").read().to_pydict() == TABLE.to_pydict()
    refused(InputError, "'t.data' does not tell a format", "--format", call=lambda: File.at(file))
    refused(InputError, "format 'xls'", "arrow, csv, tsv, excel", call=lambda: File.at(file, "xls"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("late", "read"), [("2.5", 2), ("plenty", None), ("", None), ("99999999999999999999", None), (" 12 ", 12)]
)
def test_a_cell_far_down_does_not_change_the_type_of_its_column(late: str, read: int | None, tmp_path: Path) -> None:
    rows = 4_000_000  # more than one block
    file = tmp_path / "t.csv"
    with file.open("w", encoding="utf-8") as stream:
        stream.write("a,b\n")
        stream.write("12345,1\n" * rows)
        stream.write(f"{late},2\n")
    found = File.at(file).read()
    assert found.schema.types == [pa.int64(), pa.int64()]
    assert found.num_rows == rows + 1
    assert found["a"][rows].as_py() == read


BAD = {
    "ragged.csv": (
        f"a,b\n1,2\n1,{MARKER},3\n".encode(),
        "line 3 has 3 cells, but that with the names of columns has 2",
    ),
    "latin.csv": ("a,b\n1,caf\xe9\n".encode("latin-1"), "line 2 is not in UTF-8 (byte 10 of the file)"),
    "empty.csv": (b"", "is empty"),
    "header.csv": (b"a,b\n", "has no rows"),
    "cut.parquet": (b"PAR1" + b"\0" * 50, "not a whole Parquet file"),
    "text.parquet": (b"a,b\n1,2\n", "not a whole Parquet file"),
    "cut.arrow": (b"ARROW1\0\0" + b"\1" * 40, "cannot be read as a table"),
    "cut.csv.gz": (b"\x1f\x8b\x08\x00garbage", "compressed data is damaged"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_refused_without_a_cell(name: str, tmp_path: Path) -> None:
    content, told = BAD[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError) as caught:
        File.at(tmp_path / name).read()
    assert name in caught.value.fault
    assert told in caught.value.fault
    assert MARKER not in str(caught.value)


@pytest.mark.parametrize("closed", [False, True])
def test_a_quote_that_is_not_closed_takes_no_rows_away(closed: bool, tmp_path: Path) -> None:
    """Without a word, the file would have as many rows less as there are up to the next quote, or to the end."""
    lines = [f"{number},M" for number in range(500)]
    opened = 200 if closed else 450
    lines[opened] = f'{opened},"M'
    if closed:
        lines[400] = '400,M"'
    file = tmp_path / "t.csv"
    file.write_text("\n".join(["age,sex", *lines]) + "\n", encoding="utf-8")
    words = ("line 302", "a cell has more than 100 lines") if closed else ("not closed before the end of the file",)
    refused(InputError, "t.csv", *words, call=lambda: File.at(file).read())
    lines[opened], lines[400] = f'{opened},"M\nor\nF"', "400,M"
    file.write_text("\n".join(["age,sex", *lines]) + "\n", encoding="utf-8")
    assert File.at(file).read().num_rows == 500  # control: some lines in a cell


def test_a_truncated_parquet_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": np.arange(100_000)}), file)
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    refused(InputError, "t.parquet", "not a whole Parquet file", call=lambda: File.at(file).read())


def test_places_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "there.csv").write_text("a\n1\n", encoding="utf-8")
    refused(InputError, "none.csv is not a file", call=lambda: File.at(tmp_path / "none.csv"))
    refused(InputError, "there.csv exists", "--force", call=lambda: FileSink.at(tmp_path / "there.csv"))
    refused(InputError, "does not exist", "Make it", call=lambda: FileSink.at(tmp_path / "no" / "t.csv"))
    (tmp_path / "folder.csv").mkdir()
    refused(InputError, "is a folder", call=lambda: FileSink.at(tmp_path / "folder.csv", force=True))


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    file = put(tmp_path / "t.csv")
    before = file.read_bytes()

    def broken() -> None:
        with FileSink.at(file, force=True) as sink:
            sink.write(TABLE.to_batches()[0])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        broken()
    assert file.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == ["t.csv"]


FULL = """
import resource, signal, sys
import numpy as np, pyarrow as pa
from dipriv.errors import StorageError
from dipriv._sinks import FileSink
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    with FileSink.at(sys.argv[1]) as sink:
        for start in range(20):
            sink.write(pa.record_batch({"a": np.random.default_rng(start).random(100_000)}))
        sink.commit()
except StorageError as error:
    print(error.fault)
"""


@pytest.mark.parametrize(
    "name", ["t.csv", *(pytest.param(name, marks=pytest.mark.slow) for name in ("t.parquet", "t.arrow", "t.csv.gz"))]
)
def test_a_full_disk_leaves_nothing(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL, tmp_path / name], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.strip() == f"{name}: File too large."
    assert list(tmp_path.iterdir()) == []


def test_texts_appear_whole(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "one")
    write_text(tmp_path / "a.txt", "two")
    assert [(found.name, found.read_text(encoding="utf-8")) for found in tmp_path.iterdir()] == [("a.txt", "two")]


def test_texts_are_read_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text('a,b,zip\n,1,00012\nNA,,00000\n"x, y",3,99999\n', encoding="utf-8")
    rows = settle_texts(FileBatches.of(File.at(file)), ["a", "b"], TypeRules(), passed_through=["zip"])
    found = pa.Table.from_batches(rows.batches(rows.schema.names))
    assert found.to_pydict() == {"a": [None, "NA", "x, y"], "b": [1, None, 3], "zip": ["00012", "00000", "99999"]}


HEADS = {
    "79,48.81,m\n80,1.5,f\n": "the first line has columns 1, 2 with a number, a date or a truth value as its name.",
    "age,,sex\n1,2,3\n": "the first line has column 2 without a name.",
    "age, ,7,\n1,2,3,4\n": "has columns 2, 4 without a name and column 3 with a number,",
    "born,2020-01-01\n1,2\n": "the first line has column 2 with a number,",
    "a,b,a,c,c\n1,2,3,4,5\n": "columns 1, 3 have the same name; columns 4, 5 have the same name.",
    ",".join(["x"] * 12) + "\n" + "1," * 11 + "1\n": "columns 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more have",
}


@pytest.mark.parametrize("text", HEADS)
def test_a_first_line_without_names_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        File.at(tmp_path / "t.csv").read()
    assert HEADS[text] in caught.value.fault
    assert "48.81" not in str(caught.value)


def test_a_file_that_changes_is_refused(tmp_path: Path) -> None:
    file = put(tmp_path / "t.csv")
    source = File.at(file)
    source.read()
    with file.open("a", encoding="utf-8") as stream:
        stream.write("5,1,x,1970-01-01 00:00:00\n")
    refused(SourceChangedError, "changed while it was read", call=source.read)


def test_the_slower_of_two_runs_is_refused(tmp_path: Path) -> None:
    first, second = (FileSink.at(tmp_path / "t.csv") for _ in range(2))
    with first, second:
        for sink in (first, second):
            sink.write(TABLE.to_batches()[0])
        first.commit()
        refused(StorageError, "t.csv: File exists", call=second.commit)
    assert [file.name for file in tmp_path.iterdir()] == ["t.csv"]


def test_a_file_system_without_links_is_one_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.link", no_links)
    first, second = (FileSink.at(tmp_path / "t.csv") for _ in range(2))
    with first, second:
        for sink in (first, second):
            sink.write(TABLE.to_batches()[0])
        first.commit()
        refused(StorageError, "t.csv: File exists", call=second.commit)
    assert [file.name for file in tmp_path.iterdir()] == ["t.csv"]
