"""The guarantee says exactly what was proved, for each way to come by a reference; facts survive files of any age."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from decimal import ROUND_DOWN, Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import dipriv
from dipriv._base.decimals import exact, in_full, in_short
from dipriv.guarantee import (
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
)
from dipriv.guarantee.guarantee import MAX_EPSILON, MIN_EPSILON, NAMED_ASSUMPTIONS, LegacyField, unreadable
from dipriv.guarantee.sidecar import Sidecar
from dipriv.guarantee.trade_off import largest_probability
from dipriv.guarantee.wording import largest_correlation
from dipriv.references import Empirical, Grouped, Known, Parametric

FRAME = pd.DataFrame({"who": np.repeat(np.arange(50), 8), "a": np.arange(400.0), "b": pd.Categorical(["x", "y"] * 200)})
KNOWN = Guarantee(1.0, "laplace", ReferenceFacts(ReferenceSource.KNOWN, "known law"))
FORMAT_1 = json.loads((Path(__file__).parent / "fixtures" / "guarantees_format_1.json").read_text(encoding="utf-8"))
"""What dipriv 0.1.0.dev0 wrote when a guarantee was English."""


# ---- releases ----


def test_a_known_law_protects_every_row() -> None:
    said = dipriv.privatize(FRAME[["a"]], 0.5, reference=Known(stats.norm(200, 100))).guarantee
    assert said.epsilon == 0.5
    assert (said.unit, said.unprotected, said.released_rows) == (PrivacyUnit(), (), None)
    assert said.secure_randomness
    assert said.assumes(AssumptionKind.DISTRIBUTION_DATA_INDEPENDENT)
    assert "Protects:   every row.\n" in str(said)


def test_a_public_table_protects_every_row() -> None:
    release = dipriv.privatize(FRAME, 1.0, public=FRAME, reference=Empirical(), keep=["who"])
    assert release.guarantee.unprotected == (Unprotected(UnprotectedKind.UNCHANGED_COLUMNS, columns=("who",)),)
    assert not release.guarantee.has_unprotected_rows
    assert len(release.data) == len(FRAME)
    assert release.secrets.split is None
    assert release.guarantee.assumes(AssumptionKind.TABLE_PUBLIC)
    assert not release.guarantee.assumes(AssumptionKind.CATEGORIES_PUBLIC)  # they are those of the public table, sorted
    ordered = FRAME.assign(b=FRAME["b"].cat.as_ordered())
    release = dipriv.privatize(ordered, 1.0, public=ordered, reference=Empirical(), keep=["who"])
    assert release.guarantee.assumes(AssumptionKind.CATEGORIES_PUBLIC)


@pytest.mark.parametrize("reference", ["holdout", Parametric("multivariate_normal")])
def test_a_hold_out_names_whom_it_does_not_protect(reference: str) -> None:
    said = dipriv.privatize(FRAME[["who", "a"]].astype(float), 1.0, reference=reference).guarantee
    (held,) = said.unprotected
    assert held.kind is UnprotectedKind.HOLDOUT_ROWS
    assert said.released_rows is not None
    assert held.rows == 400 - said.released_rows
    assert f"the {said.released_rows} released rows; the {held.rows} hold-out rows have no formal protection." in str(
        said
    )
    assert said.assumes(AssumptionKind.REFERENCE_ROWS_EXPOSED) == (reference == "holdout")


def test_groups_name_whom_they_do_not_protect() -> None:
    said = dipriv.privatize(FRAME, 1.0, reference=Grouped(by="who", first=3), keep=["who"]).guarantee
    assert said.released_rows == 250
    assert said.unprotected[0] == Unprotected(UnprotectedKind.GROUP_ROWS, 150)


def test_a_seed_takes_the_guarantee_away() -> None:
    said = dipriv.privatize(FRAME[["a"]], 1.0, reference="holdout", seed=1).guarantee
    assert not said.secure_randomness
    assert str(said).startswith("NOT PRIVATE: SEEDED")
    assert "SEEDED" not in str(dipriv.privatize(FRAME[["a"]], 1.0, reference="holdout").guarantee)


@pytest.mark.parametrize("reference", ["private", "holdout"])
def test_a_guarantee_for_a_unit_speaks_of_the_unit(reference: str) -> None:
    said = dipriv.privatize(FRAME, 1.0, reference=reference, unit="who", rows_per_unit=3).guarantee
    assert said.unit == PrivacyUnit.rows_of("who", 3)
    text = str(said)
    who = "every person" if reference == "private" else "every person who is not held out"
    assert f"  Protects:   {who}, with all of their rows together (column 'who' says whose a row is; at most 3 " in text
    assert "further ones are not)" in text
    assert "where all rows of one person are replaced by any others" in text
    assert "a test of the true values of all rows of a person at level 5%" in text
    assert not any(wrong in text for wrong in ("every row", "one row"))


@pytest.mark.parametrize("epsilon", [0.05, 0.19, 1.0, 3.0])
def test_no_correlation_exceeds_what_the_noise_on_rows_allows(epsilon: float) -> None:
    coins = pd.DataFrame({"coin": np.arange(400) % 2})
    release = dipriv.privatize(coins, epsilon, reference=Known(stats.bernoulli(0.5)))
    limit = largest_correlation(release.guarantee)
    assert limit is not None
    assert limit == pytest.approx(math.tanh(epsilon / 2))
    assert release.fidelity["coin"] == pytest.approx(limit, rel=1e-6)  # randomized response attains it
    assert release.fidelity["coin"] <= limit
    assert ("as good as synthetic" in str(release.guarantee)) is (epsilon < 0.2)
    normal = dipriv.privatize(FRAME[["a"]], epsilon, reference=Known(stats.norm()))
    assert 0 < normal.fidelity["a"] < limit


def test_rows_of_persons_have_a_part_of_epsilon_and_groups_no_limit() -> None:
    of_person = replace(KNOWN, epsilon=1.0, unit=PrivacyUnit.rows_of("who", 10))
    assert largest_correlation(of_person) == pytest.approx(math.tanh(0.05))
    grouped = replace(KNOWN, reference=ReferenceFacts(ReferenceSource.GROUPS, "one reference per group"))
    assert largest_correlation(grouped) is None


def test_lemma_1_bounds_the_attackers_power() -> None:
    said = replace(KNOWN, epsilon=0.7)
    assert said.power(level=0.05) == pytest.approx(0.05 * math.exp(0.7))
    assert said.power(level=0.01, releases=3) == pytest.approx(0.01 * math.exp(2.1))
    assert said.power(level=0.5, releases=9) == pytest.approx(1 - 0.5 * math.exp(-6.3))
    assert replace(KNOWN, epsilon=1e5).power() == 1.0
    with pytest.raises(dipriv.InputError):
        said.power(level=0)


@given(st.floats(1e-20, 1), st.just(0.0) | st.floats(1e-9, 800), st.just(0.0) | st.floats(1e-30, 1))
def test_the_largest_probability_is_rounded_up_and_hardly_too_large(q: float, epsilon: float, delta: float) -> None:
    """min(1, e^ε q + δ, 1 - e^-ε (1 - q - δ)), in 200 digits."""
    with localcontext(prec=200, rounding=ROUND_DOWN):
        level, factor, extra = Decimal(q), Decimal(epsilon).exp(), Decimal(delta)
        largest = min(Decimal(1), level * factor + extra, 1 - max(Decimal(0), 1 - level - extra) / factor)
        found = Decimal(largest_probability(q, epsilon, delta))
        assert largest <= found <= 1
        if epsilon < 700:
            assert found <= largest * (1 + Decimal("1e-14")) + Decimal("1e-15") * (largest > Decimal("0.1"))


def test_the_largest_probability_is_reached() -> None:
    """Of two outcomes that are certain with probability δ and else randomized response with the ratio e^ε."""
    epsilon, delta = 1.0, 0.01
    likely = math.e / (1 + math.e)
    p, q = delta + (1 - delta) * likely, (1 - delta) * (1 - likely)  # of the outcomes that favour D
    bound = largest_probability(q, epsilon, delta)
    assert bound == pytest.approx(p, abs=1e-12)
    assert largest_probability(q, epsilon) < p - 0.009  # control: not without δ


def test_two_releases_spend_delta_twice() -> None:
    said = replace(KNOWN, epsilon=0.7, delta=0.001)
    assert said.power() == pytest.approx(0.05 * math.exp(0.7) + 0.001)
    assert said.power(releases=2) == pytest.approx(0.05 * math.exp(1.4) + 0.002)


def test_delta_is_worded_where_there_is_one() -> None:
    private = ReferenceFacts(ReferenceSource.PRIVATE, "private", 2 / 3, 1 / 3, delta=1e-9)
    text = str(replace(KNOWN, delta=1e-9, reference=private))
    assert text.startswith("Guarantee: ε = 1, δ = 1e-9 differential privacy.\n")
    assert "at most e^ε = 2.72 times that under the other, plus δ = 1e-9." in text
    assert "learned with ε = 0.6667, δ = 1e-9 of each row; the kernel spends ε = 0.3334 of each row" in text
    pure = str(KNOWN)
    assert pure.startswith("Guarantee: ε = 1 differential privacy (δ = 0).\n")
    assert "differs by a factor of at most e^ε = 2.72." in pure
    others = ReferenceFacts(ReferenceSource.PRIVATE, "private", rows=7, delta=1e-9)
    assert "from 7 other rows under the same ε and δ." in str(replace(KNOWN, delta=1e-9, reference=others))
    assert repr(replace(KNOWN, delta=1e-9)) == "Guarantee(ε=1, δ=1e-9, central, substitute-one row)"


@given(st.floats(1e-30, 1e12))
def test_what_is_printed_is_never_less(number: float) -> None:
    assert Fraction(in_full(number)) == exact(number)
    short = Fraction(in_short(number))
    assert exact(number) <= short <= exact(number) * Fraction(10011, 10000)


def test_words_and_reprs_show_no_cell() -> None:
    frame = pd.DataFrame({"a": [918273.0, 918274.0] * 50, "b": ["sesame", "open"] * 50})
    release = dipriv.privatize(frame, 1.0, reference="holdout")
    dip = dipriv.DIP(1.0, reference="holdout").fit(frame)
    shown = "".join(
        map(repr, (release, release.schema, dip, dip.mechanism_, dip.mechanism_.columns, dip.mechanism_.reference))
    )
    shown += str(release.guarantee)
    numbers = pd.DataFrame({"c": 918273 + np.arange(200), "d": np.where(np.arange(200) % 9 == 0, np.nan, 918274.5)})
    numbers["d"] += np.random.default_rng(0).random(200) * 1e-3
    fitted = dipriv.DIP(1.0, reference="holdout").fit(numbers).mechanism_
    shown += "".join(map(repr, [fitted, *(column.codec for column in fitted.columns), fitted.reference.guide]))
    assert not any(secret in shown for secret in ("91827", "sesame", "open"))


# ---- wording ----

WORDED: dict[AssumptionKind, str] = {
    AssumptionKind.LABELS_PUBLIC: "the set of labels occurring in 'a', 'b' is treated as public",
    AssumptionKind.RULES_PUBLIC: "the rules that the schema states about 'a', 'b' are public",
    AssumptionKind.DRAFT_PUBLIC: "resolutions of 'a', 'b', in a schema drafted from the private rows",
    AssumptionKind.DISTRIBUTION_DATA_INDEPENDENT: "stated without looking at these rows",
    AssumptionKind.TABLE_PUBLIC: "the table passed as `public` is public and was not derived from these rows",
    AssumptionKind.REFERENCE_ROWS_FIXED: "any further release holds out the same rows",
    AssumptionKind.REFERENCE_ROWS_EXPOSED: "published nearly verbatim",
    AssumptionKind.UNDECLARED_FACTS_READ: "were read from the reference rows",
    AssumptionKind.SHAPE_PUBLIC: "the number and order of the rows",
    AssumptionKind.SCHEMA_PUBLIC: "what the schema declares is public, for 'a', 'b'",
    AssumptionKind.CATEGORIES_PUBLIC: "the categories listed in the types of columns are public",
    AssumptionKind.CODES_PUBLIC: "which code a label of 'a', 'b' has is public",
    AssumptionKind.SPLIT_COLUMN_PUBLIC: "which decides which rows are held out, is public",
    AssumptionKind.UNIT_SIZES_PUBLIC: "it is public which rows have the same value of 'a', 'b'",
    AssumptionKind.UNIT_RENUMBERED: "'a', 'b' has new keys, 1, 2, 3, ... in the order of the rows",
    AssumptionKind.UNIT_CONSTANTS: "a person's rows have the same released values of 'a', 'b'",
    AssumptionKind.GROUP_COLUMN_PUBLIC: "which decides whose reference a row uses, is public",
    AssumptionKind.ONE_ROW_PER_PERSON: "each person has one row",
    AssumptionKind.FILE_TYPES_PUBLIC: "settled from all rows so that no single row changes it",
    AssumptionKind.TRANSFORMED_ONCE: "each further time adds ε = 0.25",
    AssumptionKind.RECORD_NOT_LEARNED_FROM: "or their ε and δ are added",
    AssumptionKind.RECORD_RELEASED_ONCE: "each further release of it adds its ε",
    AssumptionKind.PARAMETER_PUBLIC: "these parameters are public: a, b",
    AssumptionKind.PARAMETER_READ_FROM_ROWS: "does not cover what they reveal: a, b",
    AssumptionKind.FLOATING_POINT_NOISE: "sampled in floating point",
    AssumptionKind.AUTHORS_PROOF: "rests on the proof of the author of 'a', 'b'",
}


def assumption(kind: AssumptionKind, names: tuple[str, ...] = ("a", "b")) -> Assumption:
    epsilon = 0.25 if kind is AssumptionKind.TRANSFORMED_ONCE else None
    return Assumption(kind, names if kind in NAMED_ASSUMPTIONS else (), epsilon)


def test_nothing_is_claimed_about_persons_and_types() -> None:
    types = replace(KNOWN, assumptions=(Assumption(AssumptionKind.FILE_TYPES_PUBLIC),))
    of_persons = replace(types, unit=PrivacyUnit.rows_of("person", 3))
    assert "settled from all rows of all persons, and nothing is claimed" in str(of_persons)
    assert "declare exact types" in str(of_persons)
    assert "no single row changes" not in str(of_persons)
    assert "no single row changes" in str(types)  # control
    assert Guarantee.from_dict(of_persons.to_dict()) == of_persons


@pytest.mark.parametrize("kind", AssumptionKind)
def test_every_assumption_is_said_once(kind: AssumptionKind) -> None:
    text = str(replace(KNOWN, assumptions=(assumption(kind),)))
    assert [WORDED[kind] in line for line in text.splitlines()].count(True) == 1
    assert "Provided that:" in text
    assert WORDED[kind] not in str(KNOWN)  # control


UNITS = {
    UnitKind.ROW: ("every row", "one row is replaced by any other", "one row's true value"),
    UnitKind.RECORD: ("the owner of a record", "one record is replaced", "one record's true value"),
    UnitKind.VALUE: ("every value", "one value is replaced", "one true value"),
    UnitKind.VECTOR: ("the vector as a whole", "the whole vector is replaced", "values of the whole vector"),
    UnitKind.TABLE: ("the table as a whole", "the whole table is replaced", "values of the whole table"),
}


@pytest.mark.parametrize("kind", UNITS)
def test_every_unit_is_said(kind: UnitKind) -> None:
    said = replace(KNOWN, unit=PrivacyUnit(kind))
    assert all(words in str(said) for words in UNITS[kind])
    assert "substitute-one (bounded) neighbouring datasets" in str(said)
    local = replace(said, model=Model.LOCAL, neighbouring=Neighbouring.ANY_TWO)
    assert "ε = 1 local differential privacy" in str(local)
    assert "from everyone else, the collector included" in str(local)
    assert f"for any two {kind}s, the probability" in str(local)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (ReferenceFacts(ReferenceSource.NONE), "reference: none."),
        (ReferenceFacts(ReferenceSource.KNOWN, "x"), "reference: x."),
        (ReferenceFacts(ReferenceSource.PUBLIC, "x"), "reference: x, fitted to a public table."),
        (ReferenceFacts(ReferenceSource.PRIVATE, "x", rows=7), "reference: x from 7 other rows under the same ε."),
        (
            ReferenceFacts(ReferenceSource.PRIVATE, "x", 0.75, 0.25),
            "reference: x, learned with ε = 0.75 of each row; the kernel spends ε = 0.25 of each row.",
        ),
    ],
)
def test_every_reference_is_said(facts: ReferenceFacts, words: str) -> None:
    assert words in str(replace(KNOWN, reference=facts))


def test_no_guarantee_is_said() -> None:
    assert str(unreadable()).startswith("No guarantee: ")
    assert "ε" not in str(unreadable())


# ---- plain data ----

names = st.text(max_size=8)
texts = st.text(st.characters(exclude_categories=["C", "Z"]), max_size=8)
counts = st.none() | st.integers(0, 2**40)
costs = st.floats(1e-12, 1e6)
units = st.builds(PrivacyUnit.rows_of, names, st.integers(1, 10**6)) | st.sampled_from(
    [PrivacyUnit(kind) for kind in UnitKind if kind is not UnitKind.ROWS_OF_ONE_VALUE]
)
rows = [kind for kind in UnprotectedKind if kind is not UnprotectedKind.UNCHANGED_COLUMNS]
parts = st.builds(Unprotected, st.sampled_from(rows), counts) | st.lists(names, min_size=1, max_size=3).map(
    lambda columns: Unprotected(UnprotectedKind.UNCHANGED_COLUMNS, columns=tuple(columns))
)
guarantees = st.builds(
    Guarantee,
    epsilon=st.floats(MIN_EPSILON, MAX_EPSILON),
    kernel=texts,
    reference=st.builds(
        ReferenceFacts,
        st.sampled_from(ReferenceSource),
        texts,
        st.none() | costs,
        st.none() | costs,
        counts,
        st.none() | st.floats(0, 1),
    ),
    model=st.sampled_from([Model.CENTRAL, Model.LOCAL]),
    delta=st.floats(0, 1),
    unit=units,
    neighbouring=st.sampled_from(Neighbouring),
    unprotected=st.lists(parts, max_size=3).map(tuple),
    released_rows=counts,
    assumptions=st.lists(
        st.builds(assumption, st.sampled_from(AssumptionKind), st.lists(names, min_size=1, max_size=3).map(tuple)),
        max_size=4,
    ).map(tuple),
    secure_randomness=st.booleans(),
    legacy=st.lists(st.builds(LegacyStatement, st.sampled_from(LegacyField), texts), max_size=2).map(tuple),
)


@given(guarantees)
def test_facts_survive_json_and_words_are_printable(said: Guarantee) -> None:
    assert Guarantee.from_dict(json.loads(said.to_json())) == said
    assert all(line.isprintable() for line in str(said).splitlines())
    assert repr(said).isprintable()
    assert len(repr(said)) < 100


def test_no_guarantee_survives_json() -> None:
    assert json.loads(unreadable().to_json())["epsilon"] == "inf"
    assert Guarantee.from_dict(unreadable().to_dict()) == unreadable()


def test_it_is_plain_data_too() -> None:
    plain = json.loads(dipriv.privatize(FRAME[["a"]], 1.0, reference="holdout").guarantee.to_json())
    assert (plain["format"], plain["epsilon"], plain["model"]) == (2, 1.0, "central")
    assert (plain["neighbouring"], plain["unit"]) == ("substitute-one", {"kind": "row"})
    assert {"kind": "shape-public"} in plain["assumptions"]
    assert plain["power_at_5_percent"] == pytest.approx(0.05 * math.e)


# ---- older files ----


@pytest.mark.parametrize("name", FORMAT_1["guarantees"])
def test_sentences_of_format_1_become_facts(name: str) -> None:
    plain = FORMAT_1["guarantees"][name]
    said = Guarantee.from_dict(plain)
    assert said.legacy == ()
    assert said.reference.source is not ReferenceSource.UNKNOWN
    assert said.epsilon == (math.inf if plain["epsilon"] == "inf" else plain["epsilon"])
    assert len(said.assumptions) + len(said.unprotected) - said.has_unprotected_rows == len(plain["conditions"])
    assert Guarantee.from_dict(said.to_dict()) == said


def test_facts_of_format_1() -> None:
    found = {name: Guarantee.from_dict(plain) for name, plain in FORMAT_1["guarantees"].items()}
    assert found["private_unit"].unit == PrivacyUnit.rows_of("who", 3)
    assert Assumption(AssumptionKind.UNIT_SIZES_PUBLIC, ("who",)) in found["private_unit"].assumptions
    assert found["private"].reference.epsilon == 0.75
    assert not found["private_holdout"].secure_randomness
    assert found["groups"].unprotected == (
        Unprotected(UnprotectedKind.GROUP_ROWS, 100),
        Unprotected(UnprotectedKind.UNCHANGED_COLUMNS, columns=("who",)),
    )
    assert found["groups"].released_rows == 200
    assert found["local_private"].neighbouring is Neighbouring.ANY_TWO
    assert found["resampling"].model is Model.NONE


@pytest.mark.parametrize("column", ["it's", "both ' and \"", "new\nline", "a, 'b'", "\ud800", ""])
def test_any_column_name_is_recognised(column: str) -> None:
    conditions = [f"the labels met in {column!r}, {'b'!r} are public"]
    said = Guarantee.from_dict(FORMAT_1["guarantees"]["known"] | {"conditions": conditions})
    assert said.assumptions == (Assumption(AssumptionKind.LABELS_PUBLIC, (column, "b")),)


@pytest.mark.parametrize("field", ["protects", "unit", "neighbours", "conditions"])
def test_other_sentences_stay_as_they_were(field: str) -> None:
    text = "the set of labels is 'public' for \\x and all"
    said = Guarantee.from_dict(FORMAT_1["guarantees"]["known"] | {field: [text] if field == "conditions" else text})
    assert [statement.text for statement in said.legacy] == [text]
    assert text in str(said)
    assert Guarantee.from_dict(said.to_dict()) == said


@pytest.mark.parametrize("name", FORMAT_1["sidecars"])
def test_sidecars_of_format_1_load(name: str) -> None:
    plain = FORMAT_1["sidecars"][name]
    found = Sidecar.from_dict(plain)
    assert found.guarantee.assumes(AssumptionKind.FILE_TYPES_PUBLIC)
    assert (found.rows_read, found.rows_dropped) == (plain["rows"]["read"], plain["rows"]["cut"])
    assert (found.columns, found.fidelity) == (plain["columns"], plain["fidelity"])
    assert Sidecar.from_dict(json.loads(json.dumps(found.to_dict()))) == found


# ---- files from anybody ----

BAD: list[tuple[str, Any]] = [
    ("format", 1),
    ("format", 3),
    ("format", True),
    ("format", "2"),
    ("epsilon", None),
    ("epsilon", "1"),
    ("epsilon", True),
    ("epsilon", math.nan),
    ("epsilon", -1.0),
    ("epsilon", 10**400),
    ("epsilon", "inf"),
    ("delta", "0"),
    ("delta", 2),
    ("delta", math.nan),
    ("model", "none"),
    ("model", []),
    ("model", "trusted"),
    ("neighbouring", "add-one"),
    ("unit", "row"),
    ("unit", {}),
    ("unit", {"kind": "row", "column": "a"}),
    ("unit", {"kind": "rows-of-one-value"}),
    ("unit", {"kind": "rows-of-one-value", "column": "a", "max_rows": 0}),
    ("unit", {"kind": "rows-of-one-value", "column": 1, "max_rows": 1}),
    ("unit", {"kind": "row", "more": 1}),
    ("kernel", "two\nlines"),
    ("kernel", "\x1b[2J"),
    ("kernel", "x" * 100_000),
    ("kernel", None),
    ("reference", "known law"),
    ("reference", {"description": "x"}),
    ("reference", {"source": "known", "description": "a\u202eb"}),
    ("reference", {"source": "private", "epsilon": -1}),
    ("reference", {"source": "private", "rows": 1.5}),
    ("unprotected", {}),
    ("unprotected", [{"kind": "holdout-rows", "rows": -1}]),
    ("unprotected", [{"kind": "holdout-rows", "columns": ["a"]}]),
    ("unprotected", [{"kind": "unchanged-columns"}]),
    ("released_rows", "many"),
    ("released_rows", True),
    ("assumptions", [[]]),
    ("assumptions", [{"kind": "public"}]),
    ("assumptions", [{"kind": "labels-public"}]),
    ("assumptions", [{"kind": "labels-public", "names": "city"}]),
    ("assumptions", [{"kind": "labels-public", "names": [1]}]),
    ("assumptions", [{"kind": "shape-public", "names": ["a"]}]),
    ("assumptions", [{"kind": "transformed-once"}]),
    ("assumptions", [{"kind": "shape-public"}] * 70_000),
    ("secure_randomness", 1),
    ("legacy", [{"field": "protects", "text": "a\nb"}]),
    ("more", 1),
]


@pytest.mark.parametrize(("name", "value"), BAD, ids=[f"{name} {str(value)[:30]!a}" for name, value in BAD])
def test_what_dipriv_does_not_write_is_refused(name: str, value: Any) -> None:
    with pytest.raises(dipriv.InputError) as caught:
        Guarantee.from_dict(KNOWN.to_dict() | {name: value})
    assert str(caught.value).isascii() or "ε" in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("name", sorted(set(KNOWN.to_dict()) - {"format", "power_at_5_percent"}))
def test_no_fact_may_be_missing(name: str) -> None:
    plain = KNOWN.to_dict()
    del plain[name]
    with pytest.raises(dipriv.InputError):
        Guarantee.from_dict(plain)


@pytest.mark.parametrize("plain", [None, [], "x", 1, {}, {1: 2}])
def test_other_things_are_no_guarantee(plain: Any) -> None:
    with pytest.raises(dipriv.InputError):
        Guarantee.from_dict(plain)


@given(
    st.dictionaries(
        st.sampled_from([*KNOWN.to_dict(), *FORMAT_1["guarantees"]["known"]]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
            max_leaves=5,
        ),
        max_size=3,
    ),
    st.booleans(),
)
def test_changed_files_load_or_are_refused(changes: dict[str, Any], former: bool) -> None:
    try:
        said = Guarantee.from_dict((FORMAT_1["guarantees"]["known"] if former else KNOWN.to_dict()) | changes)
    except dipriv.InputError:
        return
    assert all(line.isprintable() for line in str(said).splitlines())
