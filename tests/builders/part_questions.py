"""Small models in parts: what is asked of them, whether answers agree, whose states are whose."""

from __future__ import annotations

import numpy as np

from hybrid.checking.answer import Answer
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Node
from mtbdd.offset.states import states_from
from tests.builders.mdp_texts import LOOPING_CHOICES
from tests.builders.models import build

__all__ = ["QUESTIONS", "WALK", "agree", "asked", "dealt"]

WALK = """
ctmc
const int n;
module walk
  x : [0..n] init 0;
  [] x<n -> 1.5 : (x'=x+1);
  [] x>0 -> 1 : (x'=x-1);
endmodule
label "end" = x=n;
rewards "up" x>n/2 : x; [] true : 0.5; endrewards
"""

LOOPS = f"""{LOOPING_CHOICES}
rewards x<8 : 1; [] x=3 : 2; endrewards
"""


QUESTIONS = {
    "walk": [
        'P=? [ true U<=1.5 "end" ]', 'P=? [ true U[0.5,2] x=3 ]', "P=? [ X x>1 ]", "P=? [ x>1 U x=n ]",
        'R{"up"}=? [ C<=2.5 ]', 'R{"up"}=? [ I=1.25 ]', 'R{"up"}=? [ S ]', 'R{"up"}=? [ F x=n ]',
        "S=? [ x>2 ]",
        "filter(min, P=? [ F<=2 x=n ], x>1)", "filter(avg, P=? [ F<=2 x=n ])", "filter(count, x>2)",
        "filter(range, P=? [ F<=1 x=n ], x<3)", "filter(sum, S=? [ x=1 ], x<4)",
        "filter(exists, P>0.5 [ F<=2 x=n ])", "filter(forall, P>0 [ F x=n ])",
        "P=? [ F<=3 (P>0.1 [ F<=1 x=n ]) ]", "P>0.2 [ F<=3 x=n ]",
        "P=? [ (G F x=n) & (F x=2) ]", "P=? [ F<=2 filter(argmax, P=? [ F<=1 x=n ], x<n) ]",
        'R{"up"}=? [ F x=3 & (X x=4) ]', "A [ G (E [ F x=0 ]) ]",
    ],
    "loops": [
        "Pmax=? [ F x=9 ]", "Pmin=? [ F x=9 ]", "Pmax=? [ F<=4 x=9 ]", "Pmin=? [ X x=1 ]", "Pmax=? [ G x<9 ]",
        "Rmax=? [ F x>=9 ]", "Rmin=? [ F x>=9 ]", "Rmin=? [ C<=5 ]", "Rmax=? [ I=3 ]", "Rmin=? [ C ]",
        "Pmax=? [ (F x=5) & (F x=10) ]", "Pmax=? [ G F x=4 ]", "Pmin=? [ F G x<8 ]",
        "filter(max, Pmax=? [ F x=11 ])", 'R{discount=0.9}max=? [ C ]',
    ],
}  # fmt: skip


def asked(name: str) -> tuple[SymbolicModel, list[str]]:
    model = build(WALK, n=6) if name == "walk" else build(LOOPS)
    return model, QUESTIONS[name]


def agree(one: Answer, many: Answer) -> bool:
    """Whether two answers may be the same number, or are the same truth."""
    if isinstance(one.value, bool) or one.lower is None or many.lower is None:
        return one.value == many.value
    assert one.upper is not None and many.upper is not None
    return max(one.lower, many.lower) <= min(one.upper, many.upper)


def dealt(model: SymbolicModel, parts: int, rng: np.random.Generator) -> tuple[Node, ...]:
    """Deal stretches of states to parts, and to each a state elsewhere."""
    part = np.sort(rng.integers(parts, size=model.n_states))
    part[rng.choice(model.n_states, parts, replace=False)] = np.arange(parts)
    return tuple(states_from(model.manager, model.index, part == p) for p in range(parts))
