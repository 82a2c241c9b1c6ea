"""The answer to a property, as an object and as the JSON record of the command line."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from dataclasses import field
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from hybrid.analysis.run.statistics import Reduction, SolveStatistics
from hybrid.base.errors import HybridError, UnsupportedError
from hybrid.base.state_values import StateTruth, StateValues
from hybrid.base.units import json_number
from hybrid.checking.filters import Listing, Pairs
from mtbdd.base.memory import current_store
from mtbdd.base.records import Record
from mtbdd.build.model import SymbolicModel

if TYPE_CHECKING:
    from hybrid.analysis.ctl import Witness
    from hybrid.analysis.scheduler import Scheduler
    from hybrid.checking.filters import Range
    from hybrid.checking.multi_objective import MultiObjectiveResult


_LISTED = 10  # states of a listing that a notebook shows
_LONGEST_REASON = 300


class EveryState:
    """Values of an answer's formula in every reachable state.

    `found` is over all states in index order, of a part of a model over its own; None if they were not kept,
    or not all needed, and then `again` finds them.
    """

    def __init__(
        self,
        model: SymbolicModel,
        found: StateValues | StateTruth | None,
        again: Callable[[], StateValues | StateTruth],
    ) -> None:
        self.model, self._found, self._again = model, found, again
        self._columns: tuple[NDArray[Any], ...] | None = None
        self._store = None if found is None else current_store()

    @property
    def found(self) -> StateValues | StateTruth:
        """The values in index order; found again, and then held, if they were not kept.

        Raises HybridError where the formula has no value in some state, or the disk that had the values lost
        some. Where processes share the states, all ask at once.
        """
        if self._found is None:
            self._found, self._store = self._again(), current_store()
        if self._store is not None:
            self._store.check()
        return self._found

    def column(self, number: int) -> NDArray[Any]:
        """Return the values (0), the lower (1) or the upper bounds (2), by number of the state; read only.

        Raises UnsupportedError where several processes share the states.
        """
        from mtbdd.build.state_order import for_users

        if self.model.communicator.size > 1:
            raise UnsupportedError(
                "the values of all states are not brought together from parts: write them to a file "
                "(values='FILE.npz'), or ask with one process"
            )
        found = self.found
        if self._columns is None:
            self._columns = found.columns()
        view = for_users(self.model, self._columns[number]).view()
        view.flags.writeable = False
        return view


class Answer(Record):
    """The answer to one property.

    Attributes
    ----------
    name : str or None
        The property's name in its file.
    property : str
        Its text.
    value : float, int, bool or None
        None if it could not be answered, for a range, or for a curve; infinite rewards are ``math.inf``.
    lower, upper : float, int, bool or None
        Bounds that hold for certain, of a range on all values in it; None where the method gives none.
    error : str or None
        Why there is no value: the message of `fault`; with the bounds reached before it.
    statistics : SolveStatistics
        Iterations, seconds, memory.
    seconds : float
        Wall time of everything done for this property.
    engine : str
    listing : sequence of (str, number or bool)
        States and their values, for filters that show them; a `Listing`, all of them.
    scheduler : Scheduler or None
        One that attains the value on an MDP, if it was requested.
    witness : Witness or None
        A path that shows why E holds or A does not, if it was requested and there is one.
    proven : bool
        Whether the answer, a range's ends included, rests on values with bounds alone.
    fault : HybridError or None
        Why there is no value, as it can be raised.
    states : EveryState or None
        Where `values` come from.
    several : MultiObjectiveResult or None
        Of `multi(...)`: the points, half-spaces and schedulers behind the answer.
    interrupted : bool
        Whether an iteration was ended before its time: `error` says by what; the bounds hold.
    exact : Fraction or None
        The answer as a rational number, where exact answers were requested and it is one number.
    reduction : Reduction or None
        The quotient that was checked in the model's place, where one was requested.
    range : Range or None
        From where to where the values go, each end with its bounds: of several initial states that differ,
        and of `filter(range, ...)`.
    pairs : tuple of pairs of Fraction, or None
        Of a quantile of two bounds the least pairs that are enough, by the first bound; empty if none is.
    """

    name: str | None
    property: str
    value: float | int | bool | None
    lower: float | int | bool | None
    upper: float | int | bool | None
    error: str | None
    statistics: SolveStatistics
    seconds: float
    engine: str
    listing: Sequence[tuple[str, float | int | bool]] = ()
    scheduler: Scheduler | None = None
    witness: Witness | None = None
    proven: bool = True
    fault: HybridError | None = field(default=None, repr=False, compare=False)
    states: EveryState | None = field(default=None, repr=False, compare=False)
    interrupted: bool = False
    several: MultiObjectiveResult | None = field(default=None, repr=False, compare=False)
    exact: Fraction | None = field(default=None, repr=False)
    reduction: Reduction | None = None
    range: Range | None = None
    pairs: Pairs | None = None

    @builtins.property
    def values(self) -> NDArray[Any]:
        """The formula's value in every reachable state, shape (n,), float64 or bool; read only.

        State k is the k-th one in the order of the text, as in ``model.state_table()``.  Of a filter these
        are the values of the formula inside, in all states.  Up to 262,144 states the values of one operator
        are held, and with ``values=True`` beyond; other values are found again at the first request, which
        takes as long as the check, and then held.

        Raises
        ------
        hybrid.HybridError
            There is no answer, or the formula has no value in some state.
        """
        return self.every_state.column(0)

    @builtins.property
    def lower_values(self) -> NDArray[Any]:
        """Certain lower bound on the value of every state; NaN where the method gives no bounds.

        Of a truth value: where it holds for certain.
        """
        return self.every_state.column(1)

    @builtins.property
    def upper_values(self) -> NDArray[Any]:
        """Certain upper bound on the value of every state; NaN where the method gives no bounds.

        Of a truth value: where it may hold.
        """
        return self.every_state.column(2)

    @builtins.property
    def warnings(self) -> tuple[str, ...]:
        """Warnings: readings of the question, and options that do not apply to it."""
        return tuple(self.statistics.warnings)

    @builtins.property
    def every_state(self) -> EveryState:
        """The values of all states in the order of the diagram.

        Raises
        ------
        hybrid.HybridError
            There is no answer, or none that was found by iteration.
        """
        if self.fault is not None:
            raise self.fault
        if self.states is None:
            raise UnsupportedError("this answer has no values of all states: ask for it with hybrid.check")
        return self.states

    @builtins.property
    def kind(self) -> str | None:
        """Kind of the value: "exact", "certified" (by its bounds), "estimate"; None without an answer.

        The bounds of an iteration that was ended, or of one whose steps were spent, are certified like all
        others.
        """
        if self.error is not None:
            return None if self.lower is None else "certified"
        if not self.proven or (self.value is not None and self.lower is None):
            return "estimate"
        method = self.statistics.method
        if self.pairs is not None:
            return "exact"
        if isinstance(self.value, bool):
            return "exact" if method in (None, "exact") else "certified"
        tight = self.value is not None and self.lower == self.upper
        return "exact" if tight or method == "exact" else "certified"

    def __repr__(self) -> str:
        what = self.property if self.name is None else f"{self.name}: {self.property}"
        return f"<Answer {_shortened(what)}: {self._result()}>"

    def _repr_html_(self) -> str:
        from hybrid.base.notebook import block, facts_table, rows_table

        work, facts = self.statistics, [] if self.name is None else [("name", self.name)]
        facts += [("property", self.property), ("result", self._result())]
        facts += [("warning", warning) for warning in self.warnings]
        if work.method is not None:
            facts.append(("method", f"{work.method}, {work.iterations:,} iterations"))
        if work.backend is not None:
            facts.append(("backend", f"{work.backend}: {work.backend_reason}"))
            form = f" at level {work.level}" if work.level is not None else f" as {work.storage}"
            facts.append(("matrix", f"{work.representation_bytes:,} B{form}, engine {self.engine}"))
        if work.disk_bytes is not None:
            facts.append(("disk", f"{work.disk_bytes:,} B at most"))
        if self.reduction is not None:
            sizes = f"{self.reduction.states:,} states in {self.reduction.blocks:,} blocks"
            facts.append(("bisimulation", sizes))
        facts.append(("seconds", f"{self.seconds:.3g}"))
        shown = [] if self.error is not None else self.listing[:_LISTED]
        listing = rows_table(("state", "value"), shown, len(self.listing) - len(shown)) if shown else ""
        return block("answer", facts_table(facts), listing)

    def _result(self) -> str:
        """Return the value and what is promised of it, or why there is none."""
        if self.error is not None:
            reason = _shortened(self.error.partition("\n")[0], _LONGEST_REASON)
            if self.lower is not None:
                return f"{reason}; between {self.lower!r} and {self.upper!r} so far"
            return f"not answered: {reason}"
        if self.several is not None and self.several.is_curve:
            return f"a curve, {self.kind}"
        if self.pairs is not None:
            return f"{pairs_text(self.pairs)}, exact"
        found = repr(self.value) if self.range is None else str(self.range)
        if self.kind != "certified" or isinstance(self.value, bool):
            return f"{found}, {self.kind}"
        return f"{found}, certified between {self.lower!r} and {self.upper!r}"

    def record(self, listing: bool = True) -> dict[str, Any]:
        """Return the answer as plain JSON values; with `listing` the states that a filter lists, too."""
        work = self.statistics
        shown = isinstance(self.listing, Listing) and listing
        return {
            "name": self.name,
            "property": self.property,
            "value": json_number(self.value),
            "lower": json_number(self.lower),
            "upper": json_number(self.upper),
            **({} if self.range is None else {"range": _json_ends(self.range)}),
            **({} if self.pairs is None else {"pairs": [[fraction_text(b) for b in p] for p in self.pairs]}),
            "error": self.error,
            **({"interrupted": True} if self.interrupted else {}),
            **({"warnings": list(self.warnings)} if self.warnings else {}),
            "kind": self.kind,
            "residual": json_number(work.component_residual),
            "engine": self.engine,
            **({"engine_reason": work.engine_reason} if work.engine_reason is not None else {}),
            "backend": work.backend,
            "backend_reason": work.backend_reason,
            "method": work.method,
            "level": work.level,
            "storage": work.storage,
            "iterations": work.iterations if work.method is not None else None,
            "products": work.products,
            "seconds": self.seconds,
            "seconds_per_iteration": work.seconds / work.iterations if work.iterations else None,
            "base_memory_bytes": work.base_bytes,
            "representation_memory_bytes": work.representation_bytes,
            **({"disk_bytes": work.disk_bytes} if work.disk_bytes is not None else {}),
            **({"listing": json_listing(self.listing)} if shown else {}),
            **({"witness": self.witness.record()} if self.witness is not None else {}),
            **({"exact": fraction_text(self.exact)} if self.exact is not None else {}),
            **({"multi": self.several.record()} if self.several is not None else {}),
            **({"bisimulation": self.reduction.record()} if self.reduction is not None else {}),
        }


def pairs_text(pairs: Pairs) -> str:
    """Return the least pairs of bounds as text."""
    return ", ".join(f"({fraction_text(a)}, {fraction_text(b)})" for a, b in pairs) or "no pair"


def _json_ends(found: Range) -> list[dict[str, Any]]:
    """Return the ends of a range as plain JSON values."""
    ends = found.least, found.greatest
    return [{name: json_number(part) for name, part in end._asdict().items()} for end in ends]


def fraction_text(value: Fraction) -> str:
    """Return a rational number with all its digits, however many: ``1/3``."""
    # Python refuses to write integers of more than 4,300 digits, decimal numbers it writes.
    numerator, denominator = Decimal(value.numerator), Decimal(value.denominator)
    return f"{numerator}" if value.denominator == 1 else f"{numerator}/{denominator}"


def _shortened(text: str, longest: int = 120) -> str:
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def json_listing(listing: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the records of a listing as plain JSON values."""
    if not isinstance(listing, Listing):
        return []
    return [
        {name: part if name == "state" else json_number(part) for name, part in record.items()}
        for record in listing.records()
    ]
