"""What the record says: which targets are met, where dipriv is ahead of a peer under the same promise and where not."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from itertools import chain
from typing import Any

from benchmarks.quality.targets import DECLARED, PURE, TARGETS, Target

RIVALS = {
    DECLARED: ("OpenDP MST", "OpenDP AIM"),
    PURE: ("OpenDP MST, delta=0", "OpenDP AIM, delta=0"),
}
"""Peers get the labels and the bins of the codebook: they are compared with dipriv where it gets the codebook, too."""
SCORES = {"margins": False, "pairs": False, "triples": False, "k-marginal": False, "label margins": True, "KL": True}
"""Whether less is better."""
MARGINS = (
    "dipriv spends more on pairs, and a number's bins are found from the rows, while the peer is given the bins that "
    "are scored"
)
LAPLACE = "with delta=0 a further measurement costs as much ε as the first, and the bins of a number take two of them"
WHY: dict[tuple[str, str], str] = {
    **{(table, "margins"): MARGINS for table in ("bank", "adult", "national", "ma2019")},
    **{(table, "label margins"): MARGINS for table in ("adult", "national")},
    **{("bank", score): LAPLACE for score in ("pairs", "triples", "KL")},
}
"""Why a table's score is behind a peer's; by the names of table and score."""
Record = Mapping[str, Any]


def verdict(record: Record) -> dict[str, Any]:
    """The targets with their measurements, every comparison with a peer, and which runs of peers are missing."""
    return {
        "targets": [_judged(target, record) for target in TARGETS],
        "peers": compare(record),
        "not run": [
            f"{table}: {rival}"
            for table, methods in record.get("peers", {}).get("tables", {}).items()
            for rival in chain(*RIVALS.values())
            if rival not in methods
        ],
    }


def _judged(target: Target, record: Record) -> dict[str, Any]:
    values = _values(target, record)
    return asdict(target) | ({"measured": values, "met": target.met(statistics.fmean(values))} if values else {})


def _values(target: Target, record: Record) -> list[float]:
    part = record.get(target.table, {})
    if target.table == "edges":
        found = part.get("tables", {}).get(target.setting, {})
        return [found[target.score]] if target.score in found else []
    if target.table == "rows":
        found = part.get("sizes", {}).get(target.score, {}).get("correlation", [])
    else:
        found = part.get("methods", {}).get(target.setting, {}).get(target.score, [])
    return list(found)


def compare(record: Record) -> list[dict[str, Any]]:
    """Every score of every table that both have, and how many times faster dipriv is."""
    found = []
    for table, methods in record.get("peers", {}).get("tables", {}).items():
        for setting, rivals in RIVALS.items():
            ours = record.get(table, {}).get("methods", {}).get(setting, {})
            for rival in rivals:
                names = {"table": table, "setting": setting, "rival": rival}
                found += [names | one for one in _compared(table, ours, methods.get(rival, {}))]
    return found


def _compared(table: str, ours: Record, theirs: Record) -> Iterator[dict[str, Any]]:
    """The scores that both have; the seconds of a run that was not done are its limit."""
    for score, less in SCORES.items():
        if ours.get(score) and theirs.get(score):
            a, b = (statistics.fmean(method[score]) for method in (ours, theirs))
            ahead = a < b if less else a > b
            yield {"score": score, "ours": a, "theirs": b, "ahead": ahead, "why": WHY.get((table, score), "")}
    seconds = theirs.get("seconds") or [theirs["limit"]] if theirs else []
    if ours.get("seconds") and seconds:
        a, b = statistics.median(ours["seconds"]), statistics.median(seconds)
        yield {"score": "seconds", "ours": a, "theirs": b, "ahead": a < b, "times": b / a}
