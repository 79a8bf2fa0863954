"""Finding 17: passes over a file were tied together by inode, size and time alone; now by the content of each block."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import dipriv
from dipriv.errors import SourceChangedError
from dipriv.ledger import Ledger

N = 500
WRITERS: dict[str, Callable[[pa.Table, Path], Any]] = {
    "people.csv": pacsv.write_csv,
    "people.parquet": lambda table, path: pq.write_table(table, path, compression="none", use_dictionary=False),
}


def table(last: int) -> pa.Table:
    """Rows that differ in the last one alone, of the same length in a file."""
    pay = np.arange(N) % 90 + 10
    pay[-1] = last
    return pa.table({"pay": pay, "city": ["Bonn", "Ulm", "Kiel", "Jena"] * (N // 4)})


def rewrite(path: Path, rows: pa.Table, write: Callable[[pa.Table, Path], Any]) -> None:
    """In place, with the size and the times that the file had: what the file system shows is the same."""
    before = path.stat()
    other = path.with_name("other")
    write(rows, other)
    content = other.read_bytes()
    other.unlink()
    with path.open("r+b") as file:
        file.write(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_ino, after.st_size, after.st_mtime_ns) == (before.st_ino, before.st_size, before.st_mtime_ns)


@pytest.mark.usefixtures("no_room_for_rows")
@pytest.mark.parametrize("when", ["learning", "releasing"])
@pytest.mark.parametrize("name", WRITERS)
def test_a_file_that_is_rewritten_between_passes_is_refused(name: str, when: str, tmp_path: Path) -> None:
    path, out = tmp_path / name, tmp_path / "out.csv"
    WRITERS[name](table(11), path)
    ledger = Ledger.create(tmp_path / "ledger.db")
    done: list[str] = []

    def changes(what: str, rows: float, total: float | None) -> None:
        if what == when and not done:
            done.append(what)
            rewrite(path, table(98), WRITERS[name])

    with pytest.raises(SourceChangedError, match="not those of the first reading") as caught:
        _release(path, out, ledger, changes, when)
    assert done
    assert "are spent in the ledger" in caught.value.__notes__[0]
    assert ledger.dataset("people").spent == 1.0
    assert [record.state for record in ledger.records("people")] == ["failed"]
    assert sorted(found.name for found in tmp_path.iterdir()) == sorted([name, "ledger.db"])


def _release(path: Path, out: Path, ledger: Ledger, changes: Any, when: str) -> None:
    if when == "learning":
        dipriv.privatize_file(path, out, 1.0, ledger=ledger, dataset="people", progress=changes)
        return
    release = dipriv.privatize(path, 1.0, ledger=ledger, dataset="people")
    changes(when, 0, None)
    release.write(out)


def test_an_unchanged_file_is_released(tmp_path: Path) -> None:
    """Control: the same rows, written again, are the same file."""
    path = tmp_path / "people.csv"
    pacsv.write_csv(table(11), path)
    release = dipriv.privatize(path, 1.0)
    rewrite(path, table(11), pacsv.write_csv)
    release.write(tmp_path / "out.csv")
    assert len(pd.read_csv(tmp_path / "out.csv")) == N
