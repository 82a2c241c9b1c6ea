"""Graphs of decision processes on the device: words of target and group, the transposed graph, parts.

Offsets, and transitions with their group in the high bits; the launches and queues of all graph kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_kernels.runtime._launch import blocks_for, macros
from gpu_kernels.runtime.device import Device

Array = Any

THREADS = 256
"""Threads of a block."""

LOOK_EVERY = 4
"""Launches between two synchronisations of the host with the device."""

ROUNDS = 32
"""Rounds that a block adds within a launch on a queue."""

WIDE_SHARE = 4096
"""Transitions for each word of a queue's room for states of very many: a quarter of the least number."""

_QUEUE_STATE = 8
_WIDE = 16384
_BLOCKS_EACH = 4
_EMULATED_THREADS = 64


def word_type(bits: int) -> type[np.unsignedinteger[Any]]:
    """Return the type of words of 32 or 64 bits."""
    return np.uint64 if bits == 64 else np.uint32


def none_word(bits: int) -> int:
    """Return the word that stands for nothing."""
    return (1 << bits) - 1


def check_room(device: Device, nbytes: int, what: str) -> None:
    """Refuse work that does not fit.

    Raises
    ------
    MemoryError
        If fewer bytes are free; the message says how many are needed and how many are there.
    """
    free = device.free_bytes()
    if nbytes > free:
        raise MemoryError(
            f"{what} needs {nbytes} bytes and {free} are free on {device.name}; use a smaller model, or "
            "decompose it on the host"
        )


def launch(
    device: Device, bits: int, source: str, name: str, count: int, arguments: tuple[Any, ...], limit: int = 0
) -> None:
    """Queue a kernel with a thread for each of ``count``, on at most ``limit`` blocks (0: as many as needed).

    Integers among the arguments become words, None a null pointer; arrays and typed scalars stay. Nothing
    is launched for a count of zero. Synchronises: no.
    """
    if count == 0:
        return
    word = word_type(bits)
    typed = tuple(word(a) if type(a) is int else np.uint64(0) if a is None else a for a in arguments)
    threads = THREADS if _has_cards(device) else _EMULATED_THREADS
    blocks = blocks_for(count, threads)
    kernel = device.kernel(f"graph/{source}", name, macros(INDEX_BITS=bits, THREADS=threads))
    kernel((min(blocks, limit) if limit else blocks,), (threads,), typed)


def _has_cards(device: Device) -> bool:
    """Return whether the device's arrays live on a card, not on the host as those of an emulator."""
    return hasattr(device.xp, "cuda")


def resident_blocks(device: Device) -> int:
    """Return how many blocks share the work of a queue: a few for every multiprocessor."""
    if not _has_cards(device):
        return 2
    return _BLOCKS_EACH * int(device.xp.cuda.Device().attributes["MultiProcessorCount"])


class Queue:
    """A queue on the device in which every item comes at most once; see cuda/graph/words.cuh.

    Parameters
    ----------
    device : Device
    bits : int
        Width of words.
    capacity : int
        Items that can come.
    n_edges : int
        Edges of all items together, for the room of those that have very many.

    Attributes
    ----------
    items, wide, state : ndarray
        Arguments of the kernels.
    launches : int
        Launches made so far.
    """

    def __init__(self, device: Device, bits: int, capacity: int, n_edges: int) -> None:
        xp, word = device.xp, word_type(bits)
        self.device, self.bits = device, bits
        self.items: Array = xp.empty(max(1, capacity), word)
        self.wide: Array = xp.empty(n_edges // _WIDE + 1, word)
        self.state: Array = xp.zeros(_QUEUE_STATE, word)
        self.blocks = resident_blocks(device)
        self.launches = 0

    def drain(
        self, source: str, name: str, count: int, arguments: tuple[Any, ...], most: int | None = None
    ) -> bool:
        """Repeat a launch until the queue is empty, and return True; False after ``most`` launches or more.

        Synchronises: yes, once for every few launches; launches on an empty queue do nothing.
        """
        arguments = (*arguments, self.items, self.wide, self.state, np.int32(ROUNDS))
        while True:
            for _ in range(LOOK_EVERY):
                launch(self.device, self.bits, source, name, count, arguments, self.blocks)
            self.launches += LOOK_EVERY
            state = self.state.tolist()
            if state[0] == state[1] and state[3] == state[4]:
                return True
            if most is not None and self.launches >= most:
                return False


def repeat_rounds(device: Device, once: Callable[[Array, Any], None]) -> int:
    """Repeat a round until one changes nothing, and return how many there were.

    ``once(changed, step)`` launches a round; its kernel does nothing unless ``changed[step]``, and sets
    ``changed[step + 1]``. Synchronises: yes, once for every few rounds.
    """
    changed, rounds = device.xp.zeros(LOOK_EVERY + 1, np.uint32), 0
    while True:
        changed[0] = 1
        for step in range(LOOK_EVERY):
            once(changed, np.int32(step))
        rounds += LOOK_EVERY
        if not int(changed[LOOK_EVERY]):
            return rounds
        changed[:] = 0


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
    def word_bytes(self) -> int:
        """Bytes of a word."""
        return self.bits // 8

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
        size = (3 * self.n_states + self.n_transitions) * self.word_bytes
        check_room(device, size, "the transposed graph")
        counts = xp.zeros(self.n_states + 1, self.word)
        arguments = (self.n_states, self.mask, self.offsets, self.trans)
        launch(device, self.bits, "format.cu", "count_into", self.n_states, (*arguments, counts[1:]))
        back_offsets = xp.cumsum(counts, dtype=self.word)
        cursors, back_trans = back_offsets.copy(), xp.empty(self.n_transitions, self.word)
        filled = (*arguments, cursors, back_trans)
        launch(device, self.bits, "format.cu", "fill_transposed", self.n_states, filled)
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


def transposed_bytes(graph: Graph) -> int:
    """Return the bytes of making the transposed graph; 0 if it is there."""
    if graph.back_offsets is not None:
        return 0
    return (3 * (graph.n_states + 1) + graph.n_transitions) * graph.word_bytes


def part_bytes(graph: Graph, n_states: int, n_choices: int, n_transitions: int) -> int:
    """Return the bytes of a part of a graph, with the numbers that its states and choices had."""
    return (3 * n_states + 2 * n_choices + n_transitions + 3) * graph.word_bytes


@dataclass(frozen=True, eq=False)
class Part:
    """A part of a graph, with the numbers of its states and choices in the whole.

    Attributes
    ----------
    graph : Graph
    states : ndarray, shape (graph.n_states,), words
        Their numbers in the graph that this is a part of, rising.
    choices : ndarray, shape (graph.n_choices,), words
    """

    graph: Graph
    states: Array
    choices: Array


def part_of(device: Device, graph: Graph, kept_state: Array, kept_choice: Array) -> Part:
    """Return what a graph keeps, without the transposed graph.

    Parameters
    ----------
    device : Device
    graph : Graph
    kept_state : ndarray, shape (n_states,), bool
    kept_choice : ndarray, shape (n_choices,), uint32
        Not zero for choices to keep; those of states that are left out go with them. No transition of a
        kept choice of a kept state may lead to a state that is left out.

    Returns
    -------
    Part

    Raises
    ------
    MemoryError
        If the part does not fit on the device beside the graph.

    Notes
    -----
    Time: O(n_states + n_choices + transitions kept). Synchronises: yes, for the sizes.
    """
    xp, word = device.xp, graph.word
    kept_state = kept_state.view(np.uint8)
    states = xp.zeros(graph.n_states + 1, word)
    choices = xp.zeros(graph.n_choices + 1, word)
    transitions = xp.zeros(graph.n_choices + 1, word)
    lists = (graph.choice_ptr, graph.choice_offsets)
    arguments = (graph.n_states, kept_state, kept_choice, *lists, states, choices, transitions)
    launch(device, graph.bits, "format.cu", "count_part", graph.n_states, arguments)
    states, choices, transitions = (xp.cumsum(a, dtype=word) for a in (states, choices, transitions))
    sizes = xp.stack([states[-1], choices[-1], transitions[-1]]).tolist()
    n_states, n_choices, n_transitions = (int(size) for size in sizes)
    check_room(device, part_bytes(graph, n_states, n_choices, n_transitions), "the part of the graph")
    part = Graph(
        n_states, n_choices, n_transitions, graph.bits, graph.state_bits, xp.zeros(n_states + 1, word),
        xp.empty(n_transitions, word), xp.zeros(n_states + 1, word), xp.zeros(n_choices + 1, word),
    )  # fmt: skip
    result = Part(part, xp.empty(n_states, word), xp.empty(n_choices, word))
    copied = (
        graph.n_states, np.int32(graph.state_bits), graph.mask, kept_state, kept_choice, *lists, graph.trans,
        states, choices, transitions, part.offsets, part.trans, part.choice_ptr, part.choice_offsets,
        result.states, result.choices,
    )  # fmt: skip
    launch(device, graph.bits, "format.cu", "copy_part", graph.n_states, copied)
    return result
