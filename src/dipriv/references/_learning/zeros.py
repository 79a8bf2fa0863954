"""Structural zeros: cells of two-way tables that no row can be in, by a rule that is public.

Groups of states are cut where a rule's regions begin and end, so that a pair of groups is possible or not as a whole.
The model gives impossible pairs no probability, independent of what is measured, and the others take up the margins.
Everything here is post-processing of numbers that are already private.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dipriv._base.arrays import Mask
from dipriv.codecs.binned import BinnedCodec
from dipriv.references._learning.estimates import ColumnEstimate
from dipriv.references._learning.junction_tree import Pair
from dipriv.references._learning.shares import MAX_GROUPS
from dipriv.references._models.network import Groups
from dipriv.references.exclusions import Exclusion, Region
from dipriv.references.protocol import CountableValues

CONTRADICTION = 4.0
"""In standard deviations of the noise: by how much columns may contradict a rule before it is left to the release."""
MAX_CUT_GROUPS = 4 * MAX_GROUPS
"""A column that rules cut into more groups keeps its own: the release corrects what they allow."""


@dataclass(frozen=True, eq=False)
class Zeros:
    """An exclusion, as the states of two columns that do not occur together."""

    one: int
    other: int
    states: tuple[Mask, Mask]


def zeros_of(
    exclusions: Sequence[Exclusion], estimates: Sequence[ColumnEstimate], rows: CountableValues
) -> list[Zeros]:
    """The exclusions that the columns' histograms do not contradict, beyond their noise.

    Where they do, the rows break the rule, or the only label or missing cell that it allows was not found. Zeros would
    then move the margins; without them, the release sets the cells that the rule is about.
    """
    place = {estimate.domain.name: number for number, estimate in enumerate(estimates)}
    found = []
    for exclusion in exclusions:
        one, other = place[exclusion.one.column], place[exclusion.other.column]
        inside = _states(exclusion.one, estimates[one], rows), _states(exclusion.other, estimates[other], rows)
        if _agrees(estimates[one], inside[0], estimates[other], inside[1]):
            found.append(Zeros(one, other, inside))
    return found


def _agrees(one: ColumnEstimate, first: Mask, other: ColumnEstimate, second: Mask) -> bool:
    """Whether the cells of the second column that a rule allows can take up the first column's cells it is about."""
    if second.all() or not first.any():
        return False
    noise = math.sqrt(first.sum() * one.spread.deviation**2 + (~second).sum() * other.spread.deviation**2)
    excess = float(one.histogram[first].sum() - other.histogram[~second].sum())
    return excess <= CONTRADICTION * noise


def _states(region: Region, estimate: ColumnEstimate, rows: CountableValues) -> Mask:
    """The states of a column all of whose cells are in the region."""
    codec = estimate.codec
    kinds = np.full(len(codec.missing), region.missing)
    if isinstance(codec, BinnedCodec):
        low = codec.line.to_values(codec.starts)
        high = codec.line.to_values((codec.starts.astype(np.uint64) + codec.sizes).astype(np.int64) - 1)
    else:
        low = high = codec.levels[codec.order]
    if region.comparison in ("all", "none"):
        return np.concatenate([kinds, np.full(len(low), region.comparison == "all")])
    values = np.array(rows.label_numbers(region.column, region.values) if region.is_label else region.values)
    if region.comparison in ("in", "not in"):
        outside = np.logical_and.reduce([(value < low) | (value > high) for value in values.tolist()])
        among = np.isin(low, values) & (low == high)
        return np.concatenate([kinds, outside if region.comparison == "not in" else among])
    compare = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}[region.comparison]
    return np.concatenate([kinds, compare(low, values[0]) & compare(high, values[0])])


def cut_groups(groups: Groups, masks: Sequence[Mask]) -> Groups:
    """Groups that no mask divides."""
    changes = np.diff(groups, prepend=-1) != 0
    for mask in masks:
        changes[1:] |= mask[1:] != mask[:-1]
    finer: Groups = np.cumsum(changes) - 1
    return finer if finer[-1] < MAX_CUT_GROUPS else groups


def masks_of(zeros: Sequence[Zeros], column: int) -> list[Mask]:
    """The regions of a column."""
    of_column = [(each.one, each.states[0]) for each in zeros] + [(each.other, each.states[1]) for each in zeros]
    return [mask for number, mask in of_column if number == column]


def impossible_cells(zeros: Sequence[Zeros], groups: Sequence[Groups]) -> Mapping[Pair, Mask]:
    """The cells of two-way tables that no row is in."""
    tables: dict[Pair, Mask] = {}
    for each in zeros:
        inside = [_whole_groups(groups[each.one], each.states[0]), _whole_groups(groups[each.other], each.states[1])]
        cells = np.logical_and.outer(*inside)
        pair = (min(each.one, each.other), max(each.one, each.other))
        cells = cells if each.one < each.other else cells.T
        tables[pair] = tables[pair] | cells if pair in tables else cells
    return tables


def _whole_groups(groups: Groups, inside: Mask) -> Mask:
    """The groups all of whose states are inside."""
    whole: Mask = np.bincount(groups, ~inside) == 0
    return whole
