"""docs/reproduction.md: every table of the paper side by side with ours, filled into the prose of a template.

Run with `python -m research.page TEMPLATE FOLDER PAGE`, after `python -m research all --out FOLDER`.
"""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from dipriv.errors import InputError
from research import catalogue
from research.compare import difference, lost, reach, sensitivity, verdict
from research.linear_regression import HOLDOUTS, TRIAL, TRIAL_RUNS
from research.protocol import Drawing, Experiment, Row
from research.render import findings
from research.runner import Results, whole_file

REAL_DATA = {"uc-salary": "9 of 12 locations", "bank-logistic": "30,488 complete rows", "movielens": "MovieLens 1M"}
LINES = {"DIP": ("DIP (hold 25%)",), "LRM": ("LRM", "NLRM"), "OPM": ("OPM", "NOPM"), "EXM": ("EXM",)}


def main(template: Path, folder: Path, page: Path) -> None:
    """Write the page from the results in the folder."""
    names = [name for name in catalogue.WHERE if not isinstance(catalogue.find(name), Drawing)]
    if lacking := [name for name in names if not (folder / f"{name}.json").exists()]:
        raise InputError(f"{folder} lacks {lacking[0]}.json.", f"Run: python -m research all --out {folder}")
    results = {name: Results.read(folder / f"{name}.json") for name in names}
    parts = _parts(results, os.path.relpath(folder, page.parent))
    text = re.sub(r"\{\{(.+?)\}\}", lambda found: parts[found[1]], template.read_text(encoding="utf-8"))
    with whole_file(page) as part:
        part.write_text(text, encoding="utf-8")


def _parts(results: Mapping[str, Results], folder: str) -> dict[str, str]:
    """What each {{mark}} of the template stands for."""
    minutes = sum(found.seconds for found in results.values()) / 60
    dates = " and ".join(sorted({found.date for found in results.values()}))
    drawings = [(name, catalogue.find(name).title) for name in catalogue.WHERE if name not in results]
    parts = {
        "run": f"{minutes:.0f} minutes of one core, on {dates}",
        "short": _table(
            ("experiment", "repetitions", "agree", "differ", "DIP beats the others", "smallest against largest ε"),
            [_short(found) for found in results.values() if found.experiment.paper],
        ),
        "real-data": _real_data(results),
        "prototype": _prototype(results["linear-regression"]),
        "figures": "\n\n".join(f"**{title}**\n\n![{title}]({folder}/{name}.svg)" for name, title in drawings),
    }
    for name, found in results.items():
        experiment = found.experiment
        parts[f"{name}: what"] = (
            f"**{experiment.title}** ({experiment.source}). Measured: {experiment.measure}. {found.reps} repetitions, "
            f"seed {found.seed}, {found.date}, {found.seconds / 60:.1f} min of one core "
            f"([all rows]({folder}/{name}.md), [JSON]({folder}/{name}.json))."
        )
        shown = f"![{experiment.title}]({folder}/{name}.svg)" if experiment.draw else _wide(found)
        parts[f"{name}: table"] = _wide(found)
        parts[name] = f"{shown}\n\n{findings(found)}".rstrip()
    return parts


def _short(found: Results) -> list[str]:
    experiment = found.experiment
    verdicts = [verdict(row, experiment) for row in found.rows if row.paper is not None]
    good = sum(kind in ("agrees", "same order") for kind in verdicts)
    beaten = lost(found.rows, experiment.rivals)
    wins = "in every cell" if not beaten else f"not in {len(beaten)} cells"
    z = [abs(z) for *_, z in sensitivity(found.rows)] if experiment.insensitive else []
    steady = f"at most {max(z):.1f} SE, {len(z)} settings" if z else ""
    link = f"[{experiment.name}](#{experiment.name})"
    return [link, str(found.reps), str(good), str(len(verdicts) - good), wins if experiment.rivals else "", steady]


def _real_data(results: Mapping[str, Results]) -> str:
    """Table real_logistic: the three data sets at ε = 1, a quarter held out."""

    def cell(name: str, methods: tuple[str, ...]) -> str:
        rows = [row for row in results[name].rows if row.setting == REAL_DATA[name] and row.epsilon == 1]
        here = [row for row in rows if row.method in methods]
        return _pair(here[0], results[name].experiment) if here else ""

    rows = [[line, *(cell(name, methods) for name in REAL_DATA)] for line, methods in LINES.items()]
    return _table(("", *(f"{name} ({setting})" for name, setting in REAL_DATA.items())), rows)


def _wide(found: Results) -> str:
    """One line for each setting and method, one column for each ε."""
    epsilons = sorted({row.epsilon for row in found.rows})
    cells = {(row.setting, row.method, row.epsilon): _pair(row, found.experiment) for row in found.rows}
    lines = dict.fromkeys((row.setting, row.method) for row in found.rows)
    rows = [[*line, *(cells.get((*line, epsilon), "") for epsilon in epsilons)] for line in lines]
    return _table(("setting", "method", *(f"ε = {epsilon:g}" for epsilon in epsilons)), rows)


def _prototype(found: Results) -> str:
    """The cells of an independent implementation beside ours."""
    cells = {(row.setting, row.method): row for row in found.rows if row.epsilon == 1}
    rows = []
    for (n, p), trial in TRIAL.items():
        for share, theirs in zip(HOLDOUTS, trial, strict=True):
            row = cells[f"N = {n}, p = {p}", f"DIP (hold {share:.0%})"]
            z = (row.mean - theirs) / (row.sd * math.sqrt(1 / row.reps + 1 / TRIAL_RUNS))
            rows.append([str(n), str(p), f"{share:.0%}", f"{theirs:g}", _number(row.mean), f"{z:+.1f}"])
    return _table(("N", "p", "held out", "prototype", "ours", "difference in SE"), rows)


def _pair(row: Row, experiment: Experiment) -> str:
    """Paper / ours (difference in standard errors), or trial / ours; bold where they differ."""
    if (trial := experiment.trial.get((row.setting, row.method, row.epsilon))) is not None:
        text = f"{trial:.3f} / {_number(row.mean)}"
        return text if reach(row, experiment) == "reaches" else f"**{text}**"
    if row.paper is None:
        return _number(row.mean)
    z = difference(row, experiment.paper_reps)
    digits = max(0, round(-math.log10(2 * row.paper.rounding))) if row.paper.rounding else 0
    paper = "infinite" if math.isinf(row.paper.mean) else f"{row.paper.mean:.{digits}f}"
    text = f"{paper} / {_number(row.mean)}" + ("" if z is None else f" ({z:+.1f})")
    return f"**{text}**" if verdict(row, experiment) in ("differs", "other order") else text


def _number(value: float) -> str:
    if math.isinf(value):
        return "infinite"
    return f"{value:z.3f}" if value < 1 else f"{value:.2f}" if value < 1000 else f"{value:.1f}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *rows))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
