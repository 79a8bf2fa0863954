"""Table SVD: ratings predicted by matrix factorization that is trained on released ratings.

A quarter of the ratings is the test set. Ratings are one discrete column: DIP holds out a part of the training set,
the others release all of it. LRM adds Laplace noise on the range and rounds to the nearest rating; OPM sends all
ratings as one vector through the l2 ball mechanism (radius range times sqrt(n), as the paper has it); EXM redraws
from the ratings' frequencies. Matrix factorization with biases by cornac is trained on the released ratings, brought to
mean 0 and deviation 1, with its dimension and penalty chosen by five-fold cross-validation on them (grid below, 20
passes, learning rate 0.01, one thread). Predictions are held to the range of ratings.

"DIP optimal" has the kernel that keeps most of each rating, with the same hold-out. "Corrected" undoes what any kernel
does to a prediction: with mean m and expected correlation ρ (`release.fidelity`), the linear regression of released on
true ratings is m + ρ (true - m), so what predicts released ratings predicts true ones pulled to m by ρ. A predictor f
of released ratings is itself off by its slope c, that of the ratings left out in cross-validation on their predictions
(below 1 where it follows noise). The best linear guess of a true rating from f is then m + (c/ρ)(f - m), as far as
released ratings depend linearly on true ones on average. Both numbers come from what is released.

The paper used LIBMF. Its Python package tells its threads to go on before it tells them to end, so that training on
few ratings waits for ever and the number of updates is not repeatable, and it never frees a training set.
"""

from __future__ import annotations

import itertools
import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from dipriv._base.arrays import FloatArray
from dipriv.errors import InputError
from dipriv.release.privatize import privatize
from dipriv.release.result import Release
from research.baselines import Ball, FrequencyResampling, Laplace
from research.data import data_file
from research.protocol import Experiment, Values, child, for_all, printed

FILES = {
    "MovieLens 1M": "movielens/ml-1m-ratings.parquet",
    "MovieLens 25M, users 1 to 2687": "movielens/ml-25m-ratings-users-1-to-2687.parquet",
}
EPSILONS = (1.0, 2.0, 3.0, 4.0)
HOLDOUTS = (0.15, 0.25, 0.35)
OPTIMAL_HOLDOUT = 0.25
GRID = tuple(itertools.product((10, 20), (0.02, 0.1)))
"""(dimension, L2 penalty)."""
FOLDS = 5
PAPER = """
DIP (hold 15%) | 1.03 (5.24e-4) | 0.98 (8.16e-4) | 0.94 (5.03e-4) | 0.91 (4.67e-4)
DIP (hold 25%) | 1.03 (4.96e-4) | 0.98 (7.12e-4) | 0.94 (5.27e-4) | 0.92 (5.66e-4)
DIP (hold 35%) | 1.04 (4.83e-4) | 0.99 (9.16e-4) | 0.95 (6.14e-4) | 0.92 (6.24e-4)
LRM | 1.87 (1.03e-3) | 1.31 (9.63e-4) | 1.05 (9.77e-4) | 0.93 (7.15e-4)
OPM | 2.61 (8.23e-4) | 2.61 (8.07e-4) | 2.61 (6.42e-4) | 2.61 (7.74e-4)
EXM | 1.11 (5.52e-4) | 1.08 (4.81e-4) | 1.09 (4.86e-4) | 1.09 (4.38e-4)
"""


@cache
def _load(setting: str) -> tuple[FloatArray, FloatArray]:
    """(user, movie) as numbers from 0, and ratings."""
    import pyarrow.parquet as pq

    table = pq.read_table(data_file(FILES[setting]))
    pairs = [np.unique(table[name].to_numpy(), return_inverse=True)[1] for name in ("userId", "movieId")]
    return np.column_stack(pairs).astype(np.float64), table["rating"].to_numpy().astype(np.float64)


def predict(pairs: FloatArray, ratings: FloatArray, asked: FloatArray, dimension: int, penalty: float) -> FloatArray:
    """Ratings of the asked pairs; a user or movie that was not seen has no bias and no taste."""
    cornac = _cornac()
    users, movies = pairs.astype(np.intp).T
    asked_users, asked_movies = asked.astype(np.intp).T
    counts = max(users.max(), asked_users.max()) + 1, max(movies.max(), asked_movies.max()) + 1
    mean, scale = float(ratings.mean()), float(ratings.std()) or 1.0
    training = cornac.data.Dataset(
        *(int(count) for count in counts),
        *({place: place for place in range(count)} for count in counts),
        (users, movies, ((ratings - mean) / scale).astype(np.float32)),
    )
    model = cornac.models.MF(dimension, max_iter=20, lambda_reg=penalty, num_threads=1, seed=1).fit(training)
    factors = np.einsum("ij,ij->i", model.u_factors[asked_users], model.i_factors[asked_movies])
    biases = model.u_biases[asked_users] + model.i_biases[asked_movies] + model.global_mean
    return np.asarray(mean + scale * (biases + factors).astype(np.float64))


@cache
def _cornac() -> Any:
    """The library; its import warns of parts that are not used here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            import cornac.data
            import cornac.models
        except ImportError:
            raise InputError("movielens needs cornac.", "Install it: pip install cornac.") from None
    return cornac


@dataclass(frozen=True)
class Tuned:
    """The grid's best, by cross-validation, and the slope of ratings on their predictions when they are left out."""

    dimension: int
    penalty: float
    slope: float


def tuned(pairs: FloatArray, ratings: FloatArray) -> Tuned:
    """By these ratings alone."""
    fold = np.arange(len(ratings)) % FOLDS

    def left_out(choice: tuple[int, float]) -> FloatArray:
        guess = np.empty(len(ratings))
        for k in range(FOLDS):
            train, rest = fold != k, fold == k
            guess[rest] = predict(pairs[train], ratings[train], pairs[rest], *choice)
        return guess

    def loss(guess: FloatArray) -> float:
        return sum(float(np.mean((guess[fold == k] - ratings[fold == k]) ** 2)) for k in range(FOLDS))

    guesses = {choice: left_out(choice) for choice in GRID}
    best = min(GRID, key=lambda choice: loss(guesses[choice]))
    (spread, together), _ = np.cov(guesses[best], ratings)
    return Tuned(*best, float(together / spread))


def _run(setting: str, seed: np.random.SeedSequence) -> Values:
    return errors(*_load(setting), seed)


def errors(pairs: FloatArray, ratings: FloatArray, seed: np.random.SeedSequence) -> dict[tuple[str, float], float]:
    """The root mean square error on the test set, for every method and ε."""
    shuffled = np.random.default_rng(seed).permutation(len(ratings))  # so that folds are random, too
    test, train = np.split(shuffled, [len(ratings) // 4])
    x, z = pairs[train], ratings[train]
    levels = np.unique(ratings)
    low, high = float(levels[0]), float(levels[-1])

    def rms(guess: FloatArray) -> float:
        return float(np.sqrt(np.mean((np.clip(guess, low, high) - ratings[test]) ** 2)))

    def guesses(known: FloatArray, released: FloatArray) -> tuple[FloatArray, float]:
        """Of the test ratings, and their slope."""
        found = tuned(known, released)
        return predict(known, released, pairs[test], found.dimension, found.penalty), found.slope

    def error(known: FloatArray, released: FloatArray) -> float:
        return rms(guesses(known, released)[0])

    def errors_of(release: Release[Any]) -> tuple[float, float]:
        """As predicted from the released ratings, and corrected for what the noise takes from each."""
        guess, slope = guesses(x[release.secrets.row_positions], release.data[:, 0])
        (fidelity,), mean = release.fidelity.values(), release.data.mean()
        return rms(guess), rms(mean + slope / fidelity * (guess - mean))

    measured = for_all(EPSILONS, "NP", error(x, z))
    for epsilon in EPSILONS:
        for share in HOLDOUTS:
            rng, hold = child(seed, "DIP", share, epsilon), f"(hold {share:.0%})"
            release = privatize(z[:, None], epsilon, reference="holdout", kernel="laplace", holdout=share, seed=rng)
            measured[f"DIP {hold}", epsilon], corrected = errors_of(release)
            if share == OPTIMAL_HOLDOUT:
                rng, split = child(seed, "DIP optimal", share, epsilon), release.secrets.split
                best = privatize(z[:, None], epsilon, reference="holdout", kernel="optimal", split=split, seed=rng)
                measured[f"DIP, corrected {hold}", epsilon] = corrected
                measured[f"DIP optimal {hold}", epsilon], corrected = errors_of(best)
                measured[f"DIP optimal, corrected {hold}", epsilon] = corrected
        noisy = Laplace(epsilon, low, high).privatize(z, child(seed, "LRM", epsilon))
        measured["LRM", epsilon] = error(x, levels[np.abs(noisy[:, None] - levels).argmin(axis=1)])
        ball = Ball(epsilon, float((high - low) * np.sqrt(len(z))))
        measured["OPM", epsilon] = error(x, ball.privatize(z, child(seed, "OPM", epsilon)))
        measured["EXM", epsilon] = error(x, FrequencyResampling(levels).privatize(z, child(seed, "EXM", epsilon)))
    return measured


MOVIES = Experiment(
    name="movielens",
    title="Movie ratings predicted by matrix factorization",
    source="Tables SVD and real_logistic (the paper: all of MovieLens 25M)",
    measure="root mean square error on the original test ratings",
    settings=tuple(FILES),
    epsilons=EPSILONS,
    reps=5,
    run=_run,
    paper=printed("\n".join(f"{name} | {line}" for name in FILES for line in PAPER.strip().splitlines()), EPSILONS),
    paper_reps=50,
    order_only=frozenset({"OPM", "EXM"}),
    rivals=frozenset({"LRM", "OPM", "EXM"}),
    ordered=(
        ("DIP optimal (hold 25%)", "DIP (hold 25%)"),
        ("DIP, corrected (hold 25%)", "DIP (hold 25%)"),
        ("DIP optimal, corrected (hold 25%)", "DIP optimal (hold 25%)"),
        ("DIP optimal, corrected (hold 25%)", "DIP, corrected (hold 25%)"),
        ("DIP optimal (hold 25%)", "LRM"),
    ),
    needs=tuple(FILES.values()),
)
