"""How to choose ε and how many rows are enough, by the plan alone: no rows are read but those of the demo's survey.

python -m benchmarks.usefulness.choosing     # writes docs/choosing-epsilon.md, its record and its picture
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

import dipriv
from dipriv._base.decimals import in_full
from dipriv.guarantee.trade_off import largest_probability
from dipriv.release.forecast import EPSILONS, public_facts
from dipriv.release.options import ReleaseOptions
from dipriv.sources import open_source
from dipriv.utility.forecast import PublicFacts, Setting, forecast
from dipriv.utility.plan import is_good
from dipriv.utility.plan_html import picture
from dipriv.utility.plan_wording import pairs, percent
from examples.demo import QUESTIONNAIRE, load
from research import pages
from research.files import whole_file
from research.pages import DOCS

PAGE = "choosing-epsilon"
WIDTHS = (2, 5, 10, 20, 40)
ROWS = tuple(250 * 2**power for power in range(16))
LABELS = tuple("abcdefgh")
DECLARED = {"7 labels, 7 levels": 7, "8 labels, 100 levels": 100, "nothing": None}
"""What the schema says of a column: how many levels a number has. The first is as the demo's survey."""
GUESSES = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)
"""The ε for which the page says what 5 right guesses in 100 become."""


def survey() -> dict[str, Any]:
    """What the plan says about the demo's survey."""
    plan = dipriv.plan(load().to_pandas(), schema=QUESTIONNAIRE)
    return {
        "rows": plan.rows,
        "columns": len(plan.names),
        "recommendation": plan.recommendation,
        "epsilons": [
            {
                "epsilon": in_full(one.epsilon),
                "median": percent(one.error),
                "largest": percent(max(column.error for column in one.columns)),
                "share": percent(one.columns[0].share_errors[1][1]),
                "pairs": pairs(one),
                "fidelity": one.fidelity,
            }
            for one in plan.epsilons
        ],
        "changes": [change.text for change in plan.changes],
    }


def enough() -> list[dict[str, Any]]:
    """The fewest rows, in doublings of 250, at which the plan finds an ε good, for tables of some widths."""
    return [
        {
            "columns": width,
            "declared": declared,
            "rows": [_fewest(width, epsilon, levels) for epsilon in EPSILONS],
        }
        for declared, levels in DECLARED.items()
        for width in WIDTHS
    ]


def guesses() -> list[dict[str, Any]]:
    """The largest share of right guesses from a release, where it is 5% with the row replaced; δ = 1e-9."""
    return [{"epsilon": in_full(one), "right": largest_probability(0.05, one, 1e-9)} for one in GUESSES]


def _fewest(width: int, epsilon: float, levels: int | None) -> int | None:
    return next((rows for rows in ROWS if _is_good(width, rows, epsilon, levels)), None)


def _is_good(width: int, rows: int, epsilon: float, levels: int | None) -> bool:
    options = ReleaseOptions(epsilon, schema=None if levels is None else _schema(width, levels))
    spec: Any = options.spec
    setting = Setting(epsilon, options.row_delta, spec, options.kernel_spec)
    return is_good(forecast(replace(_facts(width, options), rows=rows), setting))


def _facts(width: int, options: ReleaseOptions) -> PublicFacts:
    """Half of the columns are labels; of the others every second one is a whole number. Their values do not matter."""
    columns = {f"label {number}": list(LABELS) for number in range(width // 2)}
    numbers = {f"number {number}": [0.5, 1][number % 2] for number in range(width - width // 2)}
    return public_facts(open_source(pd.DataFrame(columns, index=range(8)).assign(**numbers)), options)


def _schema(width: int, levels: int) -> dict[str, Any]:
    labels = {f"label {number}": dipriv.Categorical(levels=LABELS[:levels]) for number in range(width // 2)}
    numbers = {f"number {number}": dipriv.Discrete(levels=tuple(range(levels))) for number in range(width - width // 2)}
    return {**labels, **numbers}


def write(out: Path = DOCS) -> None:
    """The record, the picture and the page."""
    record = {
        "survey": survey(),
        "guesses": guesses(),
        "epsilons": list(map(in_full, EPSILONS)),
        "enough": enough(),
        "widths": WIDTHS,
    }
    drawn = picture(dipriv.plan(load().to_pandas(), schema=QUESTIONNAIRE))
    (out / "images").mkdir(parents=True, exist_ok=True)
    alone = drawn.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    for file, text in (
        (out / f"{PAGE}.json", json.dumps(record, indent=1) + "\n"),
        (out / "images" / "plan-survey.svg", alone + "\n"),
    ):
        with whole_file(file) as written:
            written.write_text(text, encoding="utf-8")
    pages.write(PAGE, out)


if __name__ == "__main__":
    write()
