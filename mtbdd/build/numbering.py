"""Numbers of states as users see them: in the order of the text, not that of the diagram.

State k is the k-th reachable state in lexicographic order of its values, variables in the text's order
(globals, then the modules').  A diagram in another variable order numbers its states differently; a
permutation leads from one to the other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mtbdd.base.memory import require_memory
from mtbdd.diagrams.encoding import Encoding
from mtbdd.offset.states import StateIndex

_PART = 1 << 17  # states whose bits are held together
_WORD = 62  # bits of a key


def numbering(encoding: Encoding, index: StateIndex) -> NDArray[np.int64] | None:
    """Return the diagram's number of every state, states in the order of the text.

    `index`: the states, n of them. Returns ndarray of int64, shape (n,), or None: element k is the index in
    `index` of state k. None if the two orders are the same, as they are unless a variable order other than
    the text's was chosen. Raises MemoryError: there is no room for the permutation.

    Time: O(n log n); memory: 16 bytes a state, and 8 for every 62 bits of a state beyond the first, while it
    is made. Nothing without a permutation.
    """
    return None if keeps_order(encoding) or index.size < 2 else sorted_places(encoding, index)


def keeps_order(encoding: Encoding) -> bool:
    """Return whether the bits of a diagram lie in the order of the text."""
    order = _bits(encoding)
    return order == sorted(order)


def sorted_places(
    encoding: Encoding, index: StateIndex, indices: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Return the places of states in a list, in the order of the text.

    `indices` (ndarray of int64, shape (k,), optional): the list, by index; default all states. Returns
    ndarray of int64, shape (k,). Raises MemoryError: there is no room for it.
    """
    size = index.size if indices is None else indices.size
    require_memory(
        8 * size * (len(_words(encoding)) + 1),
        f"the numbering of {size} states in the order of the text",
        "choose the variable order of the text (order='model'), which needs none",
    )
    keys = text_keys(encoding, index, indices)
    places = np.argsort(keys[0]) if len(keys) == 1 else np.lexsort(keys[::-1])
    return places.astype(np.int64, copy=False)


def text_keys(
    encoding: Encoding, index: StateIndex, indices: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Return what states are sorted by in the order of the text, first word first, shape (words, k).

    `indices` (ndarray of int64, shape (k,), optional): some states, by index; default all states.
    """
    size, words = index.size if indices is None else indices.size, _words(encoding)
    keys = np.zeros((len(words), size), dtype=np.int64)
    for begin in range(0, size, _PART):
        end = min(begin + _PART, size)
        bits = index.bits_at(np.arange(begin, end) if indices is None else indices[begin:end])
        for key, word in zip(keys, words, strict=True):
            part = key[begin:end]
            for bit in word:
                part *= 2
                part += bits[:, bit]
    return keys


def _words(encoding: Encoding) -> list[list[int]]:
    """Return the bits of all variables in the order of the text, by the word of a key that has them."""
    order = _bits(encoding)
    return [order[begin : begin + _WORD] for begin in range(0, len(order), _WORD)]


def _bits(encoding: Encoding) -> list[int]:
    """Return the bits of all variables, in the order of the text."""
    return [bit for variable in encoding.shown for bit in variable.bits]


def inverse(places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the inverse of a permutation, shape (n,)."""
    numbers = np.empty_like(places)
    numbers[places] = np.arange(places.size)
    return numbers
