"""Results as files: JSON with all numbers, a Markdown table beside the paper's, and the figure if there is one."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

from research.compare import REACH, below, difference, lost, reach, sensitivity, verdict
from research.protocol import Experiment, Row
from research.runner import Results, whole_file


def write_results(results: Results, out: Path) -> list[Path]:
    """NAME.json, NAME.md and, where the paper has a figure, NAME.svg; each appears whole or not at all."""
    name = results.experiment.name
    files = [out / f"{name}.json", out / f"{name}.md"]
    if results.experiment.draw is not None:
        files.append(out / f"{name}.svg")
        with whole_file(files[-1]) as part:
            results.experiment.draw(results.rows, part)
    with whole_file(files[1]) as part:
        part.write_text(f"# {results.experiment.title}\n\n{section(results)}", encoding="utf-8")
    with whole_file(files[0]) as part:
        part.write_text(json.dumps(results.to_dict(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return files


def section(results: Results) -> str:
    """What was run, the table, and what it shows."""
    experiment = results.experiment
    against = f" beside the paper's ({experiment.source})" if experiment.paper else f" ({experiment.source})"
    picture = "" if experiment.draw is None else f"![{experiment.title}]({experiment.name}.svg)\n\n"
    return (
        f"{_capital(experiment.measure)}{against}; mean (standard deviation) over {results.reps} repetitions, seed "
        f"{results.seed}, {results.date}, {_time(results)}.\n\n{picture}{table(results)}\n\n{findings(results)}"
    )


def table(results: Results) -> str:
    """One row for each cell: paper, ours, difference in standard errors, verdict; or the trial's, ours, verdict."""
    experiment = results.experiment
    if experiment.trial:
        head = ["| setting | method | ε | trial | ours | verdict |", "|---|---|---|---|---|---|"]
        return "\n".join(head + [_trial_line(row, experiment) for row in results.rows])
    if not experiment.paper:
        head = ["| setting | method | ε | ours |", "|---|---|---|---|"]
        return "\n".join(head + [f"| {_where(row)} | {_cell(row.mean, row.sd)} |" for row in results.rows])
    head = ["| setting | method | ε | paper | ours | difference in SE | verdict |", "|---|---|---|---|---|---|---|"]
    return "\n".join(head + [_line(row, experiment) for row in results.rows])


def findings(results: Results) -> str:
    """Counts of agreement, of cells where DIP does not win, and of sensitivity to ε."""
    experiment, said = results.experiment, []
    verdicts = [verdict(row, experiment) for row in results.rows if row.paper is not None]
    if verdicts:
        counts = {kind: verdicts.count(kind) for kind in ("agrees", "differs", "same order", "other order")}
        said.append("Cells: " + ", ".join(f"{count} {kind}" for kind, count in counts.items() if count) + ".")
    if experiment.rivals:
        beaten = lost(results.rows, experiment.rivals)
        rivals = ", ".join(sorted(experiment.rivals))
        said.append(
            f"DIP has a smaller error than {rivals} in every cell."
            if not beaten
            else f"DIP does not beat {rivals} in {len(beaten)} cells: {'; '.join(map(_place, beaten))}."
        )
    if experiment.insensitive:
        said.append(_insensitivity(results.rows))
    if experiment.trial:
        kinds = [reach(row, experiment) for row in results.rows]
        few = [row for row, kind in zip(results.rows, kinds, strict=True) if kind == "below"]
        said.append(
            f"{kinds.count('reaches')} of {len(kinds) - kinds.count('')} cells reach at least {REACH:.0%} of the trial"
            + (f"; below are {'; '.join(map(_place, few))}." if few else ".")
        )
    said += [line for pair in experiment.ordered if (line := _order(results.rows, *pair))]
    return "\n".join(f"- {line}" for line in said) + "\n" if said else ""


def _insensitivity(rows: Sequence[Row]) -> str:
    pairs = sensitivity(rows)
    within_sd = sum(abs(low.mean - high.mean) < min(low.sd, high.sd) for low, high, _ in pairs)
    z = [abs(z) for *_, z in pairs]
    low, high, _ = pairs[0]
    return (
        f"DIP at ε = {low.epsilon:g} against ε = {high.epsilon:g}, {len(pairs)} settings: the means differ by less "
        f"than the standard deviation over repetitions (which the paper calls standard error) in {within_sd}; in "
        f"standard errors of the means, {sum(value < 1 for value in z)} differ by less than 1 (chance alone: about "
        f"{0.68 * len(pairs):.0f}), the largest by {max(z):.1f}."
    )


def _order(rows: Sequence[Row], first: str, second: str) -> str:
    """In how many repetitions the first is below the second, ε by ε; nothing where they are not on record."""
    counts = below(rows, first, second)
    if not counts:
        return ""
    epsilons = ", ".join(f"{epsilon:g}" for epsilon in sorted({epsilon for _, epsilon in counts}))
    groups: dict[tuple[str, int, int], list[str]] = {}
    for (setting, epsilon), (count, of) in counts.items():
        if count < of:
            groups.setdefault((setting, count, of), []).append(f"{epsilon:g}")
    but = "; ".join(f"{setting} at ε = {', '.join(some)} ({k} of {of})" for (setting, k, of), some in groups.items())
    reps = max(of for _, of in counts.values())
    said = f"{first} is below {second} in {reps} of {reps} repetitions of every setting at every ε ({epsilons})"
    return said + (f", except {but}." if but else ".")


def _trial_line(row: Row, experiment: Experiment) -> str:
    trial = experiment.trial.get((row.setting, row.method, row.epsilon))
    told = "" if trial is None else f"{trial:.3f}"
    return f"| {_where(row)} | {told} | {_cell(row.mean, row.sd)} | {reach(row, experiment)} |"


def _place(row: Row) -> str:
    return f"{row.setting}, {row.method}, ε = {row.epsilon:g}"


def _line(row: Row, experiment: Experiment) -> str:
    z = difference(row, experiment.paper_reps)
    paper = "" if row.paper is None else _cell(row.paper.mean, row.paper.sd, row.paper.rounding)
    told = "" if z is None else f"{z:+.1f}"
    return f"| {_where(row)} | {paper} | {_cell(row.mean, row.sd)} | {told} | {verdict(row, experiment)} |"


def _where(row: Row) -> str:
    return f"{row.setting} | {row.method} | {row.epsilon:g}"


def _cell(mean: float, sd: float, rounding: float | None = None) -> str:
    if math.isinf(mean):
        return "infinite"
    digits = 3 if mean < 1 else 2 if mean < 1000 else 1
    if rounding is not None:
        digits = round(-math.log10(2 * rounding))
    small = f"{sd:.{digits}f}" if sd >= 10.0**-digits else f"{sd:.1g}"
    return f"{mean:z.{digits}f} ({small})"


def _time(results: Results) -> str:
    minutes = results.seconds / 60
    return f"{minutes:.1f} minutes of one core" if minutes >= 0.1 else f"{results.seconds:.0f} seconds of one core"


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
