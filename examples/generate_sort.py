"""Write the model of random quick sort for any number of elements.

Outcomes of a partition depend on the length of the part, so a file has one fixed size::

    python examples/generate_sort.py 12 > quick_sort12.prism
"""

from __future__ import annotations

import argparse

__all__ = ["quick_sort"]

HEAD = """\
// Random quick sort of {n} different elements: only the lengths of unsorted parts and the comparisons count.
// Source: C. A. R. Hoare, "Quicksort", The Computer Journal 5(1), 1962.
// Needs limit, how many comparisons are allowed; a run that needs more is cut off.
// Written by: python examples/generate_sort.py {n}
//
// Every element of a part is equally likely to be its pivot. The shorter of the two parts that it leaves is
// sorted first, the longer one waits; parts of one element or none are sorted.

dtmc

const int limit;

module sort
  // length of the part being sorted, 0 when nothing is left
  part : [0..{n}] init {n};
"""

WAITING = "  // lengths of the parts that wait, the next one first\n"
TAIL = """\
  [] part = 0 -> true;
endmodule

label "sorted" = part = 0;
"""


def depth(n: int) -> int:
    """Return how many parts wait at most while a part of n elements is sorted."""
    return 1 + depth((n - 1) // 2) if n >= 5 else 0


def quick_sort(n: int) -> str:
    """Write the model.

    Parameters
    ----------
    n : int
        Number of elements, at least 2.

    Returns
    -------
    str
        The model's source.
    """
    waiting = [f"wait{i}" for i in range(1, depth(n) + 1)]
    lines = [HEAD.format(n=n)]
    if waiting:
        lines += [WAITING, *(f"  {name} : [0..{n}];\n" for name in waiting)]
    lines.append("  used : [0..limit];\n\n")
    for length in range(2, n + 1):
        chances: dict[str, int] = {}
        for pivot in range(length):
            outcome = _outcome(waiting, *sorted((pivot, length - 1 - pivot)))
            chances[outcome] = chances.get(outcome, 0) + 1
        rows = [
            f"{chance}/{length} : {outcome} & (used' = used + {length - 1})"
            for outcome, chance in chances.items()
        ]
        updates = "\n       + ".join(rows)
        lines.append(f"  [] part = {length} & used + {length - 1} <= limit\n      -> {updates};\n")
        lines.append(f"  [] part = {length} & used + {length - 1} > limit -> true;\n")
    return "".join([*lines, TAIL])


def _outcome(waiting: list[str], shorter: int, longer: int) -> str:
    """Return the update after a partition."""
    if shorter >= 2:
        moved = [f"({to}' = {source})" for to, source in zip(waiting[1:], waiting, strict=False)]
        return " & ".join([f"(part' = {shorter})", f"({waiting[0]}' = {longer})", *moved])
    if longer >= 2 or not waiting:
        return f"(part' = {longer if longer >= 2 else 0})"
    moved = [f"({to}' = {source})" for to, source in zip(waiting, [*waiting[1:], "0"], strict=True)]
    return " & ".join([f"(part' = {waiting[0]})", *moved])


def main() -> None:
    """Read the command line and print the model."""
    parser = argparse.ArgumentParser(
        description="Write random quick sort for a number of elements to standard output.",
        epilog="The properties file quick_sort.props fits every size.",
    )
    parser.add_argument("size", type=int, help="number of elements, 2 or more")
    arguments = parser.parse_args()
    if arguments.size < 2:
        parser.error(f"quick sort needs 2 elements or more, not {arguments.size}")
    print(quick_sort(arguments.size), end="")


if __name__ == "__main__":
    main()
