"""References: distributions that carry V to uniforms and back."""

from dipriv.references._models.distributions import Mixture
from dipriv.references.empirical import Empirical
from dipriv.references.exclusions import Exclusion, Region
from dipriv.references.grouped import Grouped
from dipriv.references.known import Known
from dipriv.references.parametric import Parametric
from dipriv.references.private import Private
from dipriv.references.protocol import (
    CountableValues,
    FittableSpec,
    LearnableSpec,
    LearningPlan,
    Order,
    Reference,
    ReferenceRows,
    ReferenceSpec,
    ValuesCounter,
    by_name,
    reference_spec,
)

__all__ = [
    "CountableValues",
    "Empirical",
    "Exclusion",
    "FittableSpec",
    "Grouped",
    "Known",
    "LearnableSpec",
    "LearningPlan",
    "Mixture",
    "Order",
    "Parametric",
    "Private",
    "Reference",
    "ReferenceRows",
    "ReferenceSpec",
    "Region",
    "ValuesCounter",
    "by_name",
    "reference_spec",
]
