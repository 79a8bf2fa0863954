"""Rules between columns, as a schema states them: formulas, order, implications, functions, combinations."""

from dipriv._rules.declared import NO_RULES, Combination, Function, Rules, rules_of
from dipriv._rules.grammar import (
    Constant,
    Expression,
    Formula,
    Implication,
    Name,
    Number,
    Operation,
    Order,
    Test,
    columns_of,
    parse,
)

__all__ = [
    "NO_RULES",
    "Combination",
    "Constant",
    "Expression",
    "Formula",
    "Function",
    "Implication",
    "Name",
    "Number",
    "Operation",
    "Order",
    "Rules",
    "Test",
    "columns_of",
    "parse",
    "rules_of",
]
