"""The grammar of rules, and a parser by recursive descent that evaluates nothing.

    rule       = formula | order | implication
    formula    = column "=" sum                              gross = regular + overtime
    order      = column ("<" | "<=" | ">" | ">=") column     start <= end
    implication = test "=>" test                             age < 15 => income is missing
    test       = column "is" ["not"] "missing"
               | column ("=" | "!=" | "<" | "<=" | ">" | ">=") constant
               | column ["not"] "in" "(" constant {"," constant} ")"
    sum        = product {("+" | "-") product}
    product    = factor {("*" | "/") factor}
    factor     = ["-"] (number | column | "(" sum ")")
    constant   = ["-"] number | 'text' | "true" | "false"

A column is a name of letters, digits and underscores, or any text in double quotes. Texts are in single quotes; dates
and times are texts such as '2024-12-31'. A quote inside quotes is written twice.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

MAX_TEXT = 1 << 16
"""The longest rule, in characters."""
MAX_TERMS = 256
"""The most columns and numbers of a formula."""
MAX_DEPTH = 64
"""How deeply parentheses and signs may be nested."""
Constant: TypeAlias = str | int | float | bool
Operator: TypeAlias = Literal["=", "!=", "<", "<=", ">", ">=", "in", "not in", "missing", "not missing"]
_TOKENS = re.compile(
    r"""\s*(?: (?P<number> (?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)? (?!\w) )
            | (?P<word> [^\W\d]\w* )
            | "(?P<quoted> (?:[^"]|"")* )"
            | '(?P<text> (?:[^']|'')* )'
            | (?P<sign> => | <= | >= | != | [-+*/=<>(),\[\]{}] ) )""",
    re.VERBOSE,
)
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_WORDS = ("is", "not", "missing", "in", "true", "false")


@dataclass(frozen=True)
class Name:
    """A column in a formula."""

    column: str


@dataclass(frozen=True)
class Number:
    """A number in a formula."""

    value: int | float


@dataclass(frozen=True)
class Operation:
    """A sum, difference, product or ratio."""

    symbol: Literal["+", "-", "*", "/"]
    left: Expression
    right: Expression


Expression: TypeAlias = Name | Number | Operation


@dataclass(frozen=True)
class Formula:
    """A column that is computed from others."""

    column: str
    expression: Expression
    text: str = field(compare=False, default="")


@dataclass(frozen=True)
class Order:
    """A column that is never below another; in strict order, it is above."""

    lower: str
    upper: str
    strict: bool = False
    text: str = field(compare=False, default="")


@dataclass(frozen=True)
class Test:
    """A condition on one column. A missing cell meets no condition but "missing"."""

    column: str
    operator: Operator
    values: tuple[Constant, ...] = ()

    __test__ = False  # not one of pytest's


@dataclass(frozen=True)
class Implication:
    """Where the condition holds, the consequence does. A missing cell contradicts no consequence."""

    condition: Test
    consequence: Test
    text: str = field(compare=False, default="")


Statement: TypeAlias = Formula | Order | Implication


class RuleSyntaxError(Exception):
    """What is wrong with a rule, in words, and what to do."""

    def __init__(self, fault: str, remedy: str) -> None:
        super().__init__(fault, remedy)
        self.fault, self.remedy = fault, remedy


def columns_of(expression: Expression) -> tuple[str, ...]:
    """The columns of a formula, each once.

    >>> columns_of(Operation("+", Name("a"), Operation("/", Name("b"), Name("a"))))
    ('a', 'b')
    """
    if isinstance(expression, Operation):
        return tuple(dict.fromkeys((*columns_of(expression.left), *columns_of(expression.right))))
    return (expression.column,) if isinstance(expression, Name) else ()


def parse(text: str) -> Statement:
    """The rule that a text states.

    Raises
    ------
    RuleSyntaxError : it is none, with the place where it stops being one.

    >>> parse("start <= end")
    Order(lower='start', upper='end', strict=False, text='start <= end')
    """
    if len(text) > MAX_TEXT:
        raise RuleSyntaxError(f"it has more than {MAX_TEXT:,} characters", "Shorten it")
    return _Parser(text).rule()


@dataclass
class _Token:
    kind: str
    text: str
    place: int


class _Parser:
    def __init__(self, text: str) -> None:
        self._text, self._at, self._depth, self._terms = text, 0, 0, 0
        self._tokens = _tokens(text)

    def rule(self) -> Statement:
        column = self._column("a column")
        if self._is_word("is", "not", "in") or self._sign == "!=":
            return self._implication(self._test(column))
        if self._sign in ("<", "<=", ">", ">="):
            return self._order_or_implication(column)
        self._expect("=")
        if self._here.kind == "text" or self._is_word("true", "false") or self._next_sign(1) == "=>":
            return self._implication(Test(column, "=", (self._constant(),)))
        if self._sign == "-" and self._next_sign(2) == "=>":
            return self._implication(Test(column, "=", (self._constant(),)))
        expression = self._sum()
        self._end()
        if not columns_of(expression):
            raise RuleSyntaxError(
                "its right side names no column", "Declare a constant as the only level of its column"
            )
        return Formula(column, expression, self._text.strip())

    def _order_or_implication(self, column: str) -> Statement:
        operator: Any = self._sign
        self._at += 1
        if self._here.kind in ("word", "quoted") and not self._is_word("true", "false"):
            other = self._column("a column")
            self._end()
            lower, upper = (column, other) if operator[0] == "<" else (other, column)
            return Order(lower, upper, operator in ("<", ">"), self._text.strip())
        return self._implication(Test(column, operator, (self._constant(),)))

    def _implication(self, condition: Test) -> Implication:
        if self._here.kind == "end":
            raise RuleSyntaxError(
                "it bounds one column",
                "Declare bounds and levels with the column's kind; a rule needs two columns, such as age < 15 => "
                "income is missing, or start <= end",
            )
        self._expect("=>")
        consequence = self._test(self._column("a column"))
        self._end()
        return Implication(condition, consequence, self._text.strip())

    def _test(self, column: str) -> Test:
        if self._is_word("is"):
            self._at += 1
            inverted = self._take_word("not")
            if not self._take_word("missing"):
                raise self._expected("missing")
            return Test(column, "not missing" if inverted else "missing")
        inverted = self._take_word("not")
        if self._take_word("in"):
            return Test(column, "not in" if inverted else "in", self._list())
        operator = self._sign
        if inverted or operator not in ("=", "!=", "<", "<=", ">", ">="):
            raise self._expected("is missing, in, or one of = != < <= > >=")
        self._at += 1
        return Test(column, operator, (self._constant(),))  # type: ignore[arg-type]

    def _list(self) -> tuple[Constant, ...]:
        opening = self._sign
        if opening not in _CLOSING:
            raise self._expected("a list in parentheses")
        self._at += 1
        values = [self._constant()]
        while self._sign == ",":
            self._at += 1
            values.append(self._constant())
        self._expect(_CLOSING[opening])
        return tuple(values)

    def _constant(self) -> Constant:
        if self._is_word("true", "false"):
            self._at += 1
            return self._tokens[self._at - 1].text == "true"
        if self._here.kind == "text":
            self._at += 1
            return self._tokens[self._at - 1].text
        negative = self._sign == "-"
        self._at += negative
        if self._here.kind != "number":
            raise self._expected("a number, a text in single quotes, true or false")
        number = self._number()
        return -number if negative else number

    def _sum(self) -> Expression:
        found = self._product()
        while self._sign in ("+", "-"):
            symbol = self._sign
            self._at += 1
            found = Operation(symbol, found, self._product())  # type: ignore[arg-type]
        return found

    def _product(self) -> Expression:
        found = self._factor()
        while self._sign in ("*", "/"):
            symbol = self._sign
            self._at += 1
            found = Operation(symbol, found, self._factor())  # type: ignore[arg-type]
        return found

    def _factor(self) -> Expression:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise RuleSyntaxError(f"it is nested more than {MAX_DEPTH} times", "Simplify it")
        try:
            if self._sign == "-":
                self._at += 1
                return Operation("-", Number(0), self._factor())
            if self._sign == "(":
                self._at += 1
                found = self._sum()
                self._expect(")")
                return found
            self._terms += 1
            if self._terms > MAX_TERMS:
                raise RuleSyntaxError(f"it has more than {MAX_TERMS} terms", "Shorten it")
            if self._here.kind == "number":
                return Number(self._number())
            return Name(self._column("a column or a number"))
        finally:
            self._depth -= 1

    def _number(self) -> int | float:
        text = self._here.text
        self._at += 1
        number = float(text)
        if not math.isfinite(number):
            raise RuleSyntaxError(f"the number {text[:20]} is too large", "Use a number below 1e308")
        return int(text) if text.isdigit() and len(text) < 19 else number

    def _column(self, what: str) -> str:
        token = self._here
        if token.kind not in ("word", "quoted") or (token.kind == "word" and token.text in _WORDS) or not token.text:
            raise self._expected(what)
        self._at += 1
        return token.text

    @property
    def _here(self) -> _Token:
        return self._tokens[self._at]

    @property
    def _sign(self) -> str:
        return self._next_sign(0)

    def _next_sign(self, further: int) -> str:
        token = self._tokens[min(self._at + further, len(self._tokens) - 1)]
        return token.text if token.kind == "sign" else ""

    def _is_word(self, *words: str) -> bool:
        return self._here.kind == "word" and self._here.text in words

    def _take_word(self, word: str) -> bool:
        found = self._is_word(word)
        self._at += found
        return found

    def _expect(self, sign: str) -> None:
        if self._sign != sign:
            raise self._expected(sign)
        self._at += 1

    def _end(self) -> None:
        if self._here.kind != "end":
            raise self._expected("its end")

    def _expected(self, what: str) -> RuleSyntaxError:
        token = self._here
        where = "at its end" if token.kind == "end" else f"at character {token.place + 1}"
        return RuleSyntaxError(f"{what} is expected {where}", "Quote names of columns as \"...\" and texts as '...'")


def _tokens(text: str) -> list[_Token]:
    found, at = [], 0
    while at < len(text):
        match = _TOKENS.match(text, at)
        if match is None:
            if not text[at:].strip():
                break
            place = at + len(text[at:]) - len(text[at:].lstrip())
            raise RuleSyntaxError(
                f"character {place + 1} begins nothing that rules have",
                "Quote names of columns as \"...\" and texts as '...'",
            )
        kind = match.lastgroup or ""
        quote = {"quoted": '"', "text": "'"}.get(kind, "")
        content = match[kind].replace(2 * quote, quote) if quote else match[kind]
        found.append(_Token(kind, content, match.start(kind) - len(quote)))
        at = match.end()
    return [*found, _Token("end", "", len(text))]
