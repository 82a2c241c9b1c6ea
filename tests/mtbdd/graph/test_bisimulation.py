"""Bisimulation on diagrams against refinement by definition, and its proof against what is none."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from mtbdd.base.budget import Budget, BudgetError, spending
from mtbdd.diagrams import node_kernels as operations
from mtbdd.diagrams import node_store
from mtbdd.diagrams.manager import Manager
from mtbdd.diagrams.value_diagrams import ValueDiagrams
from mtbdd.graph import bisimulation
from mtbdd.graph import refinement_kernels as kernels
from mtbdd.graph.bisimulation import (
    CoarseningError,
    StatePartition,
    Terms,
    TooManyBlocksError,
    coarsest_partition,
)
from mtbdd.offset.states import index_states
from tests.builders.dense import symbolic_matrix, symbolic_vector
from tests.exploring import rounds
from tests.oracles.lumping import coarsest_partition as partition_by_definition

N_BITS = 4


class Asked:
    """A matrix of small integers between some of the assignments, and classes of those states."""

    def __init__(self, rng: np.random.Generator, n_bits: int = N_BITS, copies: int = 4) -> None:
        size = 1 << n_bits
        self.states = np.flatnonzero(rng.random(size) < 0.8)
        if not self.states.size:
            self.states = np.arange(1)
        copy = rng.integers(0, copies, size)
        self.matrix, self.classes = np.zeros((size, size)), np.zeros(size)
        rows = rng.integers(0, 3, (copies, copies))
        for s in self.states.tolist():
            self.classes[s] = 1 + (copy[s] == 0)
            for block in range(copies):
                members = self.states[copy[self.states] == block]
                if rows[copy[s], block] and members.size:
                    self.matrix[s, rng.choice(members)] += rows[copy[s], block]
            if not self.matrix[s].any() or rng.random() < 0.05:
                self.matrix[s, s] += 1.0
        self.manager = Manager(n_bits)
        self.symbolic = symbolic_matrix(self.manager, self.matrix)
        self.work = ValueDiagrams(self.manager.index_level)
        self.root = self.work.load(symbolic_vector(self.manager, self.classes))
        self.index = index_states(self.manager, symbolic_vector(self.manager, self.classes).support())

    @property
    def terms(self) -> Terms:
        """Entry k is k times one symbol."""
        counts = self.symbolic.terminals.astype(np.int64)
        return Terms(np.zeros_like(counts), counts)

    def found(self, skip_own: bool = False, **options: int) -> StatePartition:
        """Return the partition that is tried here."""
        return coarsest_partition(
            [self.symbolic], self.terms, self.work, self.root, skip_own=skip_own, **options
        )

    def known(self, skip_own: bool = False) -> list[int]:
        """Return the partition by definition."""
        place = {s: k for k, s in enumerate(self.states.tolist())}
        rows = [
            {place[t]: Fraction(self.matrix[s, t]) for t in np.flatnonzero(self.matrix[s]).tolist()}
            for s in self.states.tolist()
        ]
        classes = self.classes[self.states].tolist()
        return partition_by_definition([[(None, row)] for row in rows], classes, skip_own)

    def sums(self, found: StatePartition, skip_own: bool) -> None:
        """Compare the sums of every state with those of its block."""
        blocks = found.of_states(self.index)
        for k, s in enumerate(self.states.tolist()):
            sums = np.bincount(blocks, self.matrix[s, self.states], found.count)
            if skip_own:
                sums[blocks[k]] = 0
            own = slice(found.starts[blocks[k]], found.starts[blocks[k] + 1])
            told = np.zeros(found.count)
            np.add.at(told, found.targets[own], found.counts[own])
            assert (told == sums).all()


def numbered(blocks: np.ndarray) -> list[int]:
    places: dict[int, int] = {}
    return [places.setdefault(b, len(places)) for b in blocks.tolist()]


@pytest.mark.parametrize("skip_own", [False, True])
def test_partition_is_the_coarsest_one(rng: np.random.Generator, skip_own: bool) -> None:
    smaller = 0
    for _ in range(rounds(30)):
        asked = Asked(rng)
        found, known = asked.found(skip_own), asked.known(skip_own)
        blocks = found.of_states(asked.index)
        assert numbered(blocks) == known
        assert blocks.tolist() == known  # blocks are numbered by their first states
        asked.sums(found, skip_own)
        first = np.unique(blocks, return_index=True)[1]
        bits = asked.states[first][:, None] >> np.arange(N_BITS)[::-1] & 1
        assert (found.first == bits.astype(bool)).all()
        assert (found.classes == asked.classes[asked.states[first]]).all()
        smaller += found.count < len(known)
    assert smaller


def test_symbols_add_up_with_their_own_alone() -> None:
    """Two states, each to both of two others: a + b and b + a are one, a + a is another."""
    matrix = np.zeros((8, 8))
    matrix[0, 4:6], matrix[1, 4:6], matrix[2, 4:6] = (1.0, 2.0), (2.0, 1.0), (1.0, 1.0)
    matrix[4, 4] = matrix[5, 5] = 1.0
    manager = Manager(3)
    work = ValueDiagrams(manager.index_level)
    classes = symbolic_vector(manager, np.array([1.0, 1, 1, 0, 2, 2, 0, 0]))
    root, entries = work.load(classes), symbolic_matrix(manager, matrix)
    index = index_states(manager, classes.support())
    for symbols, counts, known in (
        ([0, 1], [1, 1], [0, 0, 1, 2, 2]),
        ([0, 0], [1, 1], [0, 0, 0, 1, 1]),
        ([0, 0], [1, 2], [0, 0, 1, 2, 2]),
    ):
        found = coarsest_partition([entries], Terms(np.array(symbols), np.array(counts)), work, root)
        assert found.of_states(index).tolist() == known


def test_bits_that_a_matrix_does_not_test_count_twice() -> None:
    """All of four states lead to all of them."""
    manager = Manager(2)
    work = ValueDiagrams(manager.index_level)
    classes = work.load(symbolic_vector(manager, np.ones(4)))
    found = coarsest_partition(
        [symbolic_matrix(manager, np.ones((4, 4)))], Terms(np.zeros(1, int), np.ones(1, int)), work, classes
    )
    assert found.count == 1 and found.counts.tolist() == [4]


def test_blocks_that_a_set_meets(rng: np.random.Generator) -> None:
    asked = Asked(rng)
    found = asked.found()
    blocks = found.of_states(asked.index)
    some = np.zeros_like(asked.classes)
    some[asked.states[1::3]] = 1
    index = index_states(asked.manager, symbolic_vector(asked.manager, some).support())
    assert found.met_by(index).tolist() == np.unique(blocks[1::3]).tolist()


def test_little_room_and_many_pauses_change_nothing(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked(rng, 6, 20)
    known = asked.found(True)
    monkeypatch.setattr(bisimulation, "_LEAST_ROOM", 32)
    monkeypatch.setattr(node_store, "_FIRST", 32)
    monkeypatch.setattr(node_store, "_STEPS", 500)
    found = asked.found(True)
    for name in ("first", "starts", "targets", "counts", "classes"):
        assert (getattr(found, name) == getattr(known, name)).all()


def test_nodes_that_find_no_room_are_refused(rng: np.random.Generator) -> None:
    with pytest.raises(MemoryError, match="more than 64 nodes"):
        Asked(rng, 6, 20).found(room=64)


def test_more_blocks_than_asked_for_end_refinement(rng: np.random.Generator) -> None:
    asked = Asked(rng, 6, 20)
    count = asked.found().count
    with pytest.raises(TooManyBlocksError) as raised:
        asked.found(most=count)
    assert 2 < raised.value.blocks <= count and raised.value.rounds > 0
    assert asked.found(most=count + 1).count == count


def test_refinement_ends_when_the_time_is_spent(rng: np.random.Generator) -> None:
    asked = Asked(rng)
    with spending(Budget.of(1e-9, None)), pytest.raises(BudgetError):
        asked.found()


def attempt(asked: Asked, skip_own: bool = False) -> bisimulation._Refinement:
    return bisimulation._Refinement(
        [asked.symbolic], asked.terms, asked.work, asked.root, [], skip_own, np.inf, 1 << 20, 1
    )


# lemma: formal-sums
def test_blocks_whose_states_have_different_sums_are_not_proved(rng: np.random.Generator) -> None:
    asked = Asked(rng, 5, 8)
    while min(asked.found(skip_own).count for skip_own in (False, True)) <= 2:  # the classes may be stable
        asked = Asked(rng, 5, 8)
    for skip_own in (False, True):
        with pytest.raises(bisimulation._AccidentError):
            attempt(asked, skip_own)._with_proof(0)  # the classes, which are not stable


def test_blocks_over_two_classes_are_not_proved(rng: np.random.Generator) -> None:
    """Rows add up to the same number, so that one block of all states is stable."""
    asked = Asked(rng)
    asked.symbolic = symbolic_matrix(asked.manager, np.diag(np.minimum(asked.classes, 1.0)))
    own = attempt(asked)
    own._partition = own._with_words(own._classes, np.ones_like)
    with pytest.raises(bisimulation._AccidentError):
        own._with_proof(0)
    own = attempt(asked)
    own._partition = own._classes = own._with_words(own._classes, np.ones_like)
    assert own._with_proof(0).count == 1


# lemma: formal-sums
def test_residues_that_are_zero_prove_nothing() -> None:
    """State 0 leads to state 2 as well, with a count that is 0 modulo the prime; states 0 and 1 differ."""
    matrix = np.zeros((4, 4))
    matrix[0, 2:], matrix[1, 3], matrix[2, 2], matrix[3, 3] = (2.0, 1.0), 1.0, 1.0, 1.0
    manager = Manager(2)
    work = ValueDiagrams(manager.index_level)
    classes = work.load(symbolic_vector(manager, np.array([1.0, 1.0, 2.0, 3.0])))
    entries = symbolic_matrix(manager, matrix)
    for count, blocks in (((1 << 61) - 1, None), (2, 4)):
        terms = Terms(np.zeros(2, dtype=np.int64), np.array([1, count]))
        if blocks is None:
            with pytest.raises(CoarseningError, match="could not be proved"):
                coarsest_partition([entries], terms, work, classes)
        else:
            assert coarsest_partition([entries], terms, work, classes).count == blocks


# lemma: formal-sums
def test_sums_that_are_zero_prove_nothing() -> None:
    """States 0 and 1 lead to state 4; state 0 to one block besides, with counts that add up to the prime."""
    matrix = np.zeros((8, 8))
    matrix[0, 2:5], matrix[1, 4] = (1.0, 2.0, 3.0), 3.0
    matrix[2, 2] = matrix[3, 3] = matrix[4, 4] = 3.0
    manager = Manager(3)
    work = ValueDiagrams(manager.index_level)
    classes = work.load(symbolic_vector(manager, np.array([1.0, 1, 2, 2, 3, 0, 0, 0])))
    entries = symbolic_matrix(manager, matrix)
    for more, proved in ((-1, False), (-2, True)):
        terms = Terms(np.zeros(3, dtype=np.int64), np.array([1, (1 << 61) - 1 + more, 5]))
        if proved:
            assert coarsest_partition([entries], terms, work, classes).count == 4
        else:
            with pytest.raises(CoarseningError, match="could not be proved"):
                coarsest_partition([entries], terms, work, classes)


# lemma: formal-sums
def test_states_without_entries_prove_nothing() -> None:
    """State 1 has none, and the word of no sum."""
    matrix = np.zeros((4, 4))
    matrix[0, 2] = matrix[2, 2] = 1.0
    manager = Manager(2)
    work = ValueDiagrams(manager.index_level)
    classes = work.load(symbolic_vector(manager, np.array([1.0, 1.0, 2.0, 0.0])))
    terms = Terms(np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64))
    with pytest.raises(CoarseningError, match="could not be proved"):
        coarsest_partition([symbolic_matrix(manager, matrix)], terms, work, classes)


# lemma: formal-sums
def test_residues_that_stand_for_two_entries_prove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def ones(self: object, terms: Terms, seed: int) -> np.ndarray:
        return np.ones(len(terms.counts), dtype=np.uint64)

    monkeypatch.setattr(bisimulation._Refinement, "_residues_of", ones)
    manager = Manager(1)
    work = ValueDiagrams(manager.index_level)
    classes = work.load(symbolic_vector(manager, np.ones(2)))
    terms = Terms(np.zeros(2, dtype=np.int64), np.array([1, 2]))
    with pytest.raises(CoarseningError, match="could not be proved"):
        coarsest_partition([symbolic_matrix(manager, np.diag([1.0, 2.0]))], terms, work, classes)


# lemma: formal-sums
def test_a_residue_of_two_sums_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """State 0 has twice symbol 0 and state 1 once symbol 1, whose residue is twice that of symbol 0."""

    def doubled(self: object, terms: Terms, seed: int) -> np.ndarray:
        return np.array([1, 2], dtype=np.uint64)

    monkeypatch.setattr(bisimulation._Refinement, "_residues_of", doubled)
    matrix = np.diag([0.0, 0.0, 1.0, 1.0])
    matrix[0, 2:], matrix[1, 2] = 1.0, 2.0
    manager = Manager(2)
    work = ValueDiagrams(manager.index_level)
    classes = work.load(symbolic_vector(manager, np.array([1.0, 1.0, 2.0, 2.0])))
    terms = Terms(np.array([0, 1]), np.ones(2, dtype=np.int64))
    with pytest.raises(CoarseningError, match="could not be proved"):
        coarsest_partition([symbolic_matrix(manager, matrix)], terms, work, classes)


class Choices:
    """Four matrices of small integers, each with a choice of some of the states, and classes of choices.

    `choices[k]` has matrix k's choices: state -> (class, successor -> entry).
    """

    def __init__(
        self,
        choices: list[dict[int, tuple[int, dict[int, int]]]],
        classes: list[int],
    ) -> None:
        self.choices, self.classes = choices, classes
        self.manager = Manager(max(1, (len(classes) - 1).bit_length()))
        size = 1 << self.manager.n_bits
        self.work = ValueDiagrams(self.manager.index_level)
        self.root = self._loaded(dict(enumerate(classes)))
        self.kinds = [self._loaded({s: kind for s, (kind, _) in own.items()}) for own in choices]
        self.matrices = []
        for own in choices:
            matrix = np.zeros((size, size))
            for s, (_, row) in own.items():
                for t, entry in row.items():
                    matrix[s, t] = entry
            self.matrices.append(symbolic_matrix(self.manager, matrix))
        entries = {e for own in choices for _, row in own.values() for e in row.values()}
        counts = np.array(sorted(entries))
        self.terms = Terms(np.zeros_like(counts), counts)
        states = symbolic_vector(self.manager, np.arange(size) < len(classes)).support()
        self.index = index_states(self.manager, states)

    def _loaded(self, numbers: dict[int, int]) -> int:
        vector = np.zeros(1 << self.manager.n_bits)
        vector[list(numbers)] = list(numbers.values())
        return self.work.load(symbolic_vector(self.manager, vector))

    def found(self) -> StatePartition:
        """Return the partition that is tried here."""
        return coarsest_partition(self.matrices, self.terms, self.work, self.root, choice_classes=self.kinds)

    def attempt(self) -> bisimulation._Refinement:
        """Return what begins with the classes."""
        return bisimulation._Refinement(
            self.matrices, self.terms, self.work, self.root, self.kinds, False, np.inf, 1 << 20, 1
        )

    def known(self) -> list[int]:
        """Return the partition by definition."""
        return partition_by_definition(
            [
                [
                    (own[s][0], {t: Fraction(e) for t, e in own[s][1].items()})
                    for own in self.choices
                    if s in own
                ]
                for s in range(len(self.classes))
            ],
            self.classes,
        )

    def sets(self, found: StatePartition) -> None:
        """Compare the choices of every state with those of its block."""
        blocks = found.of_states(self.index).tolist()
        for s, block in enumerate(blocks):
            told = []
            for c in range(found.choice_starts[block], found.choice_starts[block + 1]):
                own = slice(found.starts[c], found.starts[c + 1])
                told.append(
                    (found.choice_classes[c], *zip(found.targets[own], found.counts[own], strict=True))
                )
            known = set()
            for kind, row in (own[s] for own in self.choices if s in own):
                sums = Counter[int]()
                for t, entry in row.items():
                    sums[blocks[t]] += entry
                known.add((kind, *sorted(sums.items())))
            assert len(told) == len(known) and set(told) == known


def random_choices(rng: np.random.Generator, copies: int = 4, most: int = 4) -> Choices:
    """Return choices of states that are copies of a few, in any order and some twice."""
    n = int(rng.integers(2, 14))
    copy = rng.integers(0, copies, n)
    rows = rng.integers(0, 3, (copies, most, copies))
    kinds = rng.integers(1, 3, (copies, most))
    choices: list[dict[int, tuple[int, dict[int, int]]]] = [{} for _ in range(most)]
    for s in range(n):
        for layer, number in enumerate(rng.permutation(most).tolist()):
            row: Counter[int] = Counter()
            for block in range(copies):
                members = np.flatnonzero(copy == block)
                if rows[copy[s], number % 2, block] and members.size:
                    row[int(rng.choice(members))] += int(rows[copy[s], number % 2, block])
            if row and (number < 2 or rng.random() < 0.5):
                choices[layer][s] = int(kinds[copy[s], number % 2]), dict(row)
        if not any(s in own for own in choices):
            choices[0][s] = 1, {s: 1}
    return Choices(choices, [1 + int(c == 0) for c in copy])


def test_partition_by_sets_of_choices_is_the_coarsest_one(rng: np.random.Generator) -> None:
    smaller = 0
    for _ in range(rounds(30)):
        asked = random_choices(rng)
        found, known = asked.found(), asked.known()
        assert found.of_states(asked.index).tolist() == known
        asked.sets(found)
        smaller += found.count < len(known)
    assert smaller


ENDS = {2: (1, {2: 1}), 3: (1, {3: 1})}
"""States 2 and 3 lead to themselves, and are in two classes."""


@pytest.mark.parametrize(
    ("first", "second", "is_one"),
    [
        ([(1, {2: 1}), (1, {2: 1})], [(1, {2: 1})], True),  # twice is once
        ([(1, {2: 1}), (1, {3: 1})], [(1, {3: 1}), (1, {2: 1})], True),  # in another order
        ([(1, {2: 1}), (1, {3: 1})], [(1, {2: 1})], False),  # one is lacking
        ([(1, {2: 1}), (1, {2: 1})], [(1, {2: 1}), (1, {3: 1})], False),  # one is lacking, as many there are
        ([(1, {2: 1})], [(2, {2: 1})], False),  # of another class
        ([(1, {2: 1})], [(1, {2: 2})], False),  # of another sum
    ],
)
def test_states_have_all_choices_of_their_block(
    first: list[tuple[int, dict[int, int]]], second: list[tuple[int, dict[int, int]]], is_one: bool
) -> None:
    """The proof of two states in one block; the refinement finds as many."""
    layers = [dict(ENDS), {}]
    for state, own in enumerate((first, second)):
        for layer, choice in zip(layers, own, strict=False):
            layer[state] = choice
    asked = Choices(layers, [1, 1, 2, 3])
    assert asked.found().count == (3 if is_one else 4)
    if is_one:
        assert asked.attempt()._with_proof(0).count == 3
    else:
        with pytest.raises(bisimulation._AccidentError):
            asked.attempt()._with_proof(0)


# lemma: sets-of-choices
def test_words_of_two_choices_prove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice into a block in the first class, and once in the second: products are equal, pairs are not."""

    def products(self: bisimulation._Refinement) -> list[int]:
        pairs = zip(self._sums, self._kinds, strict=True)
        return [self._apply("TIMES", own, kind) for own, kind in pairs]

    asked = Choices([{0: (1, {2: 2}), 1: (2, {2: 1}), 2: (1, {2: 1})}, {2: (2, {2: 1})}], [1, 1, 2])
    assert asked.found().count == 3
    monkeypatch.setattr(bisimulation._Refinement, "_named_choices", products)
    with pytest.raises(bisimulation._AccidentError):
        asked.attempt()._with_proof(0)


def formal_sums(operations: list[tuple[int, ...]], counts: list[int], words: int) -> list[int]:
    """Return the record behind some operations."""
    starts, ends, record = np.full(words, -1), np.zeros(words, dtype=np.int64), np.zeros(2, dtype=np.int64)
    terms = np.zeros(len(counts), dtype=np.int64), np.array(counts), 1
    keys, found = np.zeros(100, dtype=np.int64), np.zeros(100, dtype=np.int64)
    kernels.formal_sums(0, np.array(operations), terms, starts, ends, keys, found, record)
    return record.tolist()


def test_a_word_that_stands_for_two_sums_is_found_out() -> None:
    add, product = operations.ADD + operations.MODULAR, operations.MATRIX + operations.MODULAR
    # Words 0 and 1 are entry 0 into blocks 0 and 1; word 2 is their sum, or one of them twice.
    first = [(product, 0, 0, 0), (product, 0, 1, 1), (add, 0, 1, 2)]
    assert formal_sums([*first, (add, 1, 0, 2)], [1], 3)[1] == 0
    assert formal_sums([*first, (add, 1, 1, 2)], [1], 3)[1] == 1
    assert formal_sums([*first, (product, 0, 1, 2)], [1], 3)[1] == 1
    assert formal_sums([*first, (product, 1, 0, 0)], [1, 2], 3)[1] == 1
    assert formal_sums([*first, (product, 1, 0, 0)], [1, 1], 3)[1] == 0


@pytest.mark.parametrize(
    ("other", "skip", "agree"),
    [(0, False, True), (1, False, False), (2, False, False), (1, True, True), (2, True, False)],
)
def test_words_of_one_block_agree_by_their_sums(other: int, skip: bool, agree: bool) -> None:
    """Word 0 is once block 0, word 1 twice, word 2 once block 1; `skip` leaves block 0 itself out."""
    starts, ends = np.array([0, 1, 2]), np.array([1, 2, 3])
    keys, counts = np.array([0, 0, 1]), np.array([1, 2, 1])
    blocks, words = np.zeros(2, dtype=np.int64), np.array([0, other])
    assert kernels.agreeing(blocks, words, skip, 1, starts, ends, keys, counts) == agree


def test_counts_that_are_too_large_are_refused(rng: np.random.Generator) -> None:
    add, product = operations.ADD + operations.MODULAR, operations.MATRIX + operations.MODULAR
    twice = [(product, 0, 0, 0), (add, 0, 0, 1)]
    assert formal_sums(twice, [(1 << 60) - 1], 2)[1] == 0
    assert formal_sums(twice, [1 << 60], 2)[1] == 2
    asked = Asked(rng)
    asked.symbolic = symbolic_matrix(
        asked.manager, np.outer(asked.classes > 0, asked.classes > 0).astype(float)
    )
    terms = Terms(np.zeros(1, dtype=np.int64), np.array([1 << 60]))
    with pytest.raises(CoarseningError, match="too large"):
        coarsest_partition([asked.symbolic], terms, asked.work, asked.root)


def test_residues_add_and_multiply_as_numbers_do(rng: np.random.Generator) -> None:
    prime = (1 << 61) - 1
    for a, b in rng.integers(0, prime, (50, 2)).tolist():
        one, other = np.uint64(a), np.uint64(b)
        assert int(operations.plus(one, other)) == (a + b) % prime
        assert int(operations.times(one, other)) == a * b % prime
