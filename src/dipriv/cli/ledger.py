"""`dipriv ledger`: data sets, their privacy budgets, and every release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from dipriv._base.decimals import in_full
from dipriv.cli.terminal import out, plain, say

if TYPE_CHECKING:
    from dipriv.ledger import Record

app = typer.Typer(
    help="Data sets, their budgets and releases.",
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
Where = Annotated[
    str | None, typer.Option("--ledger", envvar="DIPRIV_LEDGER", help="A file or database URL [default: yours].")
]


@app.callback()
def listing(context: typer.Context, ledger: Where = None) -> None:
    """List the data sets."""
    if context.invoked_subcommand is not None:
        context.obj = ledger
        return
    from dipriv.guarantee.wording import percent
    from dipriv.ledger import Ledger

    with Ledger.open(ledger) as opened_ledger:
        names = ("data set", "releases", "ε spent", "budget", "left", "δ spent", "attacker's power at 5%")
        table = Table(*names, box=None)
        for dataset in opened_ledger.datasets():
            table.add_row(
                plain(dataset.name),
                str(dataset.releases),
                f"{dataset.spent:g}",
                _or_none(dataset.budget),
                _or_none(dataset.left),
                in_full(dataset.delta_spent),
                percent(dataset.power()),
            )
        out.print(table)


@app.command()
def show(
    context: typer.Context, name: Annotated[str, typer.Argument(help="Name of a data set.")], ledger: Where = None
) -> None:
    """Every release of a data set, and the power of an attacker's best test after all of them (Lemma 1)."""
    from dipriv.guarantee import Model
    from dipriv.guarantee.wording import HELD_OUT, percent, privacy_loss, true_value, unit_name
    from dipriv.ledger import Ledger

    with Ledger.open(ledger or context.obj) as opened_ledger:
        dataset = opened_ledger.dataset(name)
        records = opened_ledger.records(name)
        table = Table("release", "started (UTC)", "ε", "δ", "of", "state", "rows", "file", box=None)
        for record in records:
            table.add_row(
                str(record.number),
                f"{record.started:%Y-%m-%d %H:%M}",
                f"{record.epsilon:g}",
                in_full(record.delta),
                plain(unit_name(record.guarantee.unit)),
                _state(record),
                "" if record.rows is None else f"{record.rows:,}",
                plain(record.output or ""),
            )
        out.print(table)
        say(f"\n{dataset}.")
        guarantees = [record.guarantee for record in records]
        if any(guarantee.model is Model.NONE for guarantee in guarantees):
            say("The guarantee of a release cannot be read: nothing is known of what an attacker learns.")
            return
        if not all(guarantee.secure_randomness for guarantee in guarantees):
            say("A seeded release is not private: nothing bounds what an attacker learns.")
            return
        units = {guarantee.unit for guarantee in guarantees}
        tested = true_value(units.pop() if len(units) == 1 else None)
        say(
            f"After {dataset.releases} release(s) the best test of {tested} at level 5% has power at most "
            f"{percent(dataset.power())} (Lemma 1, {privacy_loss(dataset.spent, dataset.delta_spent)})."
        )
        if any(guarantee.has_unprotected_rows for guarantee in guarantees):
            say(HELD_OUT)


@app.command()
def budget(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of a data set; a new one is registered.")],
    epsilon: Annotated[float, typer.Argument(help="Total ε of all its releases.")],
    delta: Annotated[float | None, typer.Option(help="Total δ of all its releases [default: as it is].")] = None,
    ledger: Where = None,
) -> None:
    """Set the total budget of a data set."""
    from dipriv.ledger import Ledger

    with Ledger.open(ledger or context.obj) as opened_ledger:
        dataset = opened_ledger.set_budget(name, epsilon, delta)
        say(f"{dataset.name}: {dataset}.")


def _state(record: Record) -> str:
    return record.state if record.guarantee.secure_randomness else f"{record.state}, NOT PRIVATE: seeded"


def _or_none(value: float | None) -> str:
    return "none" if value is None else f"{value:g}"
