"""Arrow without pandas, in processes of their own: here, pandas is imported already."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

LEFT_OUT = """
import sys
import pyarrow as pa
from dipriv._tables.without_pandas import leave_pandas_out

leave_pandas_out()
pa.array([1, 2])
assert "pandas" not in sys.modules
assert pa.table({"a": [1, 2]}).to_pandas()["a"].tolist() == [1, 2]  # who asks for pandas gets it
import pandas as pd
assert pa.array(pd.Series(["x", None], dtype=object)).to_pylist() == ["x", None]
leave_pandas_out()
assert sys.modules["pandas"] is pd
"""
IMPORTED = """
import sys
import pyarrow as pa

pa.array([1, 2])
assert "pandas" in sys.modules
"""
PRIVATIZE = """
import sys
from dipriv.cli import app

sys.argv = ["dipriv", "privatize", *sys.argv[1:], "--epsilon", "1", "--no-ledger", "--quiet"]
app(standalone_mode=False)
assert "pandas" not in sys.modules
"""


def run(program: str, *arguments: str) -> None:
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("program", [LEFT_OUT, IMPORTED])  # the second is the control
def test_arrow_finds_no_pandas_before_somebody_asks_for_it(program: str) -> None:
    run(program)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_command_line_does_not_import_pandas(ending: str, tmp_path: Path) -> None:
    table = tmp_path / "in.csv"
    table.write_text("age,city\n" + "".join(f"{20 + number % 50},{'AB'[number % 2]}\n" for number in range(500)))
    run(PRIVATIZE, str(table), "-o", str(tmp_path / f"out.{ending}"))
