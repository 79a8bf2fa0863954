"""What the first line of a text file says, and what kept columns have in their buffers, follows from no other row."""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator
from contextlib import closing, suppress
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import dipriv
from dipriv._base.decimals import at_most, exact
from dipriv._sinks import FolderSink
from dipriv._tables import frames
from dipriv._tables.column_types import parse
from dipriv._tables.decorated import write_plainly
from dipriv.errors import InputError
from dipriv.ledger import Ledger
from dipriv.release.options import ReleaseOptions
from dipriv.release.plan import prepare
from dipriv.release.privatize import release_file
from dipriv.sources._formats import delimited
from dipriv.sources._formats.quotes import (
    PLAINLY_QUOTED,
    CheckedQuotes,
    _has_lone_return,
    no_ends,
    scan,
    scan_plainly_quoted,
    scan_quotes,
)
from dipriv.sources.contribution_bound import ContributionBound
from dipriv.sources.files import File
from dipriv.sources.holdout import Split
from dipriv.sources.spark.files import SparkFiles
from dipriv.sources.stream import open_file
from tests import spark_support

RNG = np.random.default_rng(34)
ROWS = [f"{age},{name},{pay}" for age, name, pay in zip(*RNG.integers(1, 90, (3, 600)).astype(str), strict=True)]


def layout(path: Path, header: str, rows: list[str], end: str = "\n") -> Any:
    path.write_bytes((end.join([header, *rows]) + end).encode())
    file = File.at(path)
    return file.format.layout(file)  # type: ignore[attr-defined]


def number_of_rows(path: Path) -> int:
    source = open_file(File.at(path))
    return sum(batch.num_rows for batch in source.rows.batches(source.rows.schema.names))


@pytest.mark.parametrize(
    "header", ['height 5",name,x', 'size 5",b;c,d', 'a"b"c,"d",e', "a,b,c", 'size 5";b;d', "'a','b',c"]
)
@pytest.mark.parametrize("odd", ['5,a"b,3', '1,2,5";6', '"1",2,3', "1,'2',3", '1;"2;2";3', '"'])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_the_dialect_depends_on_the_first_line_alone(header: str, odd: str, end: str, tmp_path: Path) -> None:
    assert layout(tmp_path / "a.csv", header, ROWS, end) == layout(tmp_path / "a.csv", header, [*ROWS, odd], end)
    assert layout(tmp_path / "a.csv", header, ROWS, end) == layout(tmp_path / "a.csv", header, [odd, *ROWS], end)
    other = layout(tmp_path / "a.csv", '"a";"b"', ROWS, end)  # control: another first line says otherwise
    assert other.quotes_names and other.separator == ";"  # noqa: PT018


@pytest.mark.parametrize("header", ['"name,b,d', 'a,"b', '"a"b,c,d', '"a\nb",c,d'])
def test_a_quote_that_is_open_in_the_first_line_is_refused_whatever_follows(header: str, tmp_path: Path) -> None:
    for rows in (ROWS, [*ROWS, '5,secret",3'], ['1,secret",3', *ROWS]):
        with pytest.raises(InputError, match="first line, a quote is not closed") as refused:
            layout(tmp_path / "a.csv", header, rows)
        assert "secret" not in str(refused.value)


def test_a_zero_byte_below_the_first_line_is_not_of_the_first_line(tmp_path: Path) -> None:
    layout(tmp_path / "a.csv", "a,b,c", ["1,\0,3", *ROWS])
    with pytest.raises(InputError, match="bytes of zero"):
        layout(tmp_path / "a.csv", "a\0,b,c", ROWS)


def test_names_that_are_the_same_are_said_by_their_places(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("yes,secret,no,secret\n1,2,3,4\n")
    with pytest.raises(InputError, match="columns 2, 4 have the same name") as refused:
        open_file(File.at(tmp_path / "a.csv"))
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("place", [0, 1, 299, 541, 598, 599])
@pytest.mark.parametrize("cell", ['3,2,"abc', '"3,2,1', '3,"2,1'])
def test_a_quote_that_is_not_closed_removes_no_rows(cell: str, place: int, tmp_path: Path) -> None:
    rows = [*ROWS[:place], cell, *ROWS[place + 1 :]]
    for others in (rows, [*rows, '4,"x",5'], [*rows[: place + 1], '"4",x,5', *rows[place + 1 :]]):
        (tmp_path / "a.csv").write_text("\n".join(["a,b,c", *others]) + "\n")
        with pytest.raises(InputError, match=r"quote is not closed|cells, but"):
            number_of_rows(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_text("\n".join(["a,b,c", *rows]).replace(cell, '3,"2\n2",1') + "\n")
    assert number_of_rows(tmp_path / "a.csv") == 600  # control


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("a\n1\n2\n", 2),
        ("a\r\n1\r\n2\r\n", 2),
        ("a\r1\r2\r", 2),
        ('a\n"1\r2"\n', 1),
        ("a\n1\r2\n", None),
        ("a\r\n1\r2\r\n", None),
        ('a\n"1""\n2"\n', 1),
        ('a\n"1\n2" \n3\n', 2),
        ('a\n"1\n2"3\n', None),
        ('a\n"1"3\n', 1),
        ('a\n5" pipe\n', 1),
        ('a\n"1', None),
        ('\ufeff"a"\n"1"\n', 1),
        ("a\n\n1\n", 2),
    ],
)
def test_rows_of_one_column(text: str, rows: int | None, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(text.encode())
    if rows is not None:
        assert number_of_rows(tmp_path / "a.csv") == rows
        return
    with pytest.raises(InputError, match=r"quote is not closed|carriage return"):
        number_of_rows(tmp_path / "a.csv")


def test_the_quotes_of_other_encodings_and_of_long_files_are_checked(tmp_path: Path) -> None:
    for encoding in ("utf-16", "latin-1", "utf-8"):
        for size, odd in ((1, ""), (300_000, '9,"ä,1\n')):
            text = "a,b,c\n" + '1,"ä\nä",3\n' * size + odd
            (tmp_path / "a.csv").write_bytes(text.encode(encoding))
            file = File.at(tmp_path / "a.csv", None, dipriv.Dialect(encoding=encoding))
            if odd:
                with pytest.raises(InputError, match="quote is not closed"):
                    list(open_file(file).rows.batches(["a"]))
            else:
                assert sum(batch.num_rows for batch in open_file(file).rows.batches(["a"])) == size


def test_the_check_knows_where_arrow_is_inside_of_quotes() -> None:
    """All bodies of up to five letters: one that is accepted has the rows of a reading with the standard library."""
    accepted = 0
    for size in range(1, 6):
        for letters in product('a" ,\n', repeat=size):
            body = "".join(letters)
            content = f"a,b\n1,{body}\n".encode()
            stream = CheckedQuotes(io.BytesIO(content), "a.csv", '"', ",")
            try:
                while stream.read(3):
                    pass
            except InputError:
                continue
            with suppress(pa.ArrowInvalid):  # rows of other widths
                marked = content + b"7,mark\n"
                found = pacsv.read_csv(io.BytesIO(marked), parse_options=pacsv.ParseOptions(newlines_in_values=True))
                assert found["b"][-1].as_py() == "mark", body  # the next row is a row
                accepted += 1
    assert accepted > 500  # control


def test_quotes_are_checked_alike_by_their_places() -> None:
    compared = faults = 0
    for _ in range(20_000):
        separator, quote = RNG.choice(list(",; \t|")), RNG.choice(list("\"'"))
        letters = [*[quote] * 4, *[separator] * 3, "\n", "\n", "\r\n", " ", " ", "a", "b"]
        text = "".join(RNG.choice(letters, RNG.integers(1, 40))).encode()
        checked = CheckedQuotes(io.BytesIO(), "a.csv", quote, separator)
        cells, state = np.frombuffer(text, np.uint8), int(RNG.integers(7))
        by_letters = scan(cells, 0, state, checked._kinds, checked._next, no_ends())
        if text[:1] != b"\n":
            places = np.flatnonzero(cells == ord(quote))
            by_places = scan_quotes(cells, 0, places, state, ord(separator), no_ends())
            assert by_places == by_letters, (text, state)
            compared, faults = compared + 1, faults + (by_letters[1] >= 0)
    assert compared - 1000 > faults > 1000  # control


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_plain_quotes_are_checked_alike_block_by_block(ending: str) -> None:
    plain = others = 0
    for _ in range(2000):
        separator, quote = RNG.choice(list(",; \t|")), RNG.choice(list("\"'"))
        checked = CheckedQuotes(io.BytesIO(), "a.csv", quote, separator)
        cells = ["", "x", "1.5", f"{quote}{quote}", f"{quote}a{separator}b{quote}", f"{quote}{'z' * 70}{quote}", "é"]
        odd = [f"x{quote}", f"{quote}a{quote}{quote}b{quote}", f"{quote}a{ending}b{quote}", f"{quote}a{quote} "]
        chosen = RNG.choice([*cells, *odd], RNG.integers(1, 2000), p=[1 / 7] * 7 + [0] * 4)
        if RNG.random() < 0.5:
            chosen[RNG.integers(len(chosen))] = RNG.choice(odd)
        text = "".join(str(cell) + RNG.choice([separator, ending]) for cell in chosen).encode()
        text = text[RNG.integers(3) :]  # also in the middle of a cell, or of the end of a line
        letters = np.frombuffer(text, np.uint8)[: len(text) // 64 * 64]
        state = int(RNG.choice(PLAINLY_QUOTED))
        found = scan_plainly_quoted(letters, state, np.uint8(ord(quote)), np.uint8(ord(separator)))
        if found >= 0 and not _has_lone_return(letters.tobytes()):
            assert (found, -1) == scan(letters, 0, state, checked._kinds, checked._next, no_ends()), (text, state)
        plain, others = plain + (found >= 0 and len(letters) > 4096), others + (found < 0)
    assert min(plain, others) > 200  # control


@pytest.mark.parametrize("separator", [" ", "\t", "|", ";"])
def test_quotes_with_every_separator(separator: str, tmp_path: Path) -> None:
    dialect = dipriv.Dialect(separator=separator)
    rows = [f"{number}{separator}x" for number in range(50)]
    for odd, is_right in ((f'"x\ny"{separator}7', True), (f'9{separator}"x', False), (f'9{separator}"x"', True)):
        (tmp_path / "a.csv").write_text("\n".join([f"a{separator}b", *rows, odd, *rows]) + "\n")
        file = File.at(tmp_path / "a.csv", None, dialect)
        if is_right:
            assert sum(batch.num_rows for batch in open_file(file).rows.batches(["a"])) == 101
        else:
            with pytest.raises(InputError, match="quote is not closed"):
                list(open_file(file).rows.batches(["a"]))


def test_a_quote_behind_spaces_is_text(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("\n".join(['a,b\n1,"x', 'y" "', '2,"', *["3,4"] * 50]) + "\n")
    with pytest.raises(InputError, match="quote is not closed"):
        number_of_rows(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_bytes(b"a,b\r" + b'1,"x\r' + b"3,4\r" * 101 + b'7,"\r')
    with pytest.raises(InputError, match="more than 100 lines"):
        number_of_rows(tmp_path / "a.csv")


@pytest.mark.parametrize("end", ["\r\n", "\n", "\r"])
def test_a_block_may_end_anywhere(end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where blocks of bytes end follows from the lengths of all cells before: it may change no cell."""
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 512)
    cells = [f"A{end}B" if end != "\r" else "A B"] * 80
    for shift in range(16):
        rows = [f'{"1" * (shift + 1)},"x"', *(f'7,"{cell}"' for cell in cells)]
        (tmp_path / "a.csv").write_bytes((end.join(["n,k", *rows]) + end).encode())
        rows_of = open_file(File.at(tmp_path / "a.csv", None, dipriv.Dialect())).rows
        found = [cell for batch in rows_of.batches(["k"]) for cell in batch["k"].to_pylist()]
        assert found == ["x", *cells]


def test_kept_structs_that_are_null_end_no_release() -> None:
    of = pa.struct([("d", pa.dictionary(pa.int32(), pa.string()))])
    cells = pa.chunked_array([pa.array([None] * 100, of), pa.array([{"d": "x"}, {"d": "y"}] * 50, of)])
    released = dipriv.privatize(pa.table({"k": cells, "x": np.arange(200) % 7}), 1.0, keep=["k"]).data
    assert released["k"].to_pylist() == cells.to_pylist()


def test_encodings_are_read_as_they_are_unless_the_file_is_in_utf_8(tmp_path: Path) -> None:
    def read(text: str, encoding: str, stated: str) -> list[str]:
        (tmp_path / "a.csv").write_bytes(f"k,b\n{text},1\nplain,2\n".encode(encoding))
        rows = open_file(File.at(tmp_path / "a.csv", None, dipriv.Dialect(encoding=stated))).rows
        return [cell for batch in rows.batches(["k"]) for cell in batch["k"].to_pylist()]

    for encoding in ("iso2022_jp", "utf-7", "hz", "euc_jp", "gbk", "shift_jis", "utf-16", "utf-16-le"):
        assert read("大学", encoding, encoding) == ["大学", "plain"]
    for stated in ("latin-1", "cp1252", "gbk"):
        assert read("plain", "utf-8", stated) == ["plain", "plain"]
        with pytest.raises(InputError, match="it is in UTF-8, not in"):
            read("Ã¼ber" if stated == "latin-1" else "über", "latin-1" if stated == "latin-1" else "utf-8", stated)
    assert read("über", "latin-1", "latin-1") == ["über", "plain"]


def test_whole_numbers_are_the_same_however_cells_are_written() -> None:
    whole = [str(number) for number in RNG.integers(-(2**63), 2**63 - 1, 500, endpoint=True)]
    texts = pa.array([text + end for text in [*whole, "7", "-0", "+12"] for end in ("", ".", ".0", ".000 ", ".5")])
    plain = write_plainly(texts, (), 0, None, 0)
    read, rewritten = parse(texts, pa.int64(), ()), parse(plain, pa.int64(), ())
    assert read.equals(rewritten)
    for place, text in enumerate(whole):
        assert read[5 * place : 5 * place + 4].to_pylist() == [int(text)] * 4


CELLS: dict[str, tuple[pa.DataType, Any]] = {
    "text": (pa.string(), lambda cell: cell),
    "views of lists": (pa.list_view(pa.string()), lambda cell: [cell]),
    "large views of lists": (pa.large_list_view(pa.string()), lambda cell: [cell, None]),
    "views in views": (pa.list_view(pa.list_view(pa.string())), lambda cell: [[cell]]),
    "views in structs": (pa.struct([("v", pa.list_view(pa.string()))]), lambda cell: {"v": [cell]}),
    "lists": (pa.list_(pa.string()), lambda cell: [cell]),
}


@pytest.mark.parametrize("case", CELLS)
def test_kept_columns_have_no_cells_of_other_rows(case: str, tmp_path: Path) -> None:
    of, cell = CELLS[case]
    secrets = [f"SECRET{number:04d}" for number in range(200)]
    table = pa.table({"k": pa.array([cell(secret) for secret in secrets], of), "x": np.arange(200) % 7})
    release = dipriv.privatize(table, 1.0, keep=["k"], reference="holdout")
    shown = str(release.data["k"].to_pylist())
    content = pickle.dumps(release.data)
    there = {secret for secret in secrets if secret.encode() in content}
    assert there == {secret for secret in secrets if secret in shown}
    assert 0 < len(there) < 200  # control


@pytest.mark.parametrize("of", [pa.string(), pa.dictionary(pa.int8(), pa.string()), pa.list_(pa.string())])
def test_kept_columns_are_not_cut_where_the_private_table_is(of: pa.DataType) -> None:
    keys = pa.array([f"k{number % 9}" for number in range(300)])
    cells = pa.array([[key] for key in keys.to_pylist()], of) if pa.types.is_list(of) else keys.cast(of)
    found = []
    for cut in (100, 101, 300):
        column = pa.chunked_array([cells[:cut], cells[cut:]], of)
        table = pa.table({"k": column, "x": pa.chunked_array([np.arange(300) % 7])})
        released = dipriv.privatize(table, 1.0, keep=["k"], columns=["x"]).data
        assert released["k"].to_pylist() == table["k"].to_pylist()
        found.append([len(chunk) for chunk in released["k"].chunks])
    assert found == [[300]] * 3


def test_bytes_are_the_persons_of_the_same_text() -> None:
    split = Split.new(0.5)
    keys = [f"P{number}" for number in range(300)] + [str(number) for number in range(100)]
    padded = [key.encode().ljust(6, b"\0") for key in keys]
    forms = [
        pa.array(keys),
        pa.array([key.encode() for key in keys]),
        pa.array([key.encode() for key in keys], pa.large_binary()),
        pa.array([key.encode() for key in keys], pa.binary_view()),
        pa.array(padded, pa.binary(6)),
        pa.array([key.encode() for key in keys]).dictionary_encode(),
    ]
    by_key = Split(split.holdout, split.key, "k")
    expected = by_key._of_values(forms[0])
    for form in forms[1:]:
        assert np.array_equal(by_key._of_values(form), expected)
    assert len({*expected.tolist()}) == 400  # control
    assert len({*by_key._of_values(pa.array([b"\xe9", b"\xe8"])).tolist()}) == 2


def test_keys_that_are_missing_in_any_way_are_refused() -> None:
    labels = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array(["a", None]))
    numbers = pa.array([1.0, float("nan"), 2.0])
    for keys in (numbers, numbers.dictionary_encode(), labels, pa.array(["a", None, "b"])):
        with pytest.raises(InputError, match="has nulls"):
            Split.new(0.5, by="k").held_out(frames.read(pa.table({"k": keys})))


def test_a_file_in_utf8_is_read_in_no_other_encoding(tmp_path: Path) -> None:
    names = [f"Анна{number:03x}" for number in range(400)]
    towns = RNG.choice(["Москва", "Тверь", "Омск"], 400)
    text = "имя,город\n" + "".join(f"{name},{town}\n" for name, town in zip(names, towns, strict=True))
    (tmp_path / "people.csv").write_text(text, encoding="utf-8")
    with Ledger.create(tmp_path / "ledger.db") as ledger:
        asked: dict[str, Any] = {"ledger": ledger, "force": True}
        dipriv.privatize_file(tmp_path / "people.csv", tmp_path / "out.csv", 1.0, dataset="people", **asked)
        for encoding in ("koi8-r", "latin-1", "cp1251", "cp866"):
            with pytest.raises(InputError, match=r"it is in UTF-8|is not in cp1251"):
                dipriv.privatize_file(
                    tmp_path / "people.csv",
                    tmp_path / "out.csv",
                    1.0,
                    dataset=encoding,
                    dialect=dipriv.Dialect(encoding=encoding),
                    **asked,
                )


def test_rows_of_a_person_have_at_most_the_epsilon_that_is_printed() -> None:
    for epsilon in [number / 1000 for number in range(1, 3000, 7)] + [0.139, 0.273]:
        for rows in (2, 3, 7, 9, 10, 13):
            assert rows * at_most(ContributionBound("p", rows).row_epsilon(epsilon)) <= exact(epsilon)
            assert ContributionBound("p", rows).row_epsilon(epsilon) >= float(Fraction(epsilon) / rows) * (1 - 1e-15)


def test_kept_cells_of_json_lines_stay_as_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("".join(f'{{"k": "${number}", "x": {number % 7}}}\n' for number in range(300)))
    released: Any = dipriv.privatize(str(tmp_path / "a.jsonl"), 1.0, keep=["k"]).data
    assert released.to_table()["k"].to_pylist() == [f"${number}" for number in range(300)]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install dipriv[spark]")
    yield from spark_support.session(tmp_path_factory.mktemp("events"))


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_text_that_is_not_in_utf8_ends_no_release_on_spark(session: Any, tmp_path: Path) -> None:
    names = pa.array([f"name of number {number % 6000}".encode() for number in range(7000)] + [b"Jos\xe9"])
    times = pa.array(np.arange(7001), pa.timestamp("ms"))  # these go through Spark's own reader
    malformed = pa.Array.from_buffers(pa.string(), len(names), names.buffers())
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"name": malformed, "at": times}), tmp_path / "in" / "0.parquet")
    with Ledger.create(tmp_path / "ledger.db") as ledger:
        asked = ReleaseOptions(2.0, ledger=ledger, dataset="people")
        release_file(SparkFiles.find(str(tmp_path / "in")).open(), FolderSink.at(tmp_path / "out"), asked)
        assert ledger.dataset("people").releases == 1


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_a_quote_that_is_not_closed_is_refused_on_spark(session: Any, tmp_path: Path) -> None:
    for head in ("'a','b'\n1,2\n", "a,b\n1,2\n".encode("utf-16")):
        (tmp_path / "other.csv").write_bytes(head if isinstance(head, bytes) else head.encode())
        with pytest.raises(InputError, match="Spark reads text files with"):
            SparkFiles.find(str(tmp_path / "other.csv"))
    for odd in ("", '3,2,"abc\n'):
        (tmp_path / "a.csv").write_text("\n".join(["a,b,c", *ROWS]) + "\n" + odd)
        if odd:
            with pytest.raises(InputError, match="quote is not closed"):
                SparkFiles.find(str(tmp_path / "a.csv"))
        else:
            with closing(prepare(SparkFiles.find(str(tmp_path / "a.csv")).open(), ReleaseOptions(1.0))) as plan:
                assert plan.row_counts.released == 600
