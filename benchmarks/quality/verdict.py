"""What the record says: which targets are met, where dipriv is ahead of a peer under the same promise and where not."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.quality.targets import DECLARED, PURE, TARGETS, Target

RIVALS = {
    DECLARED: ("OpenDP MST", "OpenDP AIM"),
    PURE: ("OpenDP MST, delta=0", "OpenDP AIM, delta=0"),
}
"""Peers get the labels and the bins of the codebook: they are compared with dipriv where it gets the codebook, too."""
SCORES = {"margins": False, "pairs": False, "triples": False, "k-marginal": False, "label margins": True, "KL": True}
"""Whether less is better."""
FASTER = 50
"""How many times faster than AIM a release should be."""
WHY: dict[tuple[str, str], str] = {}
"""Why a table's score is behind a peer's; by the names of table and score."""
Record = Mapping[str, Any]


def verdict(record: Record) -> dict[str, Any]:
    """The targets with their measurements, and every comparison with a peer."""
    return {"targets": [_judged(target, record) for target in TARGETS], "peers": compare(record)}


def _judged(target: Target, record: Record) -> dict[str, Any]:
    values = _values(target, record)
    told = {"table": target.table, "setting": target.setting, "score": target.score}
    told |= {"limit": target.limit, "less": target.less}
    return told | ({"measured": values, "met": target.met(statistics.fmean(values))} if values else {})


def _values(target: Target, record: Record) -> Sequence[float]:
    part = record.get(target.table, {})
    if target.table == "rows":
        return part.get("sizes", {}).get(target.score, {}).get("correlation", ())
    if target.table == "edges":
        found = part.get("tables", {}).get(target.setting, {})
        return [found[target.score]] if target.score in found else ()
    return part.get("methods", {}).get(target.setting, {}).get(target.score, ())


def compare(record: Record) -> list[dict[str, Any]]:
    """Every score of every table that both have, and how many times faster dipriv is."""
    found = []
    for table, methods in record.get("peers", {}).get("tables", {}).items():
        for setting, rivals in RIVALS.items():
            ours = record.get(table, {}).get("methods", {}).get(setting, {})
            for rival in rivals:
                theirs = methods.get(rival, {})
                for score, less in SCORES.items():
                    if ours.get(score) and theirs.get(score):
                        a, b = statistics.fmean(ours[score]), statistics.fmean(theirs[score])
                        told = {"table": table, "setting": setting, "rival": rival, "score": score}
                        ahead = a < b if less else a > b
                        found.append(
                            told | {"ours": a, "theirs": b, "ahead": ahead, "why": WHY.get((table, score), "")}
                        )
                if ours.get("seconds") and (theirs.get("seconds") or "limit" in theirs):
                    a = statistics.median(ours["seconds"])
                    b = statistics.median(theirs["seconds"]) if theirs["seconds"] else theirs["limit"]
                    told = {"table": table, "setting": setting, "rival": rival, "score": "seconds"}
                    found.append(told | {"ours": a, "theirs": b, "ahead": a < b, "times": b / a})
    return found
