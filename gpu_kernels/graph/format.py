"""Graphs of decision processes on the device: offsets, and transitions with their group in the high bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_kernels.device import Device
from gpu_kernels.graph._launch import check_room, launch, word_type

Array = Any

_SPARE_BITS = 3
"""High bits of an offset and of a result that the searches of [WKB16] use for themselves."""


@dataclass(frozen=True, eq=False)
class Graph:
    """The labelled graph of a Markov decision process, or of a chain, whose states have one choice.

    A word of ``trans`` holds the target in its low ``state_bits`` bits and the group, the number of the
    choice within its source, above them. The width of words is 32 bits unless a count needs more.

    Attributes
    ----------
    n_states, n_choices, n_transitions : int
    bits : int
        Width of all words, 32 or 64.
    state_bits : int
        Low bits of a word that hold a state.
    offsets : ndarray, shape (n_states + 1,), uint32 or uint64
        Where the transitions of each state begin.
    trans : ndarray, shape (n_transitions,)
        Words, by source and group.
    choice_ptr : ndarray, shape (n_states + 1,)
        Where the choices of each state begin.
    choice_offsets : ndarray, shape (n_choices + 1,)
        Where the transitions of each choice begin.
    back_offsets, back_trans : ndarray, shape (n_states + 1,) and (n_transitions,), or None
        The transposed graph, words of (source, group); None until :meth:`with_transpose`.

    References
    ----------
    [WKB16] §5.1: data representation. The choice arrays are not in the paper, which finds the groups of
    a state by scanning its words.
    """

    n_states: int
    n_choices: int
    n_transitions: int
    bits: int
    state_bits: int
    offsets: Array
    trans: Array
    choice_ptr: Array
    choice_offsets: Array
    back_offsets: Array | None = None
    back_trans: Array | None = None

    @property
    def mask(self) -> int:
        """The bits of a word that hold a state."""
        return (1 << self.state_bits) - 1

    @property
    def word(self) -> type[np.unsignedinteger[Any]]:
        """Type of the words."""
        return word_type(self.bits)

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        arrays = (self.offsets, self.trans, self.choice_ptr, self.choice_offsets)
        back = (self.back_offsets, self.back_trans)
        return sum(int(a.nbytes) for a in arrays) + sum(int(a.nbytes) for a in back if a is not None)

    @classmethod
    def from_arrays(
        cls,
        device: Device,
        offsets: Array,
        targets: Array,
        *,
        choice_offsets: Array | None = None,
        choice_ids: Array | None = None,
        wide: bool = False,
    ) -> Graph:
        """Put a graph on the device.

        Parameters
        ----------
        device : Device
        offsets : array_like, shape (n_states + 1,), integers
            Where the transitions of each state begin; from 0 to the number of transitions.
        targets : array_like, shape (n_transitions,), integers
            Target of each transition.
        choice_offsets : array_like, shape (n_choices + 1,), integers, optional
            Where the transitions of each choice begin; every choice has at least one transition, and every
            border between states is one between choices.
        choice_ids : array_like, shape (n_transitions,), integers, optional
            Instead: a name for the choice of each transition; neighbouring transitions of one state belong
            to one choice if their names are equal. Without either, a state with transitions has one choice.
        wide : bool, optional
            Use 64-bit words in any case.

        Returns
        -------
        Graph
            Without the transposed graph.

        Raises
        ------
        ValueError
            If the arrays do not fit together; the message says where.
        MemoryError
            If the graph does not fit on the device.

        Notes
        -----
        Synchronises: yes, for the checks. Arrays of the host are copied.
        """
        xp = device.xp
        # At most: offsets, targets and three arrays by transition in 64 bits, besides the result.
        check_room(device, 40 * (len(offsets) + len(targets)) + 8 * len(targets), "making the graph")
        offsets, targets = xp.asarray(offsets).astype(np.int64), xp.asarray(targets)
        _check_offsets("offsets", offsets, len(targets))
        n_states, n_transitions = len(offsets) - 1, len(targets)
        if n_transitions and (int(targets.min()) < 0 or int(targets.max()) >= n_states):
            least, greatest = int(targets.min()), int(targets.max())
            raise ValueError(f"targets: expected states 0 to {n_states - 1}, got {least} to {greatest}")
        if choice_offsets is not None and choice_ids is not None:
            raise ValueError("choices: expected choice_offsets or choice_ids, got both; pass one of them")
        borders = xp.zeros(n_transitions + 1, np.bool_)
        if choice_offsets is not None:
            choice_offsets = xp.asarray(choice_offsets).astype(np.int64)
            _check_offsets("choice_offsets", choice_offsets, n_transitions)
            if bool((choice_offsets[1:] == choice_offsets[:-1]).any()):
                raise ValueError("choice_offsets: a choice without transitions; leave such choices out")
            borders[choice_offsets] = True
            if not bool(borders[offsets].all()):
                raise ValueError("choice_offsets: a choice reaches over the border between two states")
        elif choice_ids is not None:
            choice_ids = xp.asarray(choice_ids)
            if choice_ids.shape != targets.shape:
                raise ValueError(f"choice_ids: expected shape {targets.shape}, got {choice_ids.shape}")
            borders[1:-1] = choice_ids[1:] != choice_ids[:-1]
        borders[offsets] = True
        starts = xp.flatnonzero(borders[:-1])
        before = xp.zeros(n_transitions + 1, np.int64)
        before[1:] = xp.cumsum(borders[:-1])
        choice_ptr = before[offsets]
        groups = int((choice_ptr[1:] - choice_ptr[:-1]).max()) if n_states else 0
        state_bits = max(1, (n_states - 1).bit_length() if n_states else 0)
        # A bit for the lock of pivot selection; the greatest group is never used, so padding differs.
        needed = max(
            state_bits + groups.bit_length() + 1, n_transitions.bit_length() + _SPARE_BITS,
            n_states.bit_length() + _SPARE_BITS,
        )  # fmt: skip
        if needed > 64:
            raise ValueError(f"a graph of {n_states} states and {groups} choices a state needs {needed} bits")
        bits = 64 if wide or needed > 32 else 32
        word = word_type(bits)
        ends = xp.append(starts, xp.asarray([n_transitions])).astype(word)
        graph = cls(
            n_states, len(starts), n_transitions, bits, state_bits, offsets.astype(word),
            xp.empty(n_transitions, word), choice_ptr.astype(word), ends,
        )  # fmt: skip
        arguments = (
            n_states, np.int32(state_bits), graph.choice_ptr, graph.choice_offsets, targets.astype(word),
            graph.trans,
        )  # fmt: skip
        launch(device, bits, "format.cu", "pack_words", n_states, arguments)
        return graph

    def with_transpose(self, device: Device) -> Graph:
        """Return the graph with its transposed graph, made on the device by counting.

        Time: O(n_states + n_transitions). The order of transitions within a state of the transposed graph
        is not determined. Synchronises: no.

        Raises
        ------
        MemoryError
            If it does not fit on the device.
        """
        if self.back_offsets is not None:
            return self
        xp = device.xp
        size = (3 * self.n_states + self.n_transitions) * self.bits // 8
        check_room(device, size, "the transposed graph")
        counts = xp.zeros(self.n_states + 1, self.word)
        arguments = (self.n_states, self.mask, self.offsets, self.trans)
        launch(device, self.bits, "format.cu", "count_into", self.n_states, (*arguments, counts[1:]))
        back_offsets = xp.cumsum(counts, dtype=self.word)
        cursors, back_trans = back_offsets.copy(), xp.empty(self.n_transitions, self.word)
        launch(
            device,
            self.bits,
            "format.cu",
            "fill_transposed",
            self.n_states,
            (*arguments, cursors, back_trans),
        )
        return Graph(
            self.n_states, self.n_choices, self.n_transitions, self.bits, self.state_bits, self.offsets,
            self.trans, self.choice_ptr, self.choice_offsets, back_offsets, back_trans,
        )  # fmt: skip


def _check_offsets(name: str, offsets: Array, last: int) -> None:
    """Refuse offsets that do not run from 0 to ``last`` without falling."""
    if offsets.ndim != 1 or len(offsets) == 0:
        raise ValueError(f"{name}: expected a vector of at least one element, got shape {offsets.shape}")
    if int(offsets[0]) != 0 or int(offsets[-1]) != last or bool((offsets[1:] < offsets[:-1]).any()):
        raise ValueError(
            f"{name}: expected to rise from 0 to {last}, got {int(offsets[0])} to {int(offsets[-1])}, "
            "perhaps with falls between"
        )
