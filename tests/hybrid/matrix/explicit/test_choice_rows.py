"""Layers merged into rows of choices: against lists, whatever a layer knows of its states."""

from __future__ import annotations

import numpy as np
import pytest

from hybrid.matrix.explicit.extract import LayerRows, merge_layers

STATES = 40

Choice = tuple[int, float, list[tuple[int, float]]]


def random_layer(
    rng: np.random.Generator, number: int, by_length: bool
) -> tuple[LayerRows, dict[int, Choice]]:
    """A layer of random choices, and the same by state: its number, its gain, its transitions."""
    states = np.flatnonzero(rng.random(STATES) < 0.6)
    lengths = rng.integers(1 if by_length else 0, 5, len(states)).astype(np.uint8)
    columns = rng.integers(0, STATES, int(lengths.sum())).astype(np.int32)
    values, gains = rng.random(len(columns)), rng.random(len(states))
    known: dict[int, Choice] = {}
    begin = 0
    for state, gain, length in zip(states.tolist(), gains.tolist(), lengths.tolist(), strict=True):
        own = slice(begin, begin + length)
        known[state] = (number, gain, list(zip(columns[own].tolist(), values[own].tolist(), strict=True)))
        begin += length
    if not by_length:
        return LayerRows(number, states, lengths, columns, values, gains), known
    every = np.zeros(STATES, np.uint8)
    every[states] = lengths
    return LayerRows(number, None, every, columns, values, gains), known


@pytest.mark.parametrize("by_length", [True, False])
def test_choices_of_a_state_come_by_layer(rng: np.random.Generator, by_length: bool) -> None:
    layers, known = zip(*(random_layer(rng, number, by_length) for number in (0, 3, 7)), strict=True)
    rows = merge_layers(layers, STATES)
    for state in range(STATES):
        expected = [choices[state] for choices in known if state in choices]
        found = []
        for c in range(rows.choice_ptr[state], rows.choice_ptr[state + 1]):
            own = slice(rows.offsets[c], rows.offsets[c + 1])
            pairs = list(zip(rows.columns[own].tolist(), rows.values[own].tolist(), strict=True))
            found.append((int(rows.layers[c]), float(rows.gains[c]), pairs))
        assert found == expected
    assert rows.offsets[-1] == len(rows.columns) == len(rows.values)
    assert (rows.choice_ptr.dtype, rows.columns.dtype, rows.layers.dtype) == (np.int32, np.int32, np.uint16)
    arrays = (rows.choice_ptr, rows.offsets, rows.columns, rows.values)
    assert rows.matrix_bytes == sum(a.nbytes for a in arrays)
    assert rows.nbytes - rows.matrix_bytes == rows.gains.nbytes == rows.operand_bytes - rows.layers.nbytes


def test_what_layers_do_not_have_is_not_there(rng: np.random.Generator) -> None:
    layer, _ = random_layer(rng, 1, True)
    rows = merge_layers([LayerRows(1, None, layer.lengths, layer.columns)], STATES, np.uint8)
    assert rows.values is None
    assert rows.gains is None
    assert rows.layers.dtype == np.uint8
    np.testing.assert_array_equal(rows.columns, layer.columns)


def test_no_layers_leave_states_without_choices() -> None:
    rows = merge_layers([], 3)
    assert (rows.choice_ptr.tolist(), rows.offsets.tolist(), len(rows.columns)) == ([0, 0, 0, 0], [0], 0)
