"""`make usefulness`: plans, verdicts and intervals beside the truth; writes docs/usefulness/ and docs/usefulness.md."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial

from benchmarks.parts import Found, asked, measure, write_folder
from benchmarks.quality.contest import warm_up
from benchmarks.usefulness import coverage, plan, verdict
from dipriv.errors import PrivacyWarning

PARTS: dict[str, Callable[[int | None], Found]] = {
    "plan": plan.run,
    "verdict": verdict.run,
    "coverage": coverage.run,
}
"""Each takes the number of seeds, None for its own, and returns what is on record."""


def _seeds(seeds: int | None = None) -> int | None:
    return seeds


def main() -> None:
    """Parse, measure, write."""
    found = asked("usefulness", PARTS, _seeds, {"seeds": "how many seeds"})
    warnings.simplefilter("ignore", PrivacyWarning)  # every release here has a seed
    warm_up()
    measure(PARTS, found, partial(write_folder, "usefulness"))


if __name__ == "__main__":
    main()
