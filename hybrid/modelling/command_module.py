"""The modules of a builder, each with its commands."""

from __future__ import annotations

from collections.abc import Sequence

from hybrid.errors import ModellingError
from hybrid.modelling.arguments import ArgumentReader, GivenExpression, GivenUpdate
from hybrid.modelling.declared import WrittenCommand, place_of_call
from mtbdd.language.syntax import ModelType


class CommandModule:
    """A component of a model: commands, which synchronise with other modules' on actions that both have.

    Made by `ModelBuilder.module`.
    """

    def __init__(self, name: str, reader: ArgumentReader) -> None:
        self.name = name
        self._reader = reader
        self._commands: list[WrittenCommand] = []

    @property
    def commands(self) -> tuple[WrittenCommand, ...]:
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
        place = place_of_call()
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
        self._commands.append(WrittenCommand(action, condition, tuple(branches), place))
