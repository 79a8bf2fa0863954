"""`dipriv.audit`: every audit of one release procedure on one table, one after the other.

Nothing is published here, so no ε is spent. The results depend on the private table and are as private as the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from dipriv._base.progress import Progress
from dipriv._random.bits import Seed, source
from dipriv._tables import frames
from dipriv._tables.arrow import is_text
from dipriv._tables.codes import recoded
from dipriv._tables.column_types import ask
from dipriv._tables.frames import Table, check_names
from dipriv._tables.typed_tables import settle_table
from dipriv.auditing.attacks.run import run_attacks
from dipriv.auditing.attacks.setup import MIN_ROWS as MIN_ROWS_TO_ATTACK
from dipriv.auditing.attacks.setup import as_sequence, set_up, take
from dipriv.auditing.exact import exact_epsilon
from dipriv.auditing.labels import attack_labels
from dipriv.auditing.learning import MAX_SEED, MIN_FITS, audit_independence, audit_learning, default_fits
from dipriv.auditing.mechanism import audit_rows
from dipriv.auditing.noise_reuse import audit_noise_reuse
from dipriv.auditing.one_run import MIN_ROWS as MIN_ROWS_FOR_CANARIES
from dipriv.auditing.one_run import audit_release
from dipriv.auditing.persons import add_up, audit_label_of_a_person, audit_persons, one_row_each
from dipriv.auditing.primitives import audit_primitives
from dipriv.auditing.procedure import Privatize
from dipriv.auditing.recognition import audit_recognition
from dipriv.auditing.results import Audit, Bound, Check, Exact
from dipriv.auditing.rules import without_rules
from dipriv.errors import InputError
from dipriv.guarantee.guarantee import check_epsilon
from dipriv.guarantee.wording import protects
from dipriv.release.columns import settled_columns
from dipriv.release.options import ReleaseOptions
from dipriv.release.progress import shown
from dipriv.schema import Schema
from dipriv.sources.holdout import Split

MAX_COLUMNS, SAMPLED_COLUMNS = 32, 16
"""Tables with more columns than the first number are audited on as many as the second: time grows with both."""
DRAWS_PER_FIT = 1000
"""One fit of the reference for this many draws."""
DRAWS_PER_PRIMITIVE_DRAW = 5
"""One draw of a measurement primitive for this many draws of rows."""
MAX_ROWS = 100_000
"""Of a larger table this many rows are audited, chosen at random."""
OPTIONS = (
    "delta",
    "reference",
    "kernel",
    "schema",
    "types",
    "missing",
    "columns",
    "drop",
    "keep",
    "holdout",
    "public",
    "target",
    "reference_share",
    "labels",
    "pairs",
    "unit",
    "rows_per_unit",
    "constant",
)


def audit(
    frame: Any,
    epsilon: float,
    *,
    secret: str | None = None,
    draws: int = 2_000_000,
    confidence: float = 0.999,
    control: float = 0.3,
    seed: Seed = None,
    progress: bool | Progress = False,
    **options: Any,
) -> Audit:
    """Audit what a release of this table would disclose, and compare it with the guarantee.

    The audit computes the exact ε of finite kernels, measures lower bounds on ε (from a distinguishing event between
    neighbouring datasets, from canaries, from refitting the reference), and runs every registered attack against a
    control group. It looks for labels that one row alone has, and for changes of the table that a ledger does not
    recognize. With `unit`, the canaries are persons: all rows of one person are replaced. Nothing is published and no ε
    is spent.

    Parameters
    ----------
    frame : the private table: a pandas, polars or Arrow table, or a numpy array.
    epsilon : the claim: the privacy budget ε of the release. The claimed δ is that of its guarantee.
    secret : the column that attribute inference targets; by default each column in turn.
    draws : number of released rows to draw for the lower bounds on ε.
    confidence : of each bound and interval, from 0.5 up to 1. Bounds can be tight, and each bound and attack refutes a
        claim that holds with a probability of up to 1 - confidence.
    control : share of the people in the control group of the attacks.
    seed : makes the audit repeatable. Nothing is published, so no protection is lost.
    progress : as for `dipriv.privatize`.
    **options : of `dipriv.privatize`: delta, reference, kernel, schema, columns, drop, keep, holdout, public,
        target, reference_share, labels, pairs, unit, rows_per_unit, constant, types, missing.

    Returns
    -------
    An `Audit`: bounds, exact results and attacks; `passed` is False if any of them refutes the claim.

    Raises
    ------
    InputError : an argument is out of its range, an option is unknown, or the table has too few rows.
    SchemaError : the schema contradicts the table.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"age": [20 + i % 50 for i in range(2000)], "smokes": [i % 3 == 0 for i in range(2000)]})
    >>> found = audit(people, 1.0, draws=20_000, seed=1)
    >>> found.passed, len(found.attacks) > 4
    (True, True)
    """
    epsilon = check_epsilon(epsilon)
    _check_options(options, confidence)
    with shown(progress) as report:
        return _audit(frame, epsilon, secret, draws, confidence, control, seed, report, options)


def _audit(
    frame: Any,
    epsilon: float,
    secret: str | None,
    draws: int,
    confidence: float,
    control: float,
    seed: Seed,
    report: Progress,
    options: dict[str, Any],
) -> Audit:
    """All audits, one after the other."""
    seeds = [None] * 10 if seed is None else as_sequence(seed).spawn(10)
    typed, options = _typed(frame, epsilon, options)
    typed, options, by_rules = without_rules(typed, epsilon, options, secret)
    table, by_rows = _sample_rows(typed, np.random.default_rng(seeds[0]))
    if dropped := [name for name in options.pop("drop", ()) if name != options.get("unit")]:
        check_names(dropped, table.column_names, "drop")
        table = table.drop_columns(list(dropped))
    _check_table(table, secret)
    report("releasing", 0.0, 1.0)
    procedure = Privatize(epsilon, options)
    release = procedure.release(table, seeds[1])
    exact = [audit_noise_reuse(epsilon, options.get("kernel", "optimal"))]
    exact += exact_epsilon(release.secrets.mechanism, procedure.row_epsilon(table))
    procedure, some, by_columns = _sample_columns(procedure, table, secret, np.random.default_rng(seeds[9]))
    if by_columns:
        table, release = some, procedure.release(some, seeds[1])
    remarks = by_rows + by_rules + by_columns
    bounds, checks = list[Bound](), list[Check]()
    mechanism, claimed, delta = release.secrets.mechanism, procedure.row_epsilon(table), procedure.delta(table)
    bounds.append(audit_rows(mechanism, claimed, draws=draws, confidence=confidence, seed=seeds[2], progress=report))
    unit, single = procedure.unit, table
    if unit is not None:
        single = one_row_each(table, unit.column, np.random.default_rng(seeds[8]))
        remarks += (f"attacks and fits are made on one row of each {unit.column!r}; canaries replace all rows of one.",)
        _check_table(single, secret)
    learning_bounds, independence = _audit_reference(procedure, single, draws, confidence, seeds[6], report)
    bounds, exact = bounds + learning_bounds, exact + independence
    if single.num_rows < MIN_ROWS_FOR_CANARIES:
        of = "rows" if unit is None else "persons"
        remarks += (f"no canaries: they need {MIN_ROWS_FOR_CANARIES} {of}.",)
    elif unit is not None:
        bound, check = audit_persons(
            procedure, table, unit, epsilon, delta=delta, confidence=confidence, seed=seeds[3], progress=report
        )
        bounds, checks = [*bounds, bound], [*checks, check]
        reference_epsilon, row_delta = procedure.budget_of_a_row(table)
        kernel = mechanism.kernel.epsilon
        exact.append(add_up(unit, kernel, reference_epsilon, epsilon, disjoint=procedure.uses_holdout))
        exact += audit_label_of_a_person(unit, reference_epsilon, row_delta, epsilon, delta)
    else:
        by_canaries = audit_release(
            procedure, table, epsilon, delta=delta, confidence=confidence, seed=seeds[3], progress=report
        )
        bounds += by_canaries
        if len(by_canaries) == 1:
            remarks += ("no distinct canaries: no column has room for numbers that no other row has.",)
    report("attacking", 0.0, 1.0)
    setup = set_up(single, procedure, seeds[4], control)
    attacks = run_attacks(
        setup, epsilon, delta=delta, confidence=confidence, secret=secret, seed=seeds[5], progress=report
    )
    by_label = attack_labels(
        procedure,
        table,
        procedure.labels_found(table),
        delta,
        unit=None if unit is None else unit.column,
        confidence=confidence,
        rng=np.random.default_rng(seeds[7]),
    )
    attacks += () if by_label is None else (by_label,)
    report("evading a ledger", 0.0, 1.0)
    checks += audit_recognition(table.select(list(mechanism.names)))
    return Audit(
        epsilon,
        str(release.guarantee),
        table.num_rows,
        tuple(bounds),
        tuple(exact),
        attacks,
        remarks,
        delta,
        protects(release.guarantee),
        tuple(checks),
    )


def _audit_reference(
    procedure: Privatize, table: pa.Table, draws: int, confidence: float, seed: Seed, progress: Progress
) -> tuple[list[Bound], list[Exact]]:
    """Audit what is learned from the table, with the ε and the δ of one row.

    A private reference may learn from rows within its part of ε, and δ. Any other reference must not depend on released
    rows. The kernel is irrelevant here, so the one that is built fastest is used.
    """
    release = procedure.with_options(kernel="laplace")
    rng = np.random.default_rng(seed)
    bounds, exact = list[Bound](), list[Exact]()
    if procedure.uses_holdout or not procedure.learns_privately:
        exact.append(audit_independence(release, table, procedure.epsilon, rng))
    if procedure.learns_privately:
        n_columns = len(release(table, int(rng.integers(MAX_SEED))).data.column_names)
        part, delta = procedure.budget_of_a_row(table)
        claimed = float(part)
        primitive_draws, primitive_seed = draws // DRAWS_PER_PRIMITIVE_DRAW, int(rng.integers(MAX_SEED))
        measured, computed = audit_primitives(
            claimed, delta, draws=primitive_draws, confidence=confidence, seed=primitive_seed
        )
        bounds, exact = [*bounds, *measured], [*exact, *computed]
        if procedure.uses_holdout:
            by = None if procedure.unit is None else procedure.unit.column
            split = Split.new(procedure.options["holdout"], by, bits=source(int(rng.integers(MAX_SEED))))
            release = release.with_options(split=split, holdout=None)
        fits = min(default_fits(n_columns), max(MIN_FITS, draws // DRAWS_PER_FIT))
        learned = audit_learning(
            release, table, claimed, delta=delta, confidence=confidence, fits=fits, rng=rng, progress=progress
        )
        bounds += [] if learned is None else [learned]
    return bounds, exact


def _typed(frame: Any, epsilon: float, options: dict[str, Any]) -> tuple[Table, dict[str, Any]]:
    """The table as a release reads it, for canaries in cells of the settled types; and what is left to say of them."""
    table, asked = frames.read(frame), ReleaseOptions(epsilon, **options)
    names = asked.privatized(table.names)
    typed, questions = settle_table(table, names, asked.type_rules(names, asked.declared(names)))
    ask(questions)
    declared = asked.declared(names)
    facts = [typed.column(name) for name in names]  # refuses objects, which have no Arrow type, as a release does
    columns, kinds = settled_columns(facts, typed.backend, declared)
    texts = {of.name: "text" for of in columns if of.name in (asked.types or {}) and is_text(of.arrow_type)}
    settled = options | {"types": texts or None, "schema": asked.schema}
    if asked.left_out or asked.anew or declared.meanings:  # canaries are cells as they are learned
        gone = () if asked.columns is not None else (*asked.drop, *asked.left_out, *asked.anew)
        settled |= {"schema": Schema(dict(kinds), **asked.rules(names, table.names).to_dict()), "drop": gone}
    return recoded(typed, columns), settled


def _sample_rows(typed: Table, rng: np.random.Generator) -> tuple[pa.Table, tuple[str, ...]]:
    """The table, or a random sample of its rows where it is large."""
    table = pa.Table.from_batches([typed.batch()])
    if table.num_rows <= MAX_ROWS:
        return take(table, np.arange(table.num_rows)), ()
    picked = np.sort(rng.choice(table.num_rows, MAX_ROWS, replace=False))
    return take(table, picked), (f"{MAX_ROWS:,} of {table.num_rows:,} rows were audited, picked at random.",)


def _sample_columns(
    procedure: Privatize, table: pa.Table, secret: str | None, rng: np.random.Generator
) -> tuple[Privatize, pa.Table, tuple[str, ...]]:
    """The table and its release; of a wide table those columns that options name and some others, picked at random."""
    options, names = procedure.options, table.column_names
    privatized = [name for name in names if name in {*(options.get("columns") or names)}]
    if len(privatized) <= MAX_COLUMNS:
        return procedure, table, ()
    listed = [name for option in ("constant", "keep") for name in options.get(option) or ()]
    named = {secret, options.get("unit"), *listed, *procedure.first_measured}
    others = [name for name in privatized if name not in named]
    named |= {*rng.choice(others, min(len(others), SAMPLED_COLUMNS), replace=False).tolist()}
    chosen = [name for name in names if name in named]
    remark = (
        f"{len(chosen)} of {len(names)} columns were audited, picked at random, as if they were the table; the exact ε "
        "of the noise is that of all of them."
    )
    return replace(procedure, options=_about(chosen, options)), table.select(chosen), (remark,)


def _about(names: Sequence[str], options: dict[str, Any]) -> dict[str, Any]:
    """The options, where those that list columns list no others."""
    some = dict(options)
    if some.get("columns") is not None:
        some["columns"] = [name for name in some["columns"] if name in names]
    if some.get("schema") is not None:
        some["schema"] = some["schema"].only(names)
    if some.get("types") is not None:
        some["types"] = {name: of for name, of in some["types"].items() if name in names}
    return some


def _check_table(table: pa.Table, secret: str | None) -> None:
    """Fail at once rather than in the last of the attacks."""
    if table.num_rows < MIN_ROWS_TO_ATTACK:
        raise InputError(
            f"the table has {table.num_rows} rows; an audit needs at least {MIN_ROWS_TO_ATTACK}.",
            "Use a table with more rows.",
        )
    if secret is not None:
        check_names([secret], table.column_names, "secret")


def _check_options(options: dict[str, Any], confidence: float) -> None:
    if unknown := sorted(set(options) - set(OPTIONS)):
        raise InputError(f"an audit has no option {unknown[0]!r}.", f"It has {', '.join(OPTIONS)}.")
    if not 0.5 <= confidence < 1:
        raise InputError(f"confidence={confidence!r} is not between 0.5 and 1.", "Use for example 0.95 or 0.999.")
