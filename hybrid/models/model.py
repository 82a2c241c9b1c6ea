"""A symbolic model with what the engine can do with it: vectors by number of the state, chains, pictures.

The engine is imported where it is used: a model that is only built and examined loads no solver.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hybrid.base.errors import PropertyError
from hybrid.base.state_values import StateTruth, StateValues
from hybrid.matrix.explicit.extract import ModelTransitions
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.encoding import EncodedVariable
from mtbdd.diagrams.manager import Node
from mtbdd.language.syntax import Expression

if TYPE_CHECKING:
    from hybrid.analysis.run.options import CheckOptions, SolutionKeywords
    from hybrid.analysis.scheduler import Scheduler
    from hybrid.matrix.levels.table import LevelTable
    from mtbdd.build.model import SymbolicModel
    from mtbdd.build.model_from_diagrams import Labels, Rewards
    from mtbdd.diagrams.encoding import EncodedVariable


# Display of a model: a block of text, and the same as HTML with its level curve as a picture.

_MOST_NODES = 200_000  # beyond, the curve takes longer than a glance
_MOST_VARIABLES = 12  # beyond, the others are counted


def text_of(model: SymbolicModel) -> str:
    """Return a model's type, sizes and variables as a block of text."""
    from hybrid.base.notebook import facts_text

    return facts_text(_facts(model))


def html_of(model: SymbolicModel) -> str:
    """Return the same as HTML, with the memory of every injection level as a small picture.

    All text of the model is escaped.  Large diagrams have no picture.
    """
    from hybrid.base.notebook import block, facts_table

    return block("model", facts_table(_facts(model)), _picture(model))


def _facts(model: SymbolicModel) -> list[tuple[str, str]]:
    """Return what there is to say, by name."""
    found = model.statistics
    facts = [("model", f"{model.type.value}, {model.source.file}")]
    constants = ", ".join(f"{k}={_plain(v)}" for k, v in model.source.constants.items())
    if constants:
        facts.append(("constants", constants))
    facts.append(("states", f"{found.states:,}"))
    if found.choices is not None:
        facts.append(("choices", f"{found.choices:,}"))
    facts.append(("transitions", f"{found.transitions:,}"))
    facts.append(("variables", _variables(model.encoding.shown)))
    for name, known in (
        ("labels", [label.name for label in model.source.labels]),
        ("rewards", [str(n if r.name is None else r.name) for n, r in enumerate(model.source.rewards)]),
    ):
        if known:
            facts.append((name, ", ".join(known)))
    facts.append(("MTBDD", f"{found.mtbdd_nodes:,} nodes, {found.terminals:,} terminals"))
    return facts


def _variables(variables: tuple[EncodedVariable, ...]) -> str:
    """Return variables with their ranges, the first of many."""
    shown = [f"{v.name}: bool" if v.is_bool else f"{v.name}: {v.low}..{v.high}" for v in variables]
    more = len(shown) - _MOST_VARIABLES
    return ", ".join(shown[:_MOST_VARIABLES]) + (f" and {more} more" if more > 0 else "")


def _plain(value: bool | int | float) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}"


def _picture(model: SymbolicModel) -> str:
    """Return the level curve as SVG: bytes in tasks by level, on a logarithmic axis."""
    from hybrid.base.notebook import memory_picture

    matrices = [model.layer_transitions(k) for k in range(len(model.layers))]
    if not matrices[0].n_levels or sum(sum(matrix.nodes) for matrix in matrices) > _MOST_NODES:
        return ""
    from hybrid.matrix.levels.curve import layer_curve, level_curve

    curve: LevelTable = layer_curve(matrices) if model.is_mdp else level_curve(matrices[0])
    return memory_picture([candidate.bytes_worst_case for candidate in curve.levels], curve.min_memory)


_EPSILON = 1e-10


class Model(SymbolicModel):
    """A DTMC, CTMC or MDP, to be asked and examined.

    State k is the k-th reachable state in lexicographic order of its values, variables in the order of the
    text, not that of the diagrams.  All vectors here go by these numbers; `SymbolicModel.numbering` leads to
    the indices of the diagrams, which differ only under a variable order other than the text's.
    """

    @classmethod
    def of(cls, model: SymbolicModel) -> Model:
        """Return a symbolic model as one of these, with everything that it knows already."""
        if isinstance(model, Model):
            return model
        made = cls.__new__(cls)
        made.__dict__.update(model.__dict__)
        return made

    # ------------------------------------------------------------------ states

    @property
    def variables(self) -> tuple[EncodedVariable, ...]:
        """The variables in the order of the text, each with `name`, `low`, `high` and `is_bool`."""
        return self.encoding.shown

    @property
    def labels(self) -> Labels:
        """States where each label holds: ``model.labels["full"]``, bool, shape (n,)."""
        from mtbdd.build.model_from_diagrams import Labels

        return Labels(self)

    @property
    def rewards(self) -> Rewards:
        """State rewards: ``model.rewards["cost"]``, float64, shape (n,)."""
        from mtbdd.build.model_from_diagrams import Rewards

        return Rewards(self)

    def state_table(self, states: ArrayLike | slice | None = None) -> NDArray[Any]:
        """Return the variables' values in all states, or in some.

        Parameters
        ----------
        states : array of int, array of bool of shape (n,), or slice, optional
            Numbers of states, or where they are.

        Returns
        -------
        ndarray, structured, shape (n,) or that of the numbers
            A field a variable in the order of the text: bool, int32, or int64 where values need it.

        Raises
        ------
        IndexError
            A number is not that of a state.
        MemoryError
            There is no room for it.

        Notes
        -----
        Time: O(n * variables).
        """
        from mtbdd.build.state_order import some_states

        return some_states(self.index, self.variables, self.numbering, states)

    @overload
    def states(self, expression: Expression, among: Node | None = None) -> Node: ...

    @overload
    def states(self, expression: str, among: Node | None = None) -> NDArray[np.bool_]: ...

    def states(self, expression: Expression | str, among: Node | None = None) -> Node | NDArray[np.bool_]:
        """Return where an expression holds.

        Parameters
        ----------
        expression : str or Expression
            Text such as ``'x > 2 & !"full"'``: variables, constants, formulas and labels of the model, and
            operators with a bound, as in ``'P>=0.5 [ F "full" ]'``.
        among : Node, optional
            Only these states; default all.

        Returns
        -------
        ndarray of bool, shape (n,)
            By number of the state.  Of an `Expression`, a set as a diagram.

        Raises
        ------
        hybrid.LanguageError
            The text does not parse, speaks of what the model does not have, or has no value in some state.
        hybrid.HybridError
            It is no truth value of states.
        """
        from mtbdd.build.state_order import for_users

        if not isinstance(expression, str):
            return super().states(expression, among)
        from hybrid.analysis.run.options import CheckOptions
        from hybrid.checking.checker import Checker
        from hybrid.properties import parse_properties, resolve_properties

        parsed = resolve_properties(parse_properties(expression), self.source).properties
        if len(parsed) != 1:
            raise PropertyError(f"expected one expression, got {len(parsed)}")
        if parsed[0].error is not None:
            raise parsed[0].error
        found = Checker(self, CheckOptions()).every_state(parsed[0].formula)
        if not isinstance(found, StateTruth):
            raise PropertyError(f"expected a truth value of states, got a number: {expression}")
        inside = found.decided()
        if among is not None:
            inside = inside & self.indicator(among)
        return for_users(self, inside)

    # ------------------------------------------------------------------ matrices

    def layer_transitions(self, layer: int) -> ModelTransitions:
        """Return a layer's matrix over all states, which `to_scipy` writes out; kept for later calls.

        Raises
        ------
        ValueError
            No layer has the number.
        """
        if layer not in self._shown:
            self._shown[layer] = self._numbered(super().layer_transitions(layer))
        return self._shown[layer]

    @cached_property
    def _shown(self) -> dict[int, ModelTransitions]:
        return {}

    @property
    def transitions(self) -> ModelTransitions:
        """A chain's whole transition matrix, offset-labelled; self-loops included.

        Raises
        ------
        ValueError
            The model is an MDP, see `layer_transitions`.
        """
        self.layer(None)
        return self.layer_transitions(0)

    def _numbered(self, matrix: Any) -> ModelTransitions:
        # The matrix must not keep the model itself: the two would hold each other.
        from mtbdd.offset.states import numbering

        lazy: Callable[[], Any] = partial(numbering, self.encoding, self.index)
        if self.given is not None or "numbering" in self.__dict__:
            lazy = partial(lambda known: known, self.numbering)
        return ModelTransitions.of(matrix, lazy)

    # ------------------------------------------------------------------ distributions

    def transient(
        self,
        t: float | Sequence[float] | NDArray[Any],
        *,
        options: CheckOptions | None = None,
        **overrides: Unpack[SolutionKeywords],
    ) -> NDArray[np.float64]:
        """Return the probability of being in each state at time t, of a DTMC after t steps, shape (n,).

        Parameters
        ----------
        t : float or sequence of float
            Not negative; whole in a DTMC.  Of several times the result has a row each, shape (len(t), n); the
            steps of the last serve all.
        options : CheckOptions, optional
            Default an epsilon of 1e-10.
        **overrides
            As for `hybrid.check`: engine, backend, level, epsilon.

        Raises
        ------
        hybrid.HybridError
            The model is an MDP, t is no time, or there is a method: steps and uniformisation have none.

        Notes
        -----
        An estimate, without bounds.  The chain starts in each of its initial states with the same
        probability.
        """
        from hybrid.analysis.long_run import transient_distribution
        from hybrid.analysis.run.options import chosen_options
        from mtbdd.build.state_order import for_users

        if options is None:
            overrides.setdefault("epsilon", _EPSILON)
        chosen = chosen_options("transient", options, overrides)
        found = transient_distribution(self, t, chosen)
        return for_users(self, found)

    def steady_state(
        self, *, options: CheckOptions | None = None, **overrides: Unpack[SolutionKeywords]
    ) -> NDArray[np.float64]:
        """Return the long-run probability of each state, shape (n,).

        Parameters
        ----------
        options : CheckOptions, optional
            Default an epsilon of 1e-10.
        **overrides
            As for `transient`, and method: auto, jor, jacobi, power or gauss-seidel.

        Raises
        ------
        hybrid.HybridError
            The model is an MDP, iterations do not settle, or the method does not find steady states.

        Notes
        -----
        An estimate, without bounds; of a periodic chain the share of time in each state.
        """
        from hybrid.analysis.long_run import steady_distribution
        from hybrid.analysis.run.options import chosen_options
        from mtbdd.build.state_order import for_users

        if options is None:
            overrides.setdefault("epsilon", _EPSILON)
        chosen = chosen_options("steady_state", options, overrides)
        found = steady_distribution(self, chosen)
        return for_users(self, found)

    # ------------------------------------------------------------------ chains and files

    def with_scheduler(self, scheduler: Scheduler) -> Model:
        """Return the chain that a scheduler leaves of this MDP, over the same states with the same numbers.

        Of a scheduler with memory the chain is over its pairs of states and memories, with the states'
        variables, labels and rewards.

        Parameters
        ----------
        scheduler : Scheduler
            Such as ``hybrid.check(model, prop, scheduler=True).scheduler``.

        Raises
        ------
        ValueError
            It belongs to another model, or does not choose in every state what the state has.

        Notes
        -----
        States that are no longer reached stay.  Time: one conjunction for every value of every layer.
        """
        from hybrid.analysis.memory_scheduler import MemoryScheduler
        from mtbdd.build.model_from_diagrams import induced_chain

        if isinstance(scheduler, MemoryScheduler):
            if scheduler.owner.manager is not self.manager:
                raise ValueError("scheduler: expected one of this model, got one of another")
            return Model.of(induced_chain(scheduler.model, scheduler.chosen()))
        if scheduler.model.manager is not self.manager:
            raise ValueError("scheduler: expected one of this model, got one of another")
        return Model.of(induced_chain(self, scheduler.chosen()))

    def write_values(
        self,
        path: str | Path,
        values: ArrayLike,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
    ) -> None:
        """Write a number, or truth value, of every state beside its variables, as CSV or as .npz.

        Parameters
        ----------
        path : str or Path
            Ends with ``.csv`` or ``.npz``; columns and arrays are those of ``hybrid check --values``.
        values : array, shape (n,), float64 or bool
            By number of the state, such as `steady_state` returns.
        lower, upper : array, shape (n,), optional
            Bounds of numbers; without them they are marked as missing.

        Raises
        ------
        ValueError
            A vector has another shape.
        hybrid.HybridError
            The name has another suffix.
        OSError
            The file cannot be written.
        """
        from hybrid.analysis.run.state_files import write_state_values
        from mtbdd.build.state_order import for_diagram

        vectors = []
        for name, given in (("values", values), ("lower", lower), ("upper", upper)):
            vector = np.broadcast_to(np.nan, (self.n_states,)) if given is None else np.asarray(given)
            if vector.shape != (self.n_states,):
                raise ValueError(f"{name}: expected shape ({self.n_states},), got {vector.shape}")
            vectors.append(for_diagram(self, vector))
        if vectors[0].dtype == np.bool_:
            write_state_values(path, self, StateTruth(vectors[0]))
            return
        number, below, above = (np.asarray(v, dtype=np.float64) for v in vectors)
        write_state_values(path, self, StateValues(number, below, above))

    # ------------------------------------------------------------------ pictures

    def __repr__(self) -> str:

        return text_of(self)

    def _repr_html_(self) -> str:

        return html_of(self)
