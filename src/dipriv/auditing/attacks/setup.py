"""What an attack is run on: the released table, its release, a control group, and disjoint cohorts of people.

The control group is a random part of the same people, so a member and a non-member are exchangeable: what an attack
finds out about members beyond non-members comes from the release.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dipriv._random.bits import Seed, source
from dipriv.auditing.nearness import Points, Space
from dipriv.auditing.procedure import ReleaseProcedure
from dipriv.errors import InputError
from dipriv.release.fitting import FittedMechanism

MIN_ROWS = 50
"""The smallest table that can be split into members and a control group."""
MIN_PEOPLE = 10
"""The smallest release, control group or cohort."""


@dataclass(frozen=True, eq=False)
class AttackSetup:
    """The table that was released, the release, and people who were not in the table.

    `row_positions` are the positions in `table` of the released rows, in order. `control` must be a random part of the
    people whose other part is `table`. `fitted` is for an attacker who also knows the reference, which the guarantee
    allows. `all_protected`: the guarantee covers all rows of the table, including those that were held out.
    """

    table: pa.Table = field(repr=False)
    released: pa.Table = field(repr=False)
    row_positions: NDArray[np.intp] = field(repr=False)
    control: pa.Table = field(repr=False)
    fitted: FittedMechanism | None = field(repr=False, default=None)
    all_protected: bool = False

    def __post_init__(self) -> None:
        for name, side in (("release", self.released), ("control group", self.control)):
            if not side.schema.equals(self.table.schema):
                raise InputError(
                    f"the columns of the {name} are not those of the table, or not in their order and types.",
                    "Give all three the privatized columns alone: table.select([...]).",
                )
            if side.num_rows < MIN_PEOPLE:
                raise InputError(
                    f"the {name} has {side.num_rows} rows; attacks need at least {MIN_PEOPLE}.",
                    "Use a larger table, or split it differently.",
                )
        rows = np.asarray(self.row_positions)
        inside = rows.dtype.kind in "iu" and rows.ndim == 1 and (rows >= 0).all() and (rows < self.table.num_rows).all()
        if not inside or len(rows) != self.released.num_rows or len(np.unique(rows)) < len(rows):
            raise InputError(
                f"{rows.size} positions are given for {self.released.num_rows} released rows of a table of "
                f"{self.table.num_rows}; each released row needs one position of its own.",
                "Give the position in the table of every released row.",
            )


def set_up(table: pa.Table, release: ReleaseProcedure, seed: Seed = None, control: float = 0.3) -> AttackSetup:
    """Reserve a random share of the people as the control group, and release the others in random order.

    Parameters
    ----------
    table : all people.
    release : the procedure under audit.
    seed : seed of the split and of the release.
    control : share of the people in the control group.

    Returns
    -------
    The setup, with the privatized columns alone.

    Raises
    ------
    InputError : the table is too small, or `control` is not a share between 0 and 1.
    """
    if not 0 < control < 1:
        raise InputError(f"control={control!r} is not a share between 0 and 1.", "Use a share such as 0.3.")
    if table.num_rows < MIN_ROWS:
        raise InputError(
            f"the table has {table.num_rows} rows; attacks need at least {MIN_ROWS}.", "Use a larger table."
        )
    split_seed, release_seed = (None, None) if seed is None else as_sequence(seed).spawn(2)
    order = np.random.default_rng(split_seed).permutation(table.num_rows)
    n_control = round(control * table.num_rows)
    non_members, members = take(table, order[:n_control]), take(table, order[n_control:])
    released = release(members, release_seed)
    names = released.data.column_names
    return AttackSetup(
        members.select(names),
        released.data,
        released.row_positions,
        non_members.select(names),
        released.fitted,
        released.all_protected,
    )


def as_sequence(seed: int | np.random.SeedSequence) -> np.random.SeedSequence:
    """A seed sequence, from which further seeds can be spawned."""
    source(seed)  # raises for an invalid seed
    return seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)


@dataclass(frozen=True, eq=False)
class Cohort:
    """Some people: their true rows, the rows as points, and the distance of each to the closest released row.

    If they were released, `release_positions` are the positions of their rows in the release.
    """

    rows: pa.Table = field(repr=False)
    points: Points = field(repr=False)
    closest: NDArray[np.int64] = field(repr=False)
    release_positions: NDArray[np.intp] = field(repr=False)

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def slice(self, start: int, stop: int) -> Cohort:
        """The people from `start` up to `stop`."""
        part = slice(start, stop)
        return Cohort(self.rows[part], self.points[:, part], self.closest[part], self.release_positions[part])


@dataclass(frozen=True, eq=False)
class Cohorts:
    """Disjoint cohorts: nobody is both learned from and counted.

    members
        were released; attacks on them are counted.
    training_members
        were released; the attacker knows them and which released rows are theirs, and trains on them.
    other_positions
        positions of all further released rows.
    held_out
        are in the table, but were not released.
    non_members
        were never in the table; they are the control group.
    known_non_members
        were never in the table either; the attacker knows them.
    """

    space: Space
    members: Cohort
    training_members: Cohort
    other_positions: NDArray[np.intp] = field(repr=False)
    held_out: Cohort
    non_members: Cohort
    known_non_members: Cohort

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(axis.name for axis in self.space.axes)


def assign_cohorts(setup: AttackSetup, max_people: int, rng: np.random.Generator) -> Cohorts:
    """Assign the people of a setup to cohorts at random, at most `max_people` to each."""
    space = Space.of(setup.released)
    released = rng.permutation(len(setup.row_positions))
    size = min(max_people, len(released) // 3)
    held_out = rng.permutation(np.setdiff1d(np.arange(setup.table.num_rows), setup.row_positions))
    control = rng.permutation(setup.control.num_rows)
    none = np.empty(0, dtype=np.intp)

    def cohort(table: pa.Table, rows: NDArray[np.intp], release_positions: NDArray[np.intp] = none) -> Cohort:
        people = take(table, rows)
        points = space.place(people)
        return Cohort(people, points, space.nearest(points, space.released)[0][:, 0], release_positions)

    def released_cohort(positions: NDArray[np.intp]) -> Cohort:
        return cohort(setup.table, setup.row_positions[positions], positions)

    return Cohorts(
        space,
        members=released_cohort(released[:size]),
        training_members=released_cohort(released[size : 2 * size]),
        other_positions=released[2 * size :],
        held_out=cohort(setup.table, held_out[:max_people]),
        non_members=cohort(setup.control, control[::2][:max_people]),
        known_non_members=cohort(setup.control, control[1::2][:max_people]),
    )


def take(table: pa.Table, rows: NDArray[np.intp]) -> pa.Table:
    """These rows, in this order. String views are cast first: Arrow cannot take rows of them."""
    views = [pa.types.is_string_view(column.type) for column in table.schema]
    if any(views):
        fields = (
            column.with_type(pa.large_string()) if view else column
            for column, view in zip(table.schema, views, strict=True)
        )
        table = table.cast(pa.schema(fields))
    return table.take(rows)
