"""What is guaranteed: typed facts, their wording, and the sidecar file beside an output."""

from dipriv.guarantee.guarantee import (
    Assumption,
    AssumptionKind,
    Guarantee,
    LegacyStatement,
    Model,
    Neighbouring,
    PrivacyUnit,
    ReferenceFacts,
    ReferenceSource,
    UnitKind,
    Unprotected,
    UnprotectedKind,
    check_delta,
    check_epsilon,
)

__all__ = [
    "Assumption",
    "AssumptionKind",
    "Guarantee",
    "LegacyStatement",
    "Model",
    "Neighbouring",
    "PrivacyUnit",
    "ReferenceFacts",
    "ReferenceSource",
    "UnitKind",
    "Unprotected",
    "UnprotectedKind",
    "check_delta",
    "check_epsilon",
]
