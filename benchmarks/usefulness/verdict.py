"""Verdicts against the truth: the total variation of every column that was called good, usable or lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

import dipriv
from benchmarks.measure import say
from benchmarks.quality.measures import column_variation
from benchmarks.quality.tables import TABLES
from dipriv.utility.verdict import GOOD, LOST, Grade, Verdict
from examples.demo import QUESTIONNAIRE, load

TABLE_NAMES = ("bank", "adult", "national", "ma2019", "pums", "salaries")
EPSILONS = (0.3, 1.0, 4.0)
SEEDS = 5
FIRST_SEED = 100
"""No constant was chosen by looking at releases with these seeds."""
COUNTED = ("columns", *Grade, "good wrong", "usable wrong", "lost wrong", "above", "below")
ALLOWED = 0.05
"""The part of the columns with a grade that may contradict it."""


@dataclass(frozen=True)
class Case:
    """A release whose verdict is known beforehand, and what it must say."""

    title: str
    read: Callable[[], pd.DataFrame]
    epsilon: float
    wanted: str
    holds: Callable[[Verdict], bool]
    options: Mapping[str, Any] = field(default_factory=dict)


def cases() -> Iterator[Case]:
    """The bad releases of a review of dipriv, and two good ones."""
    survey = load().to_pandas
    salaries, pums, ma2019 = (TABLES[name] for name in ("salaries", "pums", "ma2019"))
    rng = np.random.default_rng(0)

    def is_good(verdict: Verdict) -> bool:
        return verdict.grade is Grade.GOOD

    def is_too_small(verdict: Verdict) -> bool:
        return verdict.too_small is not None and not verdict.good

    def texts(verdict: Verdict, name: str) -> str:
        return " ".join(reason.text for column in verdict.columns if column.name == name for reason in column.reasons)

    yield Case("the demo's survey, its answers declared", survey, 1.0, "good", is_good, {"schema": QUESTIONNAIRE})
    yield Case("UC salaries", lambda: salaries.frame, 1.0, "good", is_good)
    yield Case("PUMS, 1,000 rows", lambda: pums.frame, 1.0, "too few rows", is_too_small)
    yield Case(
        "Massachusetts, 233 codes of industry",
        lambda: ma2019.frame,
        1.0,
        "INDP lost, its codes merged",
        lambda verdict: "INDP" in verdict.lost and "(other)" in texts(verdict, "INDP"),
        {"types": ma2019.types},
    )
    yield Case(
        "the same: dependence",
        lambda: ma2019.frame,
        1.0,
        "most pairs not measured",
        lambda verdict: len(verdict.pairs) < (verdict.all_pairs or 0) / 2 and "as if independent" in str(verdict),
        {"types": ma2019.types},
    )
    yield Case(
        "20,000 rows, 1,446 surnames",
        lambda: pd.DataFrame(
            {"surname": [f"n{name}" for name in rng.zipf(1.2, 20_000) % 1446], "age": rng.integers(18, 90, 20_000)}
        ),
        1.0,
        "surname lost or merged",
        lambda verdict: "surname" not in verdict.good and "(other)" in texts(verdict, "surname"),
    )
    yield Case(
        "a text column of two labels, one of them in 3 of 2,000 rows",
        lambda: pd.DataFrame({"code": ["a"] * 1997 + ["b"] * 3, "x": rng.normal(size=2000)}),
        0.5,
        "the rare label of code is lost, merged, or may be lost",
        lambda verdict: any(word in texts(verdict, "code") for word in ("constant", "(other)", "may be lost")),
    )
    yield Case(
        "300 standard normal columns, 2,000 rows",
        lambda: pd.DataFrame(rng.normal(size=(2000, 300)), columns=[f"x{number}" for number in range(300)]),
        1.0,
        "too few rows",
        is_too_small,
    )
    yield Case("the survey at ε = 0.000001", survey, 1e-6, "too few rows", is_too_small)
    for count in (12, 100, 500):
        yield Case(
            f"Adult, {count} rows",
            lambda count=count: TABLES["adult"].frame.head(count),  # type: ignore[misc]
            1.0,
            "too few rows",
            is_too_small,
        )


def run(seeds: int | None = None) -> dict[str, Any]:
    """All tables at all ε, and the cases."""
    tables = [
        {"table": name, "title": TABLES[name].title, "epsilon": epsilon, **_grades(name, epsilon, seeds or SEEDS)}
        for name in TABLE_NAMES
        for epsilon in EPSILONS
    ]
    totals = {key: sum(one[key] for one in tables) for key in COUNTED}
    return {
        "seeds": list(range(FIRST_SEED, FIRST_SEED + (seeds or SEEDS))),
        "limits": {"good": GOOD, "lost": LOST, "allowed": ALLOWED},
        "tables": tables,
        "totals": totals,
        "met": all(totals[f"{grade} wrong"] <= ALLOWED * totals[grade] for grade in ("good", "usable", "lost")),
        "cases": [_case(case) for case in cases()],
    }


def _grades(name: str, epsilon: float, seeds: int) -> dict[str, Any]:
    """How many columns have which grade, and which of them contradict it."""
    table = TABLES[name]
    found: dict[str, Any] = dict.fromkeys(COUNTED, 0)
    ratios = []
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        release = dipriv.privatize(table.frame, epsilon, seed=seed, types=table.types)
        assert release.verdict is not None
        for column in release.verdict.columns:
            measured = column_variation(table.frame[column.name], release.data[column.name])
            found["columns"] += 1
            found[column.grade.value] += 1
            found["good wrong"] += column.grade is Grade.GOOD and measured >= GOOD
            found["usable wrong"] += column.grade is Grade.USABLE and measured > LOST
            found["lost wrong"] += column.grade is Grade.LOST and measured <= LOST
            found["above"] += column.most is not None and measured > column.most
            found["below"] += column.least is not None and measured < column.least
            ratios.append(measured / max(column.error or 0.0, 1e-9))
    say(f"verdict: {name} at ε = {epsilon:g}: {found}")
    return found | {"ratio": float(np.median(ratios))}


def _case(case: Case) -> dict[str, Any]:
    """One release, its verdict, and whether it says what it must."""
    release = dipriv.privatize(case.read(), case.epsilon, seed=FIRST_SEED, **case.options)
    verdict = release.verdict
    assert verdict is not None
    say(f"verdict: {case.title}: {case.holds(verdict)}")
    return {
        "title": case.title,
        "epsilon": case.epsilon,
        "wanted": case.wanted,
        "holds": case.holds(verdict),
        "grade": verdict.grade.value,
        "good": len(verdict.good),
        "usable": len(verdict.usable),
        "lost": len(verdict.lost),
        "unknown": len(verdict.named(Grade.UNKNOWN)),
        "summary": str(verdict).splitlines(),
    }
