"""The label attack: does a label that one person alone has show in the release?

Labels that nothing declares are found under (ε, δ). One row, or all rows of one person, get labels that nobody else
has. Without them these cannot show, so with them they may do so with probability δ, for every ε.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from dipriv._base.arrays import Mask
from dipriv.auditing.intervals import Estimate, Rate
from dipriv.auditing.learning import MAX_SEED, sample_rows
from dipriv.auditing.persons import owners, sample_persons
from dipriv.auditing.procedure import ReleasedTable, ReleaseProcedure
from dipriv.auditing.results import AttackResult

TRIES = 20
"""Releases in which the label is looked for."""
LABEL = "a label that nobody else has"


def attack_labels(
    release: ReleaseProcedure,
    table: pa.Table,
    names: Sequence[str],
    delta: float,
    *,
    unit: str | None = None,
    tries: int = TRIES,
    confidence: float = 0.95,
    rng: np.random.Generator,
) -> AttackResult | None:
    """In how many releases the labels of one row, or person, show, as released cells or in the published schema.

    Parameters
    ----------
    release : the procedure under audit.
    table : the private table, of which a sample is released.
    names : the columns whose labels are found privately.
    delta : the δ of the claim.
    unit : the column that says whose a row is, if the claim is to a person: all of their rows get the labels.
    tries : the number of releases.
    confidence : of the interval.
    rng : chooses the sample, the row and the seeds.

    Returns
    -------
    The rate, compared with δ; None if no such column holds text.
    """
    texts = [name for name in names if _is_text(table.schema.field(name).type)]
    if not texts:
        return None
    small = sample_rows(table, rng) if unit is None else sample_persons(table, unit, rng)
    whose = np.arange(small.num_rows) if unit is None else owners(small, unit)
    hits = 0
    for _ in range(tries):
        planted, labels = plant(small, texts, whose == whose[rng.integers(small.num_rows)])
        hits += shows(release(planted, int(rng.integers(MAX_SEED))), labels)
    rate, never = Rate(hits, tries, confidence), Rate(0, tries, confidence)
    advantage = Estimate(rate.value, rate.lower, rate.upper, confidence)  # the control group's rate is 0 for certain
    of = "one row" if unit is None else "one person"
    what = f"Looks whether a label of {of} shows in the release or its schema ({len(texts)} columns)."
    return AttackResult(f"label of {of}", what, rate, never, advantage, delta, delta)


def plant(table: pa.Table, names: Sequence[str], rows: Mask) -> tuple[pa.Table, dict[str, str]]:
    """The table with labels in these columns of these rows that no other row has, and the labels."""
    labels, here = {}, pa.array(rows)
    for name in names:
        column = table.column(name).combine_chunks()
        text = (column.dictionary_decode() if pt.is_dictionary(column.type) else column).cast(pa.large_string())
        label = LABEL
        while pc.any(pc.equal(text, label)).as_py():
            label += "."
        place = table.schema.get_field_index(name)
        planted = pc.if_else(here, pa.scalar(label, pa.large_string()), text)
        table = table.set_column(place, name, planted.dictionary_encode() if pt.is_dictionary(column.type) else planted)
        labels[name] = label
    return table, labels


def shows(released: ReleasedTable, labels: Mapping[str, str]) -> bool:
    """Whether any of these labels is in a released column, in its type, or in the fitted mechanism's lists."""
    fitted = {} if released.fitted is None else {column.name: column.labels for column in released.fitted.columns}
    for name, label in labels.items():
        seen = [part.dictionary if pt.is_dictionary(part.type) else part for part in released.data.column(name).chunks]
        seen += [fitted[name]] if fitted.get(name) is not None else []
        if any(pc.any(pc.equal(values.cast(pa.large_string()), label)).as_py() for values in seen):
            return True
    return False


def _is_text(kind: pa.DataType) -> bool:
    value = kind.value_type if pt.is_dictionary(kind) else kind
    return bool(pt.is_string(value) or pt.is_large_string(value) or pt.is_string_view(value))
