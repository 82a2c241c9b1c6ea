"""The bisimulation quotient of a model as a model of its own, made for properties given as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hybrid.base.errors import PropertyError
from hybrid.models.lumping.checker import LISTED
from hybrid.models.lumping.questions import Questions, refuse_filters
from hybrid.models.lumping.quotient import ModelQuotient, quotient_by_sets
from hybrid.models.model import Model
from hybrid.properties import Properties, parse_properties, resolve_properties
from hybrid.properties.tree import Property
from mtbdd.build.model import SymbolicModel
from mtbdd.build.state_order import for_diagram, for_users
from mtbdd.diagrams.manager import Node
from mtbdd.language.syntax import LabelReference
from mtbdd.language.walk import walk


class QuotientModel(Model):
    """A model whose states are the blocks of another one, by strong bisimulation.

    `hybrid.quotient` makes it.  A state has the variables' values of the first state of its block.

    Attributes
    ----------
    block_of : ndarray of int64, shape (n_states of the original,)
        The number of the state here to which each state of the original belongs.
    """

    block_of: NDArray[np.int64]

    def lift(self, values: ArrayLike) -> NDArray[Any]:
        """Return values of the original's states from values of the blocks.

        Parameters
        ----------
        values : array_like, shape (n_states,), any dtype
            By number of the state here, as `Answer.values` are.

        Returns
        -------
        ndarray, shape (n_states of the original,), the dtype of `values`

        Raises
        ------
        ValueError
            The vector has another shape.
        """
        found = np.asarray(values)
        if found.shape != (self.n_states,):
            raise ValueError(f"values: expected shape ({self.n_states},), got {found.shape}")
        return np.asarray(found[self.block_of])


def quotient(
    model: SymbolicModel,
    properties: str | Sequence[str],
    constants: Mapping[str, bool | int | float] | None = None,
) -> QuotientModel:
    """Return the quotient of a model by the coarsest strong bisimulation that some properties respect.

    Parameters
    ----------
    model : SymbolicModel
        From `hybrid.load`.
    properties : str or sequence of str
        Properties that have the same answers of the quotient as of the model.
    constants : mapping, optional
        Values of constants that the properties declare.

    Returns
    -------
    QuotientModel
        With the labels and reward structures that the properties name.  The properties are asked of it as
        they are; other properties may have other answers.

    Raises
    ------
    hybrid.HybridError
        A property does not parse, or depends on how many states there are, or which.
    MemoryError
        The list of the transitions does not fit.

    Notes
    -----
    Time: O(transitions log states); a model of more than 2^22 states is partitioned on its decision diagrams.
    Memory: some 50 bytes a transition and 100 a state where transitions are listed; 8 bytes a state for
    `block_of`.

    Examples
    --------
    >>> import hybrid
    >>> model = hybrid.parse('''dtmc
    ... module m
    ...   s : [0..3];
    ...   [] s=0 -> 1/2:(s'=1) + 1/2:(s'=2);
    ...   [] s=1 | s=2 -> 1/3:(s'=3) + 2/3:(s'=0);
    ...   [] s=3 -> true;
    ... endmodule''')
    >>> small = hybrid.quotient(model, "P=? [ F<=3 s=3 ]")
    >>> small.n_states, small.block_of.tolist()
    (3, [2, 0, 0, 1])
    >>> small.lift(hybrid.check(small, "P=? [ F<=1 s=3 ]", values=True).values).round(3).tolist()
    [0.0, 0.333, 0.333, 1.0]
    """
    texts = [properties] if isinstance(properties, str) else list(properties)
    parsed = [parse_properties(text) for text in texts]
    asked = [prop for found in parsed for prop in _resolved(model, found, constants)]
    if not asked:
        raise PropertyError("expected a property that the quotient is made for, got none")
    labels = _labels(model, parsed)
    sets: dict[Node, None] = {}
    rewards: set[int] = set()
    keep_loops = False
    for prop in asked:
        questions = Questions.of(prop.formula, model)
        refuse_filters(model, questions)
        labels |= questions.labels
        sets |= dict.fromkeys(questions.sets.values())
        rewards |= questions.rewards
        keep_loops |= questions.keep_loops
    conditions = [states for states in sets if states not in labels.values()]
    names = [_unused(k, labels) for k in range(len(conditions))]
    found = quotient_by_sets(
        model,
        [*conditions, *labels.values()],
        sorted(rewards),
        labels=[*names, *labels],
        keep_loops=keep_loops,
        listed=LISTED,
    )
    return _with_blocks(model, found)


def _resolved(
    model: SymbolicModel, parsed: Properties, constants: Mapping[str, bool | int | float] | None
) -> tuple[Property, ...]:
    """Return the properties of a text, resolved."""
    found = resolve_properties(parsed, model.source, constants).properties
    for prop in found:
        if prop.error is not None:
            raise prop.error
    return tuple(found)


def _labels(model: SymbolicModel, texts: Sequence[Properties]) -> dict[str, Node]:
    """Return the labels of the model that some texts name, with the states where they hold."""
    parts = (part for text in texts for prop in text.properties for part in walk(prop.formula))
    named = {part.name for part in parts if isinstance(part, LabelReference)}
    found = {label.name: label.expression for label in model.source.labels if label.name in named}
    labels = {name: model.states(expression) for name, expression in found.items()}
    return labels | ({"deadlock": model.deadlocks} if "deadlock" in named else {})


def _unused(k: int, labels: Mapping[str, Node]) -> str:
    """Return a name for condition k that no label has."""
    name = f"condition {k + 1}"
    while name in labels:
        name += "'"
    return name


def _with_blocks(model: SymbolicModel, found: ModelQuotient) -> QuotientModel:
    """Return a quotient as a model that knows its blocks, all by number of the state."""
    made = QuotientModel.__new__(QuotientModel)
    made.__dict__.update(found.model.__dict__)
    numbers = for_diagram(found.model, np.arange(found.model.n_states, dtype=np.int64))
    made.block_of = numbers[for_users(model, found.block_of)]
    return made
