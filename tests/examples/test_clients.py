"""The worked example of clients that privatize their own records."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import dipriv
from examples import clients


def test_the_collector_rebuilds_what_the_reference_does_not_know(tmp_path: Path) -> None:
    people = 100_000
    pilot, true = clients.groups(people)
    clients.export_reference(pilot, tmp_path / "reference.dipriv", seed=3)  # one in which no label is rare
    local = dipriv.load_local(tmp_path / "reference.dipriv")
    assert local.guarantee.epsilon == clients.CLIENT_EPSILON
    received = local.privatize(true)
    channel = clients.channel_of(local)
    found = clients.rebuild(channel, received)
    # the estimate is linear in what is received, w @ seen, as long as no share is zero; copies tell the channel
    w = np.linalg.solve(channel, clients.STRONGLY.astype(float))
    seen = clients.shares_of(received)
    variance = (seen @ w**2 - (seen @ w) ** 2) / people
    of_copies = found**2 @ (channel @ w**2 - (channel @ w) ** 2) / clients.COPIES
    limit = 6 * np.sqrt(variance + of_copies)  # exceeded about once in 5e8 runs
    strongly = clients.shares_of(true)[clients.STRONGLY].sum()
    assert found.min() > 0
    assert abs(found[clients.STRONGLY].sum() - strongly) < limit
    assert abs(seen[clients.STRONGLY].sum() - strongly) > limit  # what is received is drawn to the reference


def test_each_client_sends_one_record_with_noise_of_its_own(tmp_path: Path) -> None:
    pilot, _ = clients.groups(1)
    clients.export_reference(pilot, tmp_path / "reference.dipriv")
    same = pilot["answer"].iloc[[0] * 60]
    sent = clients.send(tmp_path / "reference.dipriv", same)
    assert set(sent["answer"]) <= set(clients.ANSWERS)
    assert len(sent) == 60
    assert sent["answer"].nunique() > 1  # the likeliest answer stays with a chance of 0.62: all the same at 1e-12
