"""Table real2_logistic: logistic regression on the bank's campaign data, and what a release shows of held-out people.

Predictors as in the paper: eleven columns with the two dummies of marital status and the response. The Kullback-Leibler
divergence is the mean over the original rows of KL(Bernoulli(p_original) || Bernoulli(p_private)). NLRM adds Laplace
noise to every column with ε/11, bounds read from the private rows, and cuts the response at 1/2: the paper's printed
numbers are those of this construction. NOPM is the private generalized linear model of DJW 5.2.1 with the longest
private row as its radius; where a fitted probability is exactly 0 or 1 in double precision, the divergence is infinite.
"No predictors" is the model that knows the rate of the response alone: what a release without any dependence gives.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
from scipy.special import expit, rel_entr

from dipriv._base.arrays import FloatArray
from dipriv.references import Empirical
from dipriv.release.privatize import privatize
from research.baselines import PrivateLogistic, naive
from research.data import data_file
from research.protocol import Experiment, Values, child, for_all, printed

FILE = "bank/bank-additional-full.parquet"
SETTING = "30,488 complete rows"
EPSILONS = (1.0, 2.0, 3.0, 4.0)
HOLDOUTS = (0.15, 0.25, 0.35)
COLUMNS = (
    *("age", "employed", "single", "divorced", "education"),
    *("default", "housing", "loan", "mobile", "campaign", "y"),
)
EDUCATION = (
    *("illiterate", "basic.4y", "basic.6y", "basic.9y"),
    *("professional.course", "high.school", "university.degree"),
)
PAPER = """
30,488 complete rows | DIP (hold 15%) | 4.80 (0.40) | 4.80 (0.40) | 4.80 (0.40) | 4.80 (0.40)
30,488 complete rows | DIP (hold 25%) | 4.72 (0.31) | 4.73 (0.31) | 4.74 (0.32) | 4.72 (0.31)
30,488 complete rows | DIP (hold 35%) | 4.69 (0.27) | 4.71 (0.28) | 4.69 (0.27) | 4.71 (0.28)
30,488 complete rows | NLRM | 31.07 (0.42) | 28.85 (0.40) | 26.81 (0.39) | 24.94 (0.37)
30,488 complete rows | NOPM | Inf | Inf | Inf | Inf
"""


def load() -> FloatArray:
    """The paper's eleven columns of all rows without an unknown."""
    import pyarrow.parquet as pq

    table: dict[str, Any] = {name: column.to_numpy() for name, column in _named(pq.read_table(data_file(FILE)))}
    asked = ("job", "marital", "education", "default", "housing", "loan")
    known = np.all([table[name] != "unknown" for name in asked], axis=0)
    table = {name: column[known] for name, column in table.items()}
    columns = {
        "age": table["age"],
        "employed": ~np.isin(table["job"], ["unemployed", "retired", "student", "housemaid"]),
        "single": table["marital"] == "single",
        "divorced": table["marital"] == "divorced",
        "education": np.array([EDUCATION.index(level) for level in table["education"]]),
        **{name: table[name] == "yes" for name in ("default", "housing", "loan", "y")},
        "mobile": table["contact"] == "cellular",
        "campaign": table["campaign"],
    }
    return np.column_stack([columns[name] for name in COLUMNS]).astype(np.float64)


def _named(table: Any) -> list[tuple[str, Any]]:
    return list(zip(table.column_names, table.columns, strict=True))


@cache
def _original() -> tuple[FloatArray, FloatArray]:
    """The rows, and the probabilities that logistic regression gives them."""
    rows = load()
    return rows, probabilities(rows, logistic(rows))


def _with_ones(rows: FloatArray) -> FloatArray:
    return np.column_stack([np.ones(len(rows)), rows[:, :-1]])


def logistic(rows: FloatArray) -> FloatArray:
    """Coefficients, intercept first, by iteratively reweighted least squares."""
    import statsmodels.api as sm

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a release without a single default leaves its coefficient open
        fit = sm.GLM(rows[:, -1], _with_ones(rows), family=sm.families.Binomial()).fit(maxiter=50)
    return np.asarray(fit.params)


def probabilities(rows: FloatArray, coefficients: FloatArray) -> FloatArray:
    return np.asarray(expit(_with_ones(rows) @ coefficients))


def divergence(p: FloatArray, q: FloatArray) -> float:
    """In hundredths."""
    return 100 * float(np.mean(rel_entr(p, q) + rel_entr(1 - p, 1 - q)))


def _run(setting: str, seed: np.random.SeedSequence) -> Values:
    rows, truth = _original()

    def error(coefficients: FloatArray) -> float:
        return divergence(truth, probabilities(rows, coefficients))

    measured = for_all(EPSILONS, "no predictors", divergence(truth, np.full(len(truth), rows[:, -1].mean())))
    for epsilon in EPSILONS:
        for share in HOLDOUTS:
            rng = child(seed, "DIP", share, epsilon)
            reference = Empirical(edge="paper")
            released = privatize(rows, epsilon, reference=reference, kernel="laplace", holdout=share, seed=rng).data
            measured[f"DIP (hold {share:.0%})", epsilon] = error(logistic(released))
        noisy = naive(rows, epsilon, bounds="sample", seed=child(seed, "NLRM", epsilon)).data
        noisy[:, -1] = noisy[:, -1] > 0.5
        measured["NLRM", epsilon] = error(logistic(noisy))
        shuffled = rows[np.random.default_rng(child(seed, "order", epsilon)).permutation(len(rows))]
        x = _with_ones(shuffled)
        glm = PrivateLogistic(epsilon, float(np.linalg.norm(x, axis=1).max()))
        measured["NOPM", epsilon] = error(glm.fit(x, shuffled[:, -1], child(seed, "NOPM", epsilon)))
    return measured


def _exposure(setting: str, seed: np.random.SeedSequence) -> Values:
    """Shares in percent: rows that copy a held-out person, held-out unique people who come out verbatim; a control.

    The control counts the unique people among the rows that were *not* held out who come out verbatim.
    """
    rows, _ = _original()
    people = as_text(rows)
    values, counts = np.unique(people, return_counts=True)
    unique = np.isin(people, values[counts == 1])
    measured = {}
    for epsilon in EPSILONS:
        for share in HOLDOUTS:
            rng = child(seed, "exposure", share, epsilon)
            release = privatize(rows, epsilon, reference=Empirical(), kernel="laplace", holdout=share, seed=rng)
            released, held = as_text(release.data), ~release.secrets.released
            told = f"hold {share:.0%}"
            copies = np.isin(released, people[held]).mean()
            verbatim = np.isin(people[held & unique], released).mean()
            control = np.isin(people[~held & unique], released).mean()
            measured[f"released rows equal to a held-out row ({told})", epsilon] = 100 * float(copies)
            measured[f"unique held-out people published verbatim ({told})", epsilon] = 100 * float(verbatim)
            measured[f"control: unique released people published verbatim ({told})", epsilon] = 100 * float(control)
    return measured


def as_text(rows: FloatArray) -> Any:
    """Each row as one comparable value."""
    whole = np.ascontiguousarray(rows)
    return whole.view(np.dtype((np.void, whole.dtype.itemsize * whole.shape[1]))).ravel()


LOGISTIC = Experiment(
    name="bank-logistic",
    title="Logistic regression on the bank's campaign data",
    source="Tables real2_logistic and real_logistic",
    measure="Kullback-Leibler divergence, in hundredths",
    settings=(SETTING,),
    epsilons=EPSILONS,
    reps=50,
    run=_run,
    paper=printed(PAPER, EPSILONS),
    rivals=frozenset({"NLRM", "NOPM"}),
    insensitive=True,
    needs=(FILE,),
)
EXPOSURE = Experiment(
    name="bank-exposure",
    title="What a release shows of the people held out",
    source="not in the paper",
    measure="share, in percent",
    settings=(SETTING,),
    epsilons=EPSILONS,
    reps=20,
    run=_exposure,
    needs=(FILE,),
)
