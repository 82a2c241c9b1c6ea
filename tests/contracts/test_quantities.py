"""Each quantity is answered or refused by name, whatever is done with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import hybrid
from hybrid.analysis.run.options import CheckOptions
from hybrid.base.errors import HybridError
from hybrid.checking.certificates.builder import CertificateBuilder
from hybrid.checking.certificates.certified_text import PropertyText
from hybrid.checking.simulation.estimates import estimate_property
from hybrid.properties import parse_properties, registry, resolve_properties
from hybrid.properties.path_parser import PathParser
from hybrid.properties.registry import QUANTITIES, Capability, PropertyQuantity, asked_quantity
from hybrid.properties.tree import Reward
from mtbdd.language.syntax import Expression, Position

BODY = """
module m x:[0..3];
  [] x=0 -> 0.25:(x'=1)+0.75:(x'=2);
  [] x=1 -> 1:(x'=3);
  [] x=2 -> 0.5:(x'=2)+0.5:(x'=3);
  [] x=3 -> true;
endmodule
rewards "r" x<2 : 1; endrewards"""
HOA = """HOA: v1
States: 2
Start: 1
AP: 1 "p"
acc-name: Buchi
Acceptance: 1 Inf(0)
properties: deterministic complete
--BODY--
State: 0 {0}
[t] 0
State: 1
[0] 0
[!0] 1
--END--
"""
# What asks for each quantity; {} is min or max on a decision process.
ASKED = {
    registry.AUTOMATON: 'P{}=? [ HOA: {{"FILE", "p" <- x=3}} ]',
    registry.CONDITIONAL: "P{}=? [ F x=3 || F x=2 ]",
    registry.LTL: "P{}=? [ F (x=2 & (X x=3)) ]",
    registry.REPEATED: "P{}=? [ !(G F x=3) ]",
    registry.NEXT: "P{}=? [ X x=2 ]",
    registry.REWARD_BOUNDED: 'P{}=? [ F{{"r"}}<=1 x=3 ]',
    registry.REWARDS_BOUNDED: 'P{}=? [ F{{"r"}}<=1,{{"r"}}>=1 x=3 ]',
    registry.WINDOW: "P{}=? [ !(F<=2 x=3) ]",
    registry.UNTIL: "P{}=? [ x<2 U x=3 ]",
    registry.NOW: "P{}=? [ x=0 ]",
    registry.STEADY: "S{}=? [ x=3 ]",
    registry.RATIO: 'R{{"r"}}/{{"r"}}{}=? [ S ]',
    registry.AVERAGE: 'R{{"r"}}{}=? [ LRA ]',
    registry.DISCOUNTED: 'R{{"r",discount=0.5}}{}=? [ C ]',
    registry.CUMULATIVE: 'R{{"r"}}{}=? [ C<=2 ]',
    registry.TOTAL: 'R{{"r"}}{}=? [ C ]',
    registry.INSTANTANEOUS: 'R{{"r"}}{}=? [ I=1 ]',
    registry.ELAPSED_TIME: "T{}=? [ F x=3 ]",
    registry.REACHED: 'R{{"r"}}{}=? [ F x=3 ]',
    registry.COSAFE: 'R{{"r"}}{}=? [ x<3 U x=3 ]',
    registry.QUANTIFIED: "A [ F x=3 ]",
    registry.FILTER: "filter(max, P{}=? [ F x=3 ])",
    registry.MULTI: "multi(P>=0.5 [ F x=3 ], P<=1 [ F x=2 ])",
    registry.QUANTILE: 'quantile(min B, P>=0.5 [ F{{"r"}}<=B x=3 ])',
}


@dataclass
class _Case:
    path: Path
    model: Any
    formula: Any
    text: str


def _check(**options: Any) -> Callable[[_Case], object]:
    return lambda case: hybrid.check(case.model, case.text, backend="reference", **options)


def _certify(case: _Case) -> object:
    return CertificateBuilder(case.path, {}, CheckOptions(), PropertyText(case.text, 0, {})).make(
        case.model, case.formula
    )


WAYS: dict[str, Callable[[_Case], object]] = {
    "check": _check(),
    "explicit": lambda case: hybrid.check(case.model, case.text, engine="explicit", backend="cpu"),
    "exact": lambda case: hybrid.check(case.model, case.text, exact=True),
    "scheduler": _check(scheduler=True),
    "quotient": _check(bisimulation=True),
    "simulation": lambda case: estimate_property(case.model.source, case.formula, 50, steps=50),
    "certificate": _certify,
    "inside": lambda case: hybrid.check(case.model, f"filter(max, 2*({case.text}))", backend="reference"),
    "objective": lambda case: hybrid.check(case.model, f"multi({case.text}, P>=0.1 [ F x=3 ])"),
}


PAIRS = [
    *[(way, kind) for way in ("check", "exact", "quotient", "certificate") for kind in ("dtmc", "mdp")],
    *[(way, "dtmc") for way in ("explicit", "simulation", "inside")],
    *[("check", "ctmc"), ("scheduler", "mdp"), ("objective", "mdp")],
]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Any]]:
    """Models of each kind, with an automaton beside them."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "automaton.hoa").write_text(HOA, encoding="utf-8")
    found = {}
    for kind in ("dtmc", "ctmc", "mdp"):
        path = folder / f"{kind}.prism"
        path.write_text(kind + BODY, encoding="utf-8")
        found[kind] = path, hybrid.load(path)
    return found


def _case(models: dict[str, tuple[Path, Any]], kind: str, quantity: PropertyQuantity) -> _Case:
    path, model = models[kind]
    automaton = path.with_name("automaton.hoa").as_posix()
    text = ASKED[quantity].format("max" if kind == "mdp" else "").replace("FILE", automaton)
    formula = resolve_properties(parse_properties(text), model.source).properties[0]
    return _Case(path, model, formula, text)


def test_each_quantity_is_asked_for_here(models: dict[str, Any]) -> None:
    assert list(ASKED) == QUANTITIES
    for quantity in QUANTITIES:
        assert asked_quantity(_case(models, "dtmc", quantity).formula.formula) is quantity


@pytest.mark.parametrize(("way", "kind"), PAIRS)
@pytest.mark.filterwarnings("ignore")
def test_each_quantity_is_answered_or_refused_by_name(way: str, kind: str, models: dict[str, Any]) -> None:
    for quantity in QUANTITIES:
        try:
            WAYS[way](_case(models, kind, quantity))
        except HybridError as refusal:
            assert str(refusal), quantity.name


def test_lra_is_answered_wherever_s_is(models: dict[str, Any]) -> None:
    model = models["ctmc"][1]
    for structure in ('{"r"}', ""):
        texts = [f"R{structure}=? [ {word} ]" for word in ("S", "LRA")]
        assert [p.text for p in parse_properties("; ".join(texts)).properties] == texts
        for options in ({"exact": True}, {"backend": "cpu"}, {"engine": "explicit", "backend": "cpu"}):
            of_s, of_lra = (hybrid.check(model, text, **options) for text in texts)
            assert (of_s.value, of_s.lower, of_s.upper) == (of_lra.value, of_lra.lower, of_lra.upper)


# ------------------------------------------------------------------ a record more


class _Peak(Expression):
    """`M`, a reward formula that no version knows."""


def _read_peak(parser: PathParser, position: Position) -> Expression | None:
    return _Peak(position) if parser.take("M") else None


PEAK = PropertyQuantity("R [ M ]", Reward, lambda e: isinstance(e.target, _Peak), read=_read_peak)


@pytest.fixture
def peak(models: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> _Case:
    """A question for a quantity of which there is the record alone."""
    monkeypatch.setattr(registry, "QUANTITIES", [PEAK, *QUANTITIES])
    monkeypatch.setattr("hybrid.properties.parser.QUANTITIES", [PEAK, *QUANTITIES])
    monkeypatch.setitem(ASKED, PEAK, 'R{{"r"}}=? [ M ]')
    return _case(models, "dtmc", PEAK)


@pytest.mark.parametrize("way", ["check", "explicit", "exact", "quotient", "simulation", "certificate"])
def test_one_record_more_is_read_and_refused_by_name(way: str, peak: _Case) -> None:
    with pytest.raises(HybridError, match=r"R \[ M \]"):
        WAYS[way](peak)


def test_what_answers_it_is_put_into_a_table(peak: _Case) -> None:
    capability = Capability[int](lambda e, reason: KeyError(reason), "{} is not supported by this")
    with pytest.raises(KeyError, match=r"R \[ M \] is not supported by this"):
        capability.of(peak.formula.formula)
    capability.refuses("{} has no end", PEAK)
    with pytest.raises(KeyError, match=r"R \[ M \] has no end"):
        capability.of(peak.formula.formula)
    capability.answers(PEAK)(lambda e: 7)
    assert capability.of(peak.formula.formula)(peak.formula.formula) == 7
