"""The same targets, guided by coverage: atheris keeps inputs that reach new lines of dipriv, and mutates those.

atheris is no dependency of dipriv (`pip install atheris`, which has wheels for Linux). Its bytes are the random numbers
that a case is made from, so that what it mutates is the structure of a case and not only its letters.
"""

from __future__ import annotations

import importlib
import importlib.util
import mmap
import os
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any

FIRST, FEWEST_BYTES, LONGEST = 100, 8, 512
"""How many random inputs there are to begin with, and how many bytes an input has."""
COUNTS = "counts"


class Told(Random):
    """Random numbers that are read from bytes as long as there are any, and then follow from them."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0
        super().__init__(data)

    def getrandbits(self, k: int, /) -> int:
        size = (k + 7) // 8
        if self._at + size > len(self._data):
            return super().getrandbits(k)
        piece = self._data[self._at : self._at + size]
        self._at += size
        return int.from_bytes(piece, "little") & ((1 << k) - 1)

    def random(self) -> float:
        return self.getrandbits(16) / (1 << 16) if self._at + 2 <= len(self._data) else super().random()


def guided(folder: Path, name: str, runs: int, seed: int) -> dict[str, Any]:
    """So many runs of one target in a process of its own."""
    if importlib.util.find_spec("atheris") is None:
        raise SystemExit("atheris is not installed: pip install atheris")
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=folder) as kept:
        command = [sys.executable, "-m", "fuzz.coverage", str(folder), name, kept]
        options = [f"-runs={runs}", f"-seed={seed + 1}", "-timeout=60", "-rss_limit_mb=4096", f"-max_len={LONGEST}"]
        plain = os.environ | {"NUMBA_DISABLE_JIT": "1"}  # loops are Python then: instrumented, and indices are checked
        rng = Random(seed)
        for number in range(FIRST):
            (Path(kept) / f"{number}").write_bytes(rng.randbytes(rng.randint(FEWEST_BYTES, LONGEST)))
        out = subprocess.run(
            [*command, *options, f"-artifact_prefix={kept}/"], capture_output=True, check=False, env=plain
        )
    counts = folder / COUNTS
    accepted, refused = struct.unpack("<qq", counts.read_bytes()) if counts.exists() else (0, 0)
    counts.unlink(missing_ok=True)
    said = (out.stdout + out.stderr).decode(errors="replace")
    features = [line for line in said.splitlines() if " cov: " in line]
    crashed = out.returncode != 0
    result = {
        "cases": accepted + refused + crashed,
        "accepted": accepted,
        "refused": refused,
        "uncaught": int(crashed),
        "crashes": 0,
        "seconds": round(time.perf_counter() - start, 1),
        "branches reached": int(features[-1].split(" cov: ")[1].split()[0]) if features else None,
        "told": [{"case": -1, "what": _without_chatter(said)}] if crashed else [],
    }
    print(f"{name}: " + ", ".join(f"{key} {value}" for key, value in result.items()), flush=True)
    return result


def _without_chatter(said: str) -> str:
    return "\n".join(line for line in said.splitlines() if not line.startswith(("INFO", "WARNING", "#")))[-3000:]


def main() -> None:
    """In the process of a target: instrument dipriv, then hand over to libFuzzer."""
    atheris = importlib.import_module("atheris")
    folder, name, kept, *options = sys.argv[1:]
    with atheris.instrument_imports(include=["dipriv"]):
        from dipriv.errors import DiprivError
        from fuzz import targets
    target = targets.make(name, Path(folder))
    (Path(folder) / COUNTS).write_bytes(bytes(16))
    with (Path(folder) / COUNTS).open("r+b") as file:
        counts = mmap.mmap(file.fileno(), 16)  # libFuzzer ends the process as it likes
    done = {True: 0, False: 0}

    def one(data: bytes) -> None:
        if len(data) < FEWEST_BYTES:
            return
        try:
            target.run(target.case(Told(data)))
            done[True] += 1
        except DiprivError:
            done[False] += 1
        counts[:] = struct.pack("<qq", done[True], done[False])

    atheris.Setup([sys.argv[0], *options, kept], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
