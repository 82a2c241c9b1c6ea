"""Small models with answers known by hand."""

from __future__ import annotations

DIE = """
// a fair die made of coin flips (Knuth and Yao)
dtmc
module die
  s : [0..7] init 0;
  d : [0..6] init 0;
  [] s=0 -> 0.5 : (s'=1) + 0.5 : (s'=2);
  [] s=1 -> 0.5 : (s'=3) + 0.5 : (s'=4);
  [] s=2 -> 0.5 : (s'=5) + 0.5 : (s'=6);
  [] s=3 -> 0.5 : (s'=1) + 0.5 : (s'=7) & (d'=1);
  [] s=4 -> 0.5 : (s'=7) & (d'=2) + 0.5 : (s'=7) & (d'=3);
  [] s=5 -> 0.5 : (s'=7) & (d'=4) + 0.5 : (s'=7) & (d'=5);
  [] s=6 -> 0.5 : (s'=2) + 0.5 : (s'=7) & (d'=6);
  [] s=7 -> (s'=7);
endmodule
rewards "flips" s<7 : 1; endrewards
rewards "sixes" [] s=6 : 2; endrewards
label "done" = s=7;
"""

GAMBLER = """
// up with 0.4, down with 0.6, from 3 of 5
dtmc
const int goal = 5;
module player
  x : [0..goal] init 3;
  [] 0<x & x<goal -> 0.4 : (x'=x+1) + 0.6 : (x'=x-1);
  [] x=0 | x=goal -> true;
endmodule
rewards "rounds" 0<x & x<goal : 1; endrewards
"""

QUEUE = """
// M/M/1/4 queue, arrivals 2, services 3
ctmc
module queue
  n : [0..4];
  [arrive] n<4 -> 2 : (n'=n+1);
  [serve] n>0 -> 3 : (n'=n-1);
endmodule
rewards "length" true : n; endrewards
rewards "served" [serve] true : 1; endrewards
"""

SPLIT = """
// from 0 to a pair of states (with 1/4) or to an absorbing state (with 3/4)
ctmc
module m
  s : [0..3];
  [] s=0 -> 1 : (s'=1) + 3 : (s'=3);
  [] s=1 -> 5 : (s'=2);
  [] s=2 -> 1 : (s'=1);
endmodule
rewards "marked" s=2 : 6; s=3 : 1; endrewards
"""

MANY_STARTS = """
dtmc
module m
  x : [0..4];
  [] x>0 & x<4 -> 0.5 : (x'=x-1) + 0.5 : (x'=x+1);
  [] x=0 | x=4 -> true;
endmodule
init x>=1 & x<=3 endinit
rewards "steps" true : 1; endrewards
"""


def load_text(folder, text, **options):
    """Build a model from its text."""
    import hybrid

    path = folder / "model.prism"
    path.write_text(text)
    return hybrid.load(path, **options)


# Forward and back in pairs, pairs in a row: components of two states, and single ones between them.
STAIRS = """
dtmc
module m
  s : [0..9];
  [] mod(s,3)=0 & s<9 -> 0.5 : (s'=s+1) + 0.25 : (s'=s+2) + 0.25 : (s'=9);
  [] mod(s,3)=1 -> 0.5 : (s'=s+1) + 0.5 : (s'=min(s+2,8));
  [] mod(s,3)=2 & s<8 -> 0.5 : (s'=s-1) + 0.5 : (s'=s+1);
  [] s>=8 -> true;
endmodule
rewards s<8 : 1; endrewards
"""

# A step on, none, or one off for good; 2 is reached by two steps that go well. Tests add their rewards.
FALLING_WALK = """
dtmc
module m
  s : [0..3];
  [go] s<2 -> 1/2:(s'=s+1) + 1/4:true + 1/4:(s'=3);
  [] s=2 -> true;
endmodule
"""
