"""Who is held out stays held out: a ledger refuses keys that would make others the hold-out. And persons of a
contribution bound are those whose keys are equal, not those whose keys look like one number.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dipriv
from dipriv._random.bits import source
from dipriv._sinks import FileSink
from dipriv._tables import frames
from dipriv.errors import DisclosureError, InputError, StorageError
from dipriv.ledger import Ledger
from dipriv.sources._cells import value_hashes
from dipriv.sources._encodings import OtherEncoding
from dipriv.sources.contribution_bound import ContributionBound, unit_keys

RNG = np.random.default_rng(35)
N = 400
ASKED: dict[str, Any] = {"unit": "who", "reference": "holdout", "rows_per_unit": 2, "keep": ["row"]}


def people(keys: Any) -> pd.DataFrame:
    count = len(keys)
    return pd.DataFrame({"who": keys, "row": range(count), "pay": RNG.integers(1000, 9000, count)})


def released(data: Any, ledger: Ledger, **options: Any) -> set[int]:
    """The rows that are promised protection, by their numbers."""
    found = dipriv.privatize(data, 0.25, ledger=ledger, **(ASKED | options)).data
    rows = found.to_table()["row"].to_pylist() if hasattr(found, "to_table") else found["row"].tolist()
    return {int(row) for row in rows}


@pytest.fixture
def ledger(tmp_path: Path) -> Any:
    with Ledger.create(tmp_path / "ledger.db") as made:
        yield made


OTHERWISE: dict[str, tuple[Any, Any]] = {
    "32 bits": (np.arange(N) + 0.1, (np.arange(N) + 0.1).astype(np.float32)),
    "exponents": (np.arange(N) * 1000, [f"{number}e3" for number in range(N)]),
    "decimal comma": ([f"{number}.5" for number in range(N)], [f"{number},5" for number in range(N)]),
}


@pytest.mark.parametrize("keys", OTHERWISE.values(), ids=OTHERWISE)
def test_keys_that_are_read_in_another_way_are_refused(ledger: Ledger, keys: tuple[Any, Any]) -> None:
    table = people(keys[0])
    first = released(table, ledger, dataset="people")
    with pytest.raises(DisclosureError, match="read in another way"):
        released(table.assign(who=keys[1]), ledger, dataset="people")
    assert released(table, ledger, dataset="people") == first
    assert ledger.dataset("people").spent == 0.5  # the refused one cost nothing


def test_new_keys_of_the_same_persons_are_refused(ledger: Ledger) -> None:
    table = people([f"a{number}" for number in range(N)])
    first = released(table, ledger, dataset="people")
    anew = table.assign(who=[f"b{number}" for number in RNG.permutation(N)])
    with pytest.raises(DisclosureError, match="few keys of persons are among"):
        released(anew, ledger, dataset="people")
    assert released(table, ledger, dataset="people") == first


@pytest.mark.parametrize("rows_per_person", [1, 5, 30])
def test_a_table_that_was_sorted_or_has_grown_keeps_its_hold_out(ledger: Ledger, rows_per_person: int) -> None:
    table = people(np.repeat(np.arange(N), rows_per_person)[RNG.permutation(N * rows_per_person)])
    first = released(table, ledger, dataset="people", rows_per_unit=rows_per_person)
    same = released(table.sort_values("pay"), ledger, dataset="people", rows_per_unit=rows_per_person)
    assert same == first
    more = pd.concat([table, people(np.arange(N, N + 50)).assign(row=lambda rows: rows["row"] + 10**6)])
    grown = released(more, ledger, dataset="people", rows_per_unit=rows_per_person)
    assert {row for row in grown if row < 10**6} == first
    text = released(more.assign(who=more["who"].astype(str)), ledger, dataset="people", rows_per_unit=rows_per_person)
    assert text == grown  # the same keys in another type


FORMS: dict[str, Callable[[int], Any]] = {
    "decimals": lambda number: f"{number // 12}.{number % 12 + 1}",
    "leading zeros": lambda number: f"{number // 2:0{3 + number % 2}}",
    "quotes": lambda number: f"'{number // 2}'" if number % 2 else f"{number // 2}",
    "signs": lambda number: f"+{number // 2 + 1}" if number % 2 else f"{number // 2 + 1}",
    "times": lambda number: f"08:{number // 2 % 60:02}:{number // 120:02}" + (".0" if number % 2 else ""),
    "floats near each other": lambda number: 1.0 + number * 1e-12,
    "nanoseconds": lambda number: pd.Timestamp("2020-01-01") + pd.Timedelta(number, "ns"),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_keys_that_are_written_otherwise_are_other_persons(form: Callable[[int], Any]) -> None:
    keys = [form(number) for number in range(N)]
    assert len({*keys}) == N
    found = dipriv.privatize(people(keys), 4.0, unit="who", rows_per_unit=1, delta=0)
    assert (found.n_rows, found.data["who"].nunique()) == (N, N)
    twice = dipriv.privatize(people(keys * 2), 4.0, unit="who", rows_per_unit=1, delta=0)  # control
    assert twice.n_rows == N


def test_keys_that_are_equal_are_one_person() -> None:
    key = np.array([3, 5], np.uint64)
    for one, other in {
        "spaces": (pa.array([" a ", "b"]), pa.array(["a", "b\t"])),
        "zeros": (pa.array([0.0, -0.0]), pa.array([-0.0, 0.0])),
        "dictionary": (pa.array(["x", "y"]), pa.array(["x", "y"]).dictionary_encode()),
        "views": (pa.array(["x", "y"]), pa.array(["x", "y"], pa.string_view())),
        "large": (pa.array(["x", "y"]), pa.array(["x", "y"], pa.large_string())),
        "float32": (pa.array([0.5, 2.0]), pa.array([0.5, 2.0], pa.float32())),
        "int8": (pa.array([1, 2]), pa.array([1, 2], pa.int8())),
    }.values():
        found = [value_hashes(array, key).high.tolist() for array in (one, other)]
        assert found[0] == found[1]
    types = [pa.date32(), pa.date64(), pa.time32("s"), pa.time64("ns"), pa.timestamp("us", "UTC"), pa.duration("ms")]
    for of in [pa.bool_(), pa.uint64(), pa.decimal128(9, 2), pa.float16(), pa.list_(pa.int8()), *types]:
        values: list[Any] = [[1], [2]] if pa.types.is_list(of) else [True, False] if of == pa.bool_() else [1, 2]
        array = pa.array(np.array(values, np.float16), of) if of == pa.float16() else pa.array(values, of)
        assert len({*value_hashes(array, key).high.tolist()}) == 2, of


def test_persons_do_not_depend_on_blocks() -> None:
    table = pa.table({"who": [f"k{number % 97}" for number in range(1000)]})
    whole, *_ = unit_keys(ContributionBound("who"), frames.read(table), source(1))
    blocks = [frames.read(table.slice(at, 100)) for at in range(0, 1000, 100)]
    parts = [unit_keys(ContributionBound("who"), block, source(1)) for block in blocks]
    assert np.array_equal(whole, np.concatenate([keys for keys, *_ in parts]))


def test_bytes_of_another_encoding_pass_as_they_are() -> None:
    for content, is_refused in (
        ("Müller".encode("latin-1"), False),
        (b"plain", False),
        (b"", False),
        ("Müller".encode(), True),
        ("Müller".encode()[:2], False),  # a letter that is cut
        (("x" * 9 + "ü").encode() + b"\xff", False),
    ):
        for size in (1, 2, 3, 100):
            stream = OtherEncoding(io.BytesIO(content), "a.csv", "latin-1")

            def read(stream: OtherEncoding = stream, size: int = size) -> bytes:
                return b"".join(iter(lambda: stream.read(size), b""))

            if is_refused:
                with pytest.raises(InputError, match="it is in UTF-8"):
                    read()
            else:
                assert read() == content


def test_files_beside_another_output_are_not_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program writes the output's name while we write ours."""
    finish = FileSink._finish

    def meanwhile(sink: FileSink) -> None:
        assert sink.path is not None
        sink.path.write_text("theirs")
        finish(sink)

    monkeypatch.setattr(FileSink, "_finish", meanwhile)
    table = pd.DataFrame({"age": range(100)})
    with pytest.raises(StorageError):
        dipriv.privatize_file(table, tmp_path / "out.csv", 1.0)
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]
    assert (tmp_path / "out.csv").read_text() == "theirs"


def test_kept_views_of_pandas_end_no_release() -> None:
    cells = pd.Series(pd.arrays.ArrowExtensionArray(pa.array(["x", "y"] * 100, pa.string_view())))
    table = pd.DataFrame({"k": cells, "age": np.arange(200) % 70})
    found = dipriv.privatize(table, 1.0, keep=["k"], reference="holdout").data
    assert 0 < len(found) < 200
    assert {*found["k"]} == {"x", "y"}
