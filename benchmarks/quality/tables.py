"""The tables of the contest: rows as a user reads them, public bins for peers and scores, the survey's codebook."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd

import dipriv
from benchmarks.quality.bins import Bins, Codebook, codebook
from dipriv._base.arrays import FloatArray
from dipriv.schema import ColumnType, Kind
from research.data import data_file
from research.experiments import bank


@dataclass(frozen=True)
class Table:
    """A table with what is public about it.

    `bins` cuts its wide numeric columns, for the peers and for scores; `ranges` are the kinds that the codebook states
    for numbers. Of all other columns the levels are taken from the rows as if a codebook listed them, for the peers and
    for dipriv alike. `ranked` columns are cut by rank in the k-marginal score, as SDNist does. `epsilons` are further
    privacy budgets to release it under.
    """

    name: str
    title: str
    read: Callable[[], pd.DataFrame]
    bins: Mapping[str, Bins]
    ranges: Mapping[str, Kind] = field(default_factory=dict)
    ranked: Sequence[str] = ()
    target: str | None = None
    epsilons: Sequence[float] = ()

    @cached_property
    def frame(self) -> pd.DataFrame:
        return self.read()

    @cached_property
    def book(self) -> Codebook:
        return codebook(self.frame, self.bins)

    @property
    def columns(self) -> list[str]:
        return [str(name) for name in self.frame.columns]

    @property
    def labels(self) -> list[str]:
        """The columns of text."""
        return [name for name in self.columns if not _numeric(self.frame[name])]

    @property
    def types(self) -> dict[str, ColumnType]:
        """Codes that are digits are text, where dipriv would ask."""
        return dict.fromkeys(self.labels, "text")

    @cached_property
    def declared(self) -> dict[str, Kind]:
        """The codebook as a schema: levels of text and of codes, ranges of numbers; yes and no needs none."""
        found: dict[str, Kind] = dict(self.ranges)
        for name in self.columns:
            column = self.frame[name]
            if name in found or column.dtype == np.bool_:
                continue
            levels = tuple(sorted(column.unique().tolist()))
            found[name] = dipriv.Discrete(levels=levels) if _numeric(column) else dipriv.Categorical(levels=levels)
        return found


def _numeric(column: pd.Series[float]) -> bool:
    return pd.api.types.is_numeric_dtype(column)


def _bank() -> pd.DataFrame:
    """The paper's eleven columns with their own types: whole numbers, and yes or no."""
    frame = pd.DataFrame(bank.load(), columns=list(bank.COLUMNS))
    numbers = ("age", "education", "campaign")
    return frame.astype({name: np.int64 if name in numbers else np.bool_ for name in bank.COLUMNS})


def bank_matrix(frame: pd.DataFrame) -> FloatArray:
    """The rows as the paper's regression takes them."""
    return frame[list(bank.COLUMNS)].to_numpy(dtype=np.float64)


def _bank_full() -> pd.DataFrame:
    return pd.read_parquet(data_file("bank/bank-additional-full.parquet"))


def _adult() -> pd.DataFrame:
    """Train and test, all columns but the survey weight."""
    files = [data_file(f"adult/adult-{part}.parquet") for part in ("train", "test")]
    return pd.concat([pd.read_parquet(file) for file in files], ignore_index=True).drop(columns="fnlwgt")


def _acs(name: str) -> Callable[[], pd.DataFrame]:
    """All columns but the two survey weights; the poverty ratio as the number that it is, missing where it is N."""

    def read() -> pd.DataFrame:
        frame = pd.read_parquet(data_file(f"sdnist/{name}.parquet")).drop(columns=["PWGTP", "WGTP"])
        return frame.assign(POVPIP=pd.to_numeric(frame["POVPIP"], errors="coerce"))

    return read


def _pums() -> pd.DataFrame:
    return pd.read_parquet(data_file("pums/pums-california-demographics-1000.parquet"))


def _salaries() -> pd.DataFrame:
    return pd.read_parquet(data_file("uc_salary/uc-salary-2010-nine-locations.parquet"))


NAN = float("nan")
INCOMES = (-20000, 0, 1, 2500, 5000, 7500, *range(10000, 60000, 5000), 60000, 70000, 80000, 100000)
ACS_BINS = {
    "AGEP": Bins(tuple(range(0, 101, 5))),
    "PINCP": Bins((*INCOMES, 125000, 150000, 200000, 300000, 500000, 1500000), null=NAN),
    "POVPIP": Bins((0, 1, *range(25, 501, 25), 501, 502), null=NAN),
}
ACS_RANGES: dict[str, Kind] = {
    "AGEP": dipriv.Discrete(levels=tuple(range(100))),
    "PINCP": dipriv.Mixed(atoms=(0.0,), lower=-20000, upper=1500000),
    "POVPIP": dipriv.Discrete(levels=tuple(range(502))),
}
PAY = (1, 1000, 2500, 5000, 10000, 15000, 20000, 30000, 40000, 50000, 60000, 80000, 100000, 150000, 200000, 300000)

TABLES = {
    table.name: table
    for table in (
        Table(
            "bank",
            "Bank, the paper's columns",
            _bank,
            {"age": Bins(tuple(range(15, 101, 5))), "campaign": Bins((1, 2, 3, 4, 5, 6, 8, 11, 16, 26, 58))},
            {"age": dipriv.Discrete(levels=tuple(range(15, 101))), "campaign": dipriv.Continuous(1, 57)},
            target="y",
        ),
        Table(
            "bank-full",
            "Bank, all columns",
            _bank_full,
            {
                "age": Bins(tuple(range(15, 101, 5))),
                "duration": Bins((0, 30, 60, 90, 120, 150, 180, 240, 300, 400, 500, 700, 1000, 1500, 2500, 5000)),
                "campaign": Bins((1, 2, 3, 4, 5, 6, 8, 11, 16, 26, 58)),
                "pdays": Bins((0, 3, 4, 6, 7, 10, 15, 30, 999, 1000)),
                "cons.price.idx": Bins((92.0, 92.5, 92.8, 93.0, 93.4, 93.9, 94.0, 94.4, 94.5, 94.8), whole=False),
                "cons.conf.idx": Bins((-51, -47, -46, -43, -42, -41, -38, -36, -34, -30, -26), whole=False),
                "euribor3m": Bins((0.6, 0.8, 1, 1.2, 1.3, 1.4, 2, 4, 4.2, 4.8, 4.9, 4.96, 4.97, 5.1), whole=False),
            },
            {
                "age": dipriv.Discrete(levels=tuple(range(15, 101))),
                "duration": dipriv.Continuous(0, 5000),
                "campaign": dipriv.Continuous(1, 57),
                "pdays": dipriv.Mixed(atoms=(999.0,), lower=0, upper=999),
                "cons.price.idx": dipriv.Continuous(92, 95),
                "cons.conf.idx": dipriv.Continuous(-51, -26),
                "euribor3m": dipriv.Continuous(0.6, 5.1),
            },
        ),
        Table(
            "adult",
            "Adult",
            _adult,
            {
                "age": Bins(tuple(range(17, 92))),
                "capital_gain": Bins(
                    (0, 1, 1000, 2000, 3000, 4000, 5000, 7500, 10000, 15000, 20000, 50000, 99999, 100000)
                ),
                "capital_loss": Bins((0, 1, 1000, 1400, 1500, 1600, 1700, 1800, 1900, 2000, 2200, 2500, 3000, 4357)),
                "hours_per_week": Bins(
                    (1, 10, 20, 21, 25, 30, 31, 35, 36, 40, 41, 45, 46, 50, 51, 55, 60, 61, 70, 80, 100)
                ),
            },
            {
                "age": dipriv.Discrete(levels=tuple(range(17, 91))),
                "education_num": dipriv.Discrete(levels=tuple(range(1, 17))),
                "capital_gain": dipriv.Mixed(atoms=(0.0, 99999.0), lower=0, upper=99999),
                "capital_loss": dipriv.Mixed(atoms=(0.0,), lower=0, upper=4356),
                "hours_per_week": dipriv.Discrete(levels=tuple(range(1, 100))),
            },
            target="income",
            epsilons=(10.0,),
        ),
        Table("national", "SDNist national", _acs("national2019"), ACS_BINS, ACS_RANGES, ("AGEP", "PINCP", "POVPIP")),
        Table("ma2019", "SDNist Massachusetts", _acs("ma2019"), ACS_BINS, ACS_RANGES, ("AGEP", "PINCP", "POVPIP")),
        Table(
            "pums",
            "PUMS",
            _pums,
            {
                "age": Bins(tuple(range(10, 101, 10))),
                "income": Bins((0, 1, 5000, 10000, 20000, 30000, 40000, 60000, 80000, 100000, 150000, 500000)),
            },
            {
                "age": dipriv.Discrete(levels=tuple(range(18, 100))),
                "income": dipriv.Mixed(atoms=(0.0,), lower=0, upper=500000),
            },
        ),
        Table(
            "salaries",
            "UC salaries",
            _salaries,
            {
                "gross_pay": Bins((*PAY, 500000, 3000000), whole=False),
                "regular_pay": Bins((-10000, 0, *PAY, 500000, 1000000), whole=False),
                "overtime_pay": Bins((-1000, 0, 1, 10, 100, 300, 1000, 3000, 10000, 30000, 150000), whole=False),
                "other_pay": Bins((-100000, -1000, -100, -1, 0, 1, *PAY[1:], 500000, 3000000), whole=False),
            },
            {
                "gross_pay": dipriv.Continuous(0, 3000000),
                "regular_pay": dipriv.Mixed(atoms=(0.0,), lower=-10000, upper=1000000),
                "overtime_pay": dipriv.Mixed(atoms=(0.0,), lower=-1000, upper=150000),
                "other_pay": dipriv.Mixed(atoms=(0.0,), lower=-100000, upper=3000000),
            },
        ),
    )
}
