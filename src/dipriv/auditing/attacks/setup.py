"""The scene of an attack: the table that was released, the release, and people who were never in the table.

The control group is drawn at random from the same people, and the others are put in random order. So a released person
and one of the control group could have changed places: what an attack finds out about the one beyond the other, it has
from the release.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dipriv._random.bits import Seed, source
from dipriv.auditing.nearness import Points, Space
from dipriv.auditing.procedure import Publish
from dipriv.errors import InputError
from dipriv.release.fitting import FittedMechanism

FEWEST_ROWS, FEWEST_PEOPLE = 50, 10
"""A table to be split needs so many rows; each side of a scene so many people."""


@dataclass(frozen=True, eq=False)
class Scene:
    """What the attacks need: the table that was given to the mechanism, what came out, and people who were not in it.

    `rows` are the positions in `table` of the released rows, in order. `control` must be a random part of the people
    whose other part is `table`. `fitted` is for an attacker who also knows the reference, as the promise allows.
    `all_protected`: ε is promised to all rows of the table, also to those that were held out.
    """

    table: pa.Table = field(repr=False)
    released: pa.Table = field(repr=False)
    rows: NDArray[np.intp] = field(repr=False)
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
            if side.num_rows < FEWEST_PEOPLE:
                raise InputError(
                    f"the {name} has {side.num_rows} rows; attacks need at least {FEWEST_PEOPLE}.",
                    "Use a larger table, or split it differently.",
                )
        rows = np.asarray(self.rows)
        inside = rows.dtype.kind in "iu" and rows.ndim == 1 and (rows >= 0).all() and (rows < self.table.num_rows).all()
        if not inside or len(rows) != self.released.num_rows or len(np.unique(rows)) < len(rows):
            raise InputError(
                f"{rows.size} positions are given for {self.released.num_rows} released rows of a table of "
                f"{self.table.num_rows}; each must have one of its own.",
                "Give the position in the table of every released row, as Release.rows does.",
            )


def stage(table: pa.Table, publish: Publish, seed: Seed = None, control: float = 0.3) -> Scene:
    """Set a share of the people apart as the control group, and publish the others, in random order."""
    if not 0 < control < 1:
        raise InputError(f"control={control!r} is not a share between 0 and 1.", "Use a share such as 0.3.")
    if table.num_rows < FEWEST_ROWS:
        raise InputError(
            f"the table has {table.num_rows} rows; attacks need at least {FEWEST_ROWS}.", "Use a larger table."
        )
    ours, theirs = (None, None) if seed is None else as_sequence(seed).spawn(2)
    order = np.random.default_rng(ours).permutation(table.num_rows)
    apart = round(control * table.num_rows)
    control_group, given = take(table, order[:apart]), take(table, order[apart:])
    published = publish(given, theirs)
    names = published.data.column_names
    return Scene(
        given.select(names),
        published.data,
        published.rows,
        control_group.select(names),
        published.fitted,
        published.all_protected,
    )


def as_sequence(seed: int | np.random.SeedSequence) -> np.random.SeedSequence:
    """A seed that others can be spawned from."""
    source(seed)  # refuses what is no seed
    return seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)


@dataclass(frozen=True, eq=False)
class Group:
    """Some people: their true rows, also as points, and how far the closest released row is from each.

    If they were released, `own` are the places of their rows in the release.
    """

    rows: pa.Table = field(repr=False)
    points: Points = field(repr=False)
    closest: NDArray[np.int64] = field(repr=False)
    own: NDArray[np.intp] = field(repr=False)

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def some(self, start: int, stop: int) -> Group:
        """Those from one place to another."""
        part = slice(start, stop)
        return Group(self.rows[part], self.points[:, part], self.closest[part], self.own[part])


@dataclass(frozen=True, eq=False)
class Cast:
    """Who is who in the attacks. No person has two parts, so nothing is counted that was also learned from.

    `members` were released, and the attacks on them are counted. `insiders` were released too; the attacker knows them
    and which released rows are theirs, and practises on them. `others` are the places of all further released rows.
    `held` are in the table, but were not released. `strangers` were never in the table: they are the control group.
    `outsiders` neither; the attacker knows them.
    """

    space: Space
    members: Group
    insiders: Group
    others: NDArray[np.intp] = field(repr=False)
    held: Group
    strangers: Group
    outsiders: Group

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(axis.name for axis in self.space.axes)


def cast(scene: Scene, most: int, rng: np.random.Generator) -> Cast:
    """Give the people of the scene their parts by lot, none of them to more than `most`."""
    space = Space.of(scene.released)
    lot = rng.permutation(len(scene.rows))
    part = min(most, len(lot) // 3)
    kept_back = rng.permutation(np.setdiff1d(np.arange(scene.table.num_rows), scene.rows))
    away = rng.permutation(scene.control.num_rows)
    none = np.empty(0, dtype=np.intp)

    def group(table: pa.Table, rows: NDArray[np.intp], own: NDArray[np.intp] = none) -> Group:
        people = take(table, rows)
        points = space.place(people)
        return Group(people, points, space.nearest(points, space.released)[0][:, 0], own)

    def released(own: NDArray[np.intp]) -> Group:
        return group(scene.table, scene.rows[own], own)

    return Cast(
        space,
        members=released(lot[:part]),
        insiders=released(lot[part : 2 * part]),
        others=lot[2 * part :],
        held=group(scene.table, kept_back[:most]),
        strangers=group(scene.control, away[::2][:most]),
        outsiders=group(scene.control, away[1::2][:most]),
    )


def take(table: pa.Table, rows: NDArray[np.intp]) -> pa.Table:
    """These rows, in this order; Arrow cannot take rows of string views themselves."""
    views = [pa.types.is_string_view(column.type) for column in table.schema]
    if any(views):
        fields = (
            column.with_type(pa.large_string()) if view else column
            for column, view in zip(table.schema, views, strict=True)
        )
        table = table.cast(pa.schema(fields))
    return table.take(rows)
