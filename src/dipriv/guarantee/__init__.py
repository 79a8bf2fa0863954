"""What is guaranteed: typed facts, their wording, and the sidecar file beside an output."""

from dipriv.guarantee.guarantee import Guarantee, check_epsilon

__all__ = ["Guarantee", "check_epsilon"]
