"""Cells that a spreadsheet would run as formulas: counted, reported, escaped on request."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from dipriv._sinks import FileSink
from dipriv._sinks.csv_injection import formulas_in
from dipriv.cli import app
from dipriv.errors import InputError
from dipriv.guarantee.sidecar import SIDECAR_SUFFIX
from dipriv.sources.files import File

CELLS = [
    "=1+1",
    "+SUM(A1)",
    "-2+3",
    "@cmd",
    "\tx",
    "\rx",
    "\nx",
    "\uff1dx",
    "a=1",
    "-5",
    "+3.5e-2",
    "-",
    "=",
    "",
    None,
    "é",
]
RUN = CELLS[:8]


def write_csv(path: Path, table: pa.Table, *, escape: bool) -> FileSink:
    with FileSink.at(path, force=True, escape_formulas=escape) as sink:
        for batch in table.to_batches(max_chunksize=5):
            sink.write(batch)
        sink.commit()
    return sink


@pytest.mark.parametrize("ending", ["csv", "tsv"])
@pytest.mark.parametrize(
    "of", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
)
def test_formulas_are_counted_and_escaped_if_asked_for(ending: str, of: pa.DataType, tmp_path: Path) -> None:
    texts = pa.array(CELLS).dictionary_encode().cast(of) if pa.types.is_dictionary(of) else pa.array(CELLS, of)
    table = pa.table({"=x": texts, "n": pa.array([-1.5] * len(CELLS))})
    path = tmp_path / f"t.{ending}"
    plain = write_csv(path, table, escape=False)
    assert dict(plain.formulas) == {"=x": len(RUN) + 1}  # and its name
    found = File.at(path).read()
    assert found["=x"].to_pylist() == [cell or None for cell in CELLS]  # the data is the same
    write_csv(path, table, escape=True)
    found = File.at(path).read()
    assert found.column_names == ["'=x", "n"]
    assert found["'=x"].to_pylist() == [f"'{cell}" if cell in RUN else cell or None for cell in CELLS]
    assert found["n"].to_pylist() == [-1.5] * len(CELLS)
    assert formulas_in(pa.array(found["'=x"].to_pylist(), pa.large_string())) is None


def test_other_formats_are_left_alone(tmp_path: Path) -> None:
    sink = write_csv(tmp_path / "t.parquet", pa.table({"=x": ["=1+1"]}), escape=False)
    assert pq.read_table(tmp_path / "t.parquet").to_pydict() == {"=x": ["=1+1"]}
    assert not sink.formulas
    with pytest.raises(InputError, match="escape_formulas has no meaning"):
        FileSink.at(tmp_path / "other.parquet", escape_formulas=True)


def test_the_command_warns_of_formulas_and_escapes_them(tmp_path: Path) -> None:
    table = tmp_path / "in.csv"
    table.write_text("age,said\n" + "1,=1+1\n2,yes\n" * 200, encoding="utf-8")
    told = ["privatize", str(table), "--epsilon", "1", "--no-ledger", "--seed", "1", "--labels", "public"]
    told += ["--force", "-o"]
    done = CliRunner().invoke(app, [*told, str(tmp_path / "out.csv")])
    assert done.exit_code == 0
    assert "Column 'said'" in done.stderr
    assert "--escape-formulas" in done.stderr
    note = json.loads((tmp_path / f"out.csv{SIDECAR_SUFFIX}").read_text(encoding="utf-8"))
    assert note["formulas"]["escaped"] is False
    labels = set(File.at(tmp_path / "out.csv").read()["said"].to_pylist())
    assert labels == {"=1+1", "yes"}
    done = CliRunner().invoke(app, [*told, str(tmp_path / "out.csv"), "--escape-formulas"])
    assert "Column 'said'" not in done.stderr
    assert set(File.at(tmp_path / "out.csv").read()["said"].to_pylist()) == {"'=1+1", "yes"}
    done = CliRunner().invoke(app, [*told, str(tmp_path / "out.parquet"), "--escape-formulas"])
    assert done.exit_code == 1
    assert not (tmp_path / "out.parquet").exists()
