"""Text files as people have them: separators, quotes, encodings, lines before the names; and released in kind."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

from dipriv import DIP, Dialect, Discrete, Schema, inspect, plan, privatize, privatize_file
from dipriv._sinks import FileSink
from dipriv._tables.column_types import TypeRules
from dipriv.errors import InputError, SchemaError
from dipriv.sources.files import File, FileBatches, read_alike
from tests.unit.refusal import refused

MARKER = "zq7-marker-xv"
ROWS = [(20 + row % 40, f"{row % 90}.{row % 10}", ("Köln", "Bonn")[row % 2]) for row in range(60)]
PLAIN = "age,score,city\n" + "".join(f"{age},{score},{city}\n" for age, score, city in ROWS)


def written(separator: str = ",", decimal: str = ".", quote: str = "") -> str:
    text = PLAIN.replace(",", "\0").replace(".", decimal).replace("\0", f"{quote}{separator}{quote}")
    return "".join(f"{quote}{line}{quote}\n" for line in text.splitlines())


EXPECTED = {"age": [row[0] for row in ROWS], "score": [float(row[1]) for row in ROWS], "city": [row[2] for row in ROWS]}


@pytest.mark.parametrize(
    "content",
    [
        PLAIN.encode(),
        written(";", ",").encode(),
        written("|").encode(),
        written("\t", ",").encode(),
        written(";", ",", '"').encode(),
        written(",", ".", "'").encode(),
        written(";", ",").encode("utf-8-sig"),
        written(";", ",").encode("utf-16"),
        written("\t").encode("utf-16-be").replace(b"", b"", 1),
        b"\n\r\n" + written(";", ",").encode(),
    ],
    ids=["comma", "semicolon", "pipe", "tab", "quoted", "single quotes", "BOM", "UTF-16", "UTF-16 BE", "empty lines"],
)
def test_what_the_first_line_says(content: bytes, tmp_path: Path) -> None:
    if content.startswith(b"\0"):
        content = b"\xfe\xff" + content
    (tmp_path / "t.csv").write_bytes(content)
    assert File.at(tmp_path / "t.csv").read().to_pydict() == EXPECTED


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16-le"])
def test_an_encoding_is_given_or_asked_for(encoding: str, tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_bytes(PLAIN.encode(encoding))
    error = refused(InputError, "t.csv", "--encoding", call=lambda: File.at(file).read())
    if encoding != "utf-16-le":
        assert "line 2 is not in UTF-8 (byte " in error.fault
    assert File.at(file, dialect=Dialect(encoding=encoding)).read().to_pydict() == EXPECTED


def test_where_a_byte_is_that_has_no_character(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    content = ("a,b\n" + f"1,{MARKER}\n" * 1_400_000).encode()  # more than one block
    file.write_bytes(content + b"1,caf\xe9\n" + b"1,x\n" * 10)
    error = refused(InputError, f"line 1400002 is not in UTF-8 (byte {len(content) + 6:,}", call=File.at(file).read)
    assert MARKER not in str(error)
    assert "caf" not in str(error)
    file.write_bytes(PLAIN.encode())
    refused(InputError, "line 2 is not in ascii", call=File.at(file, dialect=Dialect(encoding="ascii")).read)


def test_lines_before_the_names(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("# exported, 2024\n# by hand\n" + PLAIN)
    refused(InputError, "the first line is a comment", "--skip 2", call=lambda: File.at(file).read())
    assert File.at(file, dialect=Dialect(skip=2)).read().to_pydict() == EXPECTED
    file.write_text("Table 5: people\n\n" + PLAIN)
    refused(
        InputError,
        "line 3 has 3 cells, but that with the names of columns has 1",
        "--skip N",
        call=lambda: File.at(file).read(),
    )
    assert File.at(file, dialect=Dialect(skip=2)).read().to_pydict() == EXPECTED
    file.write_text("note\nx\n\n1\n\n2\n3\n4\n")
    found, _ = File.at(file, dialect=Dialect(skip=1)).read_with_questions()
    assert found.to_pydict() == {"x": [None, 1, None, 2, 3, 4]}


def test_a_name_may_begin_with_a_hash(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("#id,x\n" + "a,1\nb,2\n" * 20)
    assert File.at(tmp_path / "t.csv").read().column_names == ["#id", "x"]


def test_two_separators_are_a_question(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("a,b;c\n" + "1,2;3\n" * 20)
    refused(InputError, "as many , as ;", "--sep", call=lambda: File.at(file).read())
    assert File.at(file, dialect=Dialect(separator=",")).read().column_names == ["a", "b;c"]
    file.write_text('"a,x";"b,y";c\n' + "1;2;3\n" * 20)
    assert File.at(file).read().column_names == ["a,x", "b,y", "c"]


def test_rows_do_not_change_the_separator(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n" + "1;2;3;4,x\n" * 20)
    assert File.at(tmp_path / "t.csv").read().to_pydict() == {"a": ["1;2;3;4"] * 20, "b": ["x"] * 20}


def test_marks_of_missing_cells(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("x\n" + "1\n2\n-9\n" * 10)
    assert File.at(file).read(TypeRules.of({}, {}, Dialect(missing=("-9",)))).to_pydict() == {"x": [1, 2, None] * 10}


def test_a_release_is_written_in_kind(tmp_path: Path) -> None:
    """The same separator, decimal mark and thousands; and it is read as it was meant."""
    rows = [
        f"{row % 70};{row % 9 + 1}.{row % 997:03},{row % 100:02} €;{1 + row % 28:02}.{1 + row % 12:02}.2024"
        for row in range(400)
    ]
    (tmp_path / "t.csv").write_text("age;pay;day\n" + "\n".join(rows) + "\n", encoding="utf-8")
    privatize_file(tmp_path / "t.csv", tmp_path / "out.csv", 5.0)
    lines = (tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "age;pay;day"
    assert len(lines) == 401
    cells = [line.split(";")[1].strip('"') for line in lines[1:]]
    assert all(cell.endswith(" €") and cell[-5] == "," for cell in cells if cell)
    assert sum("." in cell for cell in cells) > 300
    one, two = read_alike(File.at(tmp_path / "t.csv"), File.at(tmp_path / "out.csv"), None, {})
    assert two.schema == one.schema == pa.schema({"age": pa.int64(), "pay": pa.float64(), "day": pa.date32()})
    assert two["pay"].null_count == sum(not cell for cell in cells)


def test_whole_thousands_are_compared_as_what_they_are(tmp_path: Path) -> None:
    rows = [f"{row % 9 + 1}.{row % 997:03};{row % 50},5" for row in range(300)]
    (tmp_path / "t.csv").write_text("people;score\n" + "\n".join(rows) + "\n")
    privatize_file(tmp_path / "t.csv", tmp_path / "out.csv", 5.0)
    one, two = read_alike(File.at(tmp_path / "t.csv"), File.at(tmp_path / "out.csv"), None, {})
    assert one.schema == two.schema == pa.schema({"people": pa.int64(), "score": pa.float64()})
    means = [sum(of["people"].drop_null().to_pylist()) / 300 for of in (one, two)]
    assert means[1] > means[0] / 2  # not 1.234 of 1,234


def test_the_schema_tells_how_a_file_is_written(tmp_path: Path) -> None:
    text = '[file]\nseparator = ";"\ndecimal = ","\nmissing = ["-9"]\n\n[age]\nkind = "discrete"\nstep = 1\n'
    schema = Schema.from_toml(text)
    assert schema.dialect == Dialect(separator=";", decimal=",", missing=("-9",))
    assert dict(schema) == {"age": schema["age"]}
    assert Schema.from_toml(schema.to_toml()) == schema == Schema.from_json(schema.to_json())
    assert schema != Schema(dict(schema))
    file = tmp_path / "t.csv"
    file.write_text("age;x\n" + "20;1.234\n31;2.345\n-9;3.456\n" * 20)
    release = privatize(file, 1.0, schema=schema)
    assert [str(of) for of in release.data.schema.types] == ["int64", "int64"]
    assert [str(of) for of in privatize(file, 1.0, schema=schema, dialect=Dialect(decimal=".")).data.schema.types] == [
        "int64",
        "double",
    ]
    assert plan(file, 1.0, schema=schema).names == ("age", "x")
    refused(SchemaError, "'x'", "--decimal", "Dialect(decimal=", call=lambda: privatize(file, 1.0))
    column = Schema.from_toml('[file]\nkind = "categorical"\n')
    assert list(column) == ["file"]  # a column may have that name
    refused(SchemaError, "both called 'file'", call=lambda: Schema(column, Dialect(skip=1)))
    refused(SchemaError, "[file] has no field 'seperator'", call=lambda: Schema.from_toml('[file]\nseperator = ";"\n'))


def test_marks_of_the_schema_hold_for_later_rows_and_public_tables(tmp_path: Path) -> None:
    schema = Schema({"age": Discrete(step=1)}, Dialect(missing=("-9",)))
    ages = [*map(str, range(18, 78))] * 10
    table = pa.table({"age": [*ages, *["-9"] * 200]})
    assert DIP(50.0, schema=schema).fit(table).transform(table)["age"][600:].null_count > 180
    file = tmp_path / "public.csv"
    file.write_text("age\n" + "\n".join(table["age"].to_pylist()) + "\n")
    for public in (table, file):
        released = privatize(pa.table({"age": ages}), 1.0, public=public, schema=schema).data["age"].to_pylist()
        assert {None} < {*released} <= {None, *range(18, 78)}


def test_a_public_file_is_read_as_the_table_is(tmp_path: Path) -> None:
    """Of the options, and of the schema, it has what has a meaning for its format."""
    days = [f"{1 + row % 12:02}/{1 + row % 9:02}/2024" for row in range(240)]  # as well with the month first
    rows = [f"{row % 9 + 1}.{row % 997:03};{day};Köln" for row, day in enumerate(days)]
    text = "pay;day;city\n" + "\n".join(rows) + "\n"
    (tmp_path / "t.csv").write_text(f"note\n{text}", encoding="latin-1")
    (tmp_path / "public.csv").write_text(f"about\n{text}", encoding="latin-1")
    given = Dialect(separator=";", decimal=",", dates="dmy", encoding="latin-1", skip=1)
    for schema, dialect in ((None, given), (Schema({}, given), None)):
        release = privatize(
            tmp_path / "t.csv",
            5.0,
            public=tmp_path / "public.csv",
            schema=schema,
            dialect=dialect,
            types={"city": "text"},
        )
        found = release.data.to_table()
        assert [str(of) for of in found.schema.types] == ["int64", "date32[day]", "string"]
        assert {day.month for day in found["day"].to_pylist()} <= {*range(1, 10)}
        assert min(found["pay"].to_pylist()) > 900
        assert {*found["city"].to_pylist()} == {"Köln"}
    import pyarrow.parquet as pq

    pq.write_table(File.at(tmp_path / "t.csv", dialect=given).read(TypeRules.of({}, {}, given)), tmp_path / "p.parquet")
    privatize(tmp_path / "t.csv", 5.0, public=tmp_path / "p.parquet", dialect=given)


def test_the_file_of_a_schema_says_nothing_about_other_tables(tmp_path: Path) -> None:
    """The same schema serves a table in a CSV file, in memory, and in files with types."""
    schema = Schema(
        {"age": Discrete(step=1)}, Dialect(separator=";", decimal=",", encoding="latin-1", skip=0, quote='"')
    )
    table = pa.table({"age": [row[0] for row in ROWS], "score": [float(row[1]) for row in ROWS]})
    expected = privatize(table, 1.0, schema=dict(schema), seed=1).data
    assert privatize(table, 1.0, schema=schema, seed=1).data.equals(expected)
    assert plan(table, 1.0, schema=schema).names == ("age", "score")
    assert DIP(1.0, schema=schema, seed=1).fit(table).transform(table).num_rows == 60
    import pyarrow.parquet as pq

    pq.write_table(table, tmp_path / "t.parquet")
    assert privatize(tmp_path / "t.parquet", 1.0, schema=schema, seed=1).data.to_table().equals(expected)
    assert privatize(str(tmp_path), 1.0, schema=schema, seed=1).data.to_table().equals(expected)  # a folder
    for given in ({"separator": ";"}, {"decimal": ","}, {"dates": "dmy"}, {"sheet": "x"}):
        dialect = Dialect.from_dict(given)  # a control: an option without effect is refused
        for data in (table, tmp_path / "t.parquet", str(tmp_path)):
            refused(
                InputError,
                f"{next(iter(given))} is given, which has no meaning",
                "Leave out --",
                call=lambda data=data, dialect=dialect: privatize(data, 1.0, dialect=dialect),  # type: ignore[misc]
            )


@pytest.mark.parametrize(
    "wrong",
    [
        {"separator": "ab"},
        {"separator": "1"},
        {"quote": "x"},
        {"decimal": "x"},
        {"encoding": "no-such"},
        {"encoding": "base64"},
        {"missing": "NA"},
        {"missing": [1]},
        {"dates": "d/m/y"},
        {"skip": -1},
        {"skip": True},
        {"sheet": ""},
        {"separator": "'", "quote": "'"},
    ],
)
def test_a_dialect_is_checked(wrong: dict[str, object]) -> None:
    refused(SchemaError, call=lambda: Dialect.from_dict(wrong))


def test_an_option_without_effect_is_refused(tmp_path: Path) -> None:
    table = pa.table({"x": list(range(50))})
    refused(InputError, "separator is given", call=lambda: privatize(table, 1.0, dialect=Dialect(separator=";")))
    (tmp_path / "t.csv").write_text(PLAIN)
    refused(InputError, "sheet is given", "csv", call=lambda: inspect(tmp_path / "t.csv", dialect=Dialect(sheet="a")))


def test_inspect_says_what_was_found(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(written(";", ","), encoding="utf-8")
    found = inspect(tmp_path / "t.csv")
    assert found.file == 'separator ;, quote ", encoding utf-8'
    assert [column.written for column in found.columns] == ["", "decimal comma", ""]


TEXTS = ["plain", "a;b", 'say "x"', "two\nlines", "", " space", None, "Zürich", "x"]


@pytest.mark.parametrize("header", ["name;n", '"name";n'])
@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_quotes_are_those_of_the_original(header: str, ending: str, tmp_path: Path) -> None:
    """Where the names of the original have no quotes, only texts that need them have some; rows come back the same."""
    original = tmp_path / "in.csv"
    original.write_text(f"{header}\na;1\n", encoding="utf-8")
    presentation = FileBatches.of(File.at(original)).presentation
    assert presentation.quotes_texts == ('"' in header)
    sink = FileSink.at(tmp_path / f"out.{ending}")
    batch = pa.record_batch({"name": TEXTS, "n": [1.5, None, *range(7)]})
    sink.check(batch.schema, batch.num_rows, presentation)
    with sink:
        for rows in (batch.slice(0, 1), batch.slice(1, 2), batch.slice(3)):  # the first needs no quotes
            sink.write(rows)
        sink.commit()
    text = (tmp_path / f"out.{ending}").read_text(encoding="utf-8")
    separator = ";" if ending == "csv" else "\t"
    assert text.splitlines()[:2] == (
        [f"name{separator}n", f"plain{separator}1.5"]
        if presentation.quotes_texts is False
        else [f'"name"{separator}"n"', f'"plain"{separator}1.5']
    )
    back = pacsv.read_csv(
        tmp_path / f"out.{ending}",
        parse_options=pacsv.ParseOptions(delimiter=separator, newlines_in_values=True),
        convert_options=pacsv.ConvertOptions(
            strings_can_be_null=True, quoted_strings_can_be_null=False, column_types={"name": pa.string()}
        ),
    )
    assert back["name"].to_pylist() == TEXTS
    assert back["n"].to_pylist() == [1.5, None, *range(7)]
