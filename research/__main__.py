"""`python -m research`: the tables and figures of the paper, measured again."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Annotated

import typer

from dipriv.cli.terminal import Progress, err, errors_exit_with, out, say


def reproduce(
    names: Annotated[list[str] | None, typer.Argument(help="Experiments and figures of the paper, or `all`.")] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the names and exit.")] = False,
    reps: Annotated[int | None, typer.Option(help="Repetitions of each setting [default: its own].")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all randomness.")] = 2023,
    jobs: Annotated[int | None, typer.Option(help="Processes [default: one a core].")] = None,
    out_: Annotated[Path, typer.Option("--out", help="Folder for the results.")] = Path("reproduction"),
) -> None:
    """Measure again what the paper reports, and show it beside the paper's numbers.

    Results are a function of the names, the repetitions and the seed. An interrupted run goes on where it was when the
    same command is given again.
    """
    from research import catalogue
    from research.runner import reproduce as run

    if list_:
        for name in catalogue.WHERE:
            found = catalogue.find(name)
            out.print(f"{name:<18} {found.title} [dim]({found.source})[/dim]")
        return
    if not names:
        raise typer.BadParameter("name an experiment, or `all`; --list shows the names", param_hint="NAMES")
    asked = list(catalogue.WHERE) if names == ["all"] else names
    for name in asked:
        catalogue.find(name)  # an unknown name is refused before anything is run
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # end as on Ctrl-C: workers too, what is done is kept
    for name in asked:
        try:
            with Progress(name, unit="runs") as bar:

                def tick(done: int, total: int, name: str = name, bar: Progress = bar) -> None:
                    bar.update(name, done, total)

                files = run(name, out=out_, reps=reps, seed=seed, jobs=jobs, tick=tick)
        except KeyboardInterrupt:
            err.print("Interrupted. What was finished is kept: give the same command to go on.")
            raise typer.Exit(130) from None
        say(f"{name}: " + ", ".join(str(file) for file in files))


if __name__ == "__main__":
    with errors_exit_with(1):
        typer.run(reproduce)
