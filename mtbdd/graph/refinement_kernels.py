"""Compiled loops that prove a partition: residues as formal sums, in integers. Importing it needs Numba."""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from mtbdd.base.compiled import njit
from mtbdd.diagrams.node_kernels import MATRIX, MODULAR

MOST = 1 << 61
"""Counts of formal sums are less."""


@njit(cache=True, nogil=True)
def formal_sums(begin, operations, terms, starts, ends, keys, counts, record):  # type: ignore[no-untyped-def]
    """Work out what words stand for, from noted operations; require each to stand for one formal sum.

    Parameters
    ----------
    begin : int
        First operation to process.
    operations : ndarray of int64, shape (l, 4)
        The sum of two words, or the product of a terminal and a block, and the word that it gives; words by
        number, in an order in which operands come first.
    terms : tuple of two ndarray of int64, and int
        Of every terminal its symbol and its count; the number of symbols.
    starts, ends : ndarray of int64, shape (words,)
        Where the sum of each word stands, -1 while none is known.
    keys, counts : ndarray of int64, shape (room,)
        Of sums one after the other: ``block * n_symbols + symbol``, ascending, and how often.
    record : ndarray of int64, shape (2,)
        How much room is taken; 1 if a word stands for two sums, 2 if a count is too large.

    Returns
    -------
    int
        The first operation that there is no room for.
    """
    symbols, counted, n_symbols = terms
    for k in range(begin, len(operations)):
        operation, a, b, c = operations[k]
        end = record[0]
        if operation == MATRIX + MODULAR:
            if end >= len(keys):
                return k
            keys[end], counts[end] = b * n_symbols + symbols[a], counted[a]
            end += 1
        else:
            i, j = starts[a], starts[b]
            if end + (ends[a] - i) + (ends[b] - j) > len(keys):
                return k
            while i < ends[a] or j < ends[b]:
                if j >= ends[b] or (i < ends[a] and keys[i] < keys[j]):
                    keys[end], counts[end] = keys[i], counts[i]
                    i += 1
                elif i >= ends[a] or keys[j] < keys[i]:
                    keys[end], counts[end] = keys[j], counts[j]
                    j += 1
                else:
                    keys[end], counts[end] = keys[i], counts[i] + counts[j]
                    if counts[end] >= MOST:
                        record[1] = 2
                        return k
                    i += 1
                    j += 1
                end += 1
        if starts[c] < 0:
            starts[c], ends[c] = record[0], end
            record[0] = end
            continue
        size = end - record[0]
        is_same = size == ends[c] - starts[c]
        if is_same:
            for place in range(size):
                own, known = record[0] + place, starts[c] + place
                if keys[own] != keys[known] or counts[own] != counts[known]:
                    is_same = False
                    break
        if not is_same:
            record[1] = 1
            return k
    return len(operations)


@njit(cache=True, nogil=True)
def agreeing(blocks, words, skip, n_symbols, starts, ends, keys, counts):  # type: ignore[no-untyped-def]
    """Return whether all words of a block stand for one sum; with `skip` but for what leads to the block.

    `blocks` and `words` are pairs, those of one block next to each other.
    """
    first = 0
    for k in range(1, len(blocks)):
        block = blocks[k]
        if blocks[first] != block:
            first = k
            continue
        i, j = starts[words[first]], starts[words[k]]
        end_i, end_j = ends[words[first]], ends[words[k]]
        while True:
            while skip and i < end_i and keys[i] // n_symbols == block:
                i += 1
            while skip and j < end_j and keys[j] // n_symbols == block:
                j += 1
            if i >= end_i or j >= end_j:
                break
            if keys[i] != keys[j] or counts[i] != counts[j]:
                return False
            i += 1
            j += 1
        if i < end_i or j < end_j:
            return False
    return True
