"""What users look for in these tables: group means, shares, regressions, relations that hold in every row."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.quality.targets import DOCTORATE

Finding = Callable[[pd.DataFrame], float]
NO_DEGREE = (*"12345678", "N")
"""Codes of EDU below an associate's degree."""


def share(mask: pd.Series[bool], among: pd.Series[bool] | None = None) -> float:
    """The share of rows, among some of them; NaN if there are none."""
    chosen = mask if among is None else mask[among]
    return float(chosen.mean()) if len(chosen) else float("nan")


def mean(values: pd.Series[Any], among: pd.Series[bool] | None = None) -> float:
    chosen = values if among is None else values[among]
    return float(chosen.mean()) if len(chosen) else float("nan")


def cramers_v(x: pd.Series[Any], y: pd.Series[Any]) -> float:
    """Association of two columns of labels, 0 to 1; 0 where one of them is constant."""
    counts = pd.crosstab(x, y).to_numpy(dtype=np.float64)
    least = min(counts.shape) - 1
    if least < 1:
        return 0.0
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    return float(np.sqrt(((counts - expected) ** 2 / expected).sum() / counts.sum() / least))


def slope(y: pd.Series[Any], x: pd.Series[Any]) -> float:
    """Least squares of y on x, where both are known."""
    known = y.notna() & x.notna()
    return float(np.polyfit(x[known].astype(float), y[known].astype(float), 1)[0])


def logit(y: pd.Series[bool], x: pd.Series[Any]) -> float:
    """The coefficient of x in the logistic regression of y."""
    import statsmodels.api as sm

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = sm.GLM(y.to_numpy(dtype=float), sm.add_constant(x.to_numpy(dtype=float)), family=sm.families.Binomial())
        return float(fit.fit(maxiter=50).params[-1])


def rank_correlation(x: pd.Series[Any], y: pd.Series[Any]) -> float:
    return float(x.astype(float).corr(y.astype(float), method="spearman"))


def _rich(frame: pd.DataFrame) -> pd.Series[bool]:
    return frame["income"] == ">50K"


def _number(column: pd.Series[Any]) -> pd.Series[float]:
    return pd.to_numeric(column, errors="coerce")


def _child(frame: pd.DataFrame) -> pd.Series[bool]:
    return frame["AGEP"] < 15


BANK: dict[str, Finding] = {
    "P(y)": lambda f: share(f["y"]),
    "P(y given mobile)": lambda f: share(f["y"], f["mobile"]),
    "P(y given not mobile)": lambda f: share(f["y"], ~f["mobile"]),
    "mean age": lambda f: mean(f["age"]),
    "largest age": lambda f: float(f["age"].max()),
    "share older than 60": lambda f: share(f["age"] > 60),
    "mean age of the single": lambda f: mean(f["age"], f["single"]),
    "single and divorced": lambda f: share(f["single"] & f["divorced"]),
    "mean education of the employed": lambda f: mean(f["education"], f["employed"]),
}
BANK_FULL: dict[str, Finding] = {
    "P(yes given success before)": lambda f: share(f["y"] == "yes", f["poutcome"] == "success"),
    "mean age of the retired": lambda f: mean(f["age"], f["job"] == "retired"),
    "mean age of students": lambda f: mean(f["age"], f["job"] == "student"),
    "share with pdays = 999": lambda f: share(f["pdays"] == 999),
    "distinct values of nr.employed": lambda f: float(f["nr.employed"].nunique()),
    "correlation of euribor3m and nr.employed": lambda f: float(f["euribor3m"].corr(f["nr.employed"])),
}
ADULT: dict[str, Finding] = {
    DOCTORATE: lambda f: share(_rich(f), f["education"] == "Doctorate"),
    **{
        f"P(>50K given {level})": lambda f, level=level: share(_rich(f), f["education"] == level)  # type: ignore[misc]
        for level in ("Masters", "Bachelors", "HS-grad", "10th")
    },
    "P(>50K given Exec-managerial)": lambda f: share(_rich(f), f["occupation"] == "Exec-managerial"),
    "P(>50K given Other-service)": lambda f: share(_rich(f), f["occupation"] == "Other-service"),
    "P(>50K given Female)": lambda f: share(_rich(f), f["sex"] == "Female"),
    "P(>50K given Male)": lambda f: share(_rich(f), f["sex"] == "Male"),
    "logit coefficient of education_num": lambda f: logit(_rich(f), f["education_num"]),
    "education_num is the code of education": lambda f: _agrees(f["education"], f["education_num"]),
    "under 20 with a Bachelor's or more": lambda f: share(f["education_num"] >= 13, f["age"] < 20),
    "under 20 widowed": lambda f: share(f["marital_status"] == "Widowed", f["age"] < 20),
    "Never-worked with an occupation": lambda f: share(f["occupation"] != "?", f["workclass"] == "Never-worked"),
    "mean capital gain": lambda f: mean(f["capital_gain"]),
    "share without capital loss": lambda f: share(f["capital_loss"] == 0),
    "share with 40 hours": lambda f: share(f["hours_per_week"] == 40),
}
EDUCATION = (
    *("Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th", "HS-grad", "Some-college"),
    *("Assoc-voc", "Assoc-acdm", "Bachelors", "Masters", "Prof-school", "Doctorate"),
)
"""In the order of education_num, which begins with 1."""


def _agrees(education: pd.Series[Any], number: pd.Series[Any]) -> float:
    codes = {level: code for code, level in enumerate(EDUCATION, start=1)}
    return float((education.map(codes).astype(float) == number).mean())


CATEGORIES: dict[str, dict[Any, Any]] = {}
"""The category of each industry and the density of each PUMA, from the national and Massachusetts excerpts."""


def _in_category(frame: pd.DataFrame) -> float:
    """The share of rows with an industry whose category is its own; an industry that was merged has none."""
    own = frame["INDP"].map(_public("INDP", "INDP_CAT"))
    return share(own == frame["INDP_CAT"], own.notna())


def _frequent_in_category(frame: pd.DataFrame) -> float:
    """The same among industries that at least 1% of the rows have."""
    counts = frame["INDP"].map(frame["INDP"].value_counts())
    return _in_category(frame[counts >= len(frame) / 100])


def _one_density(frame: pd.DataFrame) -> float:
    """The share of rows with the density of their PUMA."""
    return share(frame["PUMA"].map(_public("PUMA", "DENSITY")) == frame["DENSITY"])


def _public(key: str, value: str) -> dict[Any, Any]:
    """What the codebook says of a column that is a function of another."""
    from benchmarks.quality.tables import TABLES

    if key not in CATEGORIES:
        both = pd.concat([TABLES[name].frame[[key, value]] for name in ("national", "ma2019")])
        CATEGORIES[key] = dict(both.drop_duplicates().itertuples(index=False, name=None))
    return CATEGORIES[key]


ACS: dict[str, Finding] = {
    "mean income of men": lambda f: mean(f["PINCP"], f["SEX"] == "1"),
    "mean income of women": lambda f: mean(f["PINCP"], f["SEX"] == "2"),
    "mean income with a doctorate": lambda f: mean(f["PINCP"], f["EDU"] == "12"),
    "income by a step of education, dollars": lambda f: slope(f["PINCP"], _number(f["EDU"])),
    "children under 15": lambda f: share(_child(f)),
    "children with a marital status": lambda f: share(f["MSP"] != "N", _child(f)),
    "children with an income": lambda f: share(f["PINCP"].notna(), _child(f)),
    "children with a degree": lambda f: share(~f["EDU"].isin(NO_DEGREE), _child(f)),
    "share below the poverty line": lambda f: share(f["POVPIP"] < 100, f["POVPIP"].notna()),
    "industry in its category": _in_category,
    "the same, industries of 1% of the rows": _frequent_in_category,
    "distinct values of DENSITY": lambda f: float(f["DENSITY"].nunique()),
    "one DENSITY for each PUMA": _one_density,
    "group quarters with a tenure": lambda f: share(f["OWN_RENT"] != "0", f["HOUSING_TYPE"] != "1"),
    "more own children than persons in the family": lambda f: share(_number(f["NOC"]) > _number(f["NPF"])),
    "Cramér's V of DREM and DPHY": lambda f: cramers_v(f["DREM"], f["DPHY"]),
    "Cramér's V of NOC and OWN_RENT": lambda f: cramers_v(f["NOC"], f["OWN_RENT"]),
    "rank correlation of income and its decile": lambda f: rank_correlation(f["PINCP"], _number(f["PINCP_DECILE"])),
    "incomes that are whole dollars": lambda f: share(f["PINCP"] % 1 == 0, f["PINCP"].notna()),
    "share of Hispanic origin": lambda f: share(f["HISP"] != "0"),
}
PUMS: dict[str, Finding] = {
    "share of sex = 1": lambda f: share(f["sex"] == 1),
    "share married": lambda f: share(f["married"] == 1),
    "smallest age": lambda f: float(f["age"].min()),
    "largest age": lambda f: float(f["age"].max()),
    "mean age": lambda f: mean(f["age"]),
    "mean income": lambda f: mean(f["income"]),
    "share without income": lambda f: share(f["income"] == 0),
    "income of sex 0 less that of sex 1": lambda f: mean(f["income"], f["sex"] == 0) - mean(f["income"], f["sex"] == 1),
    "rank correlation of education and income": lambda f: rank_correlation(f["educ"], f["income"]),
    "mean age of the married": lambda f: mean(f["age"], f["married"] == 1),
}
SALARIES: dict[str, Finding] = {
    "mean gross pay": lambda f: mean(f["gross_pay"]),
    **{
        f"mean gross pay, {place}": lambda f, place=place: mean(f["gross_pay"], f["location"] == place)  # type: ignore[misc]
        for place in ("Berkeley", "San Francisco", "San Diego", "Merced", "Santa Cruz", "UCOP")
    },
    "largest gross pay": lambda f: float(f["gross_pay"].max()),
    "gross pay is the sum of its parts (a cent)": lambda f: share(_gap(f).abs() < 0.015),
    "gross pay is the sum of its parts (5%)": lambda f: share(_gap(f).abs() <= 0.05 * f["gross_pay"].abs()),
    "regular pay above gross pay": lambda f: share(f["regular_pay"] > f["gross_pay"] + 0.005),
    "correlation of gross and other pay": lambda f: float(f["gross_pay"].corr(f["other_pay"])),
    "pay in whole cents": lambda f: share((f["gross_pay"] * 100 - (f["gross_pay"] * 100).round()).abs() < 1e-4),
    "share without overtime": lambda f: share(f["overtime_pay"] == 0),
}


def _gap(frame: pd.DataFrame) -> pd.Series[float]:
    return frame["gross_pay"] - frame["regular_pay"] - frame["overtime_pay"] - frame["other_pay"]


FINDINGS: dict[str, dict[str, Finding]] = {
    "bank": BANK,
    "bank-full": BANK_FULL,
    "adult": ADULT,
    "national": ACS,
    "ma2019": ACS,
    "pums": PUMS,
    "salaries": SALARIES,
}


def found(table: str, frame: pd.DataFrame) -> dict[str, float]:
    """The findings of a table in these rows, but those that cannot be had, such as the mean of a group that is gone."""
    values = {}
    for name, finding in FINDINGS.get(table, {}).items():
        with suppress(ValueError, ArithmeticError, np.linalg.LinAlgError):
            values[name] = finding(frame)
    return {name: value for name, value in values.items() if np.isfinite(value)}
