"""Linear temporal logic by definition, on words that end in a loop; formulas are nested tuples.

`("p", i)`, `("!", f)`, `("X", f)`, `("F", f)`, `("G", f)`, and
`(operator, f, g)` with one of & | => <=> U W R.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

UNARY = ("!", "X", "F", "G")
BINARY = ("&", "|", "=>", "<=>", "U", "W", "R")
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


def fixed_point(
    left: NDArray[np.bool_], right: NDArray[np.bool_], after: list[int], start: bool
) -> NDArray[np.bool_]:
    value = np.full_like(left, start)
    while True:
        new = right | (left & value[:, after])
        if (new == value).all():
            return new
        value = new


def random_tree(rng: np.random.Generator, size: int, n_propositions: int) -> Tree:
    """A formula with so many operators and propositions."""
    if size <= 1:
        return ("p", int(rng.integers(n_propositions)))
    if size == 2 or rng.random() < 0.5:
        return (UNARY[rng.integers(len(UNARY))], random_tree(rng, size - 1, n_propositions))
    first = int(rng.integers(1, size - 1))
    operator = BINARY[rng.integers(len(BINARY))]
    return (
        operator,
        random_tree(rng, first, n_propositions),
        random_tree(rng, size - 1 - first, n_propositions),
    )


def tree_text(tree: Tree, names: tuple[str, ...] = ("a", "b", "c")) -> str:
    """A formula in the property language."""
    if tree[0] == "p":
        return names[tree[1]]
    parts = [tree_text(part, names) for part in tree[1:]]
    return f"({tree[0]} {parts[0]})" if len(parts) == 1 else f"({parts[0]} {tree[0]} {parts[1]})"
