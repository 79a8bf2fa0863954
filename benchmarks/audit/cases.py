"""What the judges get: real tables in two random halves, releases of the one, and the other as control.

`python -m benchmarks.audit.cases FOLDER` writes Parquet files and cases.json, which says what they are: the judges live
in environments of their own and share nothing with dipriv but these files. Rows of all files are in random order, so
the judges cannot use that row i of a release by dipriv comes from row i of the original.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dipriv
from benchmarks.audit.versions import versions
from benchmarks.measure import say
from benchmarks.quality import peers
from benchmarks.quality.bins import Bins, Codebook, codebook
from benchmarks.quality.contest import APPROXIMATE, PURE
from benchmarks.quality.tables import TABLES

EPSILON = 1.0
NONE = "none"
PACKAGES = ("dipriv", "numpy", "pandas", "opendp", "mbi", "jax")


@dataclass(frozen=True)
class Subject:
    """A table, what dipriv and the peers are told of it, and what the attackers know and want to know."""

    load: Callable[[], pd.DataFrame]
    schema: Mapping[str, Any]
    bins: Mapping[str, Bins]
    algorithms: tuple[str, ...]
    link: tuple[tuple[str, ...], tuple[str, ...]]
    secrets: tuple[str, ...]
    known: tuple[str, ...]
    sensitive: str


SUBJECTS = {
    "bank": Subject(
        TABLES["bank"].read,
        schema={},
        bins=TABLES["bank"].bins,
        algorithms=("MST", "AIM"),
        link=(
            ("age", "employed", "single", "divorced", "education"),
            ("default", "housing", "loan", "mobile", "campaign", "y"),
        ),
        secrets=("age", "education", "single", "housing", "loan", "y"),
        known=("age", "employed", "single", "divorced", "education", "campaign"),
        sensitive="y",
    ),
    "adult": Subject(
        TABLES["adult"].read,
        schema=TABLES["adult"].ranges,
        bins=TABLES["adult"].bins,
        algorithms=("MST",),
        link=(
            ("age", "education", "marital_status", "race", "sex", "native_country"),
            ("workclass", "occupation", "capital_gain", "capital_loss", "hours_per_week", "income"),
        ),
        secrets=("age", "marital_status", "occupation", "race", "hours_per_week", "income"),
        known=("age", "education", "marital_status", "occupation", "race", "sex"),
        sensitive="income",
    ),
}


@dataclass(frozen=True)
class Case:
    """A release, the rows that are attacked, and control rows that it knows nothing of; named by their files."""

    table: str
    seed: int
    label: str
    promise: str
    targets: str
    control: str
    release: str


@dataclass(frozen=True)
class Made:
    """A release before it is written; `targets` are the training rows that are attacked, all unless told."""

    label: str
    promise: str
    data: pd.DataFrame
    targets: pd.DataFrame | None = None


def main() -> None:
    """Write all cases into the folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, required=True)
    parser.add_argument("--rows", type=int)
    asked = parser.parse_args()
    cases = [case for name in SUBJECTS for seed in range(asked.seeds) for case in write(name, seed, asked)]
    described = {
        "tables": {name: describe(subject, asked.rows) for name, subject in SUBJECTS.items()},
        "cases": [asdict(case) for case in cases],
        "versions": versions(PACKAGES),
        "peers left out for lack of": peers.lacking(),
    }
    (asked.folder / "cases.json").write_text(json.dumps(described, indent=1), encoding="utf-8")


def describe(subject: Subject, rows: int | None) -> dict[str, Any]:
    """What the judges are told of a table."""
    frame = _frame(subject, rows)
    numeric = [name for name in frame if _is_number(frame[name])]
    return {
        "rows": len(frame),
        "columns": frame.shape[1],
        "distinct rows": len(frame.drop_duplicates()),
        "numeric": numeric,
        "link": subject.link,
        "secrets": subject.secrets,
        "known": subject.known,
        "sensitive": subject.sensitive,
    }


def write(name: str, seed: int, asked: argparse.Namespace) -> Iterator[Case]:
    """The cases of one table and one seed: split, release, write."""
    subject = SUBJECTS[name]
    rng = np.random.default_rng(seed)
    frame = _shuffled(_frame(subject, asked.rows), rng)
    training, control = frame.iloc[: len(frame) // 2], frame.iloc[len(frame) // 2 :]
    training = training.reset_index(drop=True)
    book = codebook(frame, subject.bins)

    def put(what: str, table: pd.DataFrame) -> str:
        file = f"{name}-{seed}-{what}.parquet"
        _shuffled(table, rng).to_parquet(asked.folder / file)
        return file

    files = {"training": put("training", training), "control": put("control", control)}
    start = time.perf_counter()
    for number, made in enumerate(releases(subject, training, book, seed)):
        say(f"{name}, seed {seed}: {made.label}, {time.perf_counter() - start:.1f} s")
        targets = files["training"] if made.targets is None else put(f"{number}-targets", made.targets)
        release = put(f"{number}-release", made.data)
        yield Case(name, seed, made.label, made.promise, targets, files["control"], release)
        start = time.perf_counter()


def releases(subject: Subject, training: pd.DataFrame, book: Codebook, seed: int) -> Iterator[Made]:
    """Ours, the paper's hold-out as a warning, the peers', and a copy that every judge should catch."""
    yield Made("dipriv", APPROXIMATE, dipriv.privatize(training, EPSILON, schema=dict(subject.schema), seed=seed).data)
    held = dipriv.privatize(training, EPSILON, reference="holdout", seed=seed)
    yield Made("dipriv hold-out, released rows", PURE, held.data, training[held.secrets.released])
    yield Made("dipriv hold-out, held-out rows", NONE, held.data, training[~held.secrets.released])
    for algorithm in () if peers.lacking() else subject.algorithms:
        try:
            made = peers.synthesize(training, book, algorithm, peers.LOSSES["pure"], seed)
        except Exception as error:  # a peer's own failure; it is left out of this seed
            say(f"OpenDP {algorithm} failed: {error!r}")
            continue
        yield Made(f"OpenDP {algorithm}", peers.PROMISES["pure"], made)
    yield Made("a verbatim copy", NONE, training)


def _frame(subject: Subject, rows: int | None) -> pd.DataFrame:
    frame = subject.load()
    return frame if rows is None or rows >= len(frame) else frame.sample(rows, random_state=0)


def _shuffled(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return frame.sample(frac=1, random_state=rng).reset_index(drop=True)


def _is_number(column: pd.Series[Any]) -> bool:
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)


if __name__ == "__main__":
    main()
