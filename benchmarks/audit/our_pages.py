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

### Noise on what is learned

A private reference leaves through few doors: counts of cells under noise, and the choice of a best score. For both
the worst neighbours are known. One measurement that is paid for with ε:

{_doors(found["doors"])}

That nothing leaves by another way is looked at in every `dipriv audit`. Where rows must have no say in what is learned,
all of them are replaced and the same bits are drawn again: reference and schema must stay the same to the last digit.
Where they may have some, a reference is learned again and again from two tables that differ in one row; fits are few,
so that tells missing noise, not a little too little.

### Canaries through the whole path

Some rows are replaced by one of two records, by the toss of a coin; the release is made once, and the coins of the
canaries that tell most are guessed (Steinke, Nasr, Jagielski 2023). *Extreme* canaries are two records at the ends,
*distinct* ones occur nowhere else, and would show in the release if anything had been learned from rows without
noise. The claim is ε = 1 for all of it; with a private reference the rows have only a part of ε, so the bound is
lower.

{_canaries(found["canaries"])}

Planted bugs, each of which the audit refutes in the tests (`tests/unit/auditing/test_mutants.py` and
`test_learning.py`): a kernel with 20% too little noise, a reference fitted on released rows, atoms read from
released rows, a random stream reused between rows, columns or releases, ε given to every column, a reference that is
learned with too little noise or none.
"""


def _doors(found: list[Found]) -> str:
    head = ["door", "ε claimed", "audited lower bound", "of the claim", "measurements"]
    lines = [
        [
            one["what"],
            f"{one['claimed']:g}",
            f"{one['lower']:.3f}",
            f"{one['lower'] / one['claimed']:.2f}",
            f"{one['draws']:,}",
        ]
        for one in found
    ]
    return table(head, lines)


def section_attacks(found: Found) -> str:
    """Attacks."""
    parts = []
    for name, told in found["tables"].items():
        head = ["attack", "release", "people", "control", f"difference ({found['confidence']:.0%})", "ε allows"]
        found_by = [(way, attack) for way, attacks in told["ways"].items() for attack in attacks]
        names = dict.fromkeys(attack["name"] for _, attack in found_by)
        lines = [[name, way, *_attack(attack)] for name in names for way, attack in found_by if attack["name"] == name]
        parts.append(f"### {name}: {told['rows']:,} rows, {told['columns']} columns\n\n{table(head, lines)}\n")
    return f"""## Attacks

`dipriv audit` runs these on any table. Each is made on people of the table and on a control group that was not in
it, at ε = {found["epsilon"]:g}; the difference of the two rates has an interval, and beside it stands the largest
difference that ε allows any attack. Bold: the interval lies above 0. **!** would mark one that lies above what ε
allows. "Exposure" counts held-out rows where there are any, else all rows: the paper's hold-out is published nearly
verbatim, and has no promise. What is audited is the promise to a row; one to a person of several rows (`unit`) is not.

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


def _attack(attack: Found) -> list[str]:
    more = attack["advantage"]
    difference = f"{more['value']:+.3f} ({more['lower']:+.3f} to {more['upper']:+.3f})"
    shown = f"**{difference}**" if more["lower"] > 0 else difference
    allowed = "no promise" if attack["allowed"] is None else f"{attack['allowed']:.3f}"
    rates = [f"{attack[whose]:.3f}" for whose in ("people", "control")]
    return [*rates, f"{shown} **!**" if attack["exceeded"] else shown, allowed]
