"""Privacy where the data is: each client privatizes its own record, and a collector rebuilds the distribution.

    python -m examples.clients --clients 100000

A pilot group of the 1974 survey `fair` (statsmodels) gives a private reference, which is exported. Clients come from
the other half of the survey, and not evenly: the strongly religious take part four times as often, which the reference
does not know. Each client draws its own noise and sends one released record: ε-local differential privacy. The
collector has these records and the reference, nothing else. It works out what the noise does to each possible answer
by privatizing copies of it, and finds the shares of the answers that explain the records best.

Both questions together make one label out of eight. The noise on labels is easy to undo where none of them is rare in
the reference: a label stays, or another is drawn. Where answers are many, or noise moves ranks, shares are hard to get
back, although the released rows keep more of each row.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

import dipriv
from examples.demo import load

FloatArray = npt.NDArray[np.float64]

ANSWERS = tuple(f"religious {level}, marriage {rated}" for level in (1, 2, 3, 4) for rated in ("very good", "less"))
STRONGLY = np.array([answer.startswith("religious 4") for answer in ANSWERS])
PILOT_EPSILON, CLIENT_EPSILON = 1.0, 2.0
COPIES, ROUNDS = 200_000, 500


def export_reference(pilot: pd.DataFrame, path: Path, seed: int | None = None) -> None:
    """The keeper of the pilot: what is learned costs its people ε = 1; each client's record will cost ε = 2."""
    share = PILOT_EPSILON / (PILOT_EPSILON + CLIENT_EPSILON)
    schema = {"answer": dipriv.Categorical(levels=ANSWERS)}
    reference = dipriv.references.Private(reference_share=share)
    dip = dipriv.DIP(PILOT_EPSILON + CLIENT_EPSILON, reference=reference, schema=schema, seed=seed)
    dip.fit(pilot).export_local(path)


def send(path: Path, answers: pd.Series) -> pd.DataFrame:
    """The clients, one after the other: a record leaves with noise that is drawn where it is."""
    local = dipriv.load_local(path)
    return pd.DataFrame([local.privatize({"answer": answer}) for answer in answers])


def channel_of(local: dipriv.LocalReference) -> FloatArray:
    """What becomes of each answer, row by row: the shares of what is released for many copies of it."""
    return np.stack([shares_of(local.privatize(pd.DataFrame({"answer": [answer] * COPIES}))) for answer in ANSWERS])


def rebuild(channel: FloatArray, received: pd.DataFrame) -> FloatArray:
    """The collector: the share of each answer among the clients, by maximum likelihood (EM)."""
    seen, found = shares_of(received), shares_of(received) + 1 / len(received)
    for _ in range(ROUNDS):
        expected = found @ channel
        found = found * (channel @ np.divide(seen, expected, out=np.zeros_like(seen), where=seen > 0))
    return np.asarray(found / found.sum())


def shares_of(table: pd.DataFrame) -> FloatArray:
    """The share of each answer in a table."""
    return np.asarray(table["answer"].value_counts(normalize=True).reindex(ANSWERS, fill_value=0.0))


def far(one: FloatArray, other: FloatArray) -> float:
    """Total variation: the share of people who would have to answer otherwise."""
    return float(np.abs(one - other).sum() / 2)


def groups(clients: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The pilot's answers, and those of the clients."""
    survey = load().to_pandas().sample(frac=1, random_state=0)
    rated = np.where(survey["rate_marriage"] == 5, "very good", "less")
    answers = pd.DataFrame({"answer": "religious " + survey["religious"].astype(str) + ", marriage " + rated})
    pilot, others = answers[: len(answers) // 2], answers[len(answers) // 2 :]
    weights = np.where(others["answer"].str.startswith("religious 4"), 4.0, 1.0)
    rng = np.random.default_rng(0)  # who takes part; the noise has no seed
    return pilot, others.iloc[rng.choice(len(others), clients, p=weights / weights.sum())]


def run(clients: int) -> dict[str, FloatArray]:
    """The whole story: the shares of the answers in the pilot, as received, as rebuilt, and in truth."""
    pilot, people = groups(clients)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "reference.dipriv"
        export_reference(pilot, path)
        received = send(path, people["answer"])
        local = dipriv.load_local(path)
    print(local.guarantee)
    found = rebuild(channel_of(local), received)
    return {
        "pilot": shares_of(pilot),
        "received": shares_of(received),
        "rebuilt": found,
        "true": shares_of(people),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--clients", type=int, default=100_000)
    pictures = run(parser.parse_args().clients)
    print(f"\n{'':10} far from the truth   strongly religious")
    for name, shares in pictures.items():
        print(f"{name:10} {far(shares, pictures['true']):18.3f} {shares[STRONGLY].sum():20.3f}")
