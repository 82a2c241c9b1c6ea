"""Bounds on several rewards, and lower ones: against models whose text counts, in rational numbers."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybrid
from hybrid.__main__ import main
from hybrid.properties import parse_properties
from hybrid.properties.tree import RewardBound, RewardBounds
from tests.exploring import each, rounds

BOUNDS = {
    "<={}": "c{} <= {}", "<{}": "c{} < {}", ">={}": "c{} >= {}", ">{}": "c{} > {}", "={}": "c{} = {}",
    "[{},4]": "c{1} >= {0} & c{1} <= 4",
}  # fmt: skip
PATHS = {"F{} ({})": "F ({1} & {0})", "({2}) U{} ({})": "({2}) U ({1} & {0})", "G{} !({})": "G !({1} & {0})"}


class Drawn:
    """A random model with two rewards, and the same model with a counter of each in its text."""

    def __init__(self, rng: np.random.Generator, kind: str, units: tuple[Fraction, Fraction]) -> None:
        self.n = int(rng.integers(2, 5))
        of_states = rng.choice([0, 0, 1, 2], size=(2, self.n)) * (kind != "ctmc")
        of_actions = rng.choice([0, 0, 1, 3], size=(2, 2))
        commands, counting = [], []
        for s in range(self.n):
            for c in range(int(rng.integers(1, 3))):
                targets = rng.permutation(self.n)[: int(rng.integers(1, 3))].tolist()
                weights = rng.integers(1, 5, size=len(targets)).tolist()
                counts = "".join(
                    f"&(c{i}'=min(c{i}+{of_states[i, s] + of_actions[i, c]},9))" for i in range(2)
                )
                parts = [f"{w}/{sum(weights)}:(s'={t})" for w, t in zip(weights, targets, strict=True)]
                commands.append(f"[a{c}] s={s} -> {' + '.join(parts)};")
                counting.append(f"[a{c}] s={s} -> {' + '.join(part + counts for part in parts)};")
        head = f"{kind} module m s : [0..{self.n - 1}];"
        items = [
            "".join(f"s={s} : {r * unit}; " for s, r in enumerate(states))
            + "".join(f"[a{c}] true : {r * unit}; " for c, r in enumerate(actions))
            for unit, states, actions in zip(units, of_states.tolist(), of_actions.tolist(), strict=True)
        ]
        ends = [f'rewards "{name}" {own} endrewards\n' for name, own in zip("xy", items, strict=True)]
        never = "[a0] s<0 -> true; [a1] s<0 -> true;"
        self.text = "\n".join([head, *commands, never, "endmodule", *ends])
        self.counting = "\n".join([head, "c0:[0..9]; c1:[0..9];", *counting, never, "endmodule"])


@pytest.mark.parametrize(
    ("kind", "options"),
    each(["dtmc", "mdp", "ctmc"], [{}, {"engine": "explicit"}, {"method": "interval"}]),
)
def test_random_models(kind: str, options: dict[str, Any], rng: np.random.Generator) -> None:
    between = 0
    while between < rounds(9):  # most values are 0 or 1
        units = Fraction(1, 2), Fraction(3)
        drawn = Drawn(rng, kind, units)
        own, of_text = [], []
        for i, name in enumerate("xy"):
            kept, number = str(rng.choice(list(BOUNDS))), int(rng.integers(1, 5))
            shown = kept.replace("4", str(float(4 * units[i]))).format(float(number * units[i]))
            own.append(f'{{"{name}"}}{shown}')
            text = BOUNDS[kept]
            of_text.append(
                text.format(number, i).replace("c{1}", f"c{i}") if "{1}" in text else text.format(i, number)
            )
        spelling = ",".join(own) if rng.random() < 0.5 else f"^{{{','.join(own)}}}"
        path = str(rng.choice(list(PATHS)))
        target, safe = f"s={int(rng.integers(0, drawn.n))}", f"s!={int(rng.integers(0, drawn.n))}"
        model, counting = hybrid.parse(drawn.text), hybrid.parse(drawn.counting)
        for word in ("min", "max") if kind == "mdp" else ("",):
            asked = f"P{word}=? [ {_filled(path, spelling, target, safe)} ]"
            right = PATHS[path].format(" & ".join(of_text), target, safe)
            exact = hybrid.check(counting, f"P{word}=? [ {right} ]", exact=True).exact
            answer = hybrid.check(model, asked, **options)
            assert answer.lower <= exact <= answer.upper, asked
            assert answer.upper - answer.lower <= 1e-6
            between += 0 < exact < 1


def _filled(path: str, bounds: str, target: str, safe: str) -> str:
    """Return a path formula with its parts filled in: bounds have braces of their own."""
    return path.replace("{2}", safe).replace("{}", "\0", 1).replace("{}", target).replace("\0", bounds)


WALK = """{kind} module m s : [0..3];
  [go] s=0 -> 1/2:(s'=1) + 1/2:(s'=2);
  [go] s=1 -> 1/3:(s'=2) + 2/3:(s'=0);
  [] s=2 -> 1/2:(s'=0) + 1/2:(s'=3);
  [] s=3 -> true;
endmodule
rewards "a" s=0 : 1; s=2 : 1/2; endrewards
rewards "b" [go] true : 2; endrewards"""
BY_HAND = {
    'F{"a"}<=1,{"b"}<=2 s=2': Fraction(1, 2),
    'F{"a"}<=1,{"b"}<=4 s=2': Fraction(2, 3),
    'F{"b"}>2 s=2': Fraction(3, 4),
    'F{"a"}[0,1] s=2': Fraction(2, 3),
    'F{"a"}=1.5 s=3': Fraction(1, 3),
    'F{"a"}>=0,{"b"}<100 s=3 & s=2': Fraction(0),
    'G{"a"}>=2 s=3': Fraction(1, 3),
}


@pytest.mark.parametrize("kind", ["dtmc", "mdp"])
def test_values_by_hand(kind: str) -> None:
    model = hybrid.parse(WALK.format(kind=kind))
    for path, right in BY_HAND.items():
        answer = hybrid.check(model, f"P{'max' if kind == 'mdp' else ''}=? [ {path} ]")
        assert answer.lower <= right <= answer.upper, (path, answer.value)


def test_one_upper_bound_is_the_budget_s_own() -> None:
    for text in ('F{"a"}<=2 s=2', 'F{rew{"a"}<=2} s=2', 'F^{rew{"a"}<=2} s=2'):
        (found,) = parse_properties(f"P=? [ {text} ]").properties
        assert isinstance(found.formula.path.bound, RewardBound)
    for text in ('F{"a"}>=2 s=2', 'F rew{"a"}<=2,rew{"b"}<=3 s=2', 'F{rew{"a"}[1,2]} s=2'):
        (found,) = parse_properties(f"P=? [ {text} ]").properties
        assert isinstance(found.formula.path.bound, RewardBounds)


def test_states_that_settle_a_bound_from_below_have_successors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The target may be passed too early, so that the command builds the model beyond it."""
    model = tmp_path / "walk.prism"
    model.write_text(WALK.format(kind="dtmc"))
    for path, right, states in (
        ('F{"a"}>=2 s=2', Fraction(2, 3), 4),
        ('F{"a"}<=2,{"b"}<=100 s=2', Fraction(8, 9), 3),
    ):
        assert main(["check", str(model), f"P=? [ {path} ]", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        (answer,) = found["results"]
        assert answer["lower"] <= right <= answer["upper"]
        assert found["model"]["states"] == states


@pytest.mark.parametrize(
    ("prop", "options", "message"),
    [
        ('P=? [ F{"a"}<=200,{"b"}<=20000 s=2 ]', {}, "402 by 10002 numbers, 4020804 for every state"),
        ('P=? [ F{"a"}[3,2] s=2 ]', {}, "must leave something"),
        ('P=? [ F{"a"}>=2 s=2 ]', {"ranks": 2}, "not found in parts"),
        ('P=? [ F{"a"}>=2 s=2 ]', {"exact": True}, "is not solved exactly"),
        ('P=? [ F{"a"}>=2 s=2 ]', {"engine": "symbolic"}, "not answered by the engine symbolic"),
        ('A [ F{"a"}>=2 s=2 ]', {}, "take no bounds on rewards"),
        ('P=? [ F{"a"}>=2 s=2 || F s=3 ]', {}, "stands on a path operator of its own"),
        ('quantile(min B, P>=0.5 [ F{"a"}<=B,{"b"}<=2 s=2 ])', {}, "bound on a reward is the one asked for"),
    ],
)
def test_refusals(prop: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(hybrid.HybridError, match=message):
        hybrid.check(hybrid.parse(WALK.format(kind="dtmc")), prop, **options)
