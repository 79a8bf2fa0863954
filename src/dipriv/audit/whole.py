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

from dipriv import tables
from dipriv.audit.attack_scene import as_sequence, stage
from dipriv.audit.attacks import attack_all
from dipriv.audit.exact import exact_epsilon
from dipriv.audit.mechanism import audit_rows
from dipriv.audit.one_run import audit_release
from dipriv.audit.published import publisher
from dipriv.audit.results import Audit, Bound, Exact
from dipriv.errors import InputError
from dipriv.guarantee import check_epsilon
from dipriv.randomness import Rng
from dipriv.references import Private
from dipriv.release import as_recipe, holds_out, privatize

Told: TypeAlias = Callable[[str, float], None]
"""Hears what is being done, and how much of it is done, from 0 to 1."""
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
    rng: Rng = None,
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
    rng : a seed makes the audit repeatable; nothing is published, so nothing is lost.
    progress : called with what is being done and the share of it that is done.

    >>> import pandas as pd
    >>> people = pd.DataFrame({"age": [20 + i % 50 for i in range(2000)], "smokes": [i % 3 == 0 for i in range(2000)]})
    >>> found = audit(people, 1.0, draws=20_000, rng=1)
    >>> found.passed, len(found.attacks) > 4
    (True, True)
    """
    epsilon = check_epsilon(epsilon)
    _check(options, confidence)
    tell = progress or (lambda what, share: None)
    seeds = [None] * 6 if rng is None else as_sequence(rng).spawn(6)
    table, notes = _some_rows(frame, np.random.default_rng(seeds[0]))
    tell("releasing", 0.0)
    release = privatize(table, epsilon, rng=seeds[1], **options)
    bounds, exact = list[Bound](), tuple[Exact, ...]()
    if release.fitted is not None:
        claimed = _of_rows(epsilon, len(release.fitted.columns), options)
        exact = exact_epsilon(release.fitted, claimed)
        rows = audit_rows(
            release.fitted,
            claimed,
            draws=draws,
            confidence=confidence,
            rng=seeds[2],
            progress=partial(tell, "telling rows apart"),
        )
        bounds.append(rows)
    publish = publisher(epsilon, **options)
    bounds += audit_release(
        publish, table, epsilon, confidence=confidence, rng=seeds[3], progress=partial(tell, "guessing canaries")
    )
    tell("attacking", 0.0)
    scene = stage(table, publish, seeds[4], control)
    attacks = attack_all(
        scene, epsilon, confidence=confidence, secret=secret, rng=seeds[5], progress=partial(tell, "attacking")
    )
    return Audit(epsilon, str(release.guarantee), table.num_rows, tuple(bounds), exact, attacks, notes)


def _of_rows(epsilon: float, columns: int, options: dict[str, Any]) -> float:
    """The part of ε that released rows may cost, by what is asked for: the rest is for learning from them."""
    recipe = as_recipe(options.get("reference", "private"), options.get("public"))
    if not isinstance(recipe, Private) or holds_out(recipe, options.get("public"), options.get("holdout")):
        return epsilon
    return float(Fraction(epsilon) * (1 - recipe.share(columns)))


def _some_rows(frame: Any, rng: np.random.Generator) -> tuple[pa.Table, tuple[str, ...]]:
    """The table, or some of its rows where it is large."""
    table = pa.Table.from_batches([tables.read(frame).batch()])
    if table.num_rows <= MOST_ROWS:
        return table, ()
    picked = np.sort(rng.choice(table.num_rows, MOST_ROWS, replace=False))
    return table.take(picked), (f"{MOST_ROWS:,} of {table.num_rows:,} rows were audited, picked at random.",)


def _check(options: dict[str, Any], confidence: float) -> None:
    if odd := sorted(set(options) - set(OPTIONS)):
        raise InputError(f"an audit has no option {odd[0]!r}.", f"It has {', '.join(OPTIONS)}.")
    if not 0.5 <= confidence < 1:
        raise InputError(f"confidence={confidence!r} is not between 0.5 and 1.", "Use for example 0.95 or 0.999.")
