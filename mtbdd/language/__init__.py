"""The PRISM language: parser, checker, evaluator."""

from __future__ import annotations

from mtbdd.base.lazy_loading import lazy_names

TYPE_CHECKING = False

if TYPE_CHECKING:
    from mtbdd.language.check import resolve
    from mtbdd.language.constants import parse_constants
    from mtbdd.language.errors import EvaluationError, Fault, LanguageError, SourceError, SyntaxFaultError
    from mtbdd.language.expression_parser import parse_expression, to_text
    from mtbdd.language.parser import load_model, parse_model
    from mtbdd.language.types import expression_type
    from mtbdd.language.walk import expression_variables, substitute

__all__ = [
    "EvaluationError", "Fault", "LanguageError", "SourceError", "SyntaxFaultError", "expression_type",
    "expression_variables", "load_model", "parse_constants", "parse_expression", "parse_model", "resolve",
    "substitute", "to_text",
]  # fmt: skip

_HOMES = {
    "check": ("resolve",),
    "constants": ("parse_constants",),
    "errors": ("EvaluationError", "Fault", "LanguageError", "SourceError", "SyntaxFaultError"),
    "expression_parser": ("parse_expression", "to_text"),
    "parser": ("load_model", "parse_model"),
    "types": ("expression_type",),
    "walk": ("expression_variables", "substitute"),
}

if not TYPE_CHECKING:  # type checkers have the imports above
    # On first use: limits and errors are wanted without the parser.
    __getattr__ = lazy_names(__name__, _HOMES)
