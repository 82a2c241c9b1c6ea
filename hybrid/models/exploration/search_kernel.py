"""The compiled search: states in the order in which they are met, their transitions one after another.

Importing it needs Numba.
"""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybrid.models.exploration.stack_machine import run_program
from mtbdd.base.compiled import njit

DONE, FULL, TROUBLE = 0, 1, 2
"""Reasons for the end of a search: all states explored; no room left; a state that the machine has not."""

_UNIT = 2.0**-53
_SURELY_NEAR = 0.9999e-5  # beyond, the text is asked what weights add up to


class Room(NamedTuple):
    """Memory that a state is worked out in."""

    # integers, doubles and errors: shape (depth,); a stack
    integers: NDArray[np.int64]
    doubles: NDArray[np.float64]
    errors: NDArray[np.float64]
    # state and target: int64, shape (variables,)
    state: NDArray[np.int64]
    target: NDArray[np.int64]
    words: NDArray[np.int64]  # int64, shape (words,)
    nodes: NDArray[np.int64]  # int64; nodes of a tree that are left
    # chances and units: float64, shape (updates,); weights of the updates of an event's enabled commands, and
    # their relative errors
    chances: NDArray[np.float64]
    units: NDArray[np.float64]
    # int64, shape (updates, 3); update, place of its command in the component, place of its values (-1 where
    # one is out of range)
    chosen: NDArray[np.int64]
    values: NDArray[np.int64]  # int64, shape (values,)
    # ends and at: int64, shape (components + 1,); where each component's part of `chosen` begins, and which
    # of them is taken
    ends: NDArray[np.int64]
    at: NDArray[np.int64]


@njit(cache=True, nogil=True)
def place_of(codes, slots, words):  # type: ignore[no-untyped-def]
    """Return where a code stands in the table of states, or where it belongs."""
    mask = len(slots) - 1
    mixed = np.uint64(0)
    for word in words:
        mixed = (mixed ^ np.uint64(word)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    place = np.int64(mixed >> np.uint64(3)) & mask
    while slots[place] >= 0:
        number, same = slots[place], True
        for k in range(len(words)):
            if codes[number, k] != words[k]:
                same = False
                break
        if same:
            break
        place = (place + 1) & mask
    return place


@njit(cache=True, nogil=True)
def insert_codes(codes, count, slots):  # type: ignore[no-untyped-def]
    """Put distinct codes into an empty table, a power of two of places, all -1."""
    for number in range(count):
        slots[place_of(codes, slots, codes[number])] = number


@njit(cache=True, nogil=True)
def _pack(values, tables, words):  # type: ignore[no-untyped-def]
    words[:] = 0
    for row in range(len(values)):
        words[tables.words[row]] |= (values[row] - tables.low[row]) << tables.shifts[row]


@njit(cache=True, nogil=True)
def _number(values, tables, words, codes, slots, ends):  # type: ignore[no-untyped-def]
    """Return the number of a state, -1 if it is new and there is no room."""
    _pack(values, tables, words)
    place = place_of(codes, slots, words)
    if slots[place] < 0:
        if ends[1] == len(codes):
            return -1
        codes[ends[1]] = words
        slots[place] = ends[1]
        ends[1] += 1
    return slots[place]


@njit(cache=True, nogil=True)
def add_states(states, tables, words, codes, slots, ends, out_numbers):  # type: ignore[no-untyped-def]
    """Look up the numbers of states, shape (count, variables), new ones at the end; there must be room."""
    for k in range(len(states)):
        out_numbers[k] = _number(states[k], tables, words, codes, slots, ends)


@njit(cache=True, nogil=True, error_model="numpy")
def _component(number, first, used, tables, code, room, is_chain, is_probability, most_units):  # type: ignore[no-untyped-def]
    """Gather the updates of a component's enabled commands from place `first` on.

    Returns the place behind the last, how many values there are, and whether all was certain.
    """
    begin = tables.component_starts[number]
    room.nodes[0], height = tables.roots[number], 1
    found = first
    while height > 0:
        height -= 1
        node = room.nodes[height]
        row = tables.nodes[node, 0]
        if row >= 0:
            place = tables.nodes[node, 3]
            value = room.state[row] - tables.nodes[node, 1]
            if tables.children[place] >= 0:
                room.nodes[height] = tables.children[place]
                height += 1
            if 0 <= value < tables.nodes[node, 2] and tables.children[place + 1 + value] >= 0:
                room.nodes[height] = tables.children[place + 1 + value]
                height += 1
            continue
        for leaf in range(tables.nodes[node, 1], tables.nodes[node, 2]):
            command = tables.leaves[leaf]
            enabled = True
            for k in range(tables.equal_starts[command], tables.equal_starts[command + 1]):
                if room.state[tables.equals[k, 0]] != tables.equals[k, 1]:
                    enabled = False
                    break
            if enabled and tables.guards[command] >= 0:
                if not run_program(
                    tables.guards[command], code, room.state, room.integers, room.doubles, room.errors
                ):
                    return found, used, False
                enabled = room.integers[0] != 0
            if not enabled:
                continue
            begun, total, worst = found, 0.0, 0.0
            for update in range(tables.update_starts[command], tables.update_starts[command + 1]):
                weight, units = 1.0, 0.0
                if tables.weights[update] >= 0:
                    program = tables.weights[update]
                    if not run_program(program, code, room.state, room.integers, room.doubles, room.errors):
                        return found, used, False
                    if code.kinds[program] == 0:
                        weight = float(room.integers[0])
                        units = 2.0 if weight > 2.0**53 else 0.0
                    else:
                        weight, error = room.doubles[0], room.errors[0]
                        if error > 0.0:
                            units = error / abs(weight) / _UNIT
                    if not (weight >= 0.0 and weight < np.inf and units <= most_units):
                        return found, used, False
                total += weight
                if weight == 0.0:
                    continue
                worst = max(worst, units)
                room.chances[found], room.units[found] = weight, units
                room.chosen[found, 0], room.chosen[found, 1] = update, command - begin
                room.chosen[found, 2] = used
                for k in range(tables.assignment_starts[update], tables.assignment_starts[update + 1]):
                    row, program = tables.assignments[k]
                    if not run_program(program, code, room.state, room.integers, room.doubles, room.errors):
                        return found, used, False
                    value = room.integers[0]
                    if not tables.low[row] <= value <= tables.high[row]:
                        room.chosen[found, 2] = -1
                    room.values[used] = value
                    used += 1
                found += 1
            if is_probability and not (tables.adds_up[command] or abs(total - 1.0) <= _SURELY_NEAR):
                return found, used, False
            if not is_chain:
                updates = tables.update_starts[command + 1] - tables.update_starts[command]
                for k in range(begun, found):
                    room.chances[k] /= total
                    room.units[k] += worst + updates
    return found, used, True


@njit(cache=True, nogil=True, error_model="numpy")
def search(  # type: ignore[no-untyped-def]
    tables,
    code,
    room,
    is_chain,
    is_probability,
    most_units,
    codes,
    slots,
    ends,
    out_ends,
    out_targets,
    out_weights,
    out_events,
    out_choices,
    out_units,
):
    """Explore states until all are explored or there is no room.

    Returns int: DONE, FULL (states or transitions; the state at hand is explored again by the next call) or
    TROUBLE: the machine gives up on state ``ends[0]``. Time: O(instructions) a state and command that its
    tree leaves, O(variables) a transition.

    Parameters
    ----------
    is_chain, is_probability : bool
        A decision process has choices, whose weights are divided by their sum; weights add up to 1.
    most_units : float
        Relative error of a weight, in units, beyond which the machine gives up.
    codes : ndarray of int64, shape (states, words)
        The codes of the states met, in the order in which they were met.
    slots : ndarray of int64, shape (places,)
        Table of them, a power of two of places, more than states.
    ends : ndarray of int64, shape (3,)
        States explored, states met, and transitions.
    out_ends : ndarray of int64, shape (states,)
        Transitions so far behind each explored state, from the call's first one on.
    out_targets, out_weights, out_events, out_choices : ndarray, shape (transitions,)
        Choices may be empty, for chains.
    out_units : ndarray of float64, shape (2,)
        Greatest relative error of a weight, in units of 2^-53; and how many transitions the state at hand
        has at least, where there is no room for them.
    """
    entry = ends[2]
    while ends[0] < ends[1]:
        for row in range(len(tables.low)):
            field = codes[ends[0], tables.words[row]] >> tables.shifts[row]
            room.state[row] = (field & tables.masks[row]) + tables.low[row]
        for event in range(len(tables.event_starts) - 1):
            parts = tables.event_starts[event + 1] - tables.event_starts[event]
            used, live, sure = 0, True, True
            room.ends[0] = 0
            for part in range(parts):
                number = tables.event_components[tables.event_starts[event] + part]
                found, used, certain = _component(
                    number, room.ends[part], used, tables, code, room, is_chain, is_probability, most_units
                )
                sure = sure and certain
                room.ends[part + 1], room.at[part] = found, room.ends[part]
                if certain and found == room.ends[part]:
                    live = False
                    break
            if not live:
                continue
            if not sure:
                return TROUBLE
            ways = 1.0
            for part in range(parts):
                ways *= room.ends[part + 1] - room.at[part]
            if entry + ways > len(out_targets):
                out_units[1] = entry - ends[2] + ways
                return FULL
            while True:
                weight, units, choice = 1.0, parts - 1.0, np.int64(0)
                room.target[:] = room.state
                for part in range(parts):
                    item = room.at[part]
                    number = tables.event_components[tables.event_starts[event] + part]
                    weight *= room.chances[item]
                    units += room.units[item]
                    size = tables.component_starts[number + 1] - tables.component_starts[number]
                    choice = choice * size + room.chosen[item, 1]
                    update, place = room.chosen[item, 0], room.chosen[item, 2]
                    if place < 0:
                        return TROUBLE
                    for k in range(tables.assignment_starts[update], tables.assignment_starts[update + 1]):
                        room.target[tables.assignments[k, 0]] = room.values[place]
                        place += 1
                if not (weight > 0.0 and weight < np.inf):
                    return TROUBLE
                target = _number(room.target, tables, room.words, codes, slots, ends)
                if target < 0:
                    return FULL
                out_targets[entry], out_weights[entry], out_events[entry] = target, weight, event
                if len(out_choices) > 0:
                    out_choices[entry] = choice
                out_units[0] = max(out_units[0], units)
                entry += 1
                part = parts - 1
                while part >= 0:
                    room.at[part] += 1
                    if room.at[part] < room.ends[part + 1]:
                        break
                    room.at[part] = room.ends[part]
                    part -= 1
                if part < 0:
                    break
        out_ends[ends[0]] = entry
        ends[0] += 1
        ends[2] = entry
    return DONE
