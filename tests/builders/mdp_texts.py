"""Small MDPs: some with answers known by hand, others with graphs or choices of many kinds."""

from __future__ import annotations

__all__ = [
    "COINS",
    "GRAPHS",
    "GRID",
    "LOOPING_CHOICES",
    "PAIRS",
    "ROOMS",
    "ROUND",
    "SLOW_WAY",
    "WAITING_ROOM",
]

# From 0 and 1 one can walk to and fro for nothing; 1 has a way out at a cost of 5, 0 another one of 7.
WAITING_ROOM = """
mdp
module m
  x : [0..3];
  [walk] x=0 -> (x'=1);
  [back] x=1 -> (x'=0);
  [stay] x=1 -> true;
  [out] x=1 -> 0.5 : (x'=3) + 0.5 : (x'=2);
  [dear] x=0 -> (x'=3);
  [on] x=2 -> (x'=3);
  [done] x=3 -> true;
endmodule
rewards [out] true : 4; [dear] true : 7; [on] true : 2; endrewards
"""

# The slow way wins with 1/2 a try, and may be tried again; the fast one with 1/4, once.
SLOW_WAY = """
mdp
module m
  x : [0..3];
  [slow] x=0 -> 0.5 : (x'=1) + 0.3 : (x'=2) + 0.2 : (x'=3);
  [fast] x=0 -> 0.25 : (x'=2) + 0.75 : (x'=3);
  [again] x=1 -> (x'=0);
  [done] x>=2 -> true;
endmodule
rewards "tries" [slow] true : 1; [fast] true : 1; endrewards
rewards "places" true : x; endrewards
"""

# Two rooms with a door between them, each a place to stay for ever; the way in is a coin.
ROOMS = """
mdp
module m
  x : [0..5];
  [] x=0 -> 0.5 : (x'=1) + 0.5 : (x'=3);
  [] x=1 -> (x'=2);
  [] x=2 -> (x'=1);
  [door] x=2 -> 0.5 : (x'=3) + 0.5 : (x'=5);
  [] x=3 -> (x'=4);
  [] x=4 -> (x'=3);
  [] x=5 -> true;
endmodule
rewards x=3 : 1; endrewards
rewards "door" [door] true : 3; endrewards
"""

# Probabilities that add up to 1 only roughly, as decimals of thirds do.
COINS = """
mdp
module m
  x : [0..2];
  [a] x=0 -> 0.333333 : (x'=0) + 0.333333 : (x'=1) + 0.333333 : (x'=2);
  [b] x=0 -> 0.5 : (x'=0) + 0.25 : (x'=1) + 0.25 : (x'=2);
  [] x>0 -> true;
endmodule
rewards x=0 : 1; endrewards
"""

# Three layers: most states have two choices, few a third; rewards take as many values as there are states.
GRID = """
mdp
const int n;
module m
  x : [0..n]; y : [0..n];
  [east] x<n -> 0.75 : (x'=x+1) + 0.25 : (y'=max(y-1,0));
  [north] y<n -> 0.5 : (y'=y+1) + 0.5 : (x'=max(x-1,0));
  [home] mod(x+y,7)=0 & x>0 -> 0.125 : (x'=0)&(y'=0) + 0.875 : (x'=x-1);
  [end] x=n & y=n -> true;
endmodule
rewards "many" true : x*1.37 + y*0.11 + x*y; endrewards
rewards "few" [home] true : 2; [east] true : 1; endrewards
"""

# 0 and 1 lead to one another for nothing; 1 has a way to 2 that may fail for good, 0 one that costs and may
# be tried again.
ROUND = """
mdp
module m
  s : [0..3];
  [a] s=0 -> (s'=1);
  [b] s=1 -> (s'=0);
  [c] s=1 -> 1/3:(s'=2) + 1/3:(s'=3) + 1/3:(s'=1);
  [d] s=0 -> 1/2:(s'=2) + 1/2:(s'=0);
  [e] s>1 -> true;
endmodule
rewards "r" [d] true : 1; endrewards
"""

# Steps that wrap around below 8, and two ways out to 9, 10 and 11, that stay; without rewards.
LOOPING_CHOICES = """
mdp
module m
  x : [0..11] init 0;
  [] x<8 -> 0.5 : (x'=x+1) + 0.5 : (x'=mod(x+3,9));
  [] x<8 -> (x'=mod(x+4,8));
  [] x=3 -> 0.2 : (x'=9) + 0.8 : (x'=10);
  [] x=7 -> 0.4 : (x'=9) + 0.6 : (x'=11);
endmodule
"""

# Choices that branch, end components, actions shared by modules: for the decompositions of graphs.
GRAPHS = {
    "combined": """mdp module m x : [0..2];
        [a] x<2 -> (x'=x+1); [a] x=1 -> 0.5:(x'=0) + 0.5:true; [] x=2 -> (x'=0); [b] x=0 -> true; endmodule
        module n y : [0..1];
        [a] y=0 -> (y'=1); [a] true -> 0.25:(y'=0) + 0.75:(y'=1); [b] y=1 -> (y'=0); endmodule""",
    "dice": """mdp module m x : [0..9]; [roll] x<8 -> 1/3:(x'=x+1) + 2/3:(x'=x+2); [] x>0 & x<5 -> (x'=x-1);
        [] x<3 -> 0.5:(x'=9) + 0.5:true; endmodule""",
    "ends": """mdp module m x : [0..3]; y : [0..3]; [] x<3 -> (x'=x+1); [] x>0 & y<2 -> (x'=x-1);
        [go] y<3 -> 0.5:(y'=y+1) + 0.5:(x'=0); [stay] y=3 -> true; endmodule""",
}

# Two components: a pair that turns, which may be left, and a slow one with two speeds.
PAIRS = """mdp
module m x:[0..4];
  [] x=0 -> 0.5:(x'=1)+0.5:(x'=3);
  [a] x=1 -> (x'=2); [leave] x=1 -> (x'=3);
  [b] x=2 -> (x'=1); [c] x=2 -> 0.3:(x'=1)+0.7:(x'=2);
  [] x=3 -> (x'=4);
  [] x=4 -> (x'=3); [] x=4 -> 0.5:(x'=3)+0.5:(x'=4);
endmodule
label "up" = x=2|x=4;
rewards "r" x=2 : 3; [a] true : 1; x=4 : 0.7; endrewards"""
