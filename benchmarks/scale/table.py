"""Rows x 4 columns like those of a register: age, income, region, day; and a number that tells rows apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FILE_ROWS = 2_500_000
COLUMNS = ("age", "income", "region", "day")


def write(folder: Path, rows: int, group: int = 1 << 18) -> None:
    """Parquet files of some million rows each, in groups that Spark can read in tasks of their own."""
    rng = np.random.default_rng(4)
    regions = pa.array([f"region {number:02}" for number in range(20)])
    folder.mkdir()
    for number, start in enumerate(range(0, rows, FILE_ROWS)):
        count = min(FILE_ROWS, rows - start)
        age = rng.integers(0, 100, count)
        part = pa.table(
            {
                "number": np.arange(start, start + count),
                "age": age,
                "income": (rng.lognormal(10, 1, count) * (1 + age / 100)).round(2),
                "region": regions.take(pa.array(rng.integers(0, len(regions), count))),
                "day": pa.array(rng.integers(10_000, 20_000, count).astype(np.int32), pa.date32()),
            }
        )
        pq.write_table(part, folder / f"part-{number:05}.parquet", row_group_size=group)
