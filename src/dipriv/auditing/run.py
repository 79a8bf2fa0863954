"""All audits of one way to release one table, one after the other.

Nothing here is published, so no ε is spent; but what is found tells of the private table, and is as private as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from dipriv._random.bits import Seed, source
from dipriv._tables import frames as tables
from dipriv.auditing.attacks.run import attack_all
from dipriv.auditing.attacks.setup import FEWEST_ROWS as FEWEST_PEOPLE
from dipriv.auditing.attacks.setup import as_sequence, stage, take
from dipriv.auditing.exact import exact_epsilon
from dipriv.auditing.learning import FEWEST_FITS, LARGEST_SEED, audit_learning, audit_untouched, usual_fits
from dipriv.auditing.mechanism import audit_rows
from dipriv.auditing.noise_reuse import audit_noise_reuse
from dipriv.auditing.one_run import FEWEST_ROWS, audit_release
from dipriv.auditing.primitives import audit_primitives
from dipriv.auditing.procedure import publisher
from dipriv.auditing.results import Audit, Bound, Exact
from dipriv.errors import InputError
from dipriv.guarantee.guarantee import check_epsilon
from dipriv.references import Private
from dipriv.release.privatize import as_reference_spec, privatize, uses_holdout
from dipriv.sources.holdout import Split

Told: TypeAlias = Callable[[str, float], None]
"""Hears what is being done, and how much of it is done, from 0 to 1."""
DRAWS_PER_FIT = 1000
MOST_ROWS = 100_000
"""Of larger tables so many rows are audited, picked at random."""
OPTIONS = ("reference", "kernel", "schema", "columns", "keep", "holdout", "public")


def audit(
    frame: Any,
    epsilon: float,
    *,
    secret: str | None = None,
    draws: int = 2_000_000,
    confidence: float = 0.999,
    control: float = 0.3,
    seed: Seed = None,
    progress: Told | None = None,
    **options: Any,
) -> Audit:
    """Measure what a release of this table would give away, beside what it promises.

    Parameters
    ----------
    frame, epsilon, options : as for `dipriv.privatize`: reference, kernel, schema, columns, keep, holdout, public.
    secret : the column that attribute inference is after; by default each in turn.
    draws : how many rows are drawn to bound ε from below.
    confidence : of each bound and interval. Bounds can be tight, so that a claim that holds is refuted wrongly about
        once in 1/(1 - confidence) audits.
    control : the share of people who are set apart for the attacks' control group.
    seed : a seed makes the audit repeatable; nothing is published, so nothing is lost.
    progress : called with what is being done and the share of it that is done.

    >>> import pandas as pd
    >>> people = pd.DataFrame({"age": [20 + i % 50 for i in range(2000)], "smokes": [i % 3 == 0 for i in range(2000)]})
    >>> found = audit(people, 1.0, draws=20_000, seed=1)
    >>> found.passed, len(found.attacks) > 4
    (True, True)
    """
    epsilon = check_epsilon(epsilon)
    _check(options, confidence)
    tell = progress or (lambda what, share: None)
    seeds = [None] * 7 if seed is None else as_sequence(seed).spawn(7)
    table, notes = _some_rows(frame, np.random.default_rng(seeds[0]))
    _check_table(table, secret)
    tell("releasing", 0.0)
    release = privatize(table, epsilon, seed=seeds[1], **options)
    publish = publisher(epsilon, **options)
    bounds, exact = list[Bound](), [audit_noise_reuse(epsilon, options.get("kernel", "optimal"))]
    if release.secrets.mechanism is not None:
        claimed = _of_rows(epsilon, len(release.secrets.mechanism.columns), options)
        exact += exact_epsilon(release.secrets.mechanism, claimed)
        rows = audit_rows(
            release.secrets.mechanism,
            claimed,
            draws=draws,
            confidence=confidence,
            seed=seeds[2],
            progress=partial(tell, "telling rows apart"),
        )
        bounds.append(rows)
    found, untouched = _learning(table, epsilon, options, draws, confidence, seeds[6], partial(tell, "learning again"))
    bounds, exact = bounds + found, exact + untouched
    if table.num_rows < FEWEST_ROWS:
        notes += (f"no canaries: they need {FEWEST_ROWS} rows.",)
    else:
        guessed = audit_release(
            publish, table, epsilon, confidence=confidence, seed=seeds[3], progress=partial(tell, "guessing canaries")
        )
        bounds += guessed
        if len(guessed) == 1:
            notes += ("no distinct canaries: no column has room for numbers that no other row has.",)
    tell("attacking", 0.0)
    scene = stage(table, publish, seeds[4], control)
    attacks = attack_all(
        scene, epsilon, confidence=confidence, secret=secret, seed=seeds[5], progress=partial(tell, "attacking")
    )
    return Audit(epsilon, str(release.guarantee), table.num_rows, tuple(bounds), tuple(exact), attacks, notes)


def _learning(
    table: pa.Table,
    epsilon: float,
    options: dict[str, Any],
    draws: int,
    confidence: float,
    seed: Seed,
    progress: Callable[[float], None],
) -> tuple[list[Bound], list[Exact]]:
    """What is learned from the table: by a private reference, under its part of ε; from released rows, else, nothing.

    The kernel has no say in it: the quickest to build is used.
    """
    recipe = as_reference_spec(options.get("reference", "private"), options.get("public"))
    apart = uses_holdout(recipe, options.get("public"), options.get("holdout"))
    publish = publisher(epsilon, **options | {"kernel": "laplace"})
    rng = np.random.default_rng(seed)
    bounds, exact = list[Bound](), list[Exact]()
    if apart or not isinstance(recipe, Private):
        exact.append(audit_untouched(publish, table, epsilon, rng))
    if isinstance(recipe, Private):
        columns = len(publish(table, int(rng.integers(LARGEST_SEED))).data.column_names)
        claimed = epsilon if apart else epsilon - _of_rows(epsilon, columns, options)
        bounds += audit_primitives(
            claimed, draws=draws // 5, confidence=confidence, seed=int(rng.integers(LARGEST_SEED))
        )
        if apart:
            split = Split.new(options["holdout"], bits=source(int(rng.integers(LARGEST_SEED))))
            publish = publisher(epsilon, **options | {"kernel": "laplace", "split": split, "holdout": None})
        fits = min(usual_fits(columns), max(FEWEST_FITS, draws // DRAWS_PER_FIT))
        learned = audit_learning(publish, table, claimed, confidence=confidence, fits=fits, rng=rng, progress=progress)
        bounds += [] if learned is None else [learned]
    return bounds, exact


def _of_rows(epsilon: float, columns: int, options: dict[str, Any]) -> float:
    """The part of ε that released rows may cost, by what is asked for: the rest is for learning from them."""
    recipe = as_reference_spec(options.get("reference", "private"), options.get("public"))
    if not isinstance(recipe, Private) or uses_holdout(recipe, options.get("public"), options.get("holdout")):
        return epsilon
    return float(Fraction(epsilon) * (1 - recipe.share(columns)))


def _some_rows(frame: Any, rng: np.random.Generator) -> tuple[pa.Table, tuple[str, ...]]:
    """The table, or some of its rows where it is large."""
    table = pa.Table.from_batches([tables.read(frame).batch()])
    if table.num_rows <= MOST_ROWS:
        return take(table, np.arange(table.num_rows)), ()
    picked = np.sort(rng.choice(table.num_rows, MOST_ROWS, replace=False))
    return take(table, picked), (f"{MOST_ROWS:,} of {table.num_rows:,} rows were audited, picked at random.",)


def _check_table(table: pa.Table, secret: str | None) -> None:
    """Refused at once, rather than by the last of the attacks."""
    if table.num_rows < FEWEST_PEOPLE:
        raise InputError(
            f"the table has {table.num_rows} rows; an audit needs at least {FEWEST_PEOPLE}.",
            "Use a table with more rows.",
        )
    if secret is not None:
        tables.check_names([secret], table.column_names, "secret")


def _check(options: dict[str, Any], confidence: float) -> None:
    if odd := sorted(set(options) - set(OPTIONS)):
        raise InputError(f"an audit has no option {odd[0]!r}.", f"It has {', '.join(OPTIONS)}.")
    if not 0.5 <= confidence < 1:
        raise InputError(f"confidence={confidence!r} is not between 0.5 and 1.", "Use for example 0.95 or 0.999.")
