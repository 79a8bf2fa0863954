"""How a part is run, and how it says what it does; imports nothing that a judge's environment may lack."""

from __future__ import annotations

import sys
from dataclasses import dataclass


@dataclass(frozen=True)
class Setting:
    """As on record, or smaller for trials."""

    seeds: int = 3
    rows: int | None = None


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
