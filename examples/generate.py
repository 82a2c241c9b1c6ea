"""Write the polling model, Herman's ring or the coin protocol for any number of stations or processes.

The language has no arrays of modules, so a file has one fixed size::

    python examples/generate.py polling 9 > polling9.prism
    python examples/generate.py herman 9 > herman9.prism
    python examples/generate.py coin 4 > coin4.prism
"""

from __future__ import annotations

import argparse

__all__ = ["coin", "herman", "polling"]

POLLING_HEAD = """\
// A server that polls {n} stations in turn; each holds at most one customer.
// Source: O. Ibe, K. Trivedi, "Stochastic Petri net models of polling systems", IEEE Journal on Selected
//         Areas in Communications 8(9), 1990.
// Written by: python examples/generate.py polling {n}

ctmc

const int N = {n};

// serving, moving on to the next station, arrivals at one station
const double mu = 1;
const double gamma = 200;
const double lambda = mu / N;

// the server is at station s; a = 0: it looks for a customer, a = 1: it serves one
module server
  s : [1..N];
  a : [0..1];

"""

POLLING_STATION = """\
module station1
  s1 : [0..1];

  [next1]  s1 = 0 -> true;
  []       s1 = 0 -> lambda : (s1' = 1);
  [begin1] s1 = 1 -> true;
  [serve1] s1 = 1 -> (s1' = 0);
endmodule
"""

HERMAN_HEAD = """\
// Herman's self-stabilising ring of {n} processes; a process holds a token if its bit equals its left
// neighbour's.  From every state the ring comes to exactly one token.
// Source: T. Herman, "Probabilistic self-stabilization", Information Processing Letters 35(2), 1990.
// Written by: python examples/generate.py herman {n}

dtmc

// a process with a token throws a coin, the others copy their neighbour; all in step
module process1
  x1 : [0..1];

  [step] x1 = x{n}  -> 0.5 : (x1' = 0) + 0.5 : (x1' = 1);
  [step] x1 != x{n} -> (x1' = x{n});
endmodule

"""

HERMAN_TAIL = """
// any state may be the first
init
  true
endinit

formula tokens = {tokens};

label "stable" = tokens = 1;

rewards "steps"
  true : 1;
endrewards
"""


COIN_HEAD = """\
// A shared coin for {n} processes that must agree on a side: all walk one counter up and down.
// Source: J. Aspnes, M. Herlihy, "Fast randomized consensus using shared memory", Journal of Algorithms
//         11(3), 1990.
// Needs K, which sets how far the counter has to walk.
// Written by: python examples/generate.py coin {n}

mdp

const int N = {n};
const int K;

// the counter's walls and the lines that decide
const int wall = (K + 1) * N;
const int line = K * N;

global counter : [-wall..wall] init 0;

// a process throws its coin (at1 = 0), moves the counter (1), looks at it (2) and, once the counter is far
// enough from the middle, has decided (3); who acts next is open
module process1
  at1 : [0..3];
  heads1 : bool;

  [] at1 = 0 -> 1/2 : (heads1' = false) & (at1' = 1) + 1/2 : (heads1' = true) & (at1' = 1);
  [] at1 = 1 & !heads1 & counter > -wall -> (counter' = counter - 1) & (at1' = 2);
  [] at1 = 1 & heads1 & counter < wall -> (counter' = counter + 1) & (at1' = 2) & (heads1' = false);
  [] at1 = 2 & counter <= -line -> (at1' = 3);
  [] at1 = 2 & counter >= line -> (at1' = 3) & (heads1' = true);
  [] at1 = 2 & counter > -line & counter < line -> (at1' = 0);
  [rest] at1 = 3 -> true;
endmodule

"""

COIN_TAIL = """
label "decided" = {decided};
label "all_heads" = {heads};
label "all_tails" = {tails};

rewards "steps"
  true : 1;
endrewards
"""


def polling(n: int) -> str:
    """Write the polling model.

    Parameters
    ----------
    n : int
        Number of stations, at least 2.

    Returns
    -------
    str
        The model's source; it has ``3 * n * 2**(n - 1)`` states.
    """
    rows = []
    for i in range(1, n + 1):
        following = i % n + 1
        rows += [
            f"  [next{i}]  s = {i} & a = 0 -> gamma : (s' = {following});\n",
            f"  [begin{i}] s = {i} & a = 0 -> gamma : (a' = 1);\n",
            f"  [serve{i}] s = {i} & a = 1 -> mu    : (s' = {following}) & (a' = 0);\n",
        ]
    stations = [
        f"module station{i} = station1 "
        f"[s1 = s{i}, next1 = next{i}, begin1 = begin{i}, serve1 = serve{i}] endmodule\n"
        for i in range(2, n + 1)
    ]
    return "".join([POLLING_HEAD.format(n=n), *rows, "endmodule\n\n", POLLING_STATION, "\n", *stations])


def herman(n: int) -> str:
    """Write Herman's ring.

    Parameters
    ----------
    n : int
        Number of processes, odd and at least 3.

    Returns
    -------
    str
        The model's source; it has ``2**n`` states, all of them initial.
    """
    processes = [
        f"module process{i} = process1 [x1 = x{i}, x{n} = x{i - 1}] endmodule\n" for i in range(2, n + 1)
    ]
    terms = [f"(x{i} = x{i - 1 if i > 1 else n} ? 1 : 0)" for i in range(1, n + 1)]
    rows = [" + ".join(terms[k : k + 4]) for k in range(0, n, 4)]
    tokens = "\n               + ".join(rows)
    return "".join([HERMAN_HEAD.format(n=n), *processes, HERMAN_TAIL.format(tokens=tokens)])


def coin(n: int) -> str:
    """Write the shared coin.

    Parameters
    ----------
    n : int
        Number of processes, at least 2.

    Returns
    -------
    str
        The model's source; the constant K stays open.
    """
    processes = [
        f"module process{i} = process1 [at1 = at{i}, heads1 = heads{i}] endmodule\n" for i in range(2, n + 1)
    ]
    own = range(1, n + 1)
    decided, heads, tails = (
        " & ".join(form.format(i) for i in own) for form in ("at{0} = 3", "heads{0}", "!heads{0}")
    )
    tail = COIN_TAIL.format(decided=decided, heads=f"{decided} & {heads}", tails=f"{decided} & {tails}")
    return "".join([COIN_HEAD.format(n=n), *processes, tail])


def main() -> None:
    """Read the command line and print the model."""
    parser = argparse.ArgumentParser(
        description="Write a model of the given size to standard output.",
        epilog="The properties files polling.props, herman.props and coin.props fit every size.",
    )
    parser.add_argument("model", choices=["polling", "herman", "coin"])
    parser.add_argument(
        "size",
        type=int,
        help="number of stations (2 or more) or processes (herman: odd, 3 or more; coin: 2 or more)",
    )
    arguments = parser.parse_args()
    if arguments.model == "polling" and arguments.size < 2:
        parser.error(f"polling needs 2 stations or more, not {arguments.size}")
    if arguments.model == "herman" and (arguments.size < 3 or arguments.size % 2 == 0):
        parser.error(f"herman needs an odd number of processes, 3 or more, not {arguments.size}")
    if arguments.model == "coin" and arguments.size < 2:
        parser.error(f"coin needs 2 processes or more, not {arguments.size}")
    print({"coin": coin, "polling": polling, "herman": herman}[arguments.model](arguments.size), end="")


if __name__ == "__main__":
    main()
