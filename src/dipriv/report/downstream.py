"""The same regression on both tables: would an analyst of the release come to the same conclusions?"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from dipriv._base.arrays import FloatArray
from dipriv.report.extra import needed
from dipriv.report.facts import MIN_ROWS_SHOWN, Coefficient, Downstream, Estimate
from dipriv.report.pairing import Pair

MAX_LEVELS = 30
MAX_NULLS = 0.5
MAX_ITERATIONS = 25
"""Newton's method needs about ten, or does not converge."""
OTHER = "(other)"
_DEPENDENT = 1e-8

Model: TypeAlias = Literal["logistic regression", "least squares"]


@dataclass(frozen=True, repr=False, eq=False)
class Term:
    """A column of a regression's design, or its response, in both tables; not-a-number where it is missing."""

    name: str
    before: FloatArray
    after: FloatArray


def downstream(pairs: Sequence[Pair], target: str, predictors: Sequence[str]) -> Downstream:
    """Regress `target` on the predictors, on both tables; a fit that fails is a sentence, not an error."""
    model, response = _response(next(pair for pair in pairs if pair.name == target))
    if response is None:
        return Downstream(target, model, (0, 0), failure=model)
    terms, notes = _terms([pair for pair in pairs if pair.name in predictors and pair.name != target])
    terms = _independent([response, *terms], notes)
    before, after = (_complete([response, *terms], side) for side in ("before", "after"))
    rows = (len(before), len(after))
    said = (f"The response is {response.name}.", *notes)
    if not terms:
        return Downstream(
            target, model, rows, notes=said, failure="There are too few complete rows, or no predictor is left."
        )
    fits = _fits(model, before, after)
    if isinstance(fits, str) and model == "logistic regression":
        said = (*said, f"The logistic regression failed ({fits}); this is a linear one of 0 and 1.")
        model = "least squares"
        fits = _fits("least squares", before, after)
    if isinstance(fits, str):
        return Downstream(target, model, rows, notes=said, failure=f"The fit failed ({fits}).")
    names = ("intercept", *(term.name for term in terms))
    coefficients = tuple(Coefficient(name, one, two) for name, one, two in zip(names, *fits, strict=True))
    return Downstream(target, model, rows, coefficients, said)


def _response(pair: Pair) -> tuple[Any, Term | None]:
    """The model that suits the target and its response; or why there is none, and None."""
    values, counts = np.unique(pair.before.present, return_counts=True)
    if len(values) < 2 or len(pair.after.present) < MIN_ROWS_SHOWN:
        return "The target has fewer than two values.", None
    if len(values) == 2:
        if counts.min() < MIN_ROWS_SHOWN:
            return f"Fewer than {MIN_ROWS_SHOWN} rows have the rarer of the target's two values.", None
        high = pair.labels[int(values[1])] if pair.labels else f"{values[1]:.10g}"
        sides = [np.where(np.isin(x, values), (x == values[1]).astype(float), np.nan) for x in _sides(pair)]
        return "logistic regression", Term(f"whether “{pair.name}” is “{high}”", *sides)
    if pair.scale == "label":
        return f"The target has {len(values)} labels; a regression needs a number, or two labels.", None
    unit = 86400.0 if pair.scale == "time" else 1.0
    name = f"“{pair.name}”" + (" in days" if pair.scale == "time" else "")
    return "least squares", Term(name, *(x / unit for x in _sides(pair)))


def _terms(pairs: Sequence[Pair]) -> tuple[list[Term], list[str]]:
    """Numbers in the original's standard deviations, labels as dummies; and what had to be left out."""
    terms: list[Term] = []
    notes: list[str] = []
    for pair in pairs:
        if max(pair.before.nulls, pair.after.nulls) > MAX_NULLS:
            notes.append(f"“{pair.name}” is left out: over {MAX_NULLS:.0%} of it is missing.")
        elif pair.scale != "label":
            known = pair.before.present
            centre, spread = float(np.mean(known)), float(np.std(known))
            if 0 < spread < np.inf:
                terms.append(Term(pair.name, *((x - centre) / spread for x in _sides(pair))))
        elif len(np.unique(pair.before.present)) > MAX_LEVELS:
            notes.append(f"“{pair.name}” is left out: it has over {MAX_LEVELS} labels.")
        else:
            terms.extend(_dummies(pair))
    return terms, notes


def _dummies(pair: Pair) -> list[Term]:
    """One dummy a label, the first left out as the base; labels that few original rows have are taken together."""
    counts = np.bincount(pair.before.present.astype(np.intp), minlength=len(pair.labels))
    common = np.flatnonzero(counts >= MIN_ROWS_SHOWN)
    sides = _sides(pair)
    made = [Term(f"{pair.name} = {pair.labels[code]}", *(_where(x, x == code) for x in sides)) for code in common[1:]]
    rare = [_where(x, ~np.isin(x, common)) for x in sides]
    if np.nansum(rare[0]) >= MIN_ROWS_SHOWN:
        made.append(Term(f"{pair.name} = {OTHER}", rare[0], rare[1]))
    return made


def _independent(columns: Sequence[Term], notes: list[str]) -> list[Term]:
    """The terms (all but the first column, the response) that neither table makes a combination of earlier ones."""
    kept = np.ones(len(columns) - 1, dtype=bool)
    for side in ("before", "after"):
        x = _complete(columns, side)[:, 1:]
        if len(x) <= len(columns):
            return []
        full = np.column_stack([np.ones(len(x)), x])
        scaled = full / np.maximum(np.sqrt(np.sum(full**2, axis=0)), np.finfo(np.float64).tiny)
        kept &= np.abs(np.diag(np.linalg.qr(scaled, mode="r")))[1:] > _DEPENDENT
    dropped = [term.name for term, keep in zip(columns[1:], kept, strict=True) if not keep]
    if dropped:
        notes.append(f"Left out as combinations of the others in one of the tables: {', '.join(dropped)}.")
    return [term for term, keep in zip(columns[1:], kept, strict=True) if keep]


def _complete(columns: Sequence[Term], side: str) -> FloatArray:
    """The rows of one table where nothing is missing."""
    rows: FloatArray = np.column_stack([getattr(column, side) for column in columns])
    return rows[~np.isnan(rows).any(axis=1)]


def _fits(model: Model, before: FloatArray, after: FloatArray) -> list[list[Estimate]] | str:
    """The model on both tables, the response in the first column; or the kind of error where one cannot be fitted."""
    fit = _fitter(model)
    try:
        return [fit(side[:, 0], side[:, 1:]) for side in (before, after)]
    except Exception as fault:  # statsmodels fails in many ways, and the rest of the page is still wanted
        return type(fault).__name__


def _fitter(model: Model) -> Callable[[FloatArray, FloatArray], list[Estimate]]:
    """The function that fits a model to a response and a design without its constant."""
    with needed():
        from statsmodels.discrete.discrete_model import Logit
        from statsmodels.regression.linear_model import OLS
        from statsmodels.tools.sm_exceptions import ModelWarning

    def fit(y: FloatArray, x: FloatArray) -> list[Estimate]:
        design = np.column_stack([np.ones(len(x)), x])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", ModelWarning)  # no convergence, perfect separation: no result to show
            logistic = model == "logistic regression"
            result = Logit(y, design).fit(disp=0, maxiter=MAX_ITERATIONS) if logistic else OLS(y, design).fit()
            table = np.column_stack([result.params, result.conf_int(0.05)])
        if not np.isfinite(table).all():
            raise FloatingPointError
        return [Estimate(*row) for row in table.tolist()]

    return fit


def _where(x: FloatArray, true: Any) -> FloatArray:
    """1 where true, 0 elsewhere, missing where x is."""
    return np.where(np.isnan(x), np.nan, true.astype(np.float64))


def _sides(pair: Pair) -> tuple[FloatArray, FloatArray]:
    return pair.before.all, pair.after.all
