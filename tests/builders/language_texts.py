"""Texts that have every construct of the languages of models and properties."""

from __future__ import annotations

from mtbdd.language import parse_model, resolve

__all__ = ["DISCRETE", "FILE", "MODEL", "TEXT", "WHOLE"]

WHOLE = """
ctmc // a comment

const int N = 2*M;
const double rate_up = 1.5e-1;
const bool fast;
const M;
rate old = 3;
const prob p = 0.5;
formula busy = x > 0 & !done;
label "full" = x = N;
global g : [1..3] init 2;
global h : bool;

module queue
  x : [0..N] init 1;
  done : bool init false;

  [] x < N -> rate_up : (x'=x+1);
  [go] busy -> 0.5 : (x'=x-1) & (done'=!done) + x/2 : true;
  [] true -> true;
  [stay] (x=1) -> (x'=x);
  [] x=0 -> (x>1 ? 2 : 3) : (g'=1);
endmodule

rewards
  busy : 2*x;
endrewards
rewards "moves"
  [go] true : 1;
  [] x=2 : 0.5;
endrewards
"""

TEXT = """
dtmc
const int N; const double p = 1/N; const bool flag = N > 2;
formula full = x = N;
formula next = min(x + step, N);
formula step = flag ? 1 : 2;
label "top" = full & flag;
label "not top" = true;
global g : [-N..N];
module m
  x : [1..N*2] init N - 1;
  b : bool;
  c : bool init flag;
  [a] !full | false -> p : (x'=next) + 1-p : (b'=full);
  [] g < 2+3*N -> (g'=g);
endmodule
rewards "r" full : 2*N*x; [a] flag : p; endrewards
""".replace('label "not top" = true;\n', "")

FILE = """
// what is asked
const double T;
const int k = 3
  ;
formula small = x < k;
label "few" = small;

"first": P=? [ F<=T "few" ]
P>=0.5 [ X b ]; S=? [ x=1 ]
"last" :
  R{"r"}=? [ F   // the end
    x=0 ];;
"first" > 0.5
"""

MODEL = resolve(
    parse_model(
        """ctmc
        const int N; const double speed = 0.5;
        formula half = N/2; formula low = x < half;
        label "full" = x = N;
        label "start" = "init" & low;
        module m x:[0..N]; b:bool; [] true -> speed:(x'=x); endmodule
        rewards x>0 : 1; endrewards
        rewards "moves" [] true : 2; endrewards""",
        "model.prism",
    ),
    {"N": 4},
)

DISCRETE = resolve(parse_model("dtmc module m x:[0..4]; b:bool; [] true -> (x'=x); endmodule"))
