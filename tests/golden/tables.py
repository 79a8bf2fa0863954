"""Synthetic tables with columns of all kinds, the same each time: drawn from fixed seeds, with some cells by hand."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

CITIES = ("Bonn", "Köln", "São Paulo", "東京", "")
GRADES = ("low", "mid", "high", "never", "once")


def people(rows: int = 1200, seed: int = 1) -> pd.DataFrame:
    """Columns of all kinds that depend on each other, with nulls, a constant, a skewed one and near-empty levels."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, rows)
    pay = np.where(rng.random(rows) < 0.3, 0.0, (rng.lognormal(7, 1, rows) * (1 + age / 50)).round(2))
    grade = rng.choice(3, rows, p=[0.5, 0.3, 0.2])
    grade[7] = 4
    return pd.DataFrame(
        {
            "key": np.arange(rows) + 70_000,
            "age": age,
            "visits": rng.poisson(2, rows).astype(np.int16),
            "pay": pay,
            "price": rng.integers(1, 400, rows) * 0.25,
            "score": np.where(rng.random(rows) < 0.1, np.nan, rng.normal(50, 12, rows) + age / 4),
            "short": rng.normal(size=rows).astype(np.float32),
            "smokes": rng.random(rows) < 0.2 + age / 400,
            "city": _city(rng, rows),
            "grade": pd.Categorical.from_codes(grade, categories=pd.Index(GRADES), ordered=True),
            "born": pd.Timestamp("2026-01-01").as_unit("us") - pd.to_timedelta(age * 365, unit="D").as_unit("us"),
            "seen": pd.to_datetime(1_700_000_000_000 + rng.integers(0, 10**9, rows), unit="ms", utc=True).as_unit("ms"),
            "children": pd.Series(rng.poisson(1, rows)).astype("Int64").mask(rng.random(rows) < 0.15).array,
            "same": np.full(rows, 3.5),
        },
        index=pd.Index(np.arange(rows) * 2 + 1, name="row"),
    )


def arrow_people(rows: int = 1000, seed: int = 2) -> pa.Table:
    """Types that Arrow has: decimals, dates, times of day, durations, dictionaries; nulls and NaN kept apart."""
    rng = np.random.default_rng(seed)
    real = np.where(rng.random(rows) < 0.05, np.nan, rng.gamma(2, 3, rows))
    cents = rng.lognormal(8, 1, rows).astype(np.int64)
    return pa.table(
        {
            "key": pa.array(np.arange(rows)),
            "count": _some_null(rng, rng.poisson(5, rows), pa.int32()),
            "byte": pa.array(rng.integers(0, 200, rows), pa.uint8()),
            "real": _some_null(rng, real, pa.float64()),
            "money": _some_null(rng, [Decimal(int(x)) / 100 for x in cents], pa.decimal128(12, 2)),
            "day": _some_null(rng, rng.integers(0, 20_000, rows).astype(np.int32), pa.date32()),
            "at": _some_null(rng, rng.integers(0, 10**9, rows) * 10**6, pa.timestamp("us", "UTC")),
            "clock": pa.array(rng.integers(0, 1440, rows).astype(np.int32) * 60, pa.time32("s")),
            "lasted": pa.array(rng.exponential(9000, rows).astype(np.int64) * 1000, pa.duration("ms")),
            "flag": _some_null(rng, rng.random(rows) < 0.3, pa.bool_()),
            "label": _some_null(rng, rng.choice(["x", "y.z", "ü"], rows), pa.string()),
            "group": pa.array(rng.choice(["a", "b"], rows)).dictionary_encode(),
        }
    )


def polars_people(rows: int = 900, seed: int = 3) -> pl.DataFrame:
    """The types of polars."""
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "age": rng.integers(18, 90, rows),
            "rate": pl.Series(np.where(rng.random(rows) < 0.05, np.nan, rng.normal(size=rows)).tolist()),
            "amount": pl.Series([Decimal(int(x)) / 10 for x in rng.integers(1, 900, rows)], dtype=pl.Decimal(10, 1)),
            "label": pl.Series(_texts(rng, ["no", "yes", "maybe"], rows)),
            "level": pl.Series(rng.choice(["s", "m", "l"], rows).tolist(), dtype=pl.Enum(["s", "m", "l", "xl"])),
            "kind": pl.Series(rng.choice(["p", "q"], rows).tolist(), dtype=pl.Categorical),
            "day": pl.Series([dt.date(2020, 1, 1) + dt.timedelta(int(x)) for x in rng.integers(0, 900, rows)]),
            "ok": rng.random(rows) < 0.5,
        }
    )


def extremes(rows: int = 400) -> pa.Table:
    """Infinite, huge, tiny, signed zero, NaN and null, among ordinary numbers."""
    rng = np.random.default_rng(4)
    wild = rng.standard_cauchy(rows)
    wild[:9] = [np.inf, -np.inf, 1e300, -1e300, 5e-324, -0.0, 0.0, np.nan, 1.7976931348623157e308]
    whole = rng.integers(-50, 50, rows)
    whole[:3] = [2**62, -(2**62), 0]
    return pa.table({"wild": pa.array(wild, mask=np.arange(rows) % 50 == 20), "whole": whole, "tame": rng.random(rows)})


def levels(rows: int = 600) -> pa.Table:
    """Labels of which nearly none are met, few levels, and one value only."""
    rng = np.random.default_rng(5)
    rare = ["common"] * rows
    rare[3], rare[4], rare[5] = "twice", "twice", "once"
    return pa.table({"rare": rare, "five": rng.choice([1, 2, 3, 5, 8], rows), "one": np.full(rows, 7)})


def skewed(rows: int = 1500) -> pd.DataFrame:
    """Zeros, a top code, and a long tail."""
    rng = np.random.default_rng(6)
    spent = np.where(rng.random(rows) < 0.4, 0.0, rng.lognormal(3, 2, rows))
    return pd.DataFrame({"spent": np.where(rng.random(rows) < 0.1, 999.0, spent)})


def measurements(people: int = 60, each: int = 12) -> pd.DataFrame:
    """Repeated measurements of people."""
    rng = np.random.default_rng(7)
    person = np.repeat(np.arange(people), each)
    rng.shuffle(person)
    pressure = rng.normal(120, 15, people * each) + person % 7
    return pd.DataFrame({"person": person, "pressure": pressure, "pulse": rng.poisson(70, people * each)})


def numbers(rows: int = 800) -> NDArray[np.float64]:
    """Dependent real numbers."""
    rng = np.random.default_rng(8)
    x = rng.normal(size=(rows, 3))
    return np.column_stack([x[:, 0], x[:, 0] + x[:, 1], np.exp(x[:, 2])])


def plain(rows: int = 1000, seed: int = 9) -> pa.Table:
    """What a CSV file holds: whole numbers, cents, real numbers, dates, texts, several rows a person."""
    rng = np.random.default_rng(seed)
    days = np.datetime64("2024-01-01") + rng.integers(0, 700, rows)
    return pa.table(
        {
            "person": rng.integers(0, rows // 5, rows),
            "age": rng.integers(18, 90, rows),
            "income": rng.lognormal(10, 1, rows).round(2),
            "bmi": rng.normal(25, 4, rows),
            "sex": rng.choice(["f", "m"], rows),
            "area": _some_null(rng, rng.choice(["=north", "south", "east"], rows), pa.string()),
            "day": pa.array(days.astype("datetime64[D]"), pa.date32()),
        }
    )


def _some_null(rng: np.random.Generator, values: Any, kind: pa.DataType) -> pa.Array:
    return pa.array(values, kind, mask=rng.random(len(values)) < 0.1)


def _texts(rng: np.random.Generator, labels: list[str], rows: int) -> list[str | None]:
    drawn = rng.choice(labels, rows).tolist()
    return [None if gone else label for gone, label in zip(rng.random(rows) < 0.1, drawn, strict=True)]


def _city(rng: np.random.Generator, rows: int) -> pd.Series[Any]:
    drawn = _texts(rng, list(CITIES), rows)
    return pd.Series(drawn, index=np.arange(rows) * 2 + 1, dtype="object")
