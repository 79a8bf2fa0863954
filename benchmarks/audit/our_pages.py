"""The sections of our own measurements: bounds on ε, attacks, fuzzing."""

from __future__ import annotations

from typing import Any

from benchmarks.quality.page import table

Found = dict[str, Any]


def section_bounds(found: Found) -> str:
    """Lower bounds on ε."""
    return f"""## Lower bounds on ε

Two records are sought that the release tells apart best, and an event that does; both are then fixed, and
{found["draws"]:,} fresh draws give a lower bound on ε with confidence {found["confidence"]:g} (Clopper-Pearson).
"Exact" is the ε of the kernel's own integers, where the mechanism is a finite matrix: it is below the claim,
because rounding is. Seconds are of the audit, on a busy machine.

### One column

{_bounds(found["one column"])}

### Three columns

{_bounds(found["several columns"])}

### One audit, many times

{_repeated(found["repeated"])}

### Canaries through the whole path

Some rows are replaced by one of two records, by the toss of a coin; the release is made once, and the coins of the
canaries that tell most are guessed (Steinke, Nasr, Jagielski 2023). *Extreme* canaries are two records at the ends,
*distinct* ones occur nowhere else, and would show in the release if anything had been learned from rows without
noise. The claim is ε = 1 for all of it; with a private reference the rows have only a part of ε, so the bound is
lower.

{_canaries(found["canaries"])}

Planted bugs, each of which the audit refutes in the tests (`tests/unit/test_audit_mutants.py`): a kernel with 20%
too little noise, a reference fitted on released rows, atoms read from released rows, a random stream reused between
rows or columns, ε given to every column.
"""


def section_attacks(found: Found) -> str:
    """Attacks."""
    parts = []
    for name, told in found["tables"].items():
        ways = told["ways"]
        head = ["attack", *(f"{way}: people / control" for way in ways)]
        rows: dict[str, list[str]] = {}
        for way in ways:
            for attack in ways[way]:
                rows.setdefault(attack["name"], [])
        for label, cells in rows.items():
            for way in ways:
                attack = next((one for one in ways[way] if one["name"] == label), None)
                cells.append("" if attack is None else _attack(attack))
        lines = [[label, *cells] for label, cells in rows.items()]
        parts.append(f"### {name}: {told['rows']:,} rows, {told['columns']} columns\n\n{table(head, lines)}\n")
    return f"""## Attacks

`dipriv audit` runs these on any table. Each is made on people of the table and on a control group that was not in
it, at ε = {found["epsilon"]:g}. Bold: the {found["confidence"]:.0%} interval of the difference lies above 0. **!**
would mark what exceeds what ε allows. "Exposure" counts held-out rows where there are any, else all rows: the
paper's hold-out is published nearly verbatim, and has no promise.

{chr(10).join(parts)}"""


def section_fuzz(found: Found) -> str:
    """Hostile files."""
    head = ["reader", "cases", "refused in plain words", "accepted", "uncaught", "slowest, ms", "memory grown, MB"]
    lines = [
        [
            name,
            f"{told['cases']:,}",
            f"{told['refused']:,}",
            f"{told['accepted']:,}",
            str(told["uncaught"] + told["crashes"]),
            f"{told['slowest_ms']:,.0f}",
            f"{told['grown_mb']:,.0f}",
        ]
        for name, told in found["targets"].items()
    ]
    return f"""## Hostile files

Files of every kind that dipriv reads, made by grammar and by mutation of good ones (seed {found["seed"]}), and small
tables with odd cells and options from end to end. Each must be taken, or refused in plain words: in {found["cases"]:,}
cases {found["uncaught"]} uncaught exceptions, crashes or hangs.

{table(head, lines)}

{_guided(found["guided"])}
"""


def _guided(found: Found) -> str:
    """The same readers by atheris."""
    if "left out" in found:
        return f"Guided by coverage: left out, {found['left out']}."
    head = ["reader", "cases", "refused in plain words", "accepted", "uncaught", "branches reached"]
    lines = [
        [
            name,
            f"{told['cases']:,}",
            f"{told['refused']:,}",
            f"{told['accepted']:,}",
            str(told["uncaught"] + told["crashes"]),
            f"{told['branches reached']:,}" if told["branches reached"] else "",
        ]
        for name, told in found["targets"].items()
    ]
    return f"""Guided by coverage (atheris, which keeps what reaches new lines and mutates that; compiled loops run as
plain Python, so that an index outside of an array is an error): in {found["cases"]:,} cases {found["uncaught"]}
uncaught.

{table(head, lines)}"""


def _bounds(found: list[Found]) -> str:
    head = ["what", "kernel", "ε claimed", "audited lower bound", "of the claim", "exact", "seconds"]
    lines = [
        [
            one["kind"],
            one["kernel"],
            f"{one['epsilon']:g}",
            f"{one['bound']:.3f}",
            f"{one['bound'] / one['epsilon']:.2f}",
            "" if one["exact"] is None else f"{one['exact']:.5f}",
            f"{one['seconds']:.1f}",
        ]
        for one in found
    ]
    return table(head, lines)


def _repeated(found: list[Found]) -> str:
    head = ["kernel", "ε", "audits", "confidence", "draws", "above ε", "by chance at most", "lowest", "mean", "highest"]
    lines = [
        [
            one["kernel"],
            f"{one['epsilon']:g}",
            str(one["audits"]),
            f"{one['confidence']:g}",
            f"{one['draws']:,}",
            str(one["above"]),
            str(one["above by chance at most"]),
            *(f"{one[what]:.3f}" for what in ("lowest", "mean", "highest")),
        ]
        for one in found
    ]
    return "A continuous column, each audit with draws of its own:\n\n" + table(head, lines)


def _canaries(found: list[Found]) -> str:
    head = ["release", "kernel", "canaries", "guesses", "lower bound"]
    lines = [[one["way"], one["kernel"], one["what"], f"{one['draws']:,}", f"{one['lower']:.3f}"] for one in found]
    return table(head, lines)


def _attack(attack: Found) -> str:
    rates = f"{attack['people']:.3f} / {attack['control']:.3f}"
    shown = f"**{rates}**" if attack["advantage"]["lower"] > 0 else rates
    return f"{shown} **!**" if attack["exceeded"] else shown
