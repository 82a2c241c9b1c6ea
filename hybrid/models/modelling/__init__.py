"""Models written in Python: variables, commands of expressions or functions, straight into diagrams."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hybrid.base.errors import ModellingError
from hybrid.base.option_types import ModelTypeName, PackageName
from hybrid.models.model import Model
from hybrid.models.modelling.declarations import (
    Declarations,
    DeclaredCommand,
    DeclaredLabel,
    DeclaredReward,
    DeclaredUpdate,
    build_declared,
    caller_location,
    check_integer,
    check_name,
)
from hybrid.models.modelling.quantities import (
    FunctionOf,
    ModelVariable,
    Quantity,
    check_owner,
    function_over,
    looked_up,
    quantity_of,
)
from mtbdd.base.budget import Budget, spending
from mtbdd.language.limits import Limits, limited
from mtbdd.language.names import BUILT_IN_LABELS
from mtbdd.language.syntax import ModelType

GivenExpression = Quantity | Callable[..., Any] | float
GivenUpdate = Mapping[ModelVariable, GivenExpression]


@dataclass(frozen=True)
class ArgumentReader:
    """Reads the arguments of a builder's methods."""

    kind: ModelType
    variables: dict[str, ModelVariable]  # those declared so far
    owner: object  # the builder

    def quantity(self, given: Any, what: str) -> Quantity:
        """Return an argument as an expression; messages begin with `what`."""
        return quantity_of(given, self.variables, self.owner, what)

    def written_update(self, weight: Any, assigned: Any, what: str) -> DeclaredUpdate:
        """Return an update of a command, checked."""
        if not isinstance(assigned, Mapping):
            raise ModellingError(f"{what}: expected a mapping of variables to new values, got {assigned!r}")
        found = []
        for variable, value in assigned.items():
            if not isinstance(variable, ModelVariable):
                raise ModellingError(f"{what}: expected variables as keys of an update, got {variable!r}")
            check_owner(variable, self.owner, what)
            found.append((variable, self.quantity(value, f"{what}: {variable.name}'")))
        return DeclaredUpdate(
            None if weight is None else self.quantity(weight, f"{what}: weight"), tuple(found)
        )


class CommandModule:
    """A component of a model: commands, which synchronise with other modules' on actions that both have.

    Made by `ModelBuilder.module`.
    """

    def __init__(self, name: str, reader: ArgumentReader) -> None:
        self.name = name
        self._reader = reader
        self._commands: list[DeclaredCommand] = []

    @property
    def commands(self) -> tuple[DeclaredCommand, ...]:
        """The commands so far."""
        return tuple(self._commands)

    def command(
        self,
        guard: GivenExpression = True,
        update: GivenUpdate | None = None,
        *,
        rate: GivenExpression | None = None,
        updates: Sequence[tuple[GivenExpression, GivenUpdate]] | None = None,
        action: str | None = None,
    ) -> None:
        """Add a command: where the guard holds, one of some updates happens.

        Parameters
        ----------
        guard : expression, function or bool
            Where the command is enabled.
        update : mapping of variable to expression, optional
            The only update: new values of the variables that change, all from the old values.
        rate : expression, optional
            The rate of `update`, in a CTMC; 1 if left out, so that another module gives the rate.
        updates : sequence of (weight, mapping), optional
            Several updates with their probabilities (rates in a CTMC), in place of `update`.
        action : str, optional
            A command with an action happens together with one of every other module that has commands
            with this action; rates and probabilities are multiplied.

        Raises
        ------
        ModellingError
            An argument of another kind, a variable of another builder, a function with unknown parameters.
        """
        place = caller_location()
        what = f"{place}: the command"
        if action is not None and (not isinstance(action, str) or not action or not action.isprintable()):
            raise ModellingError(f"{what}: expected a name of an action, got {action!r}")
        reader = self._reader
        if updates is not None and (update is not None or rate is not None):
            raise ModellingError(f"{what}: expected `updates` alone, or `update` and `rate`, got both")
        if rate is not None and reader.kind is not ModelType.CTMC:
            raise ModellingError(
                f"{what}: expected probabilities, `updates=[(p, {{...}})]`, got a rate; or use type 'ctmc'"
            )
        if updates is None:
            branches = [reader.written_update(rate, {} if update is None else update, what)]
        elif isinstance(updates, (list, tuple)) and updates:
            branches = []
            for k, branch in enumerate(updates):
                if not isinstance(branch, (list, tuple)) or len(branch) != 2:
                    raise ModellingError(f"{what}: updates[{k}]: expected a pair of a weight and a mapping")
                branches.append(reader.written_update(branch[0], branch[1], f"{what}: updates[{k}]"))
        else:
            raise ModellingError(f"{what}: updates: expected a list of pairs, got {updates!r}")
        condition = reader.quantity(guard, f"{what}: guard")
        self._commands.append(DeclaredCommand(action, condition, tuple(branches), place))


_KINDS = {kind.value: kind for kind in (ModelType.DTMC, ModelType.CTMC, ModelType.MDP)}


class ModelBuilder:
    """A model of variables and commands, written in Python.

    Expressions are made of variables by operators of Python (``+ - * / // % **``, comparisons, ``& | ^ ~``,
    ``abs``) and functions of NumPy (`numpy.minimum`, `numpy.where`, ...). Wherever an expression may stand,
    so may a function whose parameters are names of variables: it is called once, with an array of values for
    every parameter, and returns an array (or one value). Numbers are doubles and mean themselves.

    Parameters
    ----------
    type : {"dtmc", "ctmc", "mdp"}
    name : str
        What messages call the model.

    Raises
    ------
    ModellingError
        Another type.

    Examples
    --------
    >>> builder = ModelBuilder("ctmc")
    >>> jobs = builder.variable("jobs", 0, 9)
    >>> builder.command(jobs < 9, {jobs: jobs + 1}, rate=2.0)
    >>> builder.command(jobs > 0, {jobs: jobs - 1}, rate=3.0 * jobs)
    >>> builder.build().n_states
    10
    """

    def __init__(self, type: ModelTypeName = "mdp", *, name: str = "builder") -> None:
        if not isinstance(type, str) or type not in _KINDS:
            raise ModellingError(f"type: expected one of {', '.join(_KINDS)}, got {type!r}")
        self.kind = _KINDS[type]
        self.name = str(name)
        self._variables: dict[str, ModelVariable] = {}
        self._reader = ArgumentReader(self.kind, self._variables, self)
        self._own = CommandModule("", self._reader)
        self._modules: dict[str, CommandModule] = {}
        self._labels: dict[str, DeclaredLabel] = {}
        self._rewards: dict[str, list[DeclaredReward]] = {}
        self._initial: DeclaredLabel | None = None

    # ------------------------------------------------------------------ declarations

    def variable(self, name: str, low: int, high: int, initial: int | None = None) -> ModelVariable:
        """Declare an integer variable.

        Parameters
        ----------
        name : str
        low, high : int
            Its least and greatest value.
        initial : int, optional
            Default `low`.

        Raises
        ------
        ModellingError
            No name, a name that is taken, an empty range, an initial value outside.

        Notes
        -----
        Variables stand in the diagrams in the order of their declarations: what belongs together should be
        declared together.
        """
        place = caller_location()
        own = check_name(name, "variable", self._variables, place)
        first, last = (check_integer(n, f"variable '{own}'", place) for n in (low, high))
        start = first if initial is None else check_integer(initial, f"variable '{own}'", place)
        if not first <= last:
            raise ModellingError(f"{place}: variable '{own}': expected low <= high, got [{first}..{last}]")
        if not first <= start <= last:
            raise ModellingError(
                f"{place}: variable '{own}': expected an initial value in [{first}..{last}], got {start}"
            )
        return self._declared(ModelVariable(self, own, first, last, start, is_bool=False))

    def boolean(self, name: str, initial: bool = False) -> ModelVariable:
        """Declare a boolean variable."""
        own = check_name(name, "variable", self._variables, caller_location())
        return self._declared(ModelVariable(self, own, 0, 1, int(bool(initial)), is_bool=True))

    def _declared(self, variable: ModelVariable) -> ModelVariable:
        self._variables[variable.name] = variable
        return variable

    def module(self, name: str) -> CommandModule:
        """Add a module; commands of the builder itself are those of one more module."""
        own = check_name(name, "module", self._modules, caller_location())
        self._modules[own] = CommandModule(own, self._reader)
        return self._modules[own]

    def function(self, function: Callable[..., Any], over: Sequence[ModelVariable]) -> FunctionOf:
        """Return a function of some variables, given in the order of its parameters, as an expression."""
        return function_over(function, over, self, f"{caller_location()}: function")

    def lookup(self, values: ArrayLike, *places: GivenExpression) -> Quantity:
        """Return the entries of an array, with one place for every axis, counted from 0, as an expression."""
        what = f"{caller_location()}: lookup"
        try:
            return looked_up(np.asarray(values), [self._reader.quantity(place, what) for place in places])
        except ValueError as error:
            raise ModellingError(f"{what}: {error}") from None

    def initial(self, condition: GivenExpression) -> None:
        """Start in all states where a condition holds, in place of the variables' initial values."""
        place = caller_location()
        if self._initial is not None:
            raise ModellingError(
                f"{place}: the initial states are given a second time, first at {self._initial.position}; "
                "join the conditions with `|`"
            )
        self._initial = DeclaredLabel(self._reader.quantity(condition, f"{place}: initial"), place)

    def command(
        self,
        guard: GivenExpression = True,
        update: GivenUpdate | None = None,
        *,
        rate: GivenExpression | None = None,
        updates: Sequence[tuple[GivenExpression, GivenUpdate]] | None = None,
        action: str | None = None,
    ) -> None:
        """Add a command outside of named modules, see `CommandModule.command`."""
        self._own.command(guard, update, rate=rate, updates=updates, action=action)

    def label(self, name: str, condition: GivenExpression) -> None:
        """Name the states where a condition holds."""
        place = caller_location()
        own = check_name(name, "label", (*self._labels, *BUILT_IN_LABELS), place)
        self._labels[own] = DeclaredLabel(self._reader.quantity(condition, f"{place}: label '{own}'"), place)

    def reward(
        self,
        name: str,
        guard: GivenExpression = True,
        value: GivenExpression = 1.0,
        *,
        action: str | None = None,
    ) -> None:
        """Add an item to a reward structure; items add up.

        Parameters
        ----------
        name : str
            Of the structure.
        guard : expression, function or bool
            The states that earn.
        value : expression, function or number
            What they earn: a step (DTMC, MDP) or a unit of time (CTMC).
        action : str, optional
            Earn it when a command with this action happens instead; "" stands for commands without one.

        Raises
        ------
        ModellingError
            As for `CommandModule.command`.
        """
        place = caller_location()
        own = name if name in self._rewards else check_name(name, "reward", (), place)
        what = f"{place}: reward '{own}'"
        if action is not None and not isinstance(action, str):
            raise ModellingError(f"{what}: expected a name of an action, got {action!r}")
        item = DeclaredReward(
            self._reader.quantity(guard, what),
            self._reader.quantity(value, what),
            action is not None,
            action or None,
            place,
        )
        self._rewards.setdefault(own, []).append(item)

    # ------------------------------------------------------------------ building

    def build(
        self,
        *,
        discount: float | None = None,
        fix_deadlocks: bool = True,
        package: PackageName = "auto",
        progress: Callable[[str], None] | None = None,
        timeout: float | None = None,
        memory: int | None = None,
        limits: Limits | None = None,
    ) -> Model:
        """Return the model; the builder stays as it is, and may be added to and built again.

        Parameters
        ----------
        discount : float, optional
            Between 0 and 1, for a DTMC or an MDP: adds a boolean variable ``ended`` and moves there from
            every state with what is left of 1, so that ``R=? [ F ended ]`` is the discounted total
            r_0 + d r_1 + d^2 r_2 + ... State n is the one that is ended, the others keep their numbers.
        fix_deadlocks : bool
            Give states without a command a loop, with a warning; otherwise they are an error.
        package : {"auto", "cudd", "autoref"}
            Back end of the diagrams.
        progress : callable, optional
            Called with a line of text at every stage.
        timeout, memory, limits
            As for `hybrid.load`.

        Raises
        ------
        ModellingError
            A function that raises or returns what it should not, and in reachable states: an update that
            leaves a range, probabilities that do not add up to 1 (within 1e-5), negative or infinite weights
            and rewards; with the place of the call and a state. No initial state, a table over too many
            combinations of values, a model that is too large.
        mtbdd.base.budget.BudgetError
            The time or the memory is spent.

        Notes
        -----
        Time: one call of every expression and function, over all values of its variables, then that of
        building from a text: nothing is done a state or a transition.
        """
        modules = {"": self._own, **self._modules}
        written = Declarations(
            self.name,
            self.kind,
            tuple(self._variables.values()),
            {name: module.commands for name, module in modules.items()},
            dict(self._labels),
            {name: tuple(items) for name, items in self._rewards.items()},
            self._initial,
        )
        budget = Budget.of(timeout, memory) if timeout is not None or memory is not None else None
        with limited(limits), spending(budget):
            return build_declared(written, discount, fix_deadlocks, package, progress or (lambda text: None))
