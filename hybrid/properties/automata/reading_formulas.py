"""Formulas of linear temporal logic as text, in the property language."""

from __future__ import annotations

from hybrid.base.errors import PropertyError
from hybrid.properties.automata.automaton import DeterministicAutomaton
from hybrid.properties.automata.choosing import choose_automaton
from hybrid.properties.automata.formulas import Formula, FormulaStore, from_path
from hybrid.properties.parser import parse_path
from hybrid.properties.tree import STATE_OPERATORS
from mtbdd.language.syntax import Binary, Expression, LabelReference, Literal, Name, Unary
from mtbdd.language.text import to_text
from mtbdd.language.walk import walk

_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")


def automaton_of(text: str, tool: str = "own") -> DeterministicAutomaton:
    """Return a deterministic automaton for a formula.

    Parameters
    ----------
    text : str
        A path formula of the property language, such as ``G ("request" => (F "answer"))``.  Names, labels and
        comparisons are its atomic propositions.
    tool : str
        Who translates, see `hybrid.properties.automata.choosing.choose_automaton`.

    Returns
    -------
    DeterministicAutomaton
        Its propositions in the order of the text, labels without their quotes.

    Raises
    ------
    LanguageError
        The text is no formula.
    PropertyError
        It holds operators P, S, R or filters, which need a model.
    UnsupportedError
        It is too large to be translated.
    OptionError, InterchangeError
        There is no such tool, or it fails.
    """
    path = parse_path(text, "<formula>")
    store = FormulaStore()
    names: dict[str, int] = {}

    def proposition(part: Expression) -> Formula | None:
        if isinstance(part, (Literal, Unary)) or (
            isinstance(part, Binary) and part.operator in ("&", "|", "=>", "<=>")
        ):
            return None
        if any(isinstance(e, STATE_OPERATORS) for e in walk(part)):
            raise PropertyError(
                "formula: expected atomic propositions (names, labels, comparisons), got an operator P, S, R "
                "or a filter, which needs a model"
            )
        if isinstance(part, Binary) and part.operator not in _COMPARISONS:
            raise PropertyError(f"formula: expected a proposition, true or false, got {to_text(part)!r}")
        name = part.name if isinstance(part, (Name, LabelReference)) else to_text(part)
        return store.literal(names.setdefault(name, len(names)))

    found = from_path(path, store, proposition)
    return choose_automaton(store, found, list(names), tool).automaton
