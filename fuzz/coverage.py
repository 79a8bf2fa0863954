"""The same targets, guided by coverage: atheris keeps inputs that reach new lines of dipriv, and mutates those.

atheris is no dependency of dipriv (`pip install atheris`, which has wheels for Linux). Hypothesis reads its bytes as
the random numbers that a case is made from, so that the structure of a case is mutated and not only its letters.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any

FIRST, LONGEST = 100, 4096
"""How many random inputs there are to begin with, and how many bytes an input has at most."""
COUNTS = "counts"


def guided(folder: Path, name: str, runs: int, seed: int) -> dict[str, Any]:
    """So many runs of one target in a process of its own."""
    if importlib.util.find_spec("atheris") is None:
        raise SystemExit("atheris is not installed: pip install atheris")
    start, rng = time.perf_counter(), Random(seed)
    with tempfile.TemporaryDirectory(dir=folder) as kept:
        for number in range(FIRST):
            (Path(kept) / f"{number}").write_bytes(rng.randbytes(rng.randint(8, LONGEST)))
        command = [sys.executable, "-m", "fuzz.coverage", str(folder), name, kept]
        options = [f"-runs={runs}", f"-seed={seed + 1}", "-timeout=60", "-rss_limit_mb=4096", f"-max_len={LONGEST}"]
        plain = os.environ | {"NUMBA_DISABLE_JIT": "1"}  # loops are Python then: instrumented, and indices are checked
        out = subprocess.run(
            [*command, *options, f"-artifact_prefix={kept}/"], capture_output=True, check=False, env=plain
        )
    said = (out.stdout + out.stderr).decode(errors="replace").splitlines()
    reached = [line.split(" cov: ")[1].split()[0] for line in said if " cov: " in line]
    crashed = out.returncode != 0
    accepted, refused = struct.unpack("<qq", (folder / COUNTS).read_bytes())
    told = "\n".join(line for line in said if not line.startswith(("INFO", "WARNING", "#")))[-3000:]
    return {
        "cases": accepted + refused + crashed,
        "accepted": accepted,
        "refused": refused,
        "uncaught": int(crashed),
        "crashes": 0,
        "seconds": round(time.perf_counter() - start, 1),
        "branches reached": int(reached[-1]) if reached else None,
        "told": [{"case": -1, "what": told}] if crashed else [],
    }


def main() -> None:
    """In the process of a target: instrument dipriv, then hand over to libFuzzer."""
    from hypothesis import HealthCheck, given, settings
    from hypothesis import strategies as st

    atheris = importlib.import_module("atheris")
    folder, name, kept, *options = sys.argv[1:]
    with atheris.instrument_imports(include=["dipriv"]):
        from dipriv.errors import DiprivError
        from fuzz import targets
    target, done = targets.make(name, Path(folder)), [0, 0]
    counts = os.open(Path(folder) / COUNTS, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    os.pwrite(counts, bytes(16), 0)

    @settings(database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.randoms(use_true_random=False))
    def one(rng: Random) -> None:
        try:
            target.run(target.case(rng))
            done[0] += 1
        except DiprivError:
            done[1] += 1
        os.pwrite(counts, struct.pack("<qq", *done), 0)  # libFuzzer ends the process as it likes

    def run(data: bytes) -> None:
        one.hypothesis.fuzz_one_input(data)  # type: ignore[attr-defined]

    atheris.Setup([sys.argv[0], *options, kept], run)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
