"""Linear temporal logic by definition, on words that end in a loop; formulas are nested tuples.

`("p", i)`, `("!", f)`, `("X", f)`, `("F", f)`, `("G", f)`, and
`(operator, f, g)` with one of & | => <=> U W R.  `("in", low, high, f)` has f's operator, one of F G U W R,
look from low to high steps ahead, without end where high is None.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

UNARY = ("!", "X", "F", "G")
BINARY = ("&", "|", "=>", "<=>", "U", "W", "R")
TIMED = ("F", "G", "U", "W", "R")
Tree = tuple[Any, ...]


def holds(tree: Tree, words: NDArray[np.int64], loop: int) -> NDArray[np.bool_]:
    """Whether words satisfy a formula, shape (b,); `words` has shape (b, length), position `loop` follows
    the last one."""
    return truth(tree, words, loop)[:, 0]


def truth(tree: Tree, words: NDArray[np.int64], loop: int) -> NDArray[np.bool_]:
    """The truth of a formula at every position."""
    kind = tree[0]
    if kind == "p":
        return (words >> tree[1] & 1).astype(bool)
    if kind == "in":
        return windowed(tree[1], tree[2], tree[3], words, loop)
    parts = [truth(part, words, loop) for part in tree[1:]]
    left, right = parts[0], parts[-1]
    if kind == "!":
        return ~left
    if kind == "&":
        return left & right
    if kind == "|":
        return left | right
    if kind == "=>":
        return ~left | right
    if kind == "<=>":
        return left == right
    length = words.shape[1]
    after = [*range(1, length), loop]
    if kind == "X":
        return left[:, after]
    if kind in ("F", "G"):
        # What lies ahead of position i: all of the rest, and all of the loop.
        ahead = [[*range(i, length), *range(loop, length)] for i in range(length)]
        chosen = np.any if kind == "F" else np.all
        return np.stack([chosen(left[:, a], axis=1) for a in ahead], axis=1)
    # a U b: the least solution of v = b | a & X v, a W b the greatest; a R b = !(!a U !b).
    if kind == "R":
        return ~fixed_point(~left, ~right, after, False)
    return fixed_point(left, right, after, kind == "W")


def windowed(
    low: int, high: int | None, tree: Tree, words: NDArray[np.int64], loop: int
) -> NDArray[np.bool_]:
    """An operator with a window: of U some step in it has the right side, and all before it the left."""
    kind = tree[0]
    parts = [truth(part, words, loop) for part in tree[1:]]
    left, right = parts[0], parts[-1]
    negated = kind in "GWR"
    if kind == "F":
        left = np.ones_like(right)
    elif kind == "G":
        left, right = np.ones_like(right), ~right
    elif kind == "W":
        left, right = left & ~right, ~left & ~right
    elif kind == "R":
        left, right = ~left, ~right
    length = words.shape[1]
    last = low + length if high is None else high  # after so many steps every position was seen
    found, waited = np.zeros_like(right), np.ones_like(right)
    place = np.arange(length)
    after = np.array([*range(1, length), loop])
    for step in range(last + 1):
        if step >= low:
            found |= waited & right[:, place]
        waited &= left[:, place]
        place = after[place]
    return ~found if negated else found


def fixed_point(
    left: NDArray[np.bool_], right: NDArray[np.bool_], after: list[int], start: bool
) -> NDArray[np.bool_]:
    value = np.full_like(left, start)
    while True:
        new = right | (left & value[:, after])
        if (new == value).all():
            return new
        value = new


def random_tree(rng: np.random.Generator, size: int, n_propositions: int, windows: bool = False) -> Tree:
    """A formula with so many operators and propositions; every third operator with a window if they may."""
    if size <= 1:
        return ("p", int(rng.integers(n_propositions)))
    if size == 2 or rng.random() < 0.5:
        found: Tree = (UNARY[rng.integers(len(UNARY))], random_tree(rng, size - 1, n_propositions, windows))
    else:
        first = int(rng.integers(1, size - 1))
        operator = BINARY[rng.integers(len(BINARY))]
        found = (
            operator,
            random_tree(rng, first, n_propositions, windows),
            random_tree(rng, size - 1 - first, n_propositions, windows),
        )
    if windows and found[0] in TIMED and rng.random() < 1 / 3:
        low = int(rng.integers(0, 3))
        high = None if rng.random() < 0.25 else low + int(rng.integers(0, 3))
        found = ("in", low, high, found)
    return found


def without_windows(tree: Tree) -> Tree:
    """A formula whose windows are written out with X."""
    if tree[0] == "p":
        return tree
    if tree[0] != "in":
        return (tree[0], *(without_windows(part) for part in tree[1:]))
    low, high, (kind, *operands) = tree[1:]
    parts = [without_windows(part) for part in operands]
    left, right = parts[0], parts[-1]
    if kind in "GWR":
        no = [("!", part) for part in parts]
        opposite = {
            "G": ("F", no[-1]),
            "W": ("U", ("&", left, no[-1]), ("&", no[0], no[-1])),
            "R": ("U", *no),
        }[kind]
        return ("!", without_windows(("in", low, high, opposite)))

    def waiting(rest: Tree) -> Tree:
        return ("X", rest) if kind == "F" else ("&", left, ("X", rest))

    found: Tree = (kind, *parts) if high is None else right
    for _ in range(0 if high is None else high - low):
        found = ("|", right, waiting(found))
    for _ in range(low):
        found = waiting(found)
    return found


def tree_text(tree: Tree, names: tuple[str, ...] = ("a", "b", "c")) -> str:
    """A formula in the property language."""
    if tree[0] == "p":
        return names[tree[1]]
    if len(tree) == 1:
        return str(tree[0])  # true or false
    window = ""
    if tree[0] == "in":
        low, high, tree = tree[1:]
        window = f">={low}" if high is None else f"[{low},{high}]" if low else f"<={high}"
    parts = [tree_text(part, names) for part in tree[1:]]
    operator = tree[0] + window
    return f"({operator} {parts[0]})" if len(parts) == 1 else f"({parts[0]} {operator} {parts[1]})"
