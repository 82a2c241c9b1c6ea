"""The search for a variable order: variables are moved one by one, and what makes the matrix better stays.

The number of nodes is no good measure: what counts is what a product reads and how long it takes.  An order
is scored by the bytes of the row types at the level where these are fewest, times the predicted time of a
product at the level where that is shortest, both of a small instance of the model.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from hybrid.levels.layers import layer_levels
from hybrid.ordering.instances import Constants, small_instance
from mtbdd.build import build_model
from mtbdd.language.constants import Ignored
from mtbdd.language.model_syntax import ModelSyntax, ResolvedModel
from mtbdd.order import ORDERS, order_variables

_MOST = 150
"""Orders that are tried at most."""

_GAIN = 0.8
"""Share of the text's score that another order may have: predictions are off by as much as smaller gains."""

Names = tuple[str, ...]


def search_order(
    syntax: ModelSyntax,
    constants: Constants | None = None,
    *,
    ignore_unknown: Ignored = False,
    package: str = "auto",
    progress: Callable[[str], None] | None = None,
) -> Names:
    """Return the names of a model's variables in a good order.

    Parameters
    ----------
    syntax : ModelSyntax
    constants, ignore_unknown
        As for `small_instance`.
    package : str
        `dd` back end.
    progress : callable, optional
        Called with a line of text.

    Returns
    -------
    tuple of str
        The text's, unless another one's score on the instance is by a fifth less; then it is at least as good
        as the text's turned round, and the heuristic's.

    Raises
    ------
    LanguageError
        The model, or its only instance, cannot be built.

    Notes
    -----
    Deterministic: at most 150 orders are tried, none by the clock. Each takes what building the instance and
    its level curve takes, some tenths of a second. Variables stay whole: their bits follow each other.
    """
    say = progress or (lambda text: None)
    say("looking for a small instance")
    instance = small_instance(syntax, constants, ignore_unknown)
    scores: dict[Names, float] = {}

    def score(names: Names) -> float:
        if names not in scores:
            say(f"variable orders: {len(scores) + 1} of at most {_MOST}")
            scores[names] = _score(instance, names, package)
        return scores[names]

    text, *others = (tuple(v.name for v in order_variables(instance, name)) for name in ORDERS)
    best = _improved(min((text, *others), key=score), scores, score)
    return best if scores[best] <= _GAIN * scores[text] else text


def _improved(best: Names, scores: dict[Names, float], score: Callable[[Names], float]) -> Names:
    """Return an order that no move of one variable improves, or the best one when enough have been tried."""
    improved = True
    while improved:
        improved = False
        for name in best:
            for other in _moved(best, name):
                if len(scores) >= _MOST:
                    return best
                if score(other) < scores[best]:
                    best, improved = other, True
    return best


def _moved(names: Names, name: str) -> list[Names]:
    """Return the orders in which a variable stands elsewhere, the nearest places first."""
    rest, place = [other for other in names if other != name], names.index(name)
    places = sorted(range(len(names)), key=lambda k: (abs(k - place), k))[1:]
    return [(*rest[:k], name, *rest[k:]) for k in places]


def _score(instance: ResolvedModel, names: Names, package: str) -> float:
    """Return bytes times seconds of the instance's matrices; infinite where no level can be used."""
    model = build_model(instance, package=package, order=names)
    matrices = [model.layer_transitions(layer) for layer in range(len(model.layers))]
    table = layer_levels(matrices, "cpu")
    found = [
        (table.bytes_predicted(k, "cpu"), seconds)
        for k in range(len(table))
        if (seconds := table.seconds(k, "cpu")) is not None
    ]
    if not found:
        return math.inf
    return min(size for size, _ in found) * min(seconds for _, seconds in found)
