"""The coarsest strong bisimulation of a chain or a decision process, found and proved on its diagrams.

Refinement by signatures ([Der07], [WDH10], [DP18]). The partition is a function of the row bits, and a round
is a product of the matrix with it. Every block has a weight that looks random. The signature of a state is
then one residue, and no diagram over bits of blocks. That of a state with choices adds up the words of those
that differ. Nothing rests on that: in the end the product is made once more with all operations on leaves
noted. Every residue is required to stand for one *formal sum*, which says in integers how often each block is
reached.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from mtbdd.base.budget import check_budget
from mtbdd.base.memory import require_memory
from mtbdd.diagrams.manager import Manager
from mtbdd.diagrams.matrix import SymbolicMatrix
from mtbdd.diagrams.node_store import Diagram, NodeStore
from mtbdd.diagrams.value_diagrams import ValueDiagrams
from mtbdd.offset.states import StateIndex

Numbers = NDArray[np.int64]
Words = NDArray[np.uint64]

_LEAST_ROOM = 1 << 16
"""Numbers of formal sums that there is room for at first."""

_SEEDS = (0x243F6A8885A308D3, 0x13198A2E03707344, 0xA4093822299F31D0)


class CoarseningError(ArithmeticError):
    """No quotient is made: sums have numbers that are too large or too small, or blocks are not proved."""


class TooManyBlocksError(CoarseningError):
    """More blocks than requested; `blocks` were found in some `rounds`."""

    def __init__(self, blocks: int, rounds: int) -> None:
        super().__init__(f"there are {blocks} blocks or more")
        self.blocks, self.rounds = blocks, rounds


class _AccidentError(Exception):
    """One residue stands for two formal sums."""


@dataclass(frozen=True, eq=False)
class Terms:
    """Entries of matrices as multiples of symbols, which are numbers that nothing is known of.

    Entry k of the distinct terminals, ascending, is ``counts[k]`` times the symbol ``symbols[k]``. `symbols`
    (ndarray of int64, shape (m,)): from 0. `counts` (ndarray of int64, shape (m,)): at least 1, less than
    2^61.
    """

    symbols: Numbers
    counts: Numbers

    @property
    def n_symbols(self) -> int:
        """Number of symbols."""
        return int(self.symbols.max(initial=0)) + 1


@dataclass(frozen=True, eq=False)
class StatePartition:
    """A partition of states that is proved to be a strong bisimulation.

    Block k consists of the states whose first one, in the order of the row bits, is ``first[k]``. Every state
    of a block has all of its choices and no others; in a chain there is one a block.

    Attributes
    ----------
    count : int
        Blocks.
    rounds : int
    classes : ndarray of int64, shape (count,)
        The class of the states of each block.
    first : ndarray of bool, shape (count, n_bits)
        A state of each block, its row bits; ascending.
    choice_starts : ndarray of int64, shape (count + 1,)
        Where the choices of every block begin.
    choice_classes : ndarray of int64, shape (choice_starts[-1],)
        The class of every choice; 0 where none are distinguished.
    starts : ndarray of int64, shape (choice_starts[-1] + 1,)
        Where the sums of every choice begin.
    targets, symbols, counts : ndarray of int64, shape (starts[-1],)
        What the choice has for the sum of its entries into a block: some symbols, how often.
    nodes : int
        Of the partition's diagram, one a bit and prefix that it distinguishes.
    low, high : tuple of ndarray of int64
        One array a row bit: the else and then children of nodes by number at the next level, -1 where no
        state is; behind the last bit they are blocks. The root is node 0.
    """

    count: int
    rounds: int
    classes: Numbers
    first: NDArray[np.bool_]
    choice_starts: Numbers
    choice_classes: Numbers
    starts: Numbers
    targets: Numbers
    symbols: Numbers
    counts: Numbers
    nodes: int
    low: tuple[Numbers, ...]
    high: tuple[Numbers, ...]

    def of_states(self, index: StateIndex) -> Numbers:
        """Return the block of each state of a set, in index order, shape (index.size,).

        Time: O(states) in numpy for every bit.
        """
        return self._walked(index, apart=True)

    def met_by(self, index: StateIndex) -> Numbers:
        """Return the blocks of a set's states, ascending.

        Time: O(pairs of nodes that meet) in numpy for every bit.
        """
        return self._walked(index, apart=False)

    def _walked(self, index: StateIndex, apart: bool) -> Numbers:
        """Walk down the partition together with a set, along every path or along distinct pairs of nodes."""
        member: Numbers = np.zeros(min(index.size, 1), dtype=np.int64)
        block = member.copy()
        for bit in range(index.n_bits):
            below = np.stack([index.low[bit][member], index.high[bit][member]], axis=1).reshape(-1)
            blocks = np.stack([self.low[bit][block], self.high[bit][block]], axis=1).reshape(-1)
            kept = below >= 0
            member, block = below[kept].astype(np.int64), blocks[kept]
            if not apart:
                width = int(member.max(initial=0)) + 1
                pairs = np.unique(block * width + member)
                block, member = pairs // width, pairs % width
        return block if apart else np.unique(block)


def coarsest_partition(
    matrices: Sequence[SymbolicMatrix],
    terms: Terms,
    work: ValueDiagrams,
    classes: int,
    *,
    choice_classes: Sequence[int] = (),
    skip_own: bool = False,
    most: float = np.inf,
    room: int = 1 << 26,
) -> StatePartition:
    """Return the coarsest strong bisimulation finer than some classes of states.

    Parameters
    ----------
    matrices : sequence of SymbolicMatrix
        Of positive entries, between states. Each has a choice of some states, one alone that of all.
    terms : Terms
        What their terminals stand for.
    work : ValueDiagrams
    classes : int
        A function of the row bits: integers from 1 for states, 0 elsewhere.
    choice_classes : sequence of int, optional
        Where there are several matrices, likewise the classes of the choices of each.
    skip_own : bool
        Whether entries into a state's own block need not agree; of one matrix.
    most : float
        Blocks beyond which none is returned.
    room : int
        Nodes of all functions at once.

    Raises
    ------
    CoarseningError
        There are more blocks, or sums are too large.
    MemoryError
        More nodes are needed.
    BudgetError

    Notes
    -----
    Two states are in one block if they are in one class and the formal sums of their entries into each block
    are the same; of several matrices, if the sets of their choices' classes and sums are the same. Time: a
    product with each matrix a round, on diagrams, and an operation for every two matrices. Lemmas:
    formal-sums, sets-of-choices (docs/lumping.md).
    """
    assert not (skip_own and len(matrices) > 1)
    for seed in _SEEDS:
        try:
            return _Refinement(
                matrices, terms, work, classes, choice_classes, skip_own, most, room, seed
            ).found()
        except _AccidentError:
            continue
    raise CoarseningError("the blocks could not be proved")


class _Refinement:
    """One attempt, with weights made from a seed."""

    def __init__(
        self,
        matrices: Sequence[SymbolicMatrix],
        terms: Terms,
        work: ValueDiagrams,
        classes: int,
        choice_classes: Sequence[int],
        skip_own: bool,
        most: float,
        room: int,
        seed: int,
    ) -> None:
        from mtbdd.diagrams import node_kernels
        from mtbdd.graph import refinement_kernels

        self._operations, self._proof = node_kernels, refinement_kernels
        self._terms, self._skip, self._most = terms, skip_own, most
        manager = matrices[0].manager
        self._n_bits = manager.n_bits
        self._store = NodeStore(manager.index_level, room, "check without the quotient")
        residues = self._residues_of(terms, seed)
        distinct = np.unique(np.stack([terms.symbols, terms.counts], axis=1), axis=0, return_index=True)[1]
        self._terminals: Numbers = distinct[np.argsort(residues[distinct])]
        self._residues = residues[self._terminals]
        # A residue is to stand for one multiple of one symbol, and none is to be 0.
        if not self._residues.all() or not np.diff(self._residues).all():  # lemma: formal-sums
            raise _AccidentError
        terminals = np.unique(np.concatenate([matrix.terminals for matrix in matrices]))
        self._matrices: list[int] = []
        for matrix in matrices:
            entries = Diagram.of(work, work.load(matrix))
            places = np.minimum(np.searchsorted(terminals, entries.values), len(terminals) - 1)
            words = np.where(entries.values == 0, 0, residues[places])
            self._matrices.append(self._store.insert(entries, words.astype(np.uint64)))
        self._parents: Words = np.zeros((0, 2), dtype=np.uint64)
        self._classes = self._with_classes(work, classes)
        self._partition = self._with_words(self._classes, lambda words: self._seeded(words, seed))
        self._has_choices = len(matrices) > 1
        # Of several matrices, the class and the sum of every choice, and the signatures of the states.
        self._kinds = [self._with_classes(work, own) for own in choice_classes] or [0] * len(matrices)
        self._sums, self._signature = [0] * len(matrices), 0

    # ------------------------------------------------------------------ rounds

    def found(self) -> StatePartition:
        """Refine until nothing changes, and prove the blocks."""
        exits = self._negated_exits() if self._skip else 0
        n_blocks, rounds, step = len(self._words(self._partition)), 0, self._partition
        while True:
            check_budget()
            rounds += 1
            split = self._split(self._change(step, exits))
            found = len(self._words(split))
            is_stable, n_blocks = found == n_blocks, found
            if n_blocks >= self._most:
                raise TooManyBlocksError(n_blocks, rounds)
            if is_stable:
                return self._with_proof(rounds)
            new = self._renamed(split)
            step = self._apply("DIFFER", new, self._partition)
            self._partition = new
            step, exits = self._settle(step, exits)

    def _change(self, step: int, exits: int) -> int:
        """Return how the signatures of states change where the words of blocks change by a step."""
        if not self._has_choices:
            change = self._times(self._matrices[0], step)
            return self._apply("ADD", change, self._apply("TIMES", exits, step)) if exits else change
        self._sums = [
            self._apply("ADD", own, self._times(matrix, step))
            for matrix, own in zip(self._matrices, self._sums, strict=True)
        ]
        before, self._signature = self._signature, 0
        for own in self._distinct_choices(self._named_choices()):
            self._signature = self._apply("ADD", self._signature, own)
        return self._apply("DIFFER", self._signature, before)

    def _named_choices(self) -> list[int]:
        """Return the words of the choices that each matrix has, of their classes and sums."""
        pairs = zip(self._sums, self._kinds, strict=True)
        return [self._apply("PAIR", own, kind) for own, kind in pairs]

    def _distinct_choices(self, names: Sequence[int]) -> list[int]:
        """Return words, and 0 where an earlier matrix has the same choice of the state."""
        found = []
        for k, own in enumerate(names):
            for other in names[:k]:
                own = self._apply("EXCEPT", own, other)  # lemma: sets-of-choices
            found.append(own)
        return found

    def _split(self, change: int) -> int:
        """Return the partition split by how the sums of its states change, and remember what was split.

        States of a block had the same sums before. Those whose sums stay as they are keep their word.
        """
        found, log = self._store.noted(lambda: self._apply("SPLIT", self._partition, change))
        words, first = np.unique(log[:, 3], return_index=True)
        is_new = ~np.isin(words, self._parents[:, 0])
        words, first = words[is_new], first[is_new]
        at = np.searchsorted(self._parents[:, 0], words)
        self._parents = np.insert(self._parents, at, np.stack([words, log[first, 1]], axis=1), axis=0)
        return found

    def _renamed(self, split: int) -> int:
        """Return a split partition in which every block's word is that of a part.

        Where no part kept it, the largest one has it.
        """
        leaves, words = self._leaves(split)
        before = self._words(self._partition)
        left = np.setdiff1d(before, words)
        if not left.size:
            return split
        place = np.minimum(np.searchsorted(self._parents[:, 0], words), len(self._parents) - 1)
        parent = self._parents[place, 1]
        is_part = ~np.isin(words, before) & np.isin(parent, left)
        share = self._store.shares(split)
        parts = np.flatnonzero(is_part)
        parts = parts[np.lexsort((share[leaves[parts]], parent[parts]))]
        largest = parts[np.append(np.diff(parent[parts]) != 0, True)]
        words[largest] = parent[largest]
        return self._with_words(split, lambda _: words)

    def _negated_exits(self) -> int:
        """Return minus the sum of every state's entries."""
        ones = self._with_words(self._partition, np.ones_like)
        prime = np.uint64((1 << 61) - 1)
        exits = self._times(self._matrices[0], ones)
        return self._with_words(exits, lambda words: np.where(words == 0, words, prime - words))

    # ------------------------------------------------------------------ proof

    def _with_proof(self, rounds: int) -> StatePartition:
        """Return the partition, if every residue stands for one formal sum.

        Lemmas: formal-sums, sets-of-choices (docs/lumping.md).
        """
        # Nothing that is known from before: every operation on leaves is to be noted.
        store = self._store
        self._settle(anyway=True)
        self._sums, log = store.noted(lambda: [self._times(m, self._partition) for m in self._matrices])
        if not log[:, 3].all():  # lemma: formal-sums
            raise _AccidentError
        first, low, high, names = self._levelled()
        by_word = np.argsort(names)
        ascending = names[by_word]

        def block_of(words: Words) -> Numbers:
            return by_word[np.searchsorted(ascending, words)]

        members = self._pairs(self._partition, self._classes)
        if len(members) != len(names):  # lemma: formal-sums
            raise _AccidentError
        of_block = np.empty(len(names), dtype=np.int64)
        of_block[block_of(members[:, 0])] = members[:, 1]
        words = np.unique(log[:, 3])
        operations = np.empty(log.shape, dtype=np.int64)
        products = log[:, 0] == self._operations.MATRIX + self._operations.MODULAR
        operations[:, 0] = log[:, 0]
        operations[~products, 1] = np.searchsorted(words, log[~products, 1])
        operations[products, 1] = self._terminals[np.searchsorted(self._residues, log[products, 1])]
        operations[products, 2] = block_of(log[products, 2])
        operations[~products, 2] = np.searchsorted(words, log[~products, 2])
        operations[:, 3] = np.searchsorted(words, log[:, 3])
        starts, ends, keys, counts = self._formal_sums(operations, len(words))
        of_blocks, of_sums, kinds = self._choices()
        blocks, own = block_of(of_blocks), np.searchsorted(words, of_sums)
        order = np.lexsort((own, kinds, blocks))
        blocks, own, kinds = blocks[order], own[order], kinds[order]
        n_symbols = self._terms.n_symbols
        if not self._has_choices:
            # lemma: formal-sums
            if not self._proof.agreeing(blocks, own, self._skip, n_symbols, starts, ends, keys, counts):
                raise _AccidentError
            is_first = np.append(True, np.diff(blocks) != 0)
            blocks, own, kinds = blocks[is_first], own[is_first], kinds[is_first]
        lengths = (ends - starts)[own]
        places = np.repeat(starts[own] - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
        rows = np.repeat(np.arange(len(own)), lengths)
        targets, symbols, times = keys[places] // n_symbols, keys[places] % n_symbols, counts[places]
        if self._skip:
            kept = targets != rows
            rows, targets, symbols, times = rows[kept], targets[kept], symbols[kept], times[kept]
        begins = np.searchsorted(rows, np.arange(len(own) + 1))
        of_choices = np.searchsorted(blocks, np.arange(len(names) + 1))
        nodes = sum(len(part) for part in low)
        return StatePartition(
            len(names), rounds, of_block, first, of_choices, kinds, begins, targets, symbols, times, nodes,
            low, high,
        )  # fmt: skip

    def _choices(self) -> tuple[Words, Words, Numbers]:
        """Return the choices of blocks: the block, the sum and the class of each.

        Of a chain all pairs of a block and a sum that a state of it has. Else every state of a block has all
        of them: as many distinct choices as the block, which has its own among them.

        Lemmas: formal-sums, sets-of-choices (docs/lumping.md).
        """
        if not self._has_choices:
            pairs = self._pairs(self._partition, self._sums[0])
            if not pairs[:, 1].all():  # lemma: formal-sums
                raise _AccidentError
            return pairs[:, 0], pairs[:, 1], np.zeros(len(pairs), dtype=np.int64)
        names, log = self._store.noted(self._named_choices)
        told = np.unique(log[:, 1:], axis=0)
        told = told[np.argsort(told[:, 2])]
        if not np.diff(told[:, 2]).all():  # lemma: sets-of-choices
            raise _AccidentError
        found = np.unique(np.concatenate([self._pairs(self._partition, own) for own in names]), axis=0)
        found = found[found[:, 1] != 0]
        count = 0
        for own in self._distinct_choices(names):
            count = self._apply("ADD", count, self._with_words(own, np.ones_like))
        counted = self._pairs(self._partition, count)
        of_block = np.unique(found[:, 0], return_counts=True)
        is_all = len(counted) == len(of_block[0]) and bool((counted[:, 0] == of_block[0]).all())
        if not is_all or (counted[:, 1] != of_block[1].astype(np.uint64)).any():  # lemma: sets-of-choices
            raise _AccidentError
        told = told[np.searchsorted(told[:, 2], found[:, 1])]
        return found[:, 0], told[:, 0], told[:, 1].astype(np.int64)

    def _formal_sums(self, operations: Numbers, n_words: int) -> tuple[Numbers, Numbers, Numbers, Numbers]:
        """Return where the sum of each word stands, and the sums."""
        terms = self._terms.symbols, self._terms.counts, self._terms.n_symbols
        starts, ends = np.full(n_words, -1, dtype=np.int64), np.zeros(n_words, dtype=np.int64)
        keys, counts = np.zeros(_LEAST_ROOM, dtype=np.int64), np.zeros(_LEAST_ROOM, dtype=np.int64)
        record, done = np.zeros(2, dtype=np.int64), 0
        while True:
            done = self._proof.formal_sums(done, operations, terms, starts, ends, keys, counts, record)
            if record[1] == 2:
                raise CoarseningError("sums of entries have too large numbers")
            if record[1]:  # lemma: formal-sums
                raise _AccidentError
            if done == len(operations):
                return starts, ends, keys, counts
            check_budget()
            require_memory(48 * len(keys), "the sums of the quotient", "check without the quotient")
            keys, counts = (np.concatenate([a, np.zeros_like(a)]) for a in (keys, counts))

    def _levelled(self) -> tuple[NDArray[np.bool_], tuple[Numbers, ...], tuple[Numbers, ...], Words]:
        """Return the first state of each block, the partition bit by bit, and the words of its blocks."""
        nodes = np.array([self._partition], dtype=np.int64)
        lows, highs, parents = [], [], []
        for bit in range(self._n_bits):
            low, high = self._store.children(nodes, Manager.row_level(bit))
            children = np.stack([low, high], axis=1).reshape(-1)
            distinct, first, inverse = np.unique(children, return_index=True, return_inverse=True)
            is_kept = distinct != 0
            order = np.flatnonzero(is_kept)[np.argsort(first[is_kept])]  # prefixes ascend
            place = np.full(len(distinct), -1, dtype=np.int64)
            place[order] = np.arange(len(order))
            both = place[inverse.reshape(-1)].reshape(-1, 2)
            lows.append(both[:, 0].copy())
            highs.append(both[:, 1].copy())
            parents.append(first[order])
            nodes = distinct[order]
        bits = np.zeros((len(nodes), self._n_bits), dtype=np.bool_)
        at = np.arange(len(nodes))
        for bit in reversed(range(self._n_bits)):
            from_ = parents[bit][at]
            bits[:, bit] = from_ & 1
            at = from_ >> 1
        return bits, tuple(lows), tuple(highs), self._store.words_of(nodes)

    # ------------------------------------------------------------------ operations

    def _times(self, matrix: int, v: int) -> int:
        return self._store.modular_product(matrix, v)

    def _apply(self, name: str, a: int, b: int) -> int:
        """Return an operation of two functions of residues, by its name."""
        operation: int = getattr(self._operations, name)
        arithmetic = self._operations.MODULAR if operation < self._operations.GREATER else 0
        return self._store.apply(operation + arithmetic, a, b)

    def _settle(self, *functions: int, anyway: bool = False) -> tuple[int, ...]:
        """Forget what is of no use once that is most of all; return functions by their new numbers."""
        if not anyway and not self._store.is_crowded():
            return functions
        own = self._partition, self._classes, self._signature
        groups = self._matrices, self._kinds, self._sums
        kept = iter(self._store.collect(*own, *chain(*groups), *functions))
        self._partition, self._classes, self._signature = (next(kept) for _ in own)
        self._matrices, self._kinds, self._sums = ([next(kept) for _ in group] for group in groups)
        return tuple(kept)

    def _leaves(self, root: int) -> tuple[Numbers, Words]:
        """Return the leaves of a function but the leaf 0, and their words."""
        leaves, words = self._store.leaves(root)
        return leaves[leaves != 0], words[leaves != 0]

    def _words(self, root: int) -> Words:
        return self._leaves(root)[1]

    def _with_words(self, root: int, change: Callable[[Words], Words]) -> int:
        """Return a function with other words, the leaf 0 left as it is."""

        def changed(words: Words) -> Words:
            found = words.copy()
            found[words != 0] = change(words[words != 0])
            return found

        return self._store.relabelled(root, changed)

    def _with_classes(self, work: ValueDiagrams, classes: int) -> int:
        """Store classes that are numbers from 1."""
        loaded = Diagram.of(work, classes)
        return self._store.insert(loaded, loaded.values.astype(np.uint64))

    def _pairs(self, a: int, b: int) -> Words:
        """Return the distinct words that two functions have together where the first is not 0, ascending."""
        pairs = np.stack(self._store.word_pairs(a, b), axis=1)
        return np.unique(pairs[pairs[:, 0] != 0], axis=0)

    def _seeded(self, words: Words, seed: int) -> Words:
        """Return the words of the first blocks, which are one a class."""
        word = self._operations.pair_word
        return np.array([word(own, np.uint64(seed)) for own in words], dtype=np.uint64)

    def _residues_of(self, terms: Terms, seed: int) -> Words:
        """Return a residue for every terminal: its count, times a number that stands for its symbol."""
        word = self._operations.pair_word
        weights = [
            word(np.uint64(symbol), np.uint64(seed ^ 0x5851F42D4C957F2D)) if symbol else 1
            for symbol in range(terms.n_symbols)
        ]
        pairs = zip(terms.symbols.tolist(), terms.counts.tolist(), strict=True)
        return np.array([weights[s] * c % ((1 << 61) - 1) for s, c in pairs], dtype=np.uint64)
