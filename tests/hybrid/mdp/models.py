"""Small MDPs with answers known by hand."""

from __future__ import annotations

__all__ = ["COINS", "ROOMS", "SLOW_WAY", "WAITING_ROOM"]

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
