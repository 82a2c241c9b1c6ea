"""The compiled loops of lumping: hashes of what states do, splitting of blocks, sums over blocks.

Importing it needs Numba.
"""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import numpy as np

from mtbdd.base.compiled import njit
from mtbdd.diagrams.node_kernels import mixed, plus, times

_P = (1 << 61) - 1

BLOCKS, DIRTY, ROUNDS = 0, 1, 2
"""Places in the record of a refinement: blocks so far, states to process, rounds made."""


@njit(cache=True, nogil=True)
def _weight(number, seed):  # type: ignore[no-untyped-def]
    """Return the residue that stands for a block."""
    return mixed(mixed(np.uint64(number)) ^ np.uint64(seed)) % np.uint64(_P)


@njit(cache=True, nogil=True)
def turned_round(row_starts, columns, codes, starts, choices, places):  # type: ignore[no-untyped-def]
    """Fill in the entries by target: `starts` of shape (n + 1,) is zero, the others are of the entries'."""
    for entry in range(len(columns)):
        starts[columns[entry] + 1] += 1
    for state in range(len(starts) - 1):
        starts[state + 1] += starts[state]
    for choice in range(len(row_starts) - 1):
        for entry in range(row_starts[choice], row_starts[choice + 1]):
            target = columns[entry]
            place = starts[target]
            choices[place] = choice
            places[place] = codes[entry]
            starts[target] = place + 1
    for state in range(len(starts) - 1, 0, -1):
        starts[state] = starts[state - 1]
    starts[0] = 0


@njit(cache=True, nogil=True)
def loops_taken_off(row_starts, columns, codes, numbers, diagonal):  # type: ignore[no-untyped-def]
    """Fill in, of a chain, minus the rate at which each state is left for others, as a residue."""
    for state in range(len(diagonal)):
        total = np.uint64(0)
        for entry in range(row_starts[state], row_starts[state + 1]):
            if columns[entry] != state:
                total = plus(total, numbers[codes[entry]])
        diagonal[state] = np.uint64(_P) - total if total else total


@njit(cache=True, nogil=True)
def first_hashes(row_starts, columns, codes, numbers, blocks, classes, diagonal, seed, hashes):  # type: ignore[no-untyped-def]
    """Fill in what every choice does: its class, and the sum of numbers times the weights of blocks."""
    for choice in range(len(row_starts) - 1):
        total = _weight(classes[choice], ~seed) if len(classes) else np.uint64(0)
        for entry in range(row_starts[choice], row_starts[choice + 1]):
            target = columns[entry]
            if len(diagonal) and target == choice:
                continue
            total = plus(total, times(numbers[codes[entry]], _weight(blocks[target], seed)))
        if len(diagonal):
            total = plus(total, times(diagonal[choice], _weight(blocks[choice], seed)))
        hashes[choice] = total


@njit(cache=True, nogil=True)
def _signature(state, choice_starts, hashes):  # type: ignore[no-untyped-def]
    """Return what a state does: the hash of its row, or of the set of its choices."""
    if not len(choice_starts):
        return hashes[state]
    begin, end = choice_starts[state], choice_starts[state + 1]
    if end - begin == 1:
        return mixed(hashes[begin])
    if end - begin == 2:
        total = mixed(hashes[begin])
        return total if hashes[begin] == hashes[begin + 1] else total + mixed(hashes[begin + 1])
    own = np.sort(hashes[begin:end])
    total = np.uint64(0)
    for k in range(len(own)):
        if not k or own[k] != own[k - 1]:
            total += mixed(own[k])
    return total


@njit(cache=True, nogil=True)
def refined(  # type: ignore[no-untyped-def]
    record, work, choice_starts, owners, starts, choices, codes, numbers, diagonal, seed, hashes,
    blocks, members, places, first, sizes, marks, dirty, is_dirty, signatures, moved, sources,
):  # fmt: skip
    """Split blocks by what their states do, round by round, until nothing moves or `work` entries are met.

    The largest part of a block keeps its number, so that a state moves at most log2(n) times; what enters a
    state that moved is brought up to date, and examined in the next round.
    """
    met = 0
    while record[DIRTY] and met < work:
        record[ROUNDS] += 1
        touched = np.empty(min(record[DIRTY], record[BLOCKS]), dtype=np.int64)
        n_touched = 0
        for k in range(record[DIRTY]):
            state = dirty[k]
            is_dirty[state] = False
            signatures[state] = _signature(state, choice_starts, hashes)
            block = blocks[state]
            if not marks[block]:
                touched[n_touched] = block
                n_touched += 1
            here, there = places[state], first[block] + marks[block]
            other = members[there]
            members[here], members[there] = other, state
            places[other], places[state] = here, there
            marks[block] += 1
        met += record[DIRTY]
        n_moved = 0
        for k in range(n_touched):
            n_moved = _split(
                touched[k], record, choice_starts, hashes, blocks, members, places, first, sizes, marks,
                signatures, moved, sources, n_moved,
            )  # fmt: skip
        record[DIRTY] = 0
        for k in range(n_moved):
            state = moved[k]
            change = plus(_weight(blocks[state], seed), np.uint64(_P) - _weight(sources[k], seed))
            if len(diagonal) and diagonal[state]:
                hashes[state] = plus(hashes[state], times(diagonal[state], change))
                _note(state, record, dirty, is_dirty)
            for entry in range(starts[state], starts[state + 1]):
                choice = choices[entry]
                owner = owners[choice] if len(owners) else choice
                if len(diagonal) and owner == state:
                    continue
                hashes[choice] = plus(hashes[choice], times(numbers[codes[entry]], change))
                _note(owner, record, dirty, is_dirty)
            met += starts[state + 1] - starts[state]


@njit(cache=True, nogil=True)
def _note(state, record, dirty, is_dirty):  # type: ignore[no-untyped-def]
    """Have a state examined in the next round."""
    if not is_dirty[state]:
        is_dirty[state] = True
        dirty[record[DIRTY]] = state
        record[DIRTY] += 1


@njit(cache=True, nogil=True)
def _split(  # type: ignore[no-untyped-def]
    block, record, choice_starts, hashes, blocks, members, places, first, sizes, marks, signatures, moved,
    sources, n_moved,
):  # fmt: skip
    """Split one block, whose states to process come first, by signatures; return how many states moved."""
    begin, marked, size = first[block], marks[block], sizes[block]
    marks[block] = 0
    has_rest = marked < size
    if has_rest:  # those that were not touched do alike, what they did before
        rest = _signature(members[begin + size - 1], choice_starts, hashes)
    else:
        rest = signatures[members[begin]]
    alike = True
    for k in range(begin, begin + marked):
        if signatures[members[k]] != rest:
            alike = False
            break
    if alike:
        return n_moved
    own = members[begin : begin + marked].copy()
    keys = np.empty(marked, dtype=np.uint64)
    for k in range(marked):
        keys[k] = signatures[own[k]]
    order = np.argsort(keys)
    # Those that do as the rest stand beside it, at the end.
    place = begin
    for k in range(marked):
        if not has_rest or keys[order[k]] != rest:
            members[place] = own[order[k]]
            place += 1
    last = place
    for k in range(marked):
        if has_rest and keys[order[k]] == rest:
            members[place] = own[order[k]]
            place += 1
    for k in range(begin, begin + marked):
        places[members[k]] = k
    largest, largest_begin = size - (last - begin), last
    if not has_rest:
        largest = 0
    part = begin
    while part < last:
        end = part + 1
        while end < last and signatures[members[end]] == signatures[members[part]]:
            end += 1
        if end - part > largest:
            largest, largest_begin = end - part, part
        part = end
    part = begin
    while part < begin + size:
        if part == last:
            end = begin + size
        else:
            end = part + 1
            while end < last and signatures[members[end]] == signatures[members[part]]:
                end += 1
        if part == largest_begin:
            first[block], sizes[block] = part, end - part
        else:
            number = record[BLOCKS]
            record[BLOCKS] += 1
            first[number], sizes[number] = part, end - part
            for k in range(part, end):
                blocks[members[k]] = number
                moved[n_moved], sources[n_moved] = members[k], block
                n_moved += 1
        part = end
    return n_moved


@njit(cache=True, nogil=True)
def have_all_choices(choice_starts, kinds, blocks, counts):  # type: ignore[no-untyped-def]
    """Return whether every state has as many kinds of choices as its block has."""
    for state in range(len(blocks)):
        own = np.sort(kinds[choice_starts[state] : choice_starts[state + 1]])
        different = 1
        for k in range(1, len(own)):
            if own[k] != own[k - 1]:
                different += 1
        if different != counts[blocks[state]]:
            return False
    return True


@njit(cache=True, nogil=True)
def sums_over_blocks(  # type: ignore[no-untyped-def]
    row_starts, columns, values, blocks, classes, members, owners, skip, most_blocks, lengths, targets, sums,
    spread,
):  # fmt: skip
    """Fill in what the first choice of each class does with blocks, and how far the others are from it.

    Class k has the choices ``members[classes[k]:classes[k + 1]]``; with `skip`, what leads back to the own
    block does not count.  `lengths` are rows' lengths, `targets` and `sums` their entries, one row after
    another; `spread` is the greatest relative distance and the most numbers in one sum. Returns int: the
    number of entries; -1 if some choice leads to other blocks than the first of its class.
    """
    known = np.full(most_blocks, -1, dtype=np.int64)
    total, seen = np.zeros(most_blocks), np.full(most_blocks, -1, dtype=np.int64)
    terms = np.zeros(most_blocks, dtype=np.int64)
    reached = np.empty(most_blocks, dtype=np.int64)
    wanted = np.zeros(most_blocks)
    end = 0
    for k in range(len(classes) - 1):
        begin = end
        for position in range(classes[k], classes[k + 1]):
            choice = members[position]
            own = blocks[owners[choice]] if len(owners) else blocks[choice]
            count = 0
            for entry in range(row_starts[choice], row_starts[choice + 1]):
                block = blocks[columns[entry]]
                if skip and block == own:
                    continue
                if seen[block] != position:
                    seen[block], total[block], terms[block] = position, 0.0, 0
                    reached[count] = block
                    count += 1
                total[block] += values[entry]
                terms[block] += 1
            if position == classes[k]:
                for j in range(count):
                    block = reached[j]
                    targets[end], sums[end] = block, total[block]
                    known[block], wanted[block] = k, total[block]
                    spread[1] = max(spread[1], terms[block])
                    end += 1
                lengths[k] = count
                continue
            if count != end - begin:
                return -1
            for j in range(count):
                block = reached[j]
                if known[block] != k:
                    return -1
                spread[0] = max(spread[0], abs(total[block] - wanted[block]) / wanted[block])
                spread[1] = max(spread[1], terms[block])
    return end
