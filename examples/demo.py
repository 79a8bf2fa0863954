"""Privatize a real survey, print the guarantee, and write the released table and a before/after picture.

The table is `fair`, a 1974 magazine survey on extramarital affairs that statsmodels carries: 6,366 women, nine
columns. Run with `make demo`, or `python examples/demo.py --help`.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import dipriv

if TYPE_CHECKING:
    import pandas as pd

SHOWN = ("age", "yrs_married", "rate_marriage", "affairs")
WARNING = "Shows statistics of the private table beside the release: do not publish this picture with a real table."


def load() -> pd.DataFrame:
    """The survey, whole numbers where the answers are codes."""
    from statsmodels.datasets import fair

    frame: pd.DataFrame = fair.load_pandas().data
    return frame.astype({"rate_marriage": "int64", "religious": "int64", "educ": "int64", "occupation": "int64"})


def draw(before: pd.DataFrame, after: pd.DataFrame, epsilon: float, path: Path) -> None:
    """Distributions of four columns and all pairwise correlations, before and after."""
    import matplotlib as mpl
    import numpy as np

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "dipriv"  # the same picture gives the same file
    from matplotlib import pyplot as plt

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
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=110)
    plt.close(figure)


def main() -> None:
    """Parse, privatize, write, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--epsilon", type=float, default=1.0, help="privacy budget of a row (default 1)")
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder to write into (default demo/)")
    parser.add_argument("--picture-only", type=Path, help="draw the picture to this file with a fixed seed, no table")
    options = parser.parse_args()
    frame = load()
    if options.picture_only:
        release = dipriv.privatize(frame, options.epsilon, reference="holdout", rng=1)
        draw(frame, release.data, options.epsilon, options.picture_only)
        return
    release = dipriv.privatize(frame, options.epsilon, reference="holdout", progress=True)
    options.out.mkdir(parents=True, exist_ok=True)
    release.data.to_csv(options.out / "fair-released.csv", index=False)
    (options.out / "guarantee.txt").write_text(f"{release.guarantee}\n", encoding="utf-8")
    draw(frame, release.data, options.epsilon, options.out / "before-after.png")
    print(f"Private table: {len(frame)} rows, {len(frame.columns)} columns (statsmodels' survey `fair`).")
    print(f"Released:      {len(release.data)} rows, {len(frame.columns)} columns.\n")
    print("             " + "".join(f"{name:>15}" for name in SHOWN))
    for label, table in (("mean before", frame), ("mean after", release.data)):
        print(f"{label:13}" + "".join(f"{table[name].mean():15.3f}" for name in SHOWN))
    print(f"\n{release.guarantee}\n")
    print(f"Wrote {', '.join(sorted(str(path) for path in options.out.iterdir()))}")


if __name__ == "__main__":
    main()
