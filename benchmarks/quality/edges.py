"""Generated tables at the edges: heavy tails, one value, no value, extreme scales, dates, many labels, many columns."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from benchmarks.measure import say
from benchmarks.quality.contest import Setting, ours
from benchmarks.quality.measures import ks, label_variation
from dipriv._base.arrays import FloatArray

N, LABELS_N, LABELS, WIDE_N, WIDE, SMALL_N = 100_000, 200_000, 10_000, 10_000, 100, 500
WIDENED = 4.0
PUBLIC = f"{LABELS:,} labels, which are public"
OPTIONS: dict[str, Any] = {PUBLIC: {"labels": "public"}}
OTHER = "(other)"
"""The label of all labels that were too rare to be found privately."""


def tables() -> dict[str, pa.Table]:
    """Each by its name, from one fixed seed."""
    rng = np.random.default_rng(20231)
    days = rng.integers(0, 20_000, N)
    factor = rng.normal(size=(WIDE_N, 5)) @ rng.normal(size=(5, WIDE)) + rng.normal(size=(WIDE_N, WIDE))
    age = rng.integers(18, 90, SMALL_N)
    labels = np.char.add("label ", (LABELS * rng.random(LABELS_N) ** 2).astype(np.int64).astype(str))
    return {
        "lognormal, sigma 3": pa.table({"x": rng.lognormal(0, 3, N)}),
        "Cauchy": pa.table({"x": rng.standard_cauchy(N)}),
        "constant": pa.table({"x": np.full(N, 7.25)}),
        "99% one value": pa.table({"x": np.where(rng.random(N) < 0.99, 3.0, rng.normal(size=N))}),
        "two values": pa.table({"x": rng.integers(0, 2, N).astype(np.float64)}),
        "all null": pa.table({"x": pa.nulls(N, pa.float64())}),
        "scale 1e300": pa.table({"x": 1e300 * rng.normal(size=N)}),
        "scale 1e-300": pa.table({"x": 1e-300 * rng.normal(size=N)}),
        "timestamps, microseconds": pa.table(
            {"x": pa.array(days * 86_400_000_000 + rng.integers(0, 86_400_000_000, N), pa.timestamp("us"))}
        ),
        "dates": pa.table({"x": pa.array(days.astype(np.int32), pa.date32())}),
        f"{LABELS:,} labels": pa.table({"x": labels.tolist()}),
        PUBLIC: pa.table({"x": labels.tolist()}),
        f"{WIDE} columns": pa.table({f"c{number}": column for number, column in enumerate(factor.T)}),
        f"{SMALL_N} rows": pa.table(
            {"age": age, "pay": rng.lognormal(10, 1, SMALL_N) * age / 50, "smoker": rng.random(SMALL_N) < 0.25}
        ),
    }


def run(setting: Setting) -> dict[str, Any]:
    """What comes out of each, or the error's name."""
    found = {}
    for name, table in tables().items():
        start = time.perf_counter()
        try:
            released = ours(table, **OPTIONS.get(name, {}))(0)
        except Exception as error:
            say(f"edges: {name}: {error!r}")
            found[name] = {"rows": table.num_rows, "columns": table.num_columns, "failed": type(error).__name__}
            continue
        seconds = time.perf_counter() - start
        found[name] = {
            "rows": released.num_rows,
            "columns": table.num_columns,
            "seconds": seconds,
            **judge(table, released),
        }
        say(f"edges: {name}: {found[name]}")
    return {"tables": found}


def judge(table: pa.Table, released: pa.Table) -> dict[str, Any]:
    """Finite; the share outside the widened range (or of new labels); the mean distance of the columns."""
    finite, outside, apart = True, [], []
    for name in table.column_names:
        x, y = table[name], released[name]
        if pa.types.is_string(x.type) or pa.types.is_large_string(x.type) or x.null_count == len(x):
            old, new = (pd.Series(column.to_pandas(), dtype=object) for column in (x, y))
            outside.append(float((~new.isin([*old.unique(), OTHER])).mean()))
            apart.append(label_variation(old, new))
            continue
        a, b = _numbers(x), _numbers(y)
        finite &= bool(np.isfinite(b).all())
        middle, half = a.max() / 2 + a.min() / 2, a.max() / 2 - a.min() / 2
        outside.append(float((np.abs(b - middle) > WIDENED * half).mean()))
        apart.append(ks(a, b))
    return {"finite": finite, "outside": float(np.mean(outside)), "distance": float(np.mean(apart))}


def _numbers(column: pa.ChunkedArray) -> FloatArray:
    whole = {64: pa.int64(), 32: pa.int32()}
    if pa.types.is_temporal(column.type):
        column = column.cast(whole[column.type.bit_width])
    return np.asarray(column.to_numpy(), dtype=np.float64)
