"""A decision process in rational numbers, and the exact optima of its operators.

Where the answer is known beforehand, and in which end components a scheduler could stay for nothing, is
found on the graph as for bounds (`hybrid.analysis.until`, `hybrid.analysis.choice_rewards`).  Such
components become one state each, with the choices that leave them; policy iteration solves the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from hybrid.analysis.choice_rewards import greatest_totals, reward_system, zero_reward_mecs
from hybrid.analysis.exact.elimination import Budget
from hybrid.analysis.exact.induction import BackwardInduction, Exact, finite
from hybrid.analysis.exact.policies import MAX_UNKNOWN, Option, solve_optima
from hybrid.analysis.exact.reading import ExactModel
from hybrid.analysis.until import until_system
from hybrid.base.errors import NotExactError
from mtbdd.diagrams.manager import Node
from mtbdd.graph.components import EndComponents, model_end_components


class ExactOptima(BackwardInduction):
    """The least or greatest values over all schedulers.

    Parameters
    ----------
    numbers : ExactModel
    maximise : bool
    budget : Budget
        Shared by all questions about the model.
    """

    def __init__(self, numbers: ExactModel, maximise: bool, budget: Budget) -> None:
        super().__init__(numbers.model, numbers.choices, maximise, budget)
        self._numbers = numbers

    def _gains(self, structure: int) -> list[list[Fraction]]:
        """Return what every choice earns, that of the state included.

        Raises
        ------
        NotExactError
            A reward is negative.
        """
        gains = self._numbers.gains(structure)
        if any(gain < 0 for own in gains for gain in own):
            raise NotExactError("rewards below zero are not solved exactly in decision processes")
        return gains

    def until(self, safe: Node, target: Node) -> list[Exact]:
        """Return the optimal probability of ``safe U target`` from every state."""
        system = until_system(self.model, safe, target, self.maximise)
        allowed = [layer.enabled for layer in self.model.layers]
        known = self._indicator(system.one)
        return self._solve(system.unknown.states, known, allowed, system.components, None)

    def reachability_rewards(self, structure: int, target: Node) -> list[Exact]:
        """Return the optimal expected reward before a set is reached; infinite where it may be missed."""
        gains = self._gains(structure)
        system = reward_system(self.model, structure, target, self.maximise)
        known = self._outside(~system.finite & self.model.reachable)
        return self._solve(system.unknown.states, known, system.allowed, system.components, gains)

    def total_rewards(self, structure: int) -> list[Exact]:
        """Return the optimal expected reward in all time, from every state."""
        model, gains = self.model, self._gains(structure)
        if not self.maximise:
            return self.reachability_rewards(structure, zero_reward_mecs(model, structure))
        infinite, unknown = greatest_totals(model, structure)
        ends = model_end_components(model, unknown)
        allowed = [layer.enabled for layer in model.layers]
        return self._solve(unknown, self._outside(infinite), allowed, ends, gains, stop=True)

    def cumulative_rewards(self, structure: int, steps: int) -> list[Exact]:
        """Return the optimal expected reward of the first steps, from every state."""
        gains = self._gains(structure)
        return self._repeat(self._nothing(), range(len(self.choices)), steps, gains)

    def discounted_rewards(self, structure: int, discount: Fraction) -> list[Exact]:
        """Return the optimal reward in all time, that of the k-th step times a power of the discount."""
        gains = self._gains(structure)
        if self._budget.left is not None and len(self.choices) > MAX_UNKNOWN:
            raise NotExactError(f"{len(self.choices)} unknown states are too many for exact solution")
        options = [
            [
                Option(gain, {j: discount * p for j, p in row.items()})
                for gain, row in zip(own, rows, strict=True)
            ]
            for own, rows in zip(gains, self.choices, strict=True)
        ]
        return list(solve_optima(options, self.maximise, self._budget))

    # ------------------------------------------------------------------ parts

    def _outside(self, infinite: Node) -> list[Exact]:
        """Return infinity in a set and 0 elsewhere."""
        inside = self.model.indicator(infinite).tolist()
        return [float("inf") if i else Fraction(0) for i in inside]

    def _solve(
        self,
        unknown: Node,
        known: list[Exact],
        allowed: Sequence[Node],
        components: EndComponents | None,
        gains: list[list[Fraction]] | None,
        stop: bool = False,
    ) -> list[Exact]:
        """Return the optimal values with those outside of the unknown states known.

        Parameters
        ----------
        allowed : sequence of Node
            For every layer the states whose choice may be taken.
        components : EndComponents, optional
            Made one state each, without the choices that stay inside.
        stop : bool
            Whether a scheduler may stay in these components, which is worth nothing more.
        """
        members = self._members(unknown)
        kept = list(allowed)
        place: dict[int, int] = {}
        ends: list[int] = []
        if components is not None:
            every = (components.single, *components.components)
            kept = [
                states & ~self.model.manager.disjunction(c.choices[layer] for c in every)
                for layer, states in enumerate(allowed)
            ]
            for number, component in enumerate(components.components):
                place |= dict.fromkeys(self._members(component.states & unknown), number)
            ends = self._members(components.states & unknown)
        count = len(set(place.values()))
        for state in members:
            if state not in place:
                place[state] = count
                count += 1
        if self._budget.left is not None and count > MAX_UNKNOWN:
            raise NotExactError(f"{count} unknown states are too many for exact solution")
        options: list[list[Option]] = [[] for _ in range(count)]
        may = [self.model.indicator(states) for states in kept]
        for state in members:
            for k, layer in enumerate(self._numbers.layers[state]):
                if may[layer][state]:
                    gain = Fraction(0) if gains is None else gains[state][k]
                    options[place[state]].append(self._option(state, k, gain, known, place))
        if stop:
            for unit in {place[state] for state in ends}:
                options[unit].append(Option(Fraction(0), {}))
        solved = solve_optima(options, self.maximise, self._budget)
        values = list(known)
        for state in members:
            values[state] = solved[place[state]]
        return values

    def _option(
        self, state: int, number: int, gain: Fraction, known: Sequence[Exact], place: dict[int, int]
    ) -> Option:
        """Return a choice of an unknown state, its known successors counted as gain."""
        row: dict[int, Fraction] = {}
        for j, p in self.choices[state][number].items():
            if j in place:
                row[place[j]] = row.get(place[j], Fraction(0)) + p
            elif known[j] != 0:
                gain += p * finite(known[j])
        return Option(gain, row)
