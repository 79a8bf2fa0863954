"""What an experiment is: settings, one repetition of a setting as a function of a seed, and the paper's numbers."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np

from dipriv._random.bits import source
from dipriv.sources.holdout import Split

Values: TypeAlias = Mapping[tuple[str, float], float]
"""What one repetition of a setting measured, by method and ε."""


@dataclass(frozen=True)
class Printed:
    """A cell of the paper: mean, standard deviation over repetitions, and how many decimal digits the mean has."""

    mean: float
    sd: float
    digits: int

    @property
    def rounding(self) -> float:
        """Half a unit of the last digit."""
        return 0.5 * 10.0**-self.digits


@dataclass(frozen=True)
class Row:
    """A cell of ours beside the paper's; `values` are those of the single repetitions where there are few."""

    setting: str
    method: str
    epsilon: float
    mean: float
    sd: float
    reps: int
    paper: Printed | None = None
    values: tuple[float, ...] = ()


@dataclass(frozen=True)
class Experiment:
    """One table, or one figure made of measurements.

    `run(setting, seed)` is one repetition, a function of its arguments alone. `order_only` lists the methods whose
    construction the paper leaves open, so that only the order of magnitude is compared. `rivals` are those that the
    paper says DIP beats. `ordered` are pairs of methods of which the first should be below the second in every
    repetition. `trial` are the numbers of a prototype of ours, where larger is better: cells should reach them.
    """

    name: str
    title: str
    source: str
    measure: str
    settings: tuple[str, ...]
    epsilons: tuple[float, ...]
    reps: int
    run: Callable[[str, np.random.SeedSequence], Values]
    paper: Mapping[tuple[str, str, float], Printed] = field(default_factory=dict)
    paper_reps: int = 1000
    order_only: frozenset[str] = frozenset()
    rivals: frozenset[str] = frozenset()
    insensitive: bool = False
    ordered: tuple[tuple[str, str], ...] = ()
    trial: Mapping[tuple[str, str, float], float] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    draw: Callable[[Sequence[Row], Path], None] | None = None


@dataclass(frozen=True)
class Drawing:
    """An explanatory figure, drawn from our own code."""

    name: str
    title: str
    source: str
    draw: Callable[[Path], None]


def printed(text: str, epsilons: Sequence[float]) -> dict[tuple[str, str, float], Printed]:
    """The paper's cells from lines `setting | method | mean (sd) | ...`, one cell for each ε.

    >>> printed("Ber(0.1) | NP | 7.60 (5.67)", [1.0])
    {('Ber(0.1)', 'NP', 1.0): Printed(mean=7.6, sd=5.67, digits=2)}
    """
    cells = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        setting, method, *numbers = (part.strip() for part in line.split("|"))
        for epsilon, number in zip(epsilons, numbers, strict=True):
            cells[setting, method, epsilon] = _cell(number)
    return cells


def seed_of(seed: int, *labels: str | int) -> np.random.SeedSequence:
    """A seed of its own for every labelled piece of work, whatever is run beside it."""
    digest = hashlib.blake2b("\0".join(map(str, labels)).encode(), digest_size=16).digest()
    return np.random.SeedSequence([seed, *np.frombuffer(digest, dtype="<u4").tolist()])


def child(seed: np.random.SeedSequence, *labels: str | float) -> np.random.SeedSequence:
    """A further seed for one method of a repetition."""
    return seed_of(int(seed.generate_state(1, np.uint64)[0]), *map(str, labels))


def split_of(seed: np.random.SeedSequence, holdout: float) -> Split:
    """One split of a repetition's table for all releases of it."""
    return Split.new(holdout, bits=source(child(seed, "split", holdout)))


def for_all(epsilons: Iterable[float], method: str, value: float) -> dict[tuple[str, float], float]:
    """One measurement that does not depend on ε, as the paper prints it beside each."""
    return {(method, epsilon): value for epsilon in epsilons}


def _cell(text: str) -> Printed:
    if text == "Inf":
        return Printed(float("inf"), 0.0, 0)
    found = re.fullmatch(r"([\d.]+)\s*\(([\d.e-]+)\)", text)
    if found is None:
        raise ValueError(f"not a cell of a table: {text!r}")
    mean, sd = found.groups()
    return Printed(float(mean), float(sd), len(mean.partition(".")[2]))
