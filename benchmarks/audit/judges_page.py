"""The section of the judges: what anonymeter and SDMetrics found, and what to take from it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.quality.page import table

OURS, COPY, HELD = "dipriv", "a verbatim copy", "dipriv hold-out, held-out rows"
WEAK = "†"
SCORES = (
    "column shapes",
    "pair trends",
    "new rows, targets",
    "new rows, control",
    "nearer to targets",
    "nearer to control",
    "overfitting protection",
    "baseline protection",
    "disclosure protection, targets",
    "disclosure protection, control",
)
USEFUL = ("column shapes", "pair trends")
SMALL = 0.005
"""Scores that differ by less are called the same."""
Found = dict[str, Any]


def section_judges(found: Found) -> str:
    """The section."""
    parts = [_setting(found), _remarks(found), _anonymeter(found), _sdmetrics(found)]
    return "## Judges that we did not write\n\n" + "\n".join(parts)


def _setting(found: Found) -> str:
    sizes = ", ".join(
        f"{name} ({told['rows']:,} rows, {told['distinct rows']:,} of them distinct, {told['columns']} columns)"
        for name, told in found["tables"].items()
    )
    labels: dict[str, list[str]] = {}
    for methods in found["methods"].values():
        for label, method in methods.items():
            labels.setdefault(label, [label, method["promise"]])
    lines = [
        [*line, *(str(methods.get(label, {}).get("runs", "")) for methods in found["methods"].values())]
        for label, line in labels.items()
    ]
    lacking = ", ".join(found["peers left out for lack of"])
    without = f"\n**The peers are left out: {lacking} not installed.**\n" if lacking else ""
    return f"""Two public programs attack and score releases of real tables:
{sizes}.
For each seed the rows are split into random halves. One is released in each of the ways below, at
ε = {found["epsilon"]:g} and with the default noise; the other is the control, which no method ever sees. An attack
counts by what it gains on people of the release over people of the control: what works on both alike is knowledge about
the population, not about a person. A copy of the rows shows what the judges can see at all. `reference="holdout"` is
the paper's way, which promises nothing to the rows that it holds out: they are attacked apart from those that it
releases.

The judges take every release for synthetic data. That row i of a release by dipriv comes from row i of the original is
not told to them, and the rows are shuffled.
{without}
{table(["release, and who is attacked", "promise", *(f"runs, {name}" for name in found["methods"])], lines)}
"""


def _remarks(found: Found) -> str:
    """What to take from the numbers, worked out from them."""
    limit = 1 - math.exp(-found["epsilon"])
    lines = [
        *_seen(found),
        *_caught(found),
        f"ε = {found['epsilon']:g} by itself lets no risk of linkability or inference be larger than {limit:.0%} "
        "(1 - 1/e^ε), whatever the attack. These attacks are far from the strongest: small risks here are no proof.",
        *_nearer(found),
        *_behind(found),
    ]
    return "What to take from it:\n\n" + "\n".join(f"* {line}" for line in lines) + "\n"


def _seen(found: Found) -> Iterator[str]:
    """Whether the judges can see."""
    for label in (COPY, HELD):
        risks = [risk for _, name, _, risk in _risks(found, label) if not name.startswith("singling out, 1")]
        if risks:
            caught = sum(risk["interval"][0] > 0 for risk in risks)
            values = [risk["risk"] for risk in risks]
            yield (
                f"Control, {label}: anonymeter finds a risk in {caught} of {len(risks)} attacks, "
                f"{min(values):.0%} to {max(values):.0%}."
            )


def _caught(found: Found) -> Iterator[str]:
    """What is found against dipriv and the peers; some intervals exclude 0 by chance."""
    for label in _labels(found):
        if label in (COPY, HELD):
            continue
        risks = list(_risks(found, label))
        if not risks:
            continue
        caught = [f"{name} ({where})" for where, name, _, risk in risks if risk["interval"][0] > 0]
        where, name, _, most = max(risks, key=lambda risk: float(risk[-1]["risk"]))
        told = f": {', '.join(caught)}" if caught else ""
        chance = 0.025 * len(risks)
        yield (
            f"{label}: the interval of the risk excludes 0 in {len(caught)} of {len(risks)} attacks{told}; by chance "
            f"alone {chance:.1f} would. The largest estimate is {most['risk']:.1%}: {name} ({where}), "
            f"{most['attacks']:,} attacks."
        )


def _nearer(found: Found) -> Iterator[str]:
    """Whether released rows are nearer to the targets than to the control, beyond what so few rows show by chance."""
    judged = found["sdmetrics"]
    for name, methods in judged.get("found", {}).items():
        told = []
        for label, scores in methods.items():
            targets, control = (float(np.mean(scores[f"nearer to {who}"])) for who in ("targets", "control"))
            rows = judged["settings"]["sample"] * len(scores["nearer to targets"])
            error = 2 * math.sqrt((targets + control - (targets - control) ** 2) / rows)
            told.append(f"{label} {targets - control:+.1%} (± {error:.1%})")
        yield f"{name}: nearer to targets less nearer to control, with two standard errors: {'; '.join(told)}."


def _behind(found: Found) -> Iterator[str]:
    """Where dipriv is worse than a peer."""
    for name, scores in found["sdmetrics"].get("found", {}).items():
        for peer in (label for label in scores if label.startswith("OpenDP")):
            worse: list[str] = []
            better: list[str] = []
            for score in USEFUL:
                mine, theirs = (float(np.mean(scores[label][score])) for label in (OURS, peer))
                if abs(mine - theirs) >= SMALL:
                    (worse if mine < theirs else better).append(f"{score} {mine:.3f} against {theirs:.3f}")
            for what, which in (("worse", worse), ("better", better)):
                if which:
                    yield f"{name}: dipriv is {what} than {peer} in {'; '.join(which)}."


def _anonymeter(found: Found) -> str:
    judged = found["anonymeter"]
    if "left out" in judged:
        return f"### Anonymeter\n\nLeft out: {judged['left out']}.\n"
    settings = judged["settings"]
    tables = "\n".join(_attacks(name, methods) for name, methods in judged["found"].items())
    links = "\n".join(
        f"  * {name}: {', '.join(told['link'][0])}; and {', '.join(told['link'][1])}"
        for name, told in found["tables"].items()
    )
    return f"""### Anonymeter

Each attack is made so many times ("attacks", all seeds together). "Targets" is how often it succeeds on people whose
rows were released, "control" on people that the release knows nothing of, "naive" without looking at the release for
the person. The risk is anonymeter's: (targets - control) / (1 - control), with its 95% interval, cut off at 0.
{WEAK} marks what anonymeter warns of: the attack does no better than the naive one, so a risk of 0 says little.

* Singling out: a description by some columns that fits one row of the release, such as "campaign at least 30 and
  divorced", fits exactly one person. It makes up to {settings["attacks"]["singling out"]:,} descriptions a run;
  a release that has fewer is attacked with those.
* Linkability: two parts of a person's columns each lead to released rows, and one row is among the
  {settings["neighbours"]} nearest of both. The parts are
{links}
* Inference: the secret column is read off the released row that is nearest in all other columns. A number counts as
  found within 5%.

{tables}"""


def _attacks(name: str, methods: Found) -> str:
    rows, secrets = [], {}
    for attack in next(iter(methods.values())):
        if attack.startswith("inference of "):
            secrets[attack] = [attack.removeprefix("inference of ")]
            secrets[attack] += [_risk(judged[attack]) for judged in methods.values()]
        else:
            rows += [_attack(attack, label, judged[attack]) for label, judged in methods.items()]
    head = ["attack", "release", "attacks", "targets", "control", "naive", "risk (95%)"]
    return f"""#### {name}

{table(head, rows)}

Risk of inference, by secret:

{table(["secret", *methods], secrets.values())}
"""


def _attack(attack: str, label: str, counts: Found) -> list[str]:
    attacks = counts["attacks"]
    rates = [f"{counts[who] / attacks:.1%}" if attacks else "" for who in ("success", "control", "naive")]
    return [attack, label, f"{attacks:,}", *rates, _risk(counts)]


def _risk(counts: Found) -> str:
    if not counts["attacks"]:
        return "nothing to attack with"
    low, high = counts["interval"]
    weak = f" {WEAK}" if counts["weaker than naive"] else ""
    return f"{counts['risk']:.1%} ({low:.1%} to {high:.1%}){weak}"


def _sdmetrics(found: Found) -> str:
    judged = found["sdmetrics"]
    if "left out" in judged:
        return f"### SDMetrics\n\nLeft out: {judged['left out']}.\n"
    tables = "\n".join(
        f"#### {name}\n\n{table(['release', *SCORES], [_scored(label, scores) for label, scores in methods.items()])}\n"
        for name, methods in judged["found"].items()
    )
    secrets = "\n".join(
        f"  * {name}: {told['sensitive']} from {', '.join(told['known'])}" for name, told in found["tables"].items()
    )
    seeds = ", ".join(
        f"{name} {max(len(scores['column shapes']) for scores in methods.values())}"
        for name, methods in judged["found"].items()
    )
    return f"""### SDMetrics

Means over the seeds ({seeds}); baseline and disclosure protection, which are slow, are of the first seed alone.
Released rows are looked for among all targets, and among as many control rows, {judged["settings"]["sample"]:,} of them
a seed; secrets of {judged["settings"]["people"]:,} people are looked up in {judged["settings"]["looked up"]:,} released
rows. Read the pairs of columns: a release that knows nothing of single people has the same number for targets and
control, but for chance.

* Column shapes, pair trends (QualityReport): how near the distributions of columns and the strong correlations of pairs
  are to those of the targets; 1 is perfect. This is usefulness, not privacy.
* New rows (NewRowSynthesis): the share of released rows that match no real row, numbers within 1%. A table of few
  columns with few values has nearly all rows that are possible: then a good release matches much without copying.
* Nearer to targets or control: the share of released rows whose nearest real row is in the one, strictly; the rest is
  as near to both. Overfitting protection (DCROverfittingProtection) is 2 (1 - share nearer to targets), at most 1: ties
  count as protection, so a table with many equal rows can be copied with a good score.
* Baseline protection (DCRBaselineProtection): the median distance to the nearest target, against that of uniformly
  random rows; 1 is as far as random. Useful releases cannot be far, and with many equal rows the median is 0.
* Disclosure protection (DisclosureProtection, CAP): how badly one column is guessed by looking up people's known
  columns in the release, against guessing all values alike; 1 is no better than that. People whose known columns are
  not in the release are not counted, and what the population tells counts too: so compare targets and control.
{secrets}

{tables}
Faults of the judges that are avoided in [the code](../benchmarks/audit): anonymeter's correction for tables of other
sizes counts all queries, its naive inference loses its guesses, and SDMetrics measures distances to each real table in
units of that table's own ranges, so that the one with the more extreme value seems nearer. One is left as it comes: for
pair trends SDMetrics cuts each table into ten bins of that table's own range, so a release without the few largest
values of a column, which dipriv cannot know unless a schema bounds it, is compared in other bins and scores low.
"""


def _scored(label: str, scores: dict[str, list[float]]) -> list[str]:
    return [label, *(f"{np.mean(scores[name]):.3f}" for name in SCORES)]


def _labels(found: Found) -> list[str]:
    return list(dict.fromkeys(label for methods in found["methods"].values() for label in methods))


def _risks(found: Found, label: str) -> Iterator[tuple[str, str, str, Found]]:
    """(table, attack, release, what was found) of the attacks that could be made."""
    for where, methods in found["anonymeter"].get("found", {}).items():
        for attack, counts in methods.get(label, {}).items():
            if counts["attacks"]:
                yield where, attack, label, counts
