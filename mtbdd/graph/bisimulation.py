"""The coarsest strong bisimulation of a Markov chain, found and proved on its decision diagram.

Refinement by signatures ([Der07], [WDH10], [DP18]). The partition is a function of the row bits, and a round
is a product of the matrix with it. Every block has a weight that looks random. The signature of a state is
then one residue, and no diagram over bits of blocks. Nothing rests on that: in the end the product is made
once more with all operations on leaves noted. Every residue is required to stand for one *formal sum*, which
says in integers how often each block is reached.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

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
    """Entries of a matrix as multiples of symbols, which are numbers that nothing is known of.

    Entry k of the terminals is ``counts[k]`` times the symbol ``symbols[k]``.

    Attributes
    ----------
    symbols : ndarray of int64, shape (m,)
        From 0.
    counts : ndarray of int64, shape (m,)
        At least 1, less than 2^61.
    """

    symbols: Numbers
    counts: Numbers

    @property
    def n_symbols(self) -> int:
        """Number of symbols."""
        return int(self.symbols.max(initial=0)) + 1


@dataclass(frozen=True, eq=False)
class ChainPartition:
    """A partition of states that is proved to be a strong bisimulation.

    Block k consists of the states whose first one, in the order of the row bits, is ``first[k]``.

    Attributes
    ----------
    count : int
        Blocks.
    rounds : int
    classes : ndarray of int64, shape (count,)
        The class of the states of each block.
    first : ndarray of bool, shape (count, n_bits)
        A state of each block, its row bits; ascending.
    starts : ndarray of int64, shape (count + 1,)
        Where the sums of every block begin.
    targets, symbols, counts : ndarray of int64, shape (starts[-1],)
        What every state of the block has for the sum of its entries into a block: some symbols, how often.
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
    matrix: SymbolicMatrix,
    terms: Terms,
    work: ValueDiagrams,
    classes: int,
    *,
    skip_own: bool = False,
    most: float = np.inf,
    room: int = 1 << 26,
) -> ChainPartition:
    """Return the coarsest strong bisimulation finer than some classes of states.

    Parameters
    ----------
    matrix : SymbolicMatrix
        Of positive entries, between states.
    terms : Terms
        What its terminals stand for.
    work : ValueDiagrams
    classes : int
        A function of the row bits: integers from 1 for states, 0 elsewhere.
    skip_own : bool
        Whether entries into a state's own block need not agree.
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
    are the same. Time: a product with the matrix a round, on diagrams. Lemma: formal-sums (docs/lumping.md).
    """
    for seed in _SEEDS:
        try:
            return _Refinement(matrix, terms, work, classes, skip_own, most, room, seed).found()
        except _AccidentError:
            continue
    raise CoarseningError("the blocks could not be proved")


class _Refinement:
    """One attempt, with weights made from a seed."""

    def __init__(
        self,
        matrix: SymbolicMatrix,
        terms: Terms,
        work: ValueDiagrams,
        classes: int,
        skip_own: bool,
        most: float,
        room: int,
        seed: int,
    ) -> None:
        from mtbdd.diagrams import node_kernels
        from mtbdd.graph import refinement_kernels

        self._operations, self._proof = node_kernels, refinement_kernels
        self._terms, self._skip, self._most = terms, skip_own, most
        self._n_bits = matrix.manager.n_bits
        self._store = NodeStore(matrix.manager.index_level, room, "check without the quotient")
        entries, residues = Diagram.of(work, work.load(matrix)), self._residues_of(terms, seed)
        distinct = np.unique(np.stack([terms.symbols, terms.counts], axis=1), axis=0, return_index=True)[1]
        self._terminals: Numbers = distinct[np.argsort(residues[distinct])]
        self._residues = residues[self._terminals]
        # A residue is to stand for one multiple of one symbol, and none is to be 0.
        if not self._residues.all() or not np.diff(self._residues).all():  # lemma: formal-sums
            raise _AccidentError
        places = np.searchsorted(matrix.terminals, entries.values)
        words = np.where(entries.values == 0, 0, residues[np.minimum(places, len(residues) - 1)])
        self._matrix = self._store.insert(entries, words.astype(np.uint64))
        self._parents: Words = np.zeros((0, 2), dtype=np.uint64)
        loaded = Diagram.of(work, classes)
        self._classes = self._store.insert(loaded, loaded.values.astype(np.uint64))
        self._partition = self._with_words(self._classes, lambda words: self._seeded(words, seed))

    # ------------------------------------------------------------------ rounds

    def found(self) -> ChainPartition:
        """Refine until nothing changes, and prove the blocks."""
        exits = self._negated_exits() if self._skip else 0
        n_blocks, rounds, step = len(self._words(self._partition)), 0, self._partition
        while True:
            check_budget()
            rounds += 1
            change = self._times(step)
            if exits:
                own = self._apply("TIMES", exits, step)
                change = self._apply("ADD", change, own)
            split = self._split(change)
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
        ones = self._with_words(self._partition, lambda words: np.ones_like(words))
        prime = np.uint64((1 << 61) - 1)
        return self._with_words(self._times(ones), lambda words: np.where(words == 0, words, prime - words))

    # ------------------------------------------------------------------ proof

    def _with_proof(self, rounds: int) -> ChainPartition:
        """Return the partition, if every residue stands for one formal sum.  Lemma: formal-sums."""
        # Nothing that is known from before: every operation on leaves is to be noted.
        store = self._store
        self._settle(anyway=True)
        _, members = store.noted(lambda: self._apply("PAIR", self._partition, self._classes))
        self._settle(anyway=True)
        sums, log = store.noted(lambda: self._times(self._partition))
        _, pairs = store.noted(lambda: self._apply("PAIR", self._partition, sums))
        if not log[:, 3].all() or not pairs[:, 2].all():  # lemma: formal-sums
            raise _AccidentError
        first, low, high, names = self._levelled()
        by_word = np.argsort(names)
        ascending = names[by_word]

        def block_of(words: Words) -> Numbers:
            return by_word[np.searchsorted(ascending, words)]

        members = np.unique(members[:, 1:3], axis=0)
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
        pairs = np.unique(pairs, axis=0)
        blocks, of_pairs = block_of(pairs[:, 1]), np.searchsorted(words, pairs[:, 2])
        order = np.lexsort((of_pairs, blocks))
        blocks, of_pairs = blocks[order], of_pairs[order]
        n_symbols = self._terms.n_symbols
        # lemma: formal-sums
        if not self._proof.agreeing(blocks, of_pairs, self._skip, n_symbols, starts, ends, keys, counts):
            raise _AccidentError
        own = of_pairs[np.append(True, np.diff(blocks) != 0)]
        lengths = (ends - starts)[own]
        places = np.repeat(starts[own] - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
        rows = np.repeat(np.arange(len(own)), lengths)
        targets, symbols, times = keys[places] // n_symbols, keys[places] % n_symbols, counts[places]
        if self._skip:
            kept = targets != rows
            rows, targets, symbols, times = rows[kept], targets[kept], symbols[kept], times[kept]
        begins = np.searchsorted(rows, np.arange(len(own) + 1))
        nodes = sum(len(part) for part in low)
        return ChainPartition(
            len(own), rounds, of_block, first, begins, targets, symbols, times, nodes, low, high
        )

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

    def _times(self, v: int) -> int:
        return self._store.modular_product(self._matrix, v)

    def _apply(self, name: str, a: int, b: int) -> int:
        """Return an operation of two functions of residues, by its name."""
        operation: int = getattr(self._operations, name)
        arithmetic = self._operations.MODULAR if operation < self._operations.GREATER else 0
        return self._store.apply(operation + arithmetic, a, b)

    def _settle(self, *functions: int, anyway: bool = False) -> tuple[int, ...]:
        """Forget what is of no use once that is most of all; return functions by their new numbers."""
        if not anyway and not self._store.is_crowded():
            return functions
        kept = self._store.collect(self._matrix, self._partition, self._classes, *functions)
        self._matrix, self._partition, self._classes, *rest = kept
        return tuple(rest)

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
