"""Planted bugs: each is caught by an audit that is named here, and the same code without the bug passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dipriv
from dipriv._base.arrays import Words
from dipriv._base.progress import no_progress
from dipriv._random.bits import Bits, Draws, Seed
from dipriv._tables import fitted_columns as columns
from dipriv._tables import frames as tables
from dipriv.auditing.exact import exact_epsilon
from dipriv.auditing.mechanism import audit_rows
from dipriv.auditing.one_run import audit_release
from dipriv.auditing.procedure import Privatize, ReleasedTable
from dipriv.kernels import KernelSpec, Laplace, Optimal, OptimalColumns
from dipriv.mechanism import Chain, Levels
from dipriv.release import fitting
from dipriv.release.fitting import FittedMechanism
from research.audit_standard import KERNELS, one_column, several_columns
from tests.support import ALARM

SURE = 1 - ALARM
"""A bug counts as caught only at a confidence at which sound code is accused once in a million audits."""
DRAWS = 60_000
ONE, TWO = one_column(), several_columns(2)


def caught(fitted: FittedMechanism) -> bool:
    """Whether `audit_rows` refutes the claim of 1."""
    return audit_rows(fitted, 1.0, draws=DRAWS, confidence=SURE, seed=1).exceeded


@cache
def passes(kind: str, kernel: str) -> bool:
    """Whether a column without a bug is not accused."""
    return not caught(ONE[kind](KERNELS[kernel], 1.0))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("kind", ["continuous, normal", "counts, Poisson(3)"])
def test_a_fifth_too_little_noise_is_caught(kind: str, kernel: str) -> None:
    assert passes(kind, kernel)
    assert caught(ONE[kind](KERNELS[kernel], 1.0 / 0.8))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["4 columns, independent", "4 columns, private network"])
def test_a_fifth_too_little_noise_in_four_columns_is_caught(kind: str) -> None:
    # with 2.5 for 2, the best event of 100,000 draws of each dataset shows 0.24 more: a standard error is at most 0.05
    sound = several_columns(4)[kind](Laplace(), 2.0)
    bug = replace(sound, kernel=Laplace().build(2.0 / 0.8, sound.names))
    bounds = [audit_rows(fitted, 2.0, draws=200_000, confidence=SURE, seed=1) for fitted in (sound, bug)]
    assert [bound.exceeded for bound in bounds] == [False, True]


@pytest.mark.slow
def test_half_the_noise_in_ten_columns_is_caught() -> None:
    # a fifth too little is beyond any event of a million draws at this confidence; with 4 for 2, counts of ranks on the
    # near side are 0.58 above the claim by 100,000 draws of each dataset: a standard error of the bound is at most 0.12
    sound = several_columns(10)["10 columns, private network"](Laplace(), 2.0)
    bug = replace(sound, kernel=Laplace().build(2.0 / 0.5, sound.names))
    bounds = [audit_rows(fitted, 2.0, draws=200_000, confidence=SURE, seed=1) for fitted in (sound, bug)]
    assert [bound.exceeded for bound in bounds] == [False, True]


def test_too_little_noise_in_a_matrix_is_caught_without_any_draw() -> None:
    for make in (ONE["12 categories"], TWO["2 columns, independent"]):
        assert exact_epsilon(make(Optimal(), 1.0 / 0.8), 1.0)[-1].exceeded
        assert not exact_epsilon(make(Optimal(), 1.0), 1.0)[-1].exceeded


@pytest.mark.parametrize(
    ("kind", "recipe"), [("2 columns, independent", OptimalColumns()), ("2 columns, private network", Laplace())]
)
def test_epsilon_that_was_not_divided_among_columns_is_caught(kind: str, recipe: KernelSpec) -> None:
    sound = TWO[kind](recipe, 1.0)
    assert caught(replace(sound, kernel=recipe.build(2.0, sound.names)))  # each of two columns has all of ε
    assert not caught(sound)


def _like_neighbours(words: Words) -> Words:
    return words[np.arange(len(words)) // 2 * 2]


def same_bits_for_two_rows(patch: pytest.MonkeyPatch) -> None:
    blocks, words = Draws.blocks, Draws.words
    patch.setattr(Draws, "blocks", lambda self, use=0: _like_neighbours(blocks(self, use)))
    patch.setattr(Draws, "words", lambda self, use=0: _like_neighbours(words(self, use)))


def same_bits_for_all_rows(patch: pytest.MonkeyPatch) -> None:
    blocks, words = Draws.blocks, Draws.words
    patch.setattr(Draws, "blocks", lambda self, use=0: np.repeat(blocks(self, use)[:1], self.count, axis=0))
    patch.setattr(Draws, "words", lambda self, use=0: np.repeat(words(self, use)[:1], self.count))


def same_bits_for_every_chunk(patch: pytest.MonkeyPatch) -> None:
    for mechanism in (Chain, Levels):
        sound: Any = mechanism.privatize
        patch.setattr(
            mechanism, "privatize", lambda self, cells, bits, first=0, sound=sound: sound(self, cells, bits, 0)
        )


def same_bits_for_every_batch(patch: pytest.MonkeyPatch) -> None:
    sound = FittedMechanism.release
    patch.setattr(
        FittedMechanism,
        "release",
        lambda self, table, keep, bits, first=0, progress=no_progress: sound(self, table, keep, bits, 0, progress),
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plant", "kernel", "kind"),
    [
        (same_bits_for_two_rows, "laplace", "continuous, normal"),
        (same_bits_for_two_rows, "optimal", "12 categories"),
        (same_bits_for_all_rows, "laplace", "continuous, normal"),
        (same_bits_for_all_rows, "optimal", "continuous, normal"),
        (same_bits_for_all_rows, "optimal", "12 categories"),
        (same_bits_for_every_chunk, "laplace", "continuous, normal"),
        (same_bits_for_every_chunk, "optimal", "12 categories"),
        (same_bits_for_every_batch, "optimal", "continuous, normal"),
        (same_bits_for_every_batch, "laplace", "12 categories"),
    ],
)
def test_bits_that_rows_share_are_caught(
    plant: Callable[[pytest.MonkeyPatch], None], kernel: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert passes(kind, kernel)
    plant(monkeypatch)
    assert caught(ONE[kind](KERNELS[kernel], 1.0))


@pytest.mark.slow
def test_bits_that_columns_share_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [TWO["2 columns, private network"](Laplace(), 1.0), TWO["2 columns, independent"](OptimalColumns(), 1.0)]
    assert not any(caught(fitted) for fitted in made)
    child = Bits.child
    monkeypatch.setattr(Draws, "of_column", lambda self, column: self)
    monkeypatch.setattr(
        Bits, "child", lambda self, label: child(self, "column 0" if label.startswith("column ") else label)
    )
    assert all(caught(fitted) for fitted in made)


N = 3000
RNG = np.random.default_rng(0)
REALS = pa.table({"x": RNG.normal(size=N)})
ROWS = pa.table({"x": RNG.normal(size=N), "y": RNG.normal(size=N), "z": RNG.choice(list("abc"), N)})
LEVELS = pa.table({"x": 10 * RNG.integers(1, 9, N)})
ATOMS = pa.table({"x": np.where(RNG.random(N) < 0.3, 0.0, RNG.lognormal(9, 1, N))})
Plant = Callable[[pa.Table], AbstractContextManager[None]]


@contextmanager
def reference_of_released_rows(table: pa.Table) -> Iterator[None]:
    """The hold-out's way to a reference, given all rows."""
    sound = fitting.fit
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            fitting,
            "fit",
            lambda recipe, kernel, epsilon, facts, schema, reference, bits, leading: sound(
                recipe, kernel, epsilon, facts, schema, tables.read(table), bits, leading
            ),
        )
        yield


@contextmanager
def atoms_of_released_rows(table: pa.Table) -> Iterator[None]:
    """Kinds and codecs read from all rows, the reference from the hold-out."""
    sound = columns.fit_columns
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            fitting, "fit_columns", lambda facts, schema, kinds, held: sound(facts, schema, kinds, tables.read(table))
        )
        yield


def leaky(plant: Plant, **options: Any) -> Callable[[pa.Table, Seed], ReleasedTable]:
    publish = Privatize(1.0, options)

    def leaking(table: pa.Table, seed: Seed) -> ReleasedTable:
        with plant(table):
            return publish(table, seed)

    return leaking


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "plant", "schema"),
    [
        (REALS, reference_of_released_rows, {}),
        (ROWS, reference_of_released_rows, {}),
        (LEVELS, reference_of_released_rows, {}),
        (ATOMS, reference_of_released_rows, {}),
        (ATOMS, atoms_of_released_rows, {}),
        (ATOMS, atoms_of_released_rows, {"x": dipriv.Mixed()}),
        (REALS, atoms_of_released_rows, {}),
        (ROWS, atoms_of_released_rows, {}),
    ],
    ids=["reals", "rows", "levels", "atoms' reference", "atoms", "declared atoms", "reals' atoms", "rows' atoms"],
)
@pytest.mark.parametrize("kernel", KERNELS)
def test_what_is_read_from_released_rows_is_caught_by_distinct_canaries(
    table: pa.Table, plant: Plant, schema: dict[str, Any], kernel: str
) -> None:
    # 10 right guesses of 10 show ε = 1 at 95%; a claim of 1 is refuted at this confidence from 47 of 47 on
    options: dict[str, Any] = {"reference": "holdout", "schema": schema, "kernel": kernel}
    found = audit_release(leaky(plant, **options), table, 1.0, seed=2)
    assert next(bound for bound in found if "distinct" in bound.what).exceeded
    sound = audit_release(Privatize(1.0, options), table, 1.0, seed=2, confidence=SURE)
    assert not any(bound.exceeded for bound in sound)
