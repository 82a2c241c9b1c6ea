"""The PRISM language: parser, checker, evaluator."""

from __future__ import annotations

from mtbdd.language.check import resolve
from mtbdd.language.constants import parse_constants
from mtbdd.language.errors import EvaluationError, Fault, LanguageError, SourceError, SyntaxFaultError
from mtbdd.language.expression_parser import parse_expression
from mtbdd.language.parser import load_model, parse_model
from mtbdd.language.text import to_text
from mtbdd.language.types import expression_type
from mtbdd.language.walk import expression_variables, substitute

__all__ = [
    "EvaluationError",
    "Fault",
    "LanguageError",
    "SourceError",
    "SyntaxFaultError",
    "expression_type",
    "expression_variables",
    "load_model",
    "parse_constants",
    "parse_expression",
    "parse_model",
    "resolve",
    "substitute",
    "to_text",
]
