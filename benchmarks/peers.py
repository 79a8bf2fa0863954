"""Programs that make synthetic tables, on the same table of codes: seconds of the processor and of the clock.

Each runs in an environment of its own, which `make bench` tries to install, and within a limit. Only OpenDP and
SmartNoise promise differential privacy; SDV's Gaussian copula shows what no promise costs.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.measure import Sizes

ROWS, COLUMNS, LEVELS = 100_000, 10, 8
LIMIT = 240
"""Seconds of the processor that one may take."""
EPSILON, DELTA = 1.0, 1e-9


def run(sizes: Sizes) -> dict[str, Any]:
    """What each took, or why it is left out."""
    rows = sizes.of(ROWS)
    found = {name: _in_process(name, rows) for name in PEERS}
    ours = found["dipriv"]["seconds"]
    times = {name: took["seconds"] / ours for name, took in found.items() if "seconds" in took}
    return {"rows": rows, "columns": COLUMNS, "levels": LEVELS, "took": found, "times ours": times}


def table(rows: int) -> pd.DataFrame:
    """Codes 0 to 7, each column like the one before in half of the rows."""
    rng = np.random.default_rng(0)
    columns = [rng.binomial(LEVELS - 1, 0.4, rows)]
    for _ in range(COLUMNS - 1):
        columns.append(np.where(rng.random(rows) < 0.5, columns[-1], rng.binomial(LEVELS - 1, 0.4, rows)))
    return pd.DataFrame({f"c{number}": column for number, column in enumerate(columns)})


def _dipriv(frame: pd.DataFrame) -> int:
    import dipriv

    return len(dipriv.privatize(frame, EPSILON).data)


def _opendp(frame: pd.DataFrame) -> int:
    from benchmarks.quality.bins import codebook
    from benchmarks.quality.peers import LOSSES, synthesize

    return len(synthesize(frame, codebook(frame, {}), "MST", LOSSES["delta"], 0))


def _smartnoise(frame: pd.DataFrame) -> int:
    from snsynth import Synthesizer

    made = Synthesizer.create("mwem", epsilon=EPSILON, split_factor=2)  # its MST needs a package that is on no index
    made.fit(frame, preprocessor_eps=0.0, categorical_columns=list(frame.columns))
    return len(made.sample(len(frame)))


def _sdv(frame: pd.DataFrame) -> int:
    from sdv.metadata import Metadata
    from sdv.single_table import GaussianCopulaSynthesizer

    tables = {"codes": frame}
    made = GaussianCopulaSynthesizer(Metadata.detect_from_dataframes(tables))
    made.fit(tables)
    return len(made.sample(len(frame))["codes"])


PEERS: dict[str, tuple[Callable[[pd.DataFrame], int], str | None]] = {
    "dipriv": (_dipriv, None),
    "OpenDP MST": (_opendp, ".venv/peers"),
    "SmartNoise MWEM": (_smartnoise, ".venv/smartnoise"),
    "SDV Gaussian copula": (_sdv, ".venv/sdv"),
}
"""What makes rows, and the environment that it is installed in; None for that of development."""


def _in_process(name: str, rows: int) -> dict[str, Any]:
    environment = PEERS[name][1]
    python = sys.executable if environment is None else f"{environment}/bin/python"
    if environment is not None and not Path(environment, ".installed").exists():
        return {"left out": "it could not be installed"}
    ended = subprocess.run(
        [python, "-W", "ignore", "-m", "benchmarks.peers", name, str(rows)],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path.cwd()), os.environ.get("PYTHONPATH", "")])},
    )
    if ended.returncode < 0:
        return {"left out": f"it was not done after {LIMIT} seconds of the processor"}
    if ended.returncode:
        said = (ended.stderr.strip() or "no reason").splitlines()[-1]
        return {"left out": f"it failed: {said[:200]}"}
    told: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return told


def measure(name: str, rows: int) -> dict[str, float]:
    """One of them, in this process, after a small table that loads and compiles what it needs."""
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT + 10))
    make, frame = PEERS[name][0], table(rows)
    make(frame[: min(rows, 2000)])
    start, used = time.perf_counter(), time.process_time()
    made = make(frame)
    took = {"seconds": time.perf_counter() - start, "processor seconds": time.process_time() - used}
    return {**took, "rows made": made, "peak memory in MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
