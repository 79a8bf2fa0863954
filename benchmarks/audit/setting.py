"""How a part is run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Setting:
    """As on record, or smaller for trials."""

    seeds: int = 3
    rows: int | None = None
