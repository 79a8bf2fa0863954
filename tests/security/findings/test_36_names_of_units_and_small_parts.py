"""Which column persons are in, parts of large tables, spellings of encodings, ends of files, and files whose folder
cannot be flushed: findings of a reading of the mends in `test_35_who_is_held_out`.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dipriv
from dipriv import Dialect
from dipriv._tables import frames
from dipriv.errors import BudgetError, DisclosureError, InputError
from dipriv.ledger import Ledger
from dipriv.sources._blocks import block_digest
from dipriv.sources._errors import BLOCK_BYTES
from dipriv.sources.holdout import Split
from tests.security.findings.test_35_who_is_held_out import people, released

RNG = np.random.default_rng(36)


@pytest.fixture
def ledger(tmp_path: Path) -> Any:
    with Ledger.create(tmp_path / "ledger.db") as made:
        yield made


@pytest.mark.parametrize("reference", ["private", "holdout"])
def test_two_columns_that_change_their_names_are_other_persons(ledger: Ledger, reference: str) -> None:
    """Both are numbered from 0, so that many values of one are values of the other."""
    person = np.repeat(np.arange(1000), 3)
    pay = RNG.integers(1000, 9000, len(person))
    table = pd.DataFrame({"household": person // 3, "person": person, "pay": pay})

    def release(named: str, other: str) -> None:
        renamed = table.rename(columns={named: "id"})
        asked: dict[str, Any] = {"unit": "id", "rows_per_unit": 9, "reference": reference, "drop": [other]}
        dipriv.privatize(renamed, 0.25, ledger=ledger, dataset="people", **asked)

    release("household", "person")
    with pytest.raises(BudgetError, match="took the unit from a column that has another name"):
        release("person", "household")
    release("household", "person")
    assert ledger.dataset("people").spent == 0.5


@pytest.mark.slow
def test_a_few_persons_of_a_large_table_are_known(ledger: Ledger) -> None:
    """Fewer than ten of their keys are in the range of the large table's sample, so nothing is said of them."""
    table = people(10**9 + np.arange(300_000) * 7)
    asked: dict[str, Any] = {"rows_per_unit": 1, "dataset": "people"}
    first = released(table, ledger, **asked)
    is_held_out = ~table["row"].isin(list(first)).to_numpy()
    for count in (20, 50, 100, 400, 30_000):  # a quarter of them held out, so that there is a reference
        sides = [
            RNG.choice(np.flatnonzero(side), size, replace=False)
            for side, size in ((is_held_out, count // 4), (~is_held_out, count - count // 4))
        ]
        part = table.iloc[RNG.permutation(np.concatenate(sides))]
        assert released(part, ledger, **asked) <= first
    others = table.assign(who=table["who"] + 3)
    with pytest.raises(DisclosureError, match="few keys of persons"):  # control
        released(others.iloc[:30_000], ledger, **asked)


@pytest.mark.parametrize("name", ["UTF-8", "utf8", "utf_8", "U8", "cp65001"])
def test_utf8_has_many_names(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("city\n" + "Köln\nBonn\n" * 100, encoding="utf-8")
    found = dipriv.privatize_file(path, tmp_path / "out.csv", 8.0, dialect=Dialect(encoding=name))
    assert found.n_rows == 200
    assert "Köln" in (tmp_path / "out.csv").read_text(encoding="utf-8")


@pytest.mark.parametrize("beyond", [1, 11])
@pytest.mark.parametrize("end", ["\r", "\r\n", "\n"])
def test_a_file_whose_last_line_is_cut_by_a_block_is_read(end: str, beyond: int, tmp_path: Path) -> None:
    names, row = f"a,b{end}".encode(), f"{'1' * 18},2{end}".encode()
    rows = (BLOCK_BYTES - len(names)) // len(row) - 1
    before = names + row * rows
    last = b"3" * (BLOCK_BYTES - len(before) + beyond - 2 - len(end)) + f",4{end}".encode()
    (tmp_path / "in.csv").write_bytes(before + last)
    assert len(before + last) == BLOCK_BYTES + beyond
    assert dipriv.privatize_file(tmp_path / "in.csv", tmp_path / "out.csv", 1.0).n_rows == rows + 1


def test_a_folder_that_cannot_be_flushed_keeps_an_output_with_what_is_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flush = os.fsync

    def flush_files(file: int) -> None:
        if stat.S_ISDIR(os.fstat(file).st_mode) and (tmp_path / "out.csv").exists():
            raise OSError(errno.EINVAL, "no such thing")
        flush(file)

    monkeypatch.setattr(os, "fsync", flush_files)
    with pytest.raises(Exception, match=r"out\.csv") as caught:
        dipriv.privatize_file(pd.DataFrame({"age": range(100)}), tmp_path / "out.csv", 1.0)
    assert "is written" in " ".join(caught.value.__notes__)
    assert {path.name for path in tmp_path.iterdir()} >= {"out.csv", "out.csv.dipriv.json"}


@pytest.mark.parametrize("of", [pa.string(), pa.large_string(), pa.string_view()])
def test_keys_that_are_no_text_have_a_side(of: pa.DataType) -> None:
    """Arrow does not check tables in memory."""
    types = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}
    keys = pa.array([b"\xff%d" % number for number in range(100)], types[of]).view(of)
    held = Split.new(0.5, by="who").held_out(frames.read(pa.table({"who": keys})))
    assert 10 < held.sum() < 90


def test_blocks_with_dictionaries_of_views_have_digests() -> None:
    labels = pa.array(["a", "b"], pa.string_view())
    tables = [pa.table({"k": pa.DictionaryArray.from_arrays([0, number], labels)}) for number in (0, 1)]
    digests = {block_digest(frames.read(table), ["k"], b"\0" * 32) for table in tables}
    assert len(digests) == 2


def test_the_encoding_of_another_file_is_still_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("city\n" + "Köln\n" * 100, encoding="utf-8")
    with pytest.raises(InputError, match="it is in UTF-8, not in latin-1"):
        dipriv.privatize_file(tmp_path / "a.csv", tmp_path / "out.csv", 1.0, dialect=Dialect(encoding="latin-1"))
