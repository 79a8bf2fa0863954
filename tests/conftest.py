"""What all tests share."""

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("OMP_NUM_THREADS", "1")  # workers use all cores: threads of BLAS would only wait for each other
settings.register_profile("no clock", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("no clock")  # machines are shared: a slow example says nothing of the code


@pytest.fixture
def no_room_for_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of a first pass can be kept, neither in memory nor on the disk: every pass reads the source again."""

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dipriv.sources._kept.MAX_BYTES", 0)
    monkeypatch.setattr("dipriv.sources._kept._Scratch", full)
