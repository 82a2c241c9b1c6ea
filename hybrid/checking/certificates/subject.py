"""The model and the property that a certificate speaks of, read from their texts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import NotCertifiableError
from hybrid.checking.certificates.archive import digest
from hybrid.checking.certificates.meaning import Exact, Meaning, exact_number
from hybrid.checking.certificates.operators import Question
from hybrid.checking.certificates.questions import ask
from hybrid.checking.certificates.states import States, initial_numbers
from hybrid.checking.certificates.table import RationalTable
from hybrid.checking.certificates.transitions import Transitions, expand
from hybrid.properties import parse_properties, resolve_properties
from hybrid.properties.tree import Property
from mtbdd.language import parse_model, resolve
from mtbdd.language.model_syntax import ModelSyntax, ResolvedModel
from mtbdd.language.sources import read_source


@dataclass(frozen=True)
class PropertyText:
    """One property of a text.

    Attributes
    ----------
    text : str
        The whole text: the property with what is declared beside it.
    index : int
        Which of its properties, from 0.
    constants : mapping
        Values of the constants that the text leaves open.
    """

    text: str
    index: int
    constants: Mapping[str, object]


class Subject:
    """A model's text with its constants.

    Parameters
    ----------
    path : path-like
        The model's file.
    constants : mapping of str to bool, int, float or Fraction
        Values of the constants that the text leaves open; others are passed over.

    Raises
    ------
    LanguageError
        The text is at fault.
    NotCertifiableError
        Models with `system ... endsystem` have no certificates.
    """

    def __init__(self, path: str | os.PathLike[str], constants: Mapping[str, object]) -> None:
        self.file = os.fspath(path)
        self.text = read_source(path)
        self.syntax: ModelSyntax = parse_model(self.text, self.file)
        self.model: ResolvedModel = resolve(self.syntax, constants, ignore_unknown=True)
        if self.syntax.systems:
            raise NotCertifiableError(
                f"{self.file}: models with system ... endsystem have no certificates in this version"
            )
        open_names = {c.name for c in self.syntax.constants if c.value is None}
        self.given = {name: value for name, value in constants.items() if name in open_names}
        self.constants = {name: number_text(value) for name, value in self.given.items()}
        self.digest = digest(self.text, self.constants)

    def question(self, wanted: PropertyText) -> tuple[Property, Meaning, Question]:
        """Return a property, what the names in it mean, and its operators.

        Raises
        ------
        LanguageError
            The property is at fault.
        NotCertifiableError
            It has no certificate.
        """
        file = "<property>"
        parsed = parse_properties(wanted.text, file, keep_faults=True)
        if not 0 <= wanted.index < len(parsed.properties):
            raise NotCertifiableError(f"the text holds no property number {wanted.index}")
        checked = resolve_properties(parsed, self.model, wanted.constants, keep_faults=True)
        error = checked.properties[wanted.index].error
        if error is not None:
            raise error
        prop = parsed.properties[wanted.index]
        syntax = self.syntax
        labels = [*syntax.labels, *parsed.labels]
        meaning = Meaning(
            {self.file: self.text, file: wanted.text},
            [*syntax.constants, *parsed.constants],
            [*syntax.formulas, *parsed.formulas],
            labels,
            {**self.given, **wanted.constants},
            [v.name for v in self.model.variables],
        )
        for other in parsed.properties:
            if other.name is not None and other.error is None:
                meaning.labels.setdefault(other.name, other.formula)
        return prop, meaning, ask(prop.formula, meaning, syntax.type, syntax.rewards)

    def transitions(self, numbers: NDArray[np.int64], meaning: Meaning) -> Transitions:
        """Return the transitions of a list of states that holds all reachable ones.

        Raises
        ------
        CertificateError
            It does not, or the model is at fault in one of them.
        """
        table, variables = RationalTable(), self.model.variables
        states = States(numbers, variables, meaning, table)
        initial = initial_numbers(variables, self.syntax.initial, meaning, table)
        return expand(self.syntax, states, initial)


def number_text(value: object) -> str:
    """Return a constant's exact number as text."""
    number: Exact = exact_number(value)
    return str(number).lower() if isinstance(number, bool) else str(number)
