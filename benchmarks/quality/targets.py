"""What releases must reach at ε = 1 (means over seeds): new numbers, and old ones that must not get worse."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT, PUBLIC, DECLARED, PURE = "default", 'labels="public"', "codebook declared", "codebook declared, delta=0"
HISTOGRAMS = {DECLARED: "noisy histograms", PURE: "noisy histograms, delta=0"}
"""The rival of independent noisy histograms at the same promise."""
LABEL_RATIO = "label margins: times noisy histograms"
DOCTORATE = "P(>50K given Doctorate)"
ROWS_ONE, ROWS_TEN = "1 column of 100,000 rows", "10 columns of 1,000,000 rows"


@dataclass(frozen=True)
class Target:
    """A number to reach: at least, or at most if less is better."""

    table: str
    setting: str
    score: str
    limit: float
    less: bool = False

    def met(self, value: float) -> bool:
        return value <= self.limit if self.less else value >= self.limit


def targeting(name: str) -> str:
    return f'default, target="{name}"'


def at_epsilon(epsilon: float) -> str:
    return f"default, epsilon={epsilon:g}"


TARGETS = (
    Target("national", DEFAULT, "k-marginal", 780),
    Target("national", PUBLIC, "k-marginal", 815),
    Target("national", DECLARED, "k-marginal", 855),
    Target("national", PURE, "k-marginal", 815),
    Target("adult", DEFAULT, "pairs", 940),
    Target("adult", DEFAULT, "triples", 885),
    Target("adult", DECLARED, "pairs", 960),
    Target("adult", DECLARED, "triples", 915),
    Target("adult", PURE, "pairs", 952),
    Target("adult", PURE, "triples", 900),
    Target("bank", DEFAULT, "KL", 0.005, less=True),
    Target("bank", targeting("y"), "KL", 0.002, less=True),
    Target("pums", DEFAULT, "margins", 820),
    Target("pums", DEFAULT, "pairs", 650),
    Target("pums", DECLARED, "margins", 930),
    Target("pums", DECLARED, "pairs", 840),
    *(Target(name, DECLARED, LABEL_RATIO, 1.5, less=True) for name in ("adult", "bank-full", "national", "ma2019")),
    Target("adult", DEFAULT, DOCTORATE, 0.62),
    Target("adult", at_epsilon(10), DOCTORATE, 0.69),
    Target("rows", DEFAULT, ROWS_ONE, 0.30),
    Target("rows", DEFAULT, ROWS_TEN, 0.05),
    Target("bank", DEFAULT, "seconds", 1, less=True),
    Target("adult", DEFAULT, "seconds", 3, less=True),
    Target("national", DEFAULT, "seconds", 5, less=True),
    Target("salary", "dipriv", "error of the mean, %", 0.5, less=True),
    Target("movielens", "dipriv", "total variation", 0.001, less=True),
    Target("edges", "scale 1e300", "distance", 0.005, less=True),
    Target("edges", "10,000 labels, which are public", "distance", 0.14, less=True),
    Target("edges", "100 columns", "distance", 0.69, less=True),
    Target("edges", "500 rows", "distance", 0.11, less=True),
)


def of(table: str, setting: str) -> dict[str, Target]:
    """The targets of a table and setting by score."""
    return {target.score: target for target in TARGETS if (target.table, target.setting) == (table, setting)}
