"""Where the picture of a plan has its lines: errors of columns against ε, on which a marker is dragged along."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dipriv._base.decimals import in_full
from dipriv.guarantee.trade_off import largest_probability
from dipriv.utility.plan import Forecast
from dipriv.utility.plan_wording import grade, grouped, pairs, percent, rows
from dipriv.utility.verdict import GOOD, LOST

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 300, 56, 16, 12, 40
LOWEST, HIGHEST = 1e-3, 1.0
MAX_LINES = 24
"""How many columns are drawn, those with the largest errors."""


@dataclass(frozen=True)
class Point:
    """An ε, where it is in the picture, and what it buys."""

    epsilon: str
    x: float
    y: float
    grades: tuple[tuple[str, int], ...]
    error: str
    pairs: str
    rows: str
    power: float
    """Of an attacker's best test of one row or person at level 5%, at most."""
    columns: tuple[tuple[str, str, str], ...]
    """Name, expected error and grade of each column."""


@dataclass(frozen=True)
class Picture:
    """The lines of a plan."""

    points: tuple[Point, ...]
    lines: tuple[tuple[str, str], ...]
    """Of columns: their names, and the points of a polyline."""
    median: str
    ticks: tuple[tuple[float, str], ...]
    good: float
    lost: float
    chosen: int
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    top: int = TOP
    bottom: int = HEIGHT - BOTTOM


def picture(plan: Forecast, epsilon: float) -> Picture:
    """The picture of a plan, with the marker at the ε of the plan that is nearest to this one."""
    gap = (WIDTH - LEFT - RIGHT) / max(1, len(plan.epsilons) - 1)
    places = [LEFT + gap * place for place in range(len(plan.epsilons))]
    points = []
    for x, found in zip(places, plan.epsilons, strict=True):
        grades = [grade(column.error) for column in found.columns]
        points.append(
            Point(
                in_full(found.epsilon),
                x,
                _y(found.error),
                tuple((word, grades.count(word)) for word in ("good", "usable", "lost")),
                percent(found.error),
                pairs(found),
                rows(found),
                largest_probability(0.05, found.epsilon, plan.delta),
                tuple((one.name, percent(one.error), grade(one.error)) for one in found.columns),
            )
        )
    worst = sorted(grouped(plan), key=lambda group: -group[1][0].error)[:MAX_LINES]
    nearest = min(range(len(points)), key=lambda place: abs(math.log(plan.epsilons[place].epsilon / epsilon)))
    return Picture(
        tuple(points),
        tuple((names, _line(places, [one.error for one in columns])) for names, columns in worst),
        _line(places, [found.error for found in plan.epsilons]),
        tuple((_y(share), f"{share:.1%}" if share < 0.01 else f"{share:.0%}") for share in (0.001, 0.01, 0.1, 1.0)),
        _y(GOOD),
        _y(LOST),
        nearest,
    )


def _y(share: float) -> float:
    inside = min(max(share, LOWEST), HIGHEST)
    part = math.log(inside / LOWEST) / math.log(HIGHEST / LOWEST)
    return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * part


def _line(places: Sequence[float], shares: Sequence[float]) -> str:
    return " ".join(f"{x:.1f},{_y(share):.1f}" for x, share in zip(places, shares, strict=True))
