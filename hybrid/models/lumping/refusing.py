"""What is not answered from blocks: whatever speaks of the states that they are made of."""

from __future__ import annotations

from hybrid.analysis.run.options import CheckOptions
from hybrid.base.errors import OptionError, UnsupportedError
from hybrid.models.lumping.questions import Questions
from hybrid.properties.tree import Filter
from mtbdd.base.wording import option
from mtbdd.build.model import SymbolicModel
from mtbdd.language.walk import walk
from mtbdd.offset.states import index_states

_REFUSED = {
    "count": "how many states there are",
    "sum": "how many states have a value",
    "avg": "how many states have a value",
    "first": "the order of the states",
    "argmin": "which states they are",
    "argmax": "which states they are",
    "print": "which states they are",
    "printall": "which states they are",
}
"""Filters whose result is not that of the blocks, and what it depends on."""


def refuse_with_quotient(
    options: CheckOptions,
    *,
    scheduler: bool = False,
    witness: bool = False,
    certificate: bool = False,
    parts: bool = False,
) -> None:
    """Refuse what speaks of the states of the model, where blocks are checked in their place.

    Raises
    ------
    OptionError
    """
    refused = {
        option("scheduler"): (scheduler, "a scheduler chooses in states"),
        option("witness"): (witness, "a witness is a path of states"),
        option("certificate"): (certificate, "a certificate speaks of all states"),
        option("exact"): (options.exact, "the numbers of blocks are known as doubles"),
        "states shared by processes": (parts, "the list of transitions is that of one process"),
    }
    for name, (is_asked, why) in refused.items():
        if is_asked:
            raise OptionError(f"{option('bisimulation')}: {why}: leave it or {name} out")


def refuse_filters(model: SymbolicModel, questions: Questions) -> None:
    """Refuse filters whose result is not that of the blocks.

    Raises
    ------
    UnsupportedError
    """
    for part in walk(questions.formula):
        if not isinstance(part, Filter):
            continue
        name = f"filter({part.operator}, ...)"
        if part.operator in _REFUSED:
            raise UnsupportedError(
                f"{name} depends on {_REFUSED[part.operator]}, which blocks do not tell: ask for min, max, "
                f"range, forall or exists, or leave {option('bisimulation')} out"
            )
        if part.operator == "state" and not _is_one(model, part, questions):
            raise UnsupportedError(
                f"{name} wants a condition that one state satisfies, and blocks do not tell how many do: "
                f"ask for min or max, or leave {option('bisimulation')} out"
            )


def _is_one(model: SymbolicModel, part: Filter, questions: Questions) -> bool:
    """Whether a filter's condition is known to hold in one state."""
    states = None if part.states is None else questions.sets.get(id(part.states))
    return states is not None and index_states(model.manager, states).size == 1
