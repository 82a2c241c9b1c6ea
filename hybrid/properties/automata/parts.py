"""The small deterministic automata that a translation is put together from.

Each reads letters, may mark a step, and accepts by one condition: its mark again and again, or finitely often
only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable

from hybrid.properties.automata.formulas import Formula
from hybrid.properties.automata.progression import Progression
from hybrid.properties.automata.propositional import FALSE, TRUE

State = Hashable


class AutomatonPart(ABC):
    """A deterministic automaton with Buechi (`infinitely`) or co-Buechi acceptance.

    Attributes
    ----------
    initial : State
    infinitely : bool
        Whether it accepts if its mark occurs again and again, or if it does not.
    """

    initial: State
    infinitely: bool

    @abstractmethod
    def step(self, state: State, letter: int) -> tuple[State, bool]:
        """Return the next state, and whether the step is marked."""

    def settled(self, state: State) -> bool | None:
        """Return whether every word is accepted from a state, or none, or None for neither."""
        return None


class ReachedPart(AutomatonPart):
    """A co-safe formula: it is true from some time on."""

    infinitely = True

    def __init__(self, progression: Progression, formula: Formula) -> None:
        self._progression = progression
        self.initial = progression.encode(formula)

    def step(self, state: State, letter: int) -> tuple[State, bool]:
        """Progress; what is true or false stays so."""
        following = self._progression.step(state, letter)  # type: ignore[arg-type]
        return following, following == TRUE

    def settled(self, state: State) -> bool | None:
        """Return what the formula has become."""
        return None if state not in (TRUE, FALSE) else state == TRUE


class RepeatedPart(AutomatonPart):
    """``G F formula`` of a co-safe formula.

    It follows ``F formula`` until this is true, marks the step and begins again.
    """

    infinitely = True

    def __init__(self, progression: Progression, formula: Formula) -> None:
        self._progression = progression
        self.initial = progression.encode(progression.store.finally_(formula))

    def step(self, state: State, letter: int) -> tuple[State, bool]:
        """Progress, and begin again at the end."""
        following = self._progression.step(state, letter)  # type: ignore[arg-type]
        return (self.initial, True) if following == TRUE else (following, False)


class BreakpointPart(AutomatonPart):
    """A formula some of whose untils are known to hold again and again.

    It accepts if from some time on the formula, progressed so far and made safe, is never violated.  The
    state is a pair: the formula progressed, and the safe one that is followed at present.  A step is marked
    where the safe one is violated; it is taken afresh then.

    Notes
    -----
    For a formula in Sigma 2 and no untils kept this is the formula itself.  In general it is implied by the
    formula if `kept` are just those of its untils below a weak until that hold again and again, and implies
    the formula if they all do ([EKS20] Theorem 13, [SE20] 4).
    """

    infinitely = False

    def __init__(self, progression: Progression, formula: Formula, kept: frozenset[Formula]) -> None:
        self._progression = progression
        self._kept = kept
        self.initial = self._fresh(progression.encode(formula))

    def _fresh(self, whole: int) -> tuple[int, int]:
        return whole, self._progression.made_safe(whole, self._kept)

    def step(self, state: State, letter: int) -> tuple[State, bool]:
        """Progress both; take the safe formula afresh if it is violated."""
        assert isinstance(state, tuple)
        before, followed = state
        whole: int = self._progression.step(before, letter)
        safe: int = self._progression.step(followed, letter)
        if whole in (TRUE, FALSE):
            return (whole, whole), whole == FALSE
        return (self._fresh(whole), True) if safe == FALSE else ((whole, safe), False)

    def settled(self, state: State) -> bool | None:
        """Return what the formula has become."""
        whole = state[0]  # type: ignore[index]
        return None if whole not in (TRUE, FALSE) else whole == TRUE
