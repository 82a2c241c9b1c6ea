"""Schedulers of several points in one file."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from hybrid.analysis.acceptance_sets import AcceptedPart
from hybrid.analysis.memory_scheduler import MemoryScheduler, Remembering, labels_of, numbers_of
from hybrid.analysis.multi.memory import Endings
from hybrid.analysis.multi.queries import Found
from hybrid.analysis.multi.weighing import Point
from hybrid.analysis.run.state_files import check_suffix
from hybrid.analysis.scheduler import SUFFIXES, SchedulerMaker
from mtbdd.build.automaton_product import AutomatonMove, automaton_product
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Node
from mtbdd.offset.states import states_from

# Schedulers of points that stop by staying: in an end component, meeting one set of marks after the other.
#
# A point's policy says where to stop, and which objectives that wins.  From there on a scheduler keeps to the
# end components that win them, and goes to each set that is to be met again and again in turn.  So it
# remembers whether it has stopped, in which end components, and the set that it waits for.


@dataclass(frozen=True, eq=False)
class _Stay:
    """Where a policy stops for good, the part that it stays in, and the first of its numbers of memory."""

    stops: Node
    part: AcceptedPart
    first: int

    @property
    def n_modes(self) -> int:
        return max(1, len(self.part.wanted))

    def after(self, mode: int) -> int:
        """Return the memory when a mode has met its set."""
        return self.first + (mode + 1) % self.n_modes


def staying_scheduler(owner: SymbolicModel, ends: Endings, point: Point) -> MemoryScheduler:
    """Return a scheduler that reaches a point, or more than it.

    Parameters
    ----------
    owner : SymbolicModel
        The MDP.
    ends : Endings
    point : Point
        Of a policy that surely stops.

    Notes
    -----
    Time: one decomposition for every set of objectives that the policy wins, and a product with a counter.
    """
    space = ends.space
    stays = _stays(ends, point)
    propositions = [stay.stops for stay in stays]
    moves = _moves(stays, propositions)
    model = space.model
    structures = range(len(model.source.rewards))
    counted = automaton_product(
        model, propositions, moves, 0, structures, labels=labels_of(model), start=model.initial
    )
    pairs, lifted, modes = counted.model, counted.lifted, counted.automaton_states
    maker = SchedulerMaker(pairs)
    for layer in range(len(model.layers)):
        taken = point.policy == layer
        if taken.any():
            maker.choose(layer, lifted(states_from(model.manager, ends.pairs, taken)) & modes[0])
    for stay in stays:
        inside = lifted(stay.part.states) & pairs.reachable
        for mode in range(stay.n_modes):
            here = modes[stay.first + mode]
            if mode == 0:
                here = here | lifted(stay.stops) & modes[0]
            allowed = [lifted(own) & inside & here for own in stay.part.choices]
            if stay.part.wanted:
                goal = lifted(stay.part.wanted[mode]) & inside & here
                maker.take([own & goal for own in allowed])
                maker.route(goal, inside & here, allowed)
            maker.take(allowed)
    read = [lifted(states) for states in space.product.automaton_states]
    then = [lifted(states) for states in space.product.following]
    count = len(modes)
    memory = numbers_of(pairs, read) * count + numbers_of(pairs, modes)
    following = numbers_of(pairs, then) * count + numbers_of(pairs, counted.following)
    first = lifted(space.product.first) & counted.first
    return Remembering(owner, pairs, first, lifted, modes, memory, following).finish(maker)


def _stays(ends: Endings, point: Point) -> list[_Stay]:
    """Return where a policy stops, each pair in one part that wins what it wins."""
    model = ends.space.model
    stopped = point.policy == len(model.layers)
    stays: list[_Stay] = []
    count = 1
    for number in np.unique(point.sets[stopped]).tolist():
        left = states_from(model.manager, ends.pairs, stopped & (point.sets == number))
        for part in ends.parts(number):
            stops = left & part.states
            if stops != model.manager.false:
                stays.append(_Stay(stops, part, count))
                count += stays[-1].n_modes
                left = left & ~stops
    return stays


def _moves(stays: Sequence[_Stay], propositions: list[Node]) -> list[list[AutomatonMove]]:
    """Return how the memory moves; sets that are waited for become propositions behind those of stopping."""
    any_stop = (1 << len(stays)) - 1
    begin = [AutomatonMove(((0, any_stop),), 0, 0)]
    moves = [begin]
    for number, stay in enumerate(stays):
        if stay.n_modes == 1:
            begin.append(AutomatonMove(((1 << number, 0),), stay.first, 0))
            moves.append([AutomatonMove(((0, 0),), stay.first, 0)])
            continue
        for mode, wanted in enumerate(stay.part.wanted):
            met = 1 << len(propositions)
            propositions.append(wanted)
            ahead, here = stay.after(mode), stay.first + mode
            moves.append([AutomatonMove(((met, 0),), ahead, 0), AutomatonMove(((0, met),), here, 0)])
            if mode == 0:
                begin.append(AutomatonMove(((1 << number | met, 0),), ahead, 0))
                begin.append(AutomatonMove(((1 << number, met),), here, 0))
    return moves


@dataclass(frozen=True, eq=False)
class PointSchedulers:
    """Deterministic schedulers with memory, one a point, and how they are mixed.

    Attributes
    ----------
    schedulers : tuple of MemoryScheduler
        Of the model: they remember what the automata have read, and where they have stopped to stay.
    shares : tuple of (Fraction or None)
        With which probability to play each of them, drawn once at the start; None where none is asked for.
    """

    schedulers: tuple[MemoryScheduler, ...]
    shares: tuple[Fraction | None, ...]

    def __repr__(self) -> str:
        return f"<PointSchedulers of {len(self.schedulers)} points>"

    def write(self, path: str | Path) -> None:
        """Write what every scheduler chooses, to a file that ends with ``.csv`` or ``.json``.

        CSV: the number of the point from 1, its share, and the columns of `MemoryScheduler.write`: the
        state's variables, the memory, the action (empty if unlabelled), the layer, the next memory, the
        command.
        JSON: an array of objects with `point`, `share`, and `choices`, an array of objects with `state`,
        `memory`, `action`, `layer`, `next` and `command`.

        Raises
        ------
        OptionError
            The name has another suffix.
        OSError
            The file cannot be written.
        """
        check_suffix(path, "path", SUFFIXES)
        numbered = enumerate(zip(self.schedulers, self.shares, strict=True), start=1)
        with Path(path).open("w", newline="", encoding="utf-8") as lines:
            if Path(path).suffix == ".json":
                found = [
                    {
                        "point": number,
                        "share": None if share is None else float(share),
                        "choices": list(scheduler.records()),
                    }
                    for number, (scheduler, share) in numbered
                ]
                json.dump(found, lines)
                return
            writer = csv.writer(lines)
            names = self.schedulers[0].variables() if self.schedulers else []
            writer.writerow(["point", "share", *names, *MemoryScheduler.columns])
            for number, (scheduler, share) in numbered:
                head = [number, "" if share is None else float(share)]
                writer.writerows([*head, *cells] for cells in scheduler.cells())


def point_schedulers(owner: SymbolicModel, ends: Endings | None, found: Found) -> PointSchedulers:
    """Return the schedulers of all points of an MDP."""
    search = found.search
    if search is None or ends is None:
        return PointSchedulers((), ())
    made = tuple(staying_scheduler(owner, ends, point) for point in search.points)
    shares = [found.shares.get(i, Fraction(0)) if found.shares else None for i in range(len(made))]
    return PointSchedulers(made, tuple(shares))
