"""Without compiled loops, or without the processor's AES instructions, the release is slower and the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SCRIPT = """
import numpy as np, pyarrow as pa, dipriv
rng = np.random.default_rng(0)
n = 600
table = pa.table({
    "real": rng.normal(size=n), "count": rng.poisson(3, n), "label": rng.choice(["a", "b"], n),
    "null": pa.array(rng.normal(size=n).astype("f4"), mask=rng.random(n) < 0.2), "who": np.arange(n) // 6,
})
columns = [["real"], ["count"], ["label"], ["null"], ["real", "count", "label", "null"]]
parts = [dipriv.privatize(table.select(c), 1.0, reference="holdout", seed=1).data for c in columns]
grouped = dipriv.references.Grouped(by="who", first=3)
parts.append(dipriv.privatize(table.select(["who", "real"]), 1.0, reference=grouped, seed=1).data)
for part in parts:
    for column in part.columns:
        print(column.to_pylist())
"""


def released(**environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=os.environ | environment, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.parametrize(
    "without",
    [{"NUMBA_DISABLE_JIT": "1"}, {"OPENSSL_ia32cap": "~0x200000200000000:~0x60000000000"}, {"DIPRIV_THREADS": "3"}],
    ids=["no compiler", "no AES instructions", "other threads"],
)
def test_the_release_is_the_same_without(without: dict[str, str]) -> None:
    expected = released()
    assert len(expected) > 10_000
    assert released(**without) == expected


def test_compilation_is_announced_once_and_only_when_it_happens(tmp_path: Path) -> None:
    script = """
import logging, numpy as np, dipriv
logging.basicConfig(level=logging.INFO, format="%(message)s")
for _ in range(2):
    dipriv.privatize(np.arange(200.0).reshape(-1, 1), 1.0, reference="holdout", seed=1)
"""
    said = []
    for _ in range(2):
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
        )
        said.append(done.stderr.count("compiles its inner loops"))
    assert said == [1, 0]
