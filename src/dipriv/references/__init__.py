"""References: distributions that carry V to uniforms and back."""

from dipriv.references._models.boxes import Boxes
from dipriv.references._models.bucket_index import BucketIndex
from dipriv.references._models.distributions import (
    ContinuousDistribution,
    Distribution,
    IntegerDistribution,
    LevelsDistribution,
    Mixture,
)
from dipriv.references._models.independent import Independent
from dipriv.references._models.network import Network, Node
from dipriv.references._models.normal import Normal
from dipriv.references.empirical import Empirical
from dipriv.references.grouped import AtGroups, Grouped, GroupedBoxes
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
    as_spec,
    by_name,
    draw_order,
    reference_spec,
    registered_names,
)

__all__ = [
    "AtGroups",
    "Boxes",
    "BucketIndex",
    "ContinuousDistribution",
    "CountableValues",
    "Distribution",
    "Empirical",
    "FittableSpec",
    "Grouped",
    "GroupedBoxes",
    "Independent",
    "IntegerDistribution",
    "Known",
    "LearnableSpec",
    "LearningPlan",
    "LevelsDistribution",
    "Mixture",
    "Network",
    "Node",
    "Normal",
    "Order",
    "Parametric",
    "Private",
    "Reference",
    "ReferenceRows",
    "ReferenceSpec",
    "ValuesCounter",
    "as_spec",
    "by_name",
    "draw_order",
    "reference_spec",
    "registered_names",
]
