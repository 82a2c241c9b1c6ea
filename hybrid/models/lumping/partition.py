"""The coarsest partition of a model's states that a first one leaves stable: strong bisimulation.

Refinement by signatures, a round at a time. The signature of a state is a hash of the sums of its
probabilities or rates into every block. In a decision process it is a hash of the set of its choices' sums.
When states get another block, only the hashes of their predecessors change, and only these are examined
again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.runtime.coded import pointers
from hybrid.analysis.graphs import graph_bytes
from hybrid.base.arrays import few_values
from hybrid.base.errors import UnsupportedError
from hybrid.models.interchange.explicit_model import Numbers, Vector
from hybrid.models.interchange.write_out import ListedChoices, listed_choices
from mtbdd.base.budget import check_budget
from mtbdd.base.memory import require_memory
from mtbdd.build.model import SymbolicModel

# Numbers that add up exactly in any order: rational numbers modulo a prime.
#
# Whether two states are alike is a question about sums: 0.1 + 0.2 and 0.3 are one number on paper, and two as
# doubles.  Every distinct number of a model is taken for the simplest fraction that it may stand for, and
# fractions are added modulo the prime 2^61 - 1.  Equal sums have equal residues; different sums have
# different ones but for an accident, which the proof of the quotient (`hybrid.models.lumping.quotient`) would
# find.

PRIME = (1 << 61) - 1
"""A Mersenne prime: products are reduced by shifts."""

_MOST_FRACTIONS = 20_000
"""Distinct numbers that are taken for fractions; more are the doubles that they are."""


def simplest_between(low: Fraction, high: Fraction) -> Fraction:
    """Return the fraction of the least denominator in a closed interval, ``0 < low <= high``.

    By the continued fractions of both ends. Time: O(their length).
    """
    terms = []
    while True:
        whole = low.numerator // low.denominator
        if low == whole or whole + 1 <= high:
            terms.append(whole if low == whole else whole + 1)
            break
        terms.append(whole)
        low, high = 1 / (high - whole), 1 / (low - whole)
    found = Fraction(terms.pop())
    while terms:
        found = terms.pop() + 1 / found
    return found


def meant_by(value: float, units: float) -> Fraction:
    """Return the simplest rational number that a double, off by some units of 2^-53, may stand for.

    Lemma: simplest-fractions (docs/lumping.md).
    """
    exact = Fraction(value)
    if not units or not value:
        return exact
    distance = abs(exact) * Fraction(units) / 2**53  # lemma: simplest-fractions
    if value < 0:
        return -simplest_between(-exact - distance, -exact + distance)
    return simplest_between(exact - distance, exact + distance)


def fractions_of(values: NDArray[np.float64], units: float) -> list[Fraction]:
    """Return the numbers that distinct doubles are taken for.

    Raises UnsupportedError: a number is not finite. Time: some 20 microseconds a number. `values`: ndarray of
    float64, shape (m,). `units`: bound on their relative errors, in units of 2^-53; doubles that may stand
    for one number may get one fraction.
    """
    if not bool(np.isfinite(values).all()):
        raise UnsupportedError("the bisimulation quotient needs rates and rewards that are finite numbers")
    if len(values) > _MOST_FRACTIONS or not units < 2.0**40:
        units = 0.0
    return [meant_by(value, units) for value in values.tolist()]


def residues(values: NDArray[np.float64], units: float) -> NDArray[np.uint64]:
    """Return the fractions of distinct doubles modulo `PRIME`; see `fractions_of`."""
    found = np.empty(len(values), dtype=np.uint64)
    for place, number in enumerate(fractions_of(values, units)):
        below = number.denominator % PRIME or 1  # no number of a model is as long as that
        found[place] = number.numerator * pow(below, -1, PRIME) % PRIME
    return found


_WORK = 20_000_000
"""Entries between checks of the time and the memory that are left."""

_NONE = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Blocks:
    """A stable partition."""

    of_state: Numbers  # int64, shape (n_states,); the block of every state
    count: int
    rounds: int  # how often states were examined
    # uint64, shape (n_choices,); a hash of what every choice does; choices of one block with one hash do the
    # same
    of_choice: NDArray[np.uint64]


class WrittenChoices:
    """The choices of a model written out, in the order of the states' numbers; `stable` refines by them.

    Raises MemoryError: the arrays do not fit; with their size in bytes. Time and memory: O(states + choices +
    transitions), about 50 bytes a transition, 60 a choice, 100 a state. `units`: bound on the relative error
    of every entry, in units of 2^-53. `distinct`: the distinct entries, ascending.
    """

    def __init__(self, model: SymbolicModel) -> None:
        choices = model.n_choices or model.n_states
        needed = graph_bytes(model, True) + 32 * model.n_transitions + 64 * choices + 100 * model.n_states
        require_memory(
            needed,
            f"the list of {model.n_transitions} transitions that the bisimulation quotient is made from",
            "check without the quotient, which needs no list",
        )
        self.listed: ListedChoices = listed_choices(model)
        self.units = model.entry_units
        self.distinct, self._codes = few_values(self.listed.values)
        self._numbers = residues(self.distinct, self.units)
        self.n_states = model.n_states

    @property
    def n_choices(self) -> int:
        """Number of choices of all states together; of a chain its states."""
        return len(self.listed.starts) - 1

    @property
    def choice_starts(self) -> Numbers:
        """Index of the first choice of every state, shape (n_states + 1,); empty for chains."""
        return _NONE if self.listed.choice_starts is None else self.listed.choice_starts

    @property
    def owners(self) -> Numbers:
        """The state of every choice; empty for chains."""
        return _NONE if self.listed.choice_starts is None else self.listed.owners

    @cached_property
    def row_sums(self) -> Vector:
        """The sum of every choice's entries, off by a unit a term."""
        sums: Vector = np.add.reduceat(self.listed.values, self.listed.starts[:-1])
        return sums

    @cached_property
    def _entering(self) -> tuple[Numbers, NDArray[Any], NDArray[Any]]:
        """The entries by target: where each state's begin, their choices and their numbers' places."""
        from hybrid.models.lumping.kernels import turned_round

        starts = np.zeros(self.n_states + 1, dtype=np.int64)
        small = np.int32 if self.n_choices < 1 << 31 else np.int64
        choices = np.empty(len(self._codes), dtype=small)
        places = np.empty_like(self._codes)
        turned_round(self.listed.starts, self.listed.columns, self._codes, starts, choices, places)
        return starts, choices, places

    def stable(self, states: Numbers, choices: Numbers, skip_own: bool, seed: int) -> Blocks:
        """Return the coarsest stable partition that distinguishes some classes.

        Returns Blocks: hashes of different things may be equal by accident: see
        `hybrid.models.lumping.quotient`. Time: O(transitions log states), compiled. A state moves to another
        block at most log2(n) times. `states` (ndarray of int64, shape (n_states,)): classes of states,
        numbered from 0. `choices` (ndarray of int64, shape (n_choices,)): of a decision process, classes of
        choices; of a chain empty. `skip_own`: of a CTMC: rates into the own block need not agree. `seed`: of
        the hashes, 64 bits.
        """
        from hybrid.models.lumping.kernels import (
            BLOCKS,
            DIRTY,
            ROUNDS,
            first_hashes,
            loops_taken_off,
            refined,
        )

        n, listed, word = self.n_states, self.listed, np.uint64(seed)
        entering = self._entering
        diagonal = np.zeros(n if skip_own else 0, dtype=np.uint64)
        if skip_own:
            loops_taken_off(listed.starts, listed.columns, self._codes, self._numbers, diagonal)
        blocks = states.copy()
        hashes = np.empty(self.n_choices, dtype=np.uint64)
        first_hashes(
            listed.starts, listed.columns, self._codes, self._numbers, blocks, choices, diagonal, word, hashes
        )
        members = np.argsort(blocks, kind="stable")
        places = np.empty(n, dtype=np.int64)
        places[members] = np.arange(n)
        counts = np.bincount(blocks)
        first, sizes = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
        first[: len(counts)], sizes[: len(counts)] = np.cumsum(counts) - counts, counts
        record = np.zeros(3, dtype=np.int64)
        record[BLOCKS], record[DIRTY] = len(counts), n
        dirty, is_dirty = np.arange(n), np.ones(n, dtype=np.bool_)
        marks, moved, sources = (np.zeros(n, dtype=np.int64) for _ in range(3))
        signatures = np.zeros(n, dtype=np.uint64)
        while record[DIRTY]:
            check_budget()
            refined(
                record, _WORK, self.choice_starts, self.owners, *entering, self._numbers, diagonal, word,
                hashes, blocks, members, places, first, sizes, marks, dirty, is_dirty, signatures, moved,
                sources,
            )  # fmt: skip
        return Blocks(blocks, int(record[BLOCKS]), int(record[ROUNDS]), hashes)


def classes_of(values: Vector, units: float) -> Numbers:
    """Return a class for each number, from 0: one for those that may stand for one rational number."""
    distinct, places = few_values(values)
    _, classes = np.unique(residues(distinct, units), return_inverse=True)
    found: Numbers = classes.reshape(-1).astype(np.int64)[places]
    return found


def common_refinement(size: int, parts: Iterable[NDArray[np.integer] | NDArray[np.bool_]]) -> Numbers:
    """Return classes from 0 of what some classes together distinguish, shape (size,)."""
    found = np.zeros(size, dtype=np.int64)
    for part in parts:
        own = part.astype(np.int64)
        _, places = np.unique(found * (int(own.max(initial=0)) + 1) + own, return_inverse=True)
        found = places.reshape(-1).astype(np.int64)
    return found


def distinct_choices(written: WrittenChoices, blocks: Blocks) -> tuple[Numbers, Numbers, Numbers]:
    """Return the choices of blocks: which choices of states each stands for, and where a block's begin.

    Returns `members` (ndarray of int64, shape (n_choices,)): choices of states, those that are one in the
    quotient next to each other. `classes` (ndarray of int64, shape (m + 1,)): where the members of every
    choice of the quotient begin. `starts` (ndarray of int64, shape (blocks.count + 1,)): where the choices of
    every block begin; of a chain each has one.
    """
    if written.listed.choice_starts is None:
        members = np.argsort(blocks.of_state, kind="stable")
        classes = pointers(np, np.bincount(blocks.of_state, minlength=blocks.count))
        return members, classes, np.arange(blocks.count + 1)
    owners = blocks.of_state[written.owners]
    members = np.lexsort((blocks.of_choice, owners))
    own, hashes = owners[members], blocks.of_choice[members]
    new = np.ones(len(members), dtype=np.bool_)
    new[1:] = (own[1:] != own[:-1]) | (hashes[1:] != hashes[:-1])
    classes = np.append(np.flatnonzero(new), len(members))
    return members, classes, pointers(np, np.bincount(own[new], minlength=blocks.count))
