"""The whole path in one page: a table in, a released table and its guarantee out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from dipriv._arrays import Mask
from dipriv._random.bits import Bits, Seed, source
from dipriv._tables import frames as tables
from dipriv._tables.arrow import distinct_labels, group_codes
from dipriv._tables.fitted_columns import infer
from dipriv._tables.frames import Table
from dipriv._tables.identifiers import refuse_free_text
from dipriv.errors import InputError, ReferenceDataError
from dipriv.guarantee.guarantee import Guarantee, check_epsilon
from dipriv.guarantee.wording import protects
from dipriv.kernels import KernelSpec, Laplace, Optimal
from dipriv.references import Empirical, Grouped, Private, ReferenceSpec
from dipriv.release import fitting
from dipriv.release.fidelity import expected_fidelity
from dipriv.release.promise import Origin, make_guarantee
from dipriv.schema import Kind, Schema
from dipriv.sources.holdout import Split
from dipriv.sources.privacy_unit import Unit
from dipriv.sources.protocol import CountedTables

if TYPE_CHECKING:
    from dipriv.ledger import Ledger
    from dipriv.release.accounting import Account

HOLDOUT = 0.25
"""The share of rows that is held out unless told otherwise."""
ReferenceLike = str | ReferenceSpec
KernelLike = str | KernelSpec
SchemaLike = Schema | Mapping[str, Kind] | None


@dataclass(frozen=True, eq=False)
class Release:
    """A released table and what is promised about it.

    `released` marks the rows of the input that are released; `split` is the hold-out's fixed assignment, to be used
    again for any further release of the same table; `schema` is what each column was taken as.
    """

    data: Any = field(repr=False)
    guarantee: Guarantee
    schema: Schema = field(repr=False)
    released: Mask = field(repr=False)
    split: Split | None = field(repr=False, default=None)
    fitted: fitting.FittedMechanism | None = field(repr=False, default=None)

    @cached_property
    def fidelity(self) -> dict[str, float]:
        """{column: expected correlation of released with true values}, from reference and kernel alone.

        For categories it is agreement beyond chance, Cohen's kappa. It does not depend on the released rows and may be
        published with them: analysts need it to correct attenuation (docs/guide.md).
        """
        return {} if self.fitted is None else expected_fidelity(self.fitted)

    @property
    def rows(self) -> NDArray[np.intp]:
        """The positions in the input of the released rows."""
        return np.flatnonzero(self.released)

    def __repr__(self) -> str:
        rows = np.count_nonzero(self.released)
        return f"Release({rows} rows, epsilon={self.guarantee.epsilon:g}, protects {protects(self.guarantee)!r})"


def privatize(
    frame: Any,
    epsilon: float,
    *,
    reference: ReferenceLike = "private",
    kernel: KernelLike = "optimal",
    schema: SchemaLike = None,
    columns: Sequence[str] | None = None,
    keep: Sequence[str] = (),
    holdout: float | None = None,
    split: Split | None = None,
    public: Any = None,
    unit: str | None = None,
    rows_per_unit: int = 10,
    ledger: Ledger | str | Path | None = None,
    dataset: str | None = None,
    seed: Seed = None,
    progress: bool = False,
) -> Release:
    """Release a table row by row under ε-differential privacy (the paper's Algorithm 1).

    Parameters
    ----------
    frame : pandas, polars or pyarrow table, or two-dimensional numpy array.
    epsilon : total privacy budget of a row, over all its columns; of all rows of a person with `unit`.
    reference : "private" (learned from all rows under a part of ε, so that every row is released and protected),
        "holdout" (empirical distribution of a random hold-out that is not released, nor protected) or a recipe from
        `dipriv.references`; with `public`, the empirical distribution of that table unless told otherwise.
    kernel : "optimal" (the noise that keeps the most of each row at this ε) or "laplace" (the paper's), or
        `Optimal(weights, costs)` or `Laplace(shares)` from `dipriv.kernels` to weigh the columns.
    schema : kinds of columns that are public facts; the others are read from the reference rows, or privately.
    columns : the columns to privatize and release; by default all that are not in `keep`.
    keep : columns that pass through unchanged and unprotected, such as row numbers.
    holdout, split : the share of rows to hold out (a quarter), or, instead, the split of an earlier release. Given
        with a private reference, that is learned from the hold-out with all of ε, and the other rows are released.
    public : a public table with the same columns; the reference is fitted on it and every row is released.
    unit, rows_per_unit : the column that says whose a row is: all rows of a person then share ε. Of each person at most
        so many rows are released, picked at random. The column itself is not released unless it is kept.
    ledger, dataset : a `dipriv.Ledger` or where it is: the release is counted against the data set's budget before
        anything is released, and holds out the same rows as every other release of it.
    seed : leave out for secure randomness; a seed is for experiments and voids the guarantee.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"age": range(20, 70), "smokes": [True, False] * 25})
    >>> release = privatize(table, epsilon=1.0)
    >>> list(release.data.columns), release.guarantee.epsilon
    (['age', 'smokes'], 1.0)
    """
    epsilon = check_epsilon(epsilon)
    recipe, noise = as_reference_spec(reference, public), as_kernel(kernel)
    who = as_unit(unit, rows_per_unit, recipe)
    bits = source(seed)
    table = tables.read(frame)
    is_private = isinstance(recipe, Private)
    table = table.clip_infinities() if is_private else table
    apart = uses_holdout(recipe, public, holdout, split)
    check_split(split, apart, who)
    names = select(table, columns, keep, aside=(getattr(recipe, "by", None), split.by if split else None, unit))
    declared = as_schema(schema, names)
    facts = [table.column(name) for name in names]
    account = None
    if ledger is not None:
        from dipriv.release.accounting import identify

        if split is not None or isinstance(recipe, Grouped):
            raise InputError(
                "a ledger keeps the hold-out of its data sets itself.", "Leave split and references per group out."
            )
        account = identify(ledger, dataset, [table.batch()], None)
    held, chosen = np.zeros(table.rows, dtype=bool), np.ones(table.rows, dtype=bool)
    if apart:
        split = split or new_split(None if is_private else account, holdout, unit, bits)
        held = first_of_groups(table, recipe, split) if isinstance(recipe, Grouped) else split.held_out(table)
        check_sides(int(held.sum()), table.rows)
    if who is not None:
        chosen = who.kept(*unit_keys(who, table, bits))
        if apart:
            check_sides(int((held & chosen).sum()), table.rows)
    row_epsilon = epsilon if who is None else who.row_epsilon(epsilon)
    learned_from = _some_of(table, (held if apart else ~held) & chosen)
    rows = None
    if isinstance(recipe, Private):
        rows = CountedTables(learned_from.rows, lambda: [learned_from])
        fitted_on = None
    else:
        fitted_on = public_rows(public, recipe) if public is not None else learned_from if apart else None
        if apart:
            refuse_free_text(learned_from, names, declared, keep)
    basis = fitting.plan_fit(
        recipe,
        noise,
        row_epsilon,
        facts,
        declared,
        rows=rows,
        reference=fitted_on,
        disjoint=apart,
        bits=bits.child("fit"),
    )
    free = ~held & chosen
    released = _some_of(table, free)
    origin = Origin(where_from(recipe, public, apart), int(held.sum()), released.rows, split.by if split else None)
    said = make_guarantee(recipe, noise, basis, origin, keep, epsilon=epsilon, secure=bits.secure, unit=who)
    with nullcontext(lambda rows: None) if account is None else account.spending(said) as done:
        fitted = basis.fit(rows, bits.child("fit"))
        data = fitted.release(released, keep, bits.child("noise"), progress)
        done(released.rows)
    return Release(data, said, fitted.schema, free, split if held.any() else None, fitted)


def infer_schema(frame: Any) -> Schema:
    """What each column looks like to dipriv, read from these rows: a draft to edit and then declare.

    A schema that is inferred from private rows and then declared is assumed public; use it on public or
    reference rows, or as a draft.
    """
    table = tables.read(frame)
    return infer(table, table.names)


def as_reference_spec(reference: ReferenceLike, public: Any = None) -> ReferenceSpec:
    """The recipe that a name or an object stands for; a public table has the empirical one unless told otherwise."""
    if reference == "private" and public is not None:
        return Empirical()
    if reference == "private":
        return Private()
    if reference == "holdout":
        return Empirical()
    if isinstance(reference, str | type) or not hasattr(reference, "kinds"):
        raise InputError(
            f"reference={reference!r} is unknown."
            if isinstance(reference, str)
            else f"a {type(reference).__name__} is not a reference.",
            'Use "private", "holdout", or Private, Known, Empirical, Parametric or Grouped from dipriv.references.',
        )
    return reference


def as_kernel(kernel: KernelLike) -> KernelSpec:
    """The kernel that a name or an object stands for."""
    if kernel == "optimal":
        return Optimal()
    if kernel == "laplace":
        return Laplace()
    if isinstance(kernel, str | type) or not hasattr(kernel, "build"):
        raise InputError(
            f"kernel={kernel!r} is unknown."
            if isinstance(kernel, str)
            else f"a {type(kernel).__name__} is not a kernel.",
            'Use "optimal", "laplace", or Optimal(...) or Laplace(...) from dipriv.kernels.',
        )
    return kernel


def uses_holdout(recipe: ReferenceSpec, public: Any, holdout: float | None, split: Split | None = None) -> bool:
    """Whether the reference is fitted on rows that are held out: a private one only if that is asked for."""
    if public is not None or recipe.source == "nothing":
        return False
    return not isinstance(recipe, Private) or holdout is not None or split is not None


def where_from(
    recipe: ReferenceSpec, public: Any, apart: bool
) -> Literal["law", "public", "private", "holdout", "groups"]:
    """Where the reference comes from, if rows are held out for it (`apart`) or not."""
    if public is not None:
        return "public"
    if isinstance(recipe, Private):
        return "private"
    if not apart:
        return "law"
    return "groups" if isinstance(recipe, Grouped) else "holdout"


def check_split(split: Split | None, uses_holdout: bool, unit: Unit | None = None) -> None:
    """The split of an earlier release can be used here."""
    if split is None:
        return
    if not isinstance(split, Split):
        raise InputError(f"split is a {type(split).__name__}.", "Give the split of an earlier release, or Split.new().")
    if not uses_holdout:
        raise InputError("a split is given, but nothing is held out with this reference.", "Leave split out.")
    if unit is not None and split.by != unit.column:
        raise InputError(
            f"the split does not keep the rows of one {unit.column!r} on one side.",
            f"Use Split.new(by={unit.column!r}), or leave split out.",
        )


def new_split(account: Account | None, holdout: float | None, by: str | None, bits: Bits) -> Split:
    """The split of the account's data set, fixed for ever; without an account a fresh one.

    A private reference needs no account for it: its hold-out is as protected as the rows that are released.
    """
    if account is not None:
        return account.split(holdout, by, HOLDOUT)
    return Split.new(HOLDOUT if holdout is None else holdout, by, bits.child("split"))


def as_unit(unit: str | None, rows: int, recipe: ReferenceSpec) -> Unit | None:
    """Whose rows share ε, if not each row has its own."""
    if unit is None:
        return None
    if isinstance(recipe, Grouped):
        raise InputError("a unit is given with a reference per group.", "Use one of them.")
    return Unit(unit, rows)


def unit_keys(unit: Unit, table: Table, bits: Bits, first: int = 0) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """A keyed number for each row's person, and one for the row itself."""
    keys = Split.new(HOLDOUT, unit.column, bits.child("persons")).scores(table)
    return keys, Split.new(HOLDOUT, None, bits.child("rows of persons")).scores(table, first)


def as_schema(schema: SchemaLike, names: Sequence[str]) -> Schema:
    """The declared kinds, checked against the columns that are privatized."""
    declared = schema if isinstance(schema, Schema) else Schema(schema or {})
    tables.check_names(declared, names, "the schema")
    return declared


def select(
    table: Table, columns: Sequence[str] | None, keep: Sequence[str], aside: Sequence[str | None]
) -> tuple[str, ...]:
    """The columns to privatize, in the order of `columns`, else of the table; `aside` are used but not privatized."""
    for where, asked in (("columns", () if columns is None else columns), ("keep", keep)):
        if isinstance(asked, str):
            raise InputError(f"{where} is a text, not a list of names.", f"Write {where}=[{asked!r}].")
        tables.check_names(asked, table.names, where)
    if both := set(columns or ()) & set(keep):
        raise InputError(f"column {min(both)!r} is in columns and in keep.", "Privatize it or pass it through.")
    names = tuple(name for name in columns or table.names if name not in {*keep, *aside})
    if not names:
        raise InputError("no column is left to privatize.", "Name fewer columns in keep, or more in columns.")
    return names


def first_of_groups(table: Table, recipe: Grouped, split: Split) -> Mask:
    """True for the rows of each group that its reference is fitted on (appendix S4)."""
    tables.check_names([recipe.by], table.names, "by")
    table.column(recipe.by)  # refuses nested and other types that cannot be compared
    array = table.array(recipe.by)
    if array.null_count:
        raise InputError(f"column {recipe.by!r} has nulls.", "Give every row a group, or leave these rows out.")
    codes = group_codes(array, distinct_labels(array))
    sizes = np.bincount(codes)
    if sizes.min() <= recipe.first:
        raise ReferenceDataError(
            f"{int((sizes <= recipe.first).sum())} of {len(sizes)} groups in column {recipe.by!r} have "
            f"{recipe.first} or fewer rows; each needs at least {recipe.first + 1}.",
            "Lower `first`, leave these groups out, or use one reference for all rows.",
        )
    positions = np.arange(table.rows)
    priority = split.scores(table) if recipe.pick == "random" else positions
    order = np.lexsort((priority, codes))
    rank = np.empty(table.rows, dtype=np.intp)
    rank[order] = positions - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return rank < recipe.first


def check_sides(held: int, rows: int) -> None:
    """A hold-out must leave some rows on both sides."""
    if not 0 < held < rows:
        raise ReferenceDataError(
            f"the hold-out has {held} of {rows} rows; both sides need some.",
            "Use a larger table or another holdout=..., give a public table, or state a known law.",
        )


def _some_of(table: Table, rows: Mask) -> Table:
    return table if rows.all() else table.take(rows)


def public_rows(public: Any, recipe: ReferenceSpec) -> Table:
    """The public table that the reference is fitted on."""
    if recipe.source != "rows":
        raise InputError(
            f"a public table is given, but the reference ({recipe.describe()}) is not fitted on one.",
            "Leave public out, or use the Empirical or Parametric reference.",
        )
    return tables.read(public)
