"""`multi(...)` on an MDP, from the formula to what is found, its curve, and the schedulers of its points."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.accepting_sets import AcceptedPart
from hybrid.analysis.memory_scheduler import MemoryScheduler, Remembering
from hybrid.analysis.multi.long_run import StayingPolicy
from hybrid.analysis.multi.memory import Endings, Objective, endings, objective_product, objectives_of
from hybrid.analysis.multi.queries import (
    HalfSpace,
    ObjectiveSearch,
    Proposal,
    SearchResult,
    achievable,
    greatest_value,
    mixed,
    rational_shares,
    widest_margin,
)
from hybrid.analysis.multi.weighted_sum import Point, WeightedSumSolver
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.state_files import check_suffix
from hybrid.analysis.run.statistics import SolveStatistics
from hybrid.analysis.scheduler import SUFFIXES, SchedulerBuilder
from hybrid.base.check_options import ENCLOSING, advised
from hybrid.base.directed_rounding import rounded_up
from hybrid.base.errors import UnsupportedError
from hybrid.properties.tree import MultiObjective
from mtbdd.build.automaton_product import AutomatonMove
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Node
from mtbdd.language.syntax import Expression
from mtbdd.offset.states import index_states, states_from

# Schedulers of points that stop by staying: in an end component, meeting one set of marks after the other.
#
# A point's policy says where to stop, and which objectives that wins.  From there on a scheduler keeps to the
# end components that win them, and goes to each set that is to be met again and again in turn.  So it
# remembers whether it has stopped, in which end components, and the set that it waits for.  Where there are
# long-run averages it goes to the class of the end component that they were taken of, and stays there.


@dataclass(frozen=True, eq=False)
class _Stay:
    """End components in which a policy stays for good, and the first of its numbers of memory.

    If `settled`, in the classes of a policy whose averages count.
    """

    stops: Node
    part: AcceptedPart
    first: int
    settled: StayingPolicy | None = None

    @property
    def n_modes(self) -> int:
        return max(1, len(self.part.wanted))

    def after(self, mode: int) -> int:
        """Return the memory when a mode has met its set."""
        return self.first + (mode + 1) % self.n_modes


def staying_scheduler(owner: SymbolicModel, ends: Endings, point: Point) -> MemoryScheduler:
    """Return a scheduler of an MDP that reaches a point of a policy that surely stops, or more than it.

    Time: one decomposition for every set of objectives that the policy wins, and a product with a counter.
    """
    model, stays = ends.space.model, _stays(ends, point)
    propositions = [stay.stops for stay in stays]
    moves = _moves(stays, propositions)
    remembering = Remembering.counting(owner, ends.space.product, propositions, moves, model.initial)
    pairs, lifted, modes = remembering.pairs, remembering.lifted, remembering.modes
    maker = SchedulerBuilder(pairs)
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
            if stay.settled is not None:
                maker.take([lifted(own) & inside & here for own in stay.settled.chosen])
                maker.route(lifted(stay.settled.classes) & inside & here, inside & here, allowed)
            if stay.part.wanted:
                goal = lifted(stay.part.wanted[mode]) & inside & here
                maker.take([own & goal for own in allowed])
                maker.route(goal, inside & here, allowed)
            maker.take(allowed)
    return remembering.finish(maker)


def _stays(ends: Endings, point: Point) -> list[_Stay]:
    """Return where a policy stops, each pair in one part that wins what it wins."""
    model = ends.space.model
    stopped = point.policy == len(model.layers)
    stays: list[_Stay] = []
    count = 1
    for number in np.unique(point.sets[stopped]).tolist():
        left = states_from(model.manager, ends.pairs, stopped & (point.sets == number))
        if point.staying is not None:
            stays.append(_settled(ends, point.staying.homes[number], number, left, count))
            count += 1
            continue
        for part in ends.parts(number):
            stops = left & part.states
            if stops != model.manager.false:
                stays.append(_Stay(stops, part, count))
                count += stays[-1].n_modes
                left = left & ~stops
    return stays


def _settled(ends: Endings, settled: StayingPolicy, number: int, stops: Node, first: int) -> _Stay:
    """Return where a policy stops for good for its averages; refuse what takes memory without end."""
    model, numbers = ends.space.model, settled.ends
    components, wanted = ends.homes[number]
    stopped = numbers.component[model.indicator(stops, numbers.index)]
    for goal in wanted:
        met = numbers.component[model.indicator(goal & settled.classes, numbers.index)]
        if not np.isin(stopped, met).all():
            raise UnsupportedError(
                "multi: no scheduler with finite memory reaches a point: what is to happen again and again "
                "takes off its long-run averages, unless it happens ever more rarely; ask without schedulers"
            )
    return _Stay(stops, AcceptedPart(components.states, numbers.choices, ()), first, settled)


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
        With which probability to play each of them, drawn once at the start; None where none is requested.
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


def point_schedulers(owner: SymbolicModel, ends: Endings | None, found: SearchResult) -> PointSchedulers:
    """Return the schedulers of all points of an MDP."""
    search = found.search
    if search is None or ends is None:
        return PointSchedulers((), ())
    made = tuple(staying_scheduler(owner, ends, point) for point in search.points)
    shares = [found.shares.get(i, Fraction(0)) if found.shares else None for i in range(len(made))]
    return PointSchedulers(made, tuple(shares))


# Pareto curves: points and half-spaces until the two are close everywhere.
#
# The half-spaces leave a polyhedron above the mixtures of points.  What lies farthest above the mixtures is
# one of its corners; the direction in which they fall short there is solved next.

Vector = NDArray[np.float64]
Corner = tuple[Fraction, ...]


@dataclass(frozen=True)
class Curve:
    """A Pareto curve between an inner and an outer approximation.

    Nothing is achievable beyond the `corners` of the half-spaces; `distances` say by objective how far at
    most a mixture of points lies below any of them. In parts of each objective's range over the points,
    `asked` is the distance to stop at and `reached` the greatest one that is left: greater than `asked`
    where no further sum improves it. Corners of two objectives are found in rational numbers, which makes
    them `certified`.
    """

    corners: tuple[Corner, ...]
    distances: tuple[float, ...]
    asked: float
    reached: float
    certified: bool


def explore_curve(search: ObjectiveSearch, precision: float) -> Curve:
    """Solve weighted sums until corners and points are close, or no sum improves them.

    The search has begun; `precision` is the distance to stop at, in parts of each objective's range. Time: a
    weighted sum a round; of a smooth curve of two objectives about 1 / sqrt(precision). Linear programs of as
    many variables as there are points, about one a corner.
    """
    settled: set[Corner] = set()
    while True:
        scale = search.scale()
        corners = corners_of(search, scale)
        ranked = [(widest_margin(search.values, c, scale), c) for c in corners if c not in settled]
        ranked = [(p, c) for p, c in ranked if -p.value > precision]
        if not ranked:
            return _curve(search, scale, corners, precision)
        proposal, corner = min(ranked, key=lambda entry: entry[0].value)
        if not search.solve(proposal.direction):
            settled.add(corner)


def corners_of(search: ObjectiveSearch, scale: Vector) -> list[Corner]:
    """Return the corners of what half-spaces leave: for two objectives exactly, for more in doubles."""
    if len(search.objectives) == 2:
        return _corners_of_two(search.half_spaces)
    return _corners_of_many(search.half_spaces, search.values, scale)


def _corners_of_two(half_spaces: Sequence[HalfSpace]) -> list[Corner]:
    """Return the corners from the greatest first value to the greatest second one."""
    tightest: dict[Fraction, tuple[Fraction, Fraction, Fraction]] = {}
    for half_space in half_spaces:
        a, b = map(Fraction, half_space.weights)
        a, b, c = a / (a + b), b / (a + b), Fraction(half_space.most) / (a + b)
        if a not in tightest or c < tightest[a][2]:  # lemma: corners
            tightest[a] = (a, b, c)
    kept: list[tuple[Fraction, Fraction, Fraction]] = []
    for line in sorted(tightest.values(), reverse=True):
        while len(kept) > 1:
            x, y = _crossing(kept[-2], kept[-1])
            if line[0] * x + line[1] * y < line[2]:  # lemma: corners
                break
            kept.pop()
        kept.append(line)
    return [_crossing(first, second) for first, second in zip(kept, kept[1:], strict=False)]


def _crossing(
    first: tuple[Fraction, Fraction, Fraction], second: tuple[Fraction, Fraction, Fraction]
) -> tuple[Fraction, Fraction]:
    """Return where two lines ``a x + b y = c`` cross."""
    (a, b, c), (d, e, f) = first, second
    determinant = a * e - b * d
    return (c * e - b * f) / determinant, (a * f - c * d) / determinant


def _corners_of_many(
    half_spaces: Sequence[HalfSpace], values: Sequence[Sequence[float]], scale: Vector
) -> list[Corner]:
    """Return the corners in any dimension, in doubles, by Qhull."""
    from scipy.spatial import HalfspaceIntersection

    lower = np.array(values) / scale
    floor = lower.min(axis=0) - 3.0
    rows = [np.append(np.array(h.weights) * scale, -h.most) for h in half_spaces]
    rows = [row / np.abs(row[:-1]).sum() for row in rows]
    rows += [np.append(-np.eye(len(scale))[i], floor[i]) for i in range(len(scale))]
    inside = lower.min(axis=0) - 1.0
    found = HalfspaceIntersection(np.array(rows), inside, qhull_options="QJ").intersections
    found = found[np.isfinite(found).all(axis=1)]
    real = found[(found > floor + 0.5).all(axis=1)]
    unique = np.unique(np.round(real, 12), axis=0) * scale
    return [tuple(map(Fraction, corner)) for corner in unique.tolist()]


def _curve(search: ObjectiveSearch, scale: Vector, corners: Sequence[Corner], precision: float) -> Curve:
    """Return how far below the corners mixtures of points lie, in rational numbers.

    Lemma: corners (docs/multi.md).
    """
    values = search.values
    greatest = [Fraction(0)] * len(scale)
    for corner in corners:
        proposal: Proposal = widest_margin(values, corner, scale)
        near = mixed(values, rational_shares(proposal.shares))
        greatest = [max(g, c - v) for g, c, v in zip(greatest, corner, near, strict=True)]  # lemma: corners
    distances = tuple(rounded_up(g) for g in greatest)  # lemma: corners
    parts = [g / Fraction(size) for g, size in zip(greatest, scale.tolist(), strict=True)]
    # lemma: corners
    return Curve(tuple(corners), distances, precision, rounded_up(max(parts)), len(scale) == 2)


@dataclass(frozen=True, eq=False)
class MultiObjectiveSolution:
    """The result for several objectives.

    There are no `ends` if under every scheduler some least reward is infinite, and a `curve` only where
    several values are requested.
    """

    objectives: list[Objective]
    found: SearchResult
    ends: Endings | None = None
    curve: Curve | None = None


def multi_objective(
    model: SymbolicModel,
    formula: MultiObjective,
    states: Callable[[Expression], Node],
    options: CheckOptions,
    work: SolveStatistics,
) -> MultiObjectiveSolution:
    """Answer `multi(...)` in the initial state.

    Refused are chains, several initial states, methods without bounds, rewards that are negative, and
    greatest ones that are infinite.
    """
    if not model.is_mdp:
        raise UnsupportedError(
            "multi(...) needs an MDP: a chain has nothing to choose; ask for each objective by itself"
        )
    if index_states(model.manager, model.initial).total != 1:
        raise UnsupportedError("multi(...) is about one initial state, and the model has several")
    if options.bounding_method() is None:
        raise UnsupportedError(
            f"multi: the method {options.method} gives no bounds, which the search needs: choose "
            f"{advised(name for name in ENCLOSING if name != 'auto')}, or leave the method out"
        )
    objectives = objectives_of(formula)
    demands: list[Fraction | None] = [objective.demand for objective in objectives]
    aims = [i for i, demand in enumerate(demands) if demand is None]
    ends = endings(objective_product(model, objectives, states, options))
    if ends is None:
        return MultiObjectiveSolution(objectives, SearchResult(None, truth=False))
    weighing = WeightedSumSolver(ends, options, work)
    search = ObjectiveSearch(weighing, objectives, options.criterion.epsilon)
    search.begin()
    if not aims:
        return MultiObjectiveSolution(objectives, achievable(search, demands), ends)
    if len(aims) == 1:
        return MultiObjectiveSolution(objectives, greatest_value(search, aims[0], demands), ends)
    return MultiObjectiveSolution(
        objectives, SearchResult(search), ends, explore_curve(search, options.pareto_epsilon)
    )
