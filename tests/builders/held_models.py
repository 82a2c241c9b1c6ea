"""A small queueing network as a model that people hold, in any variable order."""

from __future__ import annotations

import hybrid

__all__ = ["TANDEM", "tandem"]

TANDEM = """
ctmc
const int c;
module one
  sc : [0..c];
  ph : [1..2];
  [] sc < c -> 4 * c : (sc' = sc + 1);
  [] sc > 0 & ph = 1 -> 0.2 : (ph' = 2);
  [route] sc > 0 & ph = 1 -> 1.8 : (sc' = sc - 1);
  [route] sc > 0 & ph = 2 -> 2 : (sc' = sc - 1) & (ph' = 1);
endmodule
module two
  sm : [0..c];
  busy : bool;
  [route] sm < c -> (sm' = sm + 1) & (busy' = true);
  [] sm > 0 -> 4 : (sm' = sm - 1) & (busy' = sm > 1);
endmodule
label "full" = sc = c & sm = c;
rewards "customers" true : sc + sm; [route] true : 10; endrewards
rewards busy : 1; endrewards
"""


def tandem(order: str = "model", c: int = 3) -> hybrid.Model:
    return hybrid.parse(TANDEM, constants={"c": c}, order=order)
