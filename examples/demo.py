"""The demo: a real survey, from a file to a published file, with a ledger of its own and a report to look at.

The table is `fair`, a 1974 magazine survey on extramarital affairs that statsmodels carries: 6,366 women, nine
columns. `python -m examples.demo --out FOLDER` runs it; `--picture FILE.svg` draws the README's picture instead.
"""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

import dipriv
from dipriv import Discrete

SHOWN = ("age", "yrs_married", "rate_marriage", "affairs")
QUESTIONNAIRE = dipriv.Schema(
    {
        "rate_marriage": Discrete(levels=(1, 2, 3, 4, 5)),
        "age": Discrete(levels=(17.5, 22, 27, 32, 37, 42)),
        "yrs_married": Discrete(levels=(0.5, 2.5, 6, 9, 13, 16.5, 23)),
        "children": Discrete(levels=(0, 1, 2, 3, 4, 5.5)),
        "religious": Discrete(levels=(1, 2, 3, 4)),
        "educ": Discrete(levels=(9, 12, 14, 16, 17, 20)),
        "occupation": Discrete(levels=(1, 2, 3, 4, 5, 6)),
        "occupation_husb": Discrete(levels=(1, 2, 3, 4, 5, 6)),
    }
)
"""The answers that could be ticked: a public fact. `affairs` is computed from other answers and stays open."""
WARNING = "Shows statistics of the private table beside the release: do not publish this picture with a real table."


def load() -> pa.Table:
    """The survey, whole numbers where the answers are codes, from the file in statsmodels, which is not imported."""
    found = importlib.util.find_spec("statsmodels")
    if found is None or found.origin is None:
        raise SystemExit("The demo's survey comes with statsmodels: pip install 'dipriv[report]'.")
    file = Path(found.origin).parent / "datasets" / "fair" / "fair.csv"
    codes = ("rate_marriage", "religious", "educ", "occupation")
    table = pacsv.read_csv(file)
    return table.cast(pa.schema([(name, pa.int64() if name in codes else pa.float64()) for name in table.column_names]))


def survey_files(folder: Path) -> tuple[Path, Path]:
    """Write the survey and its schema into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    private, schema = folder / "survey.csv", folder / "schema.toml"
    pacsv.write_csv(load(), private)
    QUESTIONNAIRE.save(schema)
    return private, schema


def open_ledger(folder: Path) -> dipriv.Ledger:
    """The demo's own ledger."""
    place = folder / "ledger.db"
    return dipriv.Ledger.open(place) if place.exists() else dipriv.Ledger.create(place)


def run(folder: Path, epsilon: float) -> dipriv.Release[Any]:
    """Write the survey, privatize it, and print the release."""
    private, _ = survey_files(folder)
    released = folder / "survey-released.csv"
    with open_ledger(folder) as ledger:
        release = dipriv.privatize_file(
            private, released, epsilon, force=True, schema=QUESTIONNAIRE, ledger=ledger, dataset="survey"
        )
        account = ledger.dataset("survey")
    (folder / "guarantee.txt").write_text(f"{release.guarantee}\n", encoding="utf-8")
    before, after = (pacsv.read_csv(file) for file in (private, released))
    print(f"Private table: {before.num_rows:,} rows, {before.num_columns} columns (statsmodels' survey `fair`).")
    print(f"Released:      {after.num_rows:,} rows, the same columns.\n")
    print("             " + "".join(f"{name:>15}" for name in SHOWN))
    for label, table in (("mean before", before), ("mean after", after)):
        print(f"{label:13}" + "".join(f"{pc.mean(table[name]).as_py():15.3f}" for name in SHOWN))
    print(f"\n{release.guarantee}\n\n{release.verdict}\n")
    times = f"{account.releases} release{'s' * (account.releases != 1)}"
    print(f"Ledger: {times} of this survey, {account}. Run it again: it adds up.", flush=True)
    return release


def report(folder: Path, release: dipriv.Release[Any]) -> None:
    """Compare the release with the survey on a page."""
    before, after = (pacsv.read_csv(folder / name) for name in ("survey.csv", "survey-released.csv"))
    facts: dict[str, Any] = {"guarantee": release.guarantee, "fidelity": release.fidelity, "verdict": release.verdict}
    dipriv.compare(before, after, **facts, target="affairs").write(folder / "report.html")


def say_what_is_next(folder: Path) -> None:
    """What to look at, and what to type."""
    print(f"Open {folder / 'report.html'} in a browser: the release beside the survey, for its keeper alone.")
    print(f"Then look at {folder / 'survey-released.csv'}, and at the files beside it, which may be published.")
    options = f"--schema {folder / 'schema.toml'} --ledger {folder / 'ledger.db'} --dataset survey"
    print(f"Next, by hand:\n.venv/bin/dipriv privatize {folder / 'survey.csv'} -o released.csv --epsilon 1 {options}")


def draw(path: Path, epsilon: float = 1.0) -> None:
    """Distributions of four columns and all pairwise correlations, before and after; a fixed seed."""
    import matplotlib as mpl
    import numpy as np

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "dipriv"  # the same picture gives the same file
    from matplotlib import pyplot as plt

    before: Any = load().to_pandas()
    after = dipriv.privatize(before, epsilon, schema=QUESTIONNAIRE, seed=1).data
    released = f"release, ε = {epsilon:g}"
    figure, axes = plt.subplots(2, 3, figsize=(11, 6), constrained_layout=True)
    for axis, name in zip((axes[0, 0], axes[0, 1], axes[1, 0], axes[1, 1]), SHOWN, strict=True):
        edges = np.histogram_bin_edges(before[name].clip(upper=float(before[name].quantile(0.99))), bins=20)
        for frame, colour, label in ((before, "#c44e52", "private table"), (after, "#55a868", released)):
            axis.hist(frame[name].clip(upper=edges[-1]), edges, density=True, alpha=0.5, color=colour, label=label)
        axis.set_title(name)
        axis.set_yticks([])
    axes[0, 0].legend(frameon=False)
    for axis, frame, label in ((axes[0, 2], before, "private table"), (axes[1, 2], after, released)):
        image = axis.imshow(frame.corr(), vmin=-1, vmax=1, cmap="RdBu_r")
        axis.set_title(f"correlations, {label}")
        axis.set_xticks([])
        axis.set_yticks(range(len(frame.columns)), list(frame.columns), fontsize=7)
    figure.colorbar(image, ax=axes[:, 2], shrink=0.7)
    figure.supxlabel(WARNING, fontsize=7, color="grey")
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def main() -> None:
    """Run the demo, or draw its picture."""
    parser = argparse.ArgumentParser(prog="python -m examples.demo", description=run.__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder to write into")
    parser.add_argument("--epsilon", type=float, default=1.0, help="privacy budget of a row")
    parser.add_argument("--picture", type=Path, help="draw the README's picture into this file, and nothing else")
    parser.add_argument("--files", action="store_true", help="write the survey, its schema and a ledger, no release")
    parser.add_argument(
        "--release", action="store_true", help="the release without the report, which needs more packages"
    )
    parser.add_argument("--next", action="store_true", help="say what to look at and what to type, and nothing else")
    asked = parser.parse_args()
    try:
        if asked.files:
            survey_files(asked.out)
            open_ledger(asked.out).close()
        elif asked.picture is not None:
            draw(asked.picture, asked.epsilon)
        elif asked.next:
            say_what_is_next(asked.out)
        else:
            release = run(asked.out, asked.epsilon)
            if not asked.release:
                report(asked.out, release)
                say_what_is_next(asked.out)
    except dipriv.DiprivError as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main()
