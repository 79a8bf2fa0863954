"""`dipriv ledger`: data sets, their privacy budgets, and every release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from dipriv._base.decimals import in_full
from dipriv.cli import complete
from dipriv.cli.options import number
from dipriv.cli.terminal import Command, errors_exit_with, out, plain, say

if TYPE_CHECKING:
    from dipriv.ledger import Record

app = typer.Typer(
    help="Data sets, their budgets and releases.",
    invoke_without_command=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
Where = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        metavar="PLACE",
        envvar="DIPRIV_LEDGER",
        help="A file or database URL [default: ledger.db in your own folder for data].",
    ),
]


@app.callback()
@errors_exit_with(1)
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
            power = dataset.power()
            table.add_row(
                plain(dataset.name),
                str(dataset.releases),
                f"{dataset.spent:g}",
                f"{dataset.budget:g}" + (" (default)" if dataset.budget_is_default else ""),
                f"{dataset.left:g}",
                in_full(dataset.delta_spent),
                "not bounded" if power is None else percent(power),
            )
        out.print(table)
        if any(dataset.unchanged and not dataset.unbounded for dataset in opened_ledger.datasets()):
            say(
                "\nPower is about columns that were privatized: dipriv ledger show NAME lists those released unchanged."
            )
        say(f"\nLedger: {opened_ledger.url}")


@app.command(cls=Command)
def show(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", autocompletion=complete.datasets, help="Name of a data set.")],
    ledger: Where = None,
) -> None:
    """Every release of a data set, and the power of an attacker's best test after all of them."""
    from dipriv.guarantee.wording import but_not_about, percent, privacy_loss, true_value, unit_name
    from dipriv.ledger import Ledger
    from dipriv.ledger.values import counted_for

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
        if (power := dataset.power()) is None:
            say(str(dataset.unbounded))
            return
        units = [record.guarantee.unit for record in records]
        unit = counted_for(units)
        number = "1 release" if dataset.releases == 1 else f"{dataset.releases} releases"
        say(
            f"After {number} the best test of {true_value(unit)} at level 5% (5% false alarms) has power at most "
            f"{percent(power)} ({privacy_loss(dataset.spent, dataset.delta_spent)})."
        )
        if dataset.unchanged:
            say(but_not_about(dataset.unchanged))
        if unit is not None and any(each.kind is not unit.kind for each in units):
            say("Some releases protect a row, some a person with all of their rows: together they protect a row.")


@app.command(cls=Command)
def create(
    context: typer.Context,
    place: Annotated[
        str | None,
        typer.Argument(
            metavar="PLACE", help="A file or database URL [default: ledger.db in your own folder for data]."
        ),
    ] = None,
    ledger: Where = None,
) -> None:
    """Create a ledger, with nothing spent: elsewhere a ledger that does not exist is an error."""
    from dipriv.ledger import Ledger

    with Ledger.create(place or ledger or context.obj) as created:
        say(f"Created {created.url}: for you alone, as it holds secret keys.")


@app.command(cls=Command)
def budget(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", autocompletion=complete.datasets, help="Name of a data set; a new one is registered."
        ),
    ],
    epsilon: Annotated[float, typer.Argument(parser=number, metavar="EPSILON", help="Total ε of all its releases.")],
    delta: Annotated[
        float | None,
        typer.Option(parser=number, metavar="DELTA", help="Total δ of all its releases [default: as it is]."),
    ] = None,
    new: Annotated[bool, typer.Option("--new", help="It is a new name, though similar to a known one.")] = False,
    ledger: Where = None,
) -> None:
    """Set the total budget of a data set."""
    from dipriv.ledger import Ledger

    with Ledger.open(ledger or context.obj) as opened_ledger:
        dataset = opened_ledger.set_budget(name, epsilon, delta, is_new=new)
        say(f"{dataset.name}: {dataset}.")


def _state(record: Record) -> str:
    return record.state if record.guarantee.secure_randomness else f"{record.state}, NOT PRIVATE: seeded"
