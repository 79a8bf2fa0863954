"""Attacks on a release, to be run by its owner before others do: how much do they find out beyond a control group?

An attack succeeds on a person or not. Its rate on people of the table is put beside its rate on strangers, of whom the
release cannot tell; the difference is what the release gives away, and for people whom the promise protects ε says how
much that can be at most. People have one part each, and what an attacker learns from is never counted.

Intervals count the tries as independent. They are not quite: all are about one release, so they share its reference and
its rows. They say how far the rates of further people of this scene would be from those that are found, not how far
the rates of another release.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dipriv._random.bits import Seed
from dipriv._tables.frames import check_names
from dipriv.auditing.attacks.attribute_inference import attributes
from dipriv.auditing.attacks.exposure import exposure
from dipriv.auditing.attacks.linkage import linkage
from dipriv.auditing.attacks.membership import membership
from dipriv.auditing.attacks.reidentification import line_ups
from dipriv.auditing.attacks.setup import FEWEST_PEOPLE, Scene, as_sequence, cast, stage
from dipriv.auditing.results import Attack
from dipriv.errors import InputError
from dipriv.guarantee.guarantee import check_epsilon

__all__ = ["Scene", "attack_all", "stage"]


def attack_all(
    scene: Scene,
    epsilon: float,
    *,
    confidence: float = 0.95,
    secret: str | None = None,
    most: int = 2_000,
    seed: Seed = None,
    progress: Callable[[float], None] | None = None,
) -> tuple[Attack, ...]:
    """Every attack that the scene has columns and rows enough for.

    Parameters
    ----------
    epsilon : what is claimed for the release.
    confidence : of each interval by itself.
    secret : the column to be inferred from the others; by default each in turn.
    most : of each group of people at most so many are attacked, or learned from.
    seed : a seed for who is attacked. It has nothing to do with the noise of the release.
    progress : is told the share of the work that is done.
    """
    epsilon = check_epsilon(epsilon)
    if not 0 < confidence < 1:
        raise InputError(f"confidence={confidence!r} is not between 0 and 1.", "Use a confidence such as 0.95.")
    if most < FEWEST_PEOPLE:
        raise InputError(f"most={most!r} is below {FEWEST_PEOPLE}.", f"Attack at least {FEWEST_PEOPLE} people.")
    if secret is not None:
        check_names([secret], scene.table.column_names, "secret")
    draw = np.random.default_rng(None if seed is None else as_sequence(seed))
    people = cast(scene, most, draw)
    steps: tuple[Callable[[], list[Attack]], ...] = (
        lambda: exposure(people, epsilon, confidence, held_protected=scene.all_protected),
        lambda: linkage(people, epsilon, confidence),
        lambda: membership(people, epsilon, confidence),
        lambda: line_ups(scene, people, epsilon, confidence, draw),
        lambda: attributes(people, epsilon, confidence, secret),
    )
    found: list[Attack] = []
    for done, step in enumerate(steps, start=1):
        found += step()
        if progress is not None:
            progress(done / len(steps))
    return tuple(found)
