"""A small model, one that keeps the command line busy, and a question for each."""

from __future__ import annotations

__all__ = ["SLOW", "SLOW_QUESTION", "SMALL", "SMALL_ANSWER"]

SMALL = """
dtmc
const int N = 3;
module m
  s : [0..N+1];
  [] s<N -> 0.5 : (s'=s+1) + 0.4 : (s'=0) + 0.1 : (s'=N+1);
  [] s>=N -> true;
endmodule
label "end" = s=N;
rewards "steps" true : 1; endrewards
"""

SLOW = """
dtmc
module m
  s : [0..20000];
  [] s<20000 -> 0.5 : (s'=min(s+1, 20000)) + 0.5 : (s'=max(s-1, 0));
  [] s=20000 -> true;
endmodule
"""

SMALL_ANSWER = "P=? [ F<=3 s=N ]"
SLOW_QUESTION = "P=? [ F<=100000000 s=20000 ]"
