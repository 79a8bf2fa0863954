"""A messy table of a hospital, made up from a seed: no row is anybody's. It has the traps of people's own files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

ZIPS = ("01234", "02139", "10001", "60601", "73301", "94105", "99999")
SURNAMES = tuple(f"{start}{end}" for start in ("Al", "Ber", "Cor", "Dun", "Ev", "Fal") for end in ("den", "ton", "by"))
WORDS = (
    "seen",
    "again",
    "with",
    "cough",
    "fever",
    "and",
    "back",
    "pain",
    "after",
    "fall",
    "no",
    "change",
    "left",
    "arm",
)
ICD_CODES = 2000


def hospital(rows: int = 4000, seed: int = 0) -> pd.DataFrame:
    """The table with every cell as it is written in the file: text."""
    rng = np.random.default_rng(seed)
    age = np.clip(rng.normal(52, 22, rows), 0, 101).astype(int)
    year = 2025 - age
    birth = [
        f"{y:04}-{m:02}-{d:02}" if way else f"{d:02}/{m:02}/{y:04}"
        for y, m, d, way in zip(
            year, rng.integers(1, 13, rows), rng.integers(1, 29, rows), rng.random(rows) < 0.5, strict=True
        )
    ]
    minutes = rng.integers(0, 365 * 24 * 60, rows)
    admitted = pd.Timestamp("2025-01-01", tz="UTC") + pd.to_timedelta(minutes, unit="min")
    bill = np.round(rng.lognormal(8.6, 1.0, rows), 2)
    crp = np.round(rng.lognormal(1.5, 1.0, rows), 1)
    icd = rng.zipf(1.3, rows) % ICD_CODES
    columns: dict[str, Any] = {
        "patient_id": rng.permutation(rows) + 700_001,
        "name": rng.choice(SURNAMES, rows),
        "sex": _some(rng, rng.choice(["F", "M"], rows), [("F ", 0.02), ("f", 0.02)], only="F"),
        "age": age,
        "birth_date": birth,
        "zip": rng.choice(ZIPS, rows, p=(0.2, 0.2, 0.2, 0.2, 0.1, 0.05, 0.05)),
        "icd": [f"{chr(65 + code % 26)}{code // 26 % 100:02}.{code % 10}" for code in icd],
        "admitted": admitted.strftime("%Y-%m-%dT%H:%M:%S+00:00"),
        "visits": _some(rng, rng.poisson(2.0, rows).astype(str), [("", 0.05)]),
        "base_excess": np.round(rng.normal(0, 3, rows), 1),
        "weight_kg": np.round(rng.normal(74, 14, rows), 4),
        "lab_crp": _some(rng, crp.astype(str), [("-", 0.08), ("NA", 0.06), ("", 0.06)]),
        "bill": [f"${amount:,.2f}" for amount in bill],
        "occupancy": [f"{share}%" for share in rng.integers(40, 101, rows)],
        "steps": [f"{count:,}" for count in rng.integers(200, 15_000, rows)],
        "account": rng.integers(10**17, 10**18, rows),
        "ward": rng.choice([1, 2, 3, 24, 31], rows, p=(0.5, 0.2, 0.15, 0.1, 0.05)),
        "note": [" ".join(rng.choice(WORDS, 9)) for _ in range(rows)],
    }
    return pd.DataFrame({name: pd.Series(cells).astype(str) for name, cells in columns.items()})


def _some(rng: np.random.Generator, cells: Any, others: list[tuple[str, float]], only: str | None = None) -> Any:
    """Cells, some of which are something else; or some of those that are `only` this."""
    found = cells.astype(object)
    for text, share in others:
        picked = rng.random(len(found)) < share
        found[picked & (found == only if only is not None else np.ones(len(found), dtype=bool))] = text
    return found


Writer = Callable[[pd.DataFrame, Any], None]


def write_plain(table: pd.DataFrame, path: Any) -> None:
    """Commas and points, UTF-8."""
    table.to_csv(path, index=False)


def write_european(table: pd.DataFrame, path: Any) -> None:
    """Semicolons, decimal commas, thousands with points, Latin-1."""
    swapped = table.copy()
    for name in ("base_excess", "weight_kg", "lab_crp", "bill", "steps"):
        swapped[name] = [cell.translate(str.maketrans(",.", ".,")) for cell in table[name]]
    swapped["name"] = ["Müller" if cell == "Alden" else cell for cell in table["name"]]
    swapped.to_csv(path, index=False, sep=";", encoding="latin-1")


def write_excel(table: pd.DataFrame, path: Any) -> None:
    """Whole numbers as numbers, all else as text, as a person's workbook has them."""
    typed = table.copy()
    for name in ("patient_id", "age", "ward"):
        typed[name] = table[name].astype(int)
    for name in ("visits", "base_excess", "weight_kg"):
        typed[name] = pd.to_numeric(table[name])
    typed.to_excel(path, index=False)
