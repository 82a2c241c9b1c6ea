"""Models for symbolic files, and their way through one."""

from __future__ import annotations

from pathlib import Path

from hybrid.models.interchange.symbolic import read_symbolic, write_symbolic
from mtbdd.build.model import SymbolicModel

__all__ = ["CTMC", "DTMC", "MDP", "round_trip"]

CTMC = """
ctmc
const double r = 0.3;
const int most = 5;
module queue
  n : [0..most] init 2;
  busy : bool init false;
  [enter] n<most -> r : (n'=n+1);
  [] n>0 & !busy -> 1.1 : (busy'=true);
  [leave] busy -> 2 : (busy'=false) & (n'=max(n-1,0));
endmodule
label "full" = n=most;
label "idle" = n=0 & !busy;
rewards "length" true : n/3; busy : 0.25; endrewards
rewards "left" [leave] true : 7; [enter] n>1 : 0.1*n; endrewards
"""

MDP = """
mdp
module walker
  x : [-3..3] init 0;
  tired : bool init false;
  [go] x<3 -> 0.9 : (x'=x+1) + 0.1 : (tired'=true);
  [back] x>-3 & !tired -> (x'=x-1);
  [rest] tired -> 1/3 : true + 2/3 : (tired'=false);
endmodule
label "top" = x=3;
rewards "steps" [go] true : 1; [back] true : 2; true : 0.5; endrewards
"""

DTMC = """
dtmc
global low : [3..6] init 3;
module m
  x : [0..9] init 4;
  [] x>0 & x<9 -> 0.3 : (x'=x-1) + 0.7 : (x'=x+1) & (low'=min(low+1,6));
  [] x=9 -> true;
endmodule
label "end" = x=9;
rewards [] x<9 : x-2; endrewards
"""


def round_trip(model: SymbolicModel, folder: Path, package: str = "auto") -> SymbolicModel:
    write_symbolic(model, folder / "m.dd")
    return read_symbolic(folder / "m.dd", package=package)
