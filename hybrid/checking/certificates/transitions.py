"""The transitions of a listed set of states, from the commands of the text.

Commands are evaluated module by module, all states at once. This is PRISM's parallel composition: modules
synchronise on the actions that they share, and overlapping commands of a chain add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import CertificateError, NotCertifiableError
from hybrid.checking.certificates.states import Places, States
from mtbdd.language.syntax import Command, ModelSyntax, ModelType, Update

# The commands of a text over a set of states, composed module by module, all states at once.

Ints = NDArray[np.int64]

STRAY = -(1 << 61)  # a change that leads out of a variable's range
_NEAR_ONE = Fraction(1, 10**5)  # how far the probabilities of a command may be from adding up to 1


@dataclass
class Entries:
    """Partly composed transitions: source, change of the state's number, weight, weight of the choice."""

    row: Places
    change: Ints
    weight: Places
    total: Places
    path: Ints

    def of(self, chosen: Ints) -> Entries:
        """Return some of them."""
        return Entries(
            self.row[chosen], self.change[chosen], self.weight[chosen], self.total[chosen], self.path[chosen]
        )


def joined(parts: Sequence[Entries]) -> Entries:
    """Return several parts as one."""
    if len(parts) == 1:
        return parts[0]
    names = ("row", "change", "weight", "total", "path")
    return Entries(*(np.concatenate([getattr(p, name) for p in parts]) for name in names))


class Commands:
    """The commands of a text over a set of states, each worked out once for all states it is enabled in."""

    def __init__(self, syntax: ModelSyntax, states: States) -> None:
        self.syntax, self.states, self.table = syntax, states, states.table
        self.is_chain = syntax.type is not ModelType.MDP

    def update(self, command: Command, update: Update, rows: Ints) -> tuple[Places, Ints]:
        """Return weights and changes of the states' numbers, over rows in which the guard holds."""
        states = self.states
        if update.weight is None:
            weight = self.table.full(rows.size, 1)
        else:
            weight = states.places(update.weight, rows)
        signs = self.table.signs()[weight]
        if bool((signs < 0).any()):
            place = states.describe(int(rows[np.flatnonzero(signs < 0)[0]]))
            raise CertificateError(f"{update.position}: the weight of an update is negative in {place}")
        change = np.zeros(rows.size, np.int64)
        live = np.flatnonzero(signs)
        for assignment in update.assignments:
            v = next(v for v in states.variables if v.name == assignment.variable)
            digit = states.whole(assignment.expression, rows[live]) - v.low
            outside = (digit < 0) | (digit > v.high - v.low)
            moved = (digit - states.digits(v.name)[rows[live]]) * states.weights[v.name]
            change[live] += np.where(outside, 0, moved)
            change[live[outside]] = STRAY
        return weight, change

    def extended(self, entries: Entries, commands: Sequence[Command]) -> tuple[Entries, Places]:
        """Return entries with one module's commands taken too, and the module's weight by state."""
        size, table = self.states.size, self.table
        found: list[Entries] = []
        exits = table.full(size, 0)
        for number, command in enumerate(commands):
            holds = self.states.truth(command.guard)
            rows = np.flatnonzero(holds)
            if rows.size == 0:
                continue
            place = np.zeros(size, np.int64)
            place[rows] = np.arange(rows.size)
            worked = [self.update(command, update, rows) for update in command.updates]
            total = table.full(rows.size, 0)
            for weight, _ in worked:
                total = table.add(total, weight)
            if self.syntax.type is not ModelType.CTMC:
                self._check_total(command, total, rows)
            exits[rows] = table.add(exits[rows], total)
            taken = entries.of(np.flatnonzero(holds[entries.row]))
            where = place[taken.row]
            totals = taken.total if self.is_chain else table.multiply(taken.total, total[where])
            path = taken.path if self.is_chain else taken.path * len(commands) + number
            for weight, change in worked:
                weights = table.multiply(taken.weight, weight[where])
                live = np.flatnonzero(weights != table.zero)
                new = Entries(taken.row, taken.change + change[where], weights, totals, path)
                found.append(new.of(live) if live.size < weights.size else new)
        if not found:
            return entries.of(np.zeros(0, np.int64)), exits
        return joined(found), exits

    def _check_total(self, command: Command, total: Places, rows: Ints) -> None:
        """Refuse probabilities that do not add up to 1, give or take 1e-5."""
        for place in np.unique(total).tolist():
            value = self.table.values[place]
            if abs(value - 1) > _NEAR_ONE:  # lemma: text
                state = self.states.describe(int(rows[np.flatnonzero(total == place)[0]]))
                raise CertificateError(
                    f"{command.position}: the probabilities of a command add up to {float(value)} in {state}"
                )

    def synchronised(self, parts: Sequence[Sequence[Command]]) -> tuple[Entries, Places]:
        """Return what modules do together, and the total weight by state."""
        size, table = self.states.size, self.table
        one = table.full(size, 1)
        entries = Entries(
            np.arange(size, dtype=np.int32), np.zeros(size, np.int64), one, one, np.zeros(size, np.int64)
        )
        exits = one
        for commands in parts:
            entries, own = self.extended(entries, commands)
            exits = table.multiply(exits, own)
        return entries, exits


def synchronisations_of(syntax: ModelSyntax) -> list[tuple[str | None, list[list[Command]]]]:
    """Return the synchronisations: unlabelled commands alone, and by action the commands of its modules."""
    found: list[tuple[str | None, list[list[Command]]]] = []
    actions: dict[str, None] = {}
    for module in syntax.modules:
        for command in module.commands:
            if command.action is None:
                found.append((None, [[command]]))
            else:
                actions.setdefault(command.action)
    for action in actions:
        own = [[c for c in module.commands if c.action == action] for module in syntax.modules]
        found.append((action, [commands for commands in own if commands]))
    return found


_MOST = (1 << 31) - 1


@dataclass(frozen=True, eq=False)
class Transitions:
    """All transitions, choice by choice; a chain has one choice in every state.

    Choices of state s are ``first[s] .. first[s + 1]``, `state` says whose a choice is, and `action` has the
    place in `actions` of a choice of an MDP, -1 for unlabelled ones, loops of deadlocks and chains.
    Transitions of choice c are ``begin[c] .. begin[c + 1]``: the `target` entered and the place of the
    `weight` in the table, a probability or rate that is not zero; several of a choice may enter one state.
    `total` has places of the sum of a choice's weights. Of a chain `exits` has by action (None: unlabelled)
    the places of its total weight by state.
    """

    states: States
    kind: ModelType
    first: Ints
    state: Places
    action: Places
    begin: Ints
    target: Places
    weight: Places
    total: Places
    exits: dict[str | None, Places]
    actions: tuple[str, ...]
    initial: Ints
    deadlocks: NDArray[np.bool_]

    @property
    def is_mdp(self) -> bool:
        """Whether states have choices."""
        return self.kind is ModelType.MDP


def expand(syntax: ModelSyntax, states: States, initial: Ints) -> Transitions:
    """Return all transitions of a set of states that contains the initial ones, given by number.

    The syntax has been checked before and has no system block. Deadlocks get a loop of weight 1. Raises
    CertificateError where an initial state or a successor is not in the set, or the model is at fault in one
    of its states. Time: O(transitions log states) in NumPy, and exact arithmetic for the distinct valuations
    that every expression meets. Memory: about 60 bytes a transition.

    Lemma: listed-states (docs/certificates.md).
    """
    table, size = states.table, states.size
    starts, there = states.find(initial)
    if not bool(there.all()):  # lemma: listed-states
        raise CertificateError("the certificate does not list every initial state")
    commands = Commands(syntax, states)
    parts: list[Entries] = []
    marks: list[tuple[int, int]] = []  # how many entries, and which action
    exits: dict[str | None, Places] = {}
    actions: list[str] = []
    for action, together in synchronisations_of(syntax):
        entries, own = commands.synchronised(together)
        if commands.is_chain:
            exits[action] = table.add(exits[action], own) if action in exits else own
        if action is not None and action not in actions:
            actions.append(action)
        if entries.row.size == 0:
            continue
        found, there = states.find(states.numbers[entries.row] + entries.change)
        # lemma: listed-states
        _check_closed(states, entries, there, together)
        entries.change = found
        parts.append(entries)
        marks.append((entries.row.size, -1 if action is None else actions.index(action)))
    if sum(count for count, _ in marks) > _MOST:
        raise NotCertifiableError("the model has more than 2^31 transitions, too many for a certificate")
    leaves = np.zeros(size, np.bool_)
    for entries in parts:
        leaves[entries.row] = True
    stuck = np.flatnonzero(~leaves)
    if stuck.size:
        one = table.full(stuck.size, 1)
        parts.append(Entries(stuck.astype(np.int32), stuck, one, one, np.zeros(stuck.size, np.int64)))
        marks.append((stuck.size, -1))
    return _sorted(syntax, states, parts, marks, exits, tuple(actions), starts, ~leaves)


def _check_closed(
    states: States, entries: Entries, there: NDArray[np.bool_], together: Sequence[Sequence[Command]]
) -> None:
    """Refuse successors that are not listed."""
    missing = np.flatnonzero(~there)
    if missing.size:
        first = int(missing[0])
        state, place = states.describe(int(entries.row[first])), together[0][0].position
        what = "a state that the certificate does not list"
        if int(entries.change[first]) < STRAY // 2:
            what = "a value outside of a variable's range"
        raise CertificateError(f"{place}: the commands with this action lead from {state} to {what}")


def _sorted(
    syntax: ModelSyntax,
    states: States,
    parts: list[Entries],
    marks: list[tuple[int, int]],
    exits: dict[str | None, Places],
    actions: tuple[str, ...],
    starts: Ints,
    deadlocks: NDArray[np.bool_],
) -> Transitions:
    """Put all entries in order of states and choices."""
    size, table = states.size, states.table
    whole = joined(parts)
    part = np.repeat(np.arange(len(marks)), [count for count, _ in marks])
    parts.clear()
    if syntax.type is ModelType.MDP:
        order = np.lexsort((whole.path, part, whole.row))
        row, path, part = whole.row[order], whole.path[order], part[order]
        new = np.ones(row.size, np.bool_)
        new[1:] = (np.diff(row) != 0) | (np.diff(path) != 0) | (np.diff(part) != 0)
        heads = np.flatnonzero(new)
        state, begin = row[heads], np.append(heads, row.size)
        total = whole.total[order][heads]
        action = np.array([a for _, a in marks], np.int32)[part[heads]]
    else:
        order = np.argsort(whole.row, kind="stable")
        state = np.arange(size, dtype=np.int32)
        begin = np.zeros(size + 1, np.int64)
        np.cumsum(np.bincount(whole.row, minlength=size), out=begin[1:])
        total = np.where(deadlocks, np.int32(table.one), np.int32(table.zero))
        for own in exits.values():
            total = table.add(total, own)
        action = np.full(size, -1, np.int32)
    first = np.zeros(size + 1, np.int64)
    np.cumsum(np.bincount(state, minlength=size), out=first[1:])
    return Transitions(
        states, syntax.type, first, state, action, begin, whole.change[order].astype(np.int32),
        whole.weight[order], total, exits, actions, starts, deadlocks,
    )  # fmt: skip


# Graph searches on explicit transitions: who can be made to reach a set, and who always does.
#
# Only positive weights are transitions.  All searches go backwards, one distance at a time.

Mask = NDArray[np.bool_]


class Search:
    """Backward searches over the reversed transitions.

    Memory: 8 bytes a transition. Every search takes O(transitions), and some NumPy calls for every distance.
    """

    def __init__(self, transitions: Transitions) -> None:
        self._t = transitions
        size = transitions.states.size
        order = np.argsort(transitions.target, kind="stable")
        owner = np.repeat(
            np.arange(transitions.state.size, dtype=np.int32), np.diff(transitions.begin).astype(np.intp)
        )
        self._choice = owner[order]
        self._begin = np.zeros(size + 1, np.int64)
        np.cumsum(np.bincount(transitions.target, minlength=size), out=self._begin[1:])

    def _entering(self, states: Ints) -> Ints:
        """Return the choices with a transition into one of some states, with repetitions."""
        begin, count = self._begin[states], self._begin[states + 1] - self._begin[states]
        ends = np.cumsum(count)
        if ends.size == 0 or ends[-1] == 0:
            return np.zeros(0, np.int64)
        places = np.arange(ends[-1]) + np.repeat(begin - (ends - count), count)
        found: Ints = self._choice[places].astype(np.int64)
        return found

    def some(self, goal: Mask, allowed: Mask | None = None, through: Mask | None = None) -> Mask:
        """Return where allowed choices can be made so that a goal is reached with positive probability.

        `through` marks the states that may be passed on the way; by default all choices and states are
        allowed.
        """
        reached = goal.copy()
        frontier = np.flatnonzero(goal)
        while frontier.size:
            choices = self._entering(frontier)
            if allowed is not None:
                choices = choices[allowed[choices]]
            states = self._t.state[choices]
            fresh = ~reached[states]
            if through is not None:
                fresh &= through[states]
            frontier = np.unique(states[fresh]).astype(np.int64)
            reached[frontier] = True
        return reached

    def every(self, goal: Mask, allowed: Mask | None = None) -> Mask:
        """Return where a goal is reached with positive probability under every scheduler of allowed choices.

        States outside are those where some scheduler surely avoids the goal. By default all choices are
        allowed; states without an allowed one have to be in the goal.
        """
        reached = goal.copy()
        open_ = np.diff(self._t.first)
        if allowed is not None:
            open_ = np.bincount(self._t.state[allowed], minlength=goal.size)
        hit = np.zeros(self._t.state.size, np.bool_)
        frontier = np.flatnonzero(goal)
        while frontier.size:
            choices = self._entering(frontier)
            choices = np.unique(choices[~hit[choices]])
            if allowed is not None:
                choices = choices[allowed[choices]]
            hit[choices] = True
            states, counts = np.unique(self._t.state[choices], return_counts=True)
            open_[states] -= counts
            fresh = states[(open_[states] == 0) & ~reached[states]]
            reached[fresh] = True
            frontier = fresh.astype(np.int64)
        return reached

    def forward(self, states: Ints) -> Mask:
        """Return the states reachable from some, themselves included."""
        t = self._t
        ends = t.begin[t.first]
        reached = np.zeros(self._begin.size - 1, np.bool_)
        frontier = np.unique(states)
        while frontier.size:
            reached[frontier] = True
            count = ends[frontier + 1] - ends[frontier]
            last = np.cumsum(count)
            places = np.arange(last[-1]) + np.repeat(ends[frontier] - (last - count), count)
            found = np.unique(t.target[places]).astype(np.int64)
            frontier = found[~reached[found]]
        return reached

    def inside(self, states: Mask) -> Mask:
        """Return the choices all of whose transitions enter a set, shape (choices,)."""
        heads = self._t.begin[:-1].astype(np.intp)
        return np.asarray(np.logical_and.reduceat(states[self._t.target], heads))

    def surely(self, goal: Mask) -> Mask:
        """Return where choices can be made so that a goal is reached with probability 1."""
        kept = np.ones(goal.size, np.bool_)
        while True:
            found = self.some(goal, self.inside(kept))
            if bool((found == kept).all()):
                return kept
            kept = found

    def sources_avoiding(self, bad: Mask, goal: Mask) -> Mask:
        """Return the states from which some choices lead to `bad` with positive probability before a goal."""
        return self.some(bad & ~goal, None, ~goal)
