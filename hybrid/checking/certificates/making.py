"""Making a certificate: the solvers' bounds, put in the order of the listed states and mended where needed.

This module alone of the package knows the solvers.  What it writes has passed the same check that
`hybrid.checking.certificates.verify` makes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.scope import Scope
from hybrid.base.errors import CertificateError, NotCertifiableError
from hybrid.base.methods import ENCLOSING, advised
from hybrid.base.state_values import StateValues
from hybrid.checking.answer import Answer
from hybrid.checking.certificates.archive import Certificate, PartVectors, write_certificate
from hybrid.checking.certificates.conditions import Average
from hybrid.checking.certificates.judge import Finding, Judge
from hybrid.checking.certificates.mending import mended
from hybrid.checking.certificates.operators import Operator
from hybrid.checking.certificates.poisson import averages
from hybrid.checking.certificates.states import count_valuations
from hybrid.checking.certificates.subject import PropertyText, Subject, number_text
from hybrid.checking.checker import Checker
from hybrid.properties import parse_properties, resolve_properties
from hybrid.properties.tree import Probability, Property, Reward, SteadyState
from mtbdd.build.model import SymbolicModel
from mtbdd.language.errors import LanguageError
from mtbdd.language.syntax import Expression

Ints = NDArray[np.int64]


@dataclass
class Made:
    """A property's answer, and its certificate if one was found.

    Attributes
    ----------
    answer : Answer
    certificate : Certificate or None
    finding : Finding or None
        What the certificate shows.
    reason : str
        Why there is none.
    size : int
        Of the file, in bytes, once it is written.
    """

    answer: Answer
    certificate: Certificate | None = None
    finding: Finding | None = None
    reason: str = ""
    size: int = 0

    def write(self, path: str | os.PathLike[str]) -> int:
        """Write the certificate and return the file's size in bytes.

        Raises
        ------
        OSError
        ValueError
            There is none.
        """
        if self.certificate is None:
            raise ValueError(f"there is no certificate to write: {self.reason}")
        return write_certificate(path, self.certificate)


class _Recorder(Checker):
    """A checker that keeps the values of every operator that it evaluates."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._kept: dict[Expression, StateValues] = {}

    def _values(self, formula: Probability | SteadyState | Reward, scope: Scope) -> StateValues:
        # A certificate speaks of all states, whichever are asked for.
        found = super()._values(formula, Scope.every(self.model))
        self._kept[formula] = found
        return scope.of_values(found)

    def values_of(self, formula: Expression) -> StateValues:
        """Return an operator's values in all states, from the last check if it was part of it."""
        if not isinstance(formula, (Probability, SteadyState, Reward)):
            raise NotCertifiableError("the operator is decided without a value; certify it alone")
        if formula not in self._kept:
            self._values(formula, Scope.every(self.model))
        return self._kept[formula]


class CertificateMaker:
    """Checks one property and makes its certificate.

    Parameters
    ----------
    path : path-like
        The model's file.
    constants : mapping
        Values of the constants that model and property leave open.
    options : CheckOptions
    wanted : PropertyText
    progress : callable, optional

    Raises
    ------
    NotCertifiableError
        There is no certificate for the model or the property; nothing has been computed then.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        constants: Mapping[str, Any],
        options: CheckOptions,
        wanted: PropertyText,
        progress: Any = None,
    ) -> None:
        if options.bounding_method() is None:
            raise NotCertifiableError(
                f"the method {options.method} gives no bounds, so that there is nothing to certify: choose "
                f"{advised(ENCLOSING)}"
            )
        self._subject = Subject(path, constants)
        count_valuations(self._subject.model.variables)
        self._wanted, self._options, self._progress = wanted, options, progress
        self._prop, self._meaning, self._question = self._subject.question(wanted)

    def make(self, model: SymbolicModel, prop: Property) -> Made:
        """Check the resolved property on the built model and make its certificate.

        Where the property could not be answered, or no inductive bounds were found near its values, there is
        none, and a reason.
        """
        checker = _Recorder(model, self._options, self._progress)
        answer = checker.answer(prop)
        if answer.error is not None:
            return Made(answer, reason="the property is not answered")
        numbers, order = _numbered(model)
        parts: list[PartVectors] = []
        try:
            transitions = self._subject.transitions(numbers, self._meaning)
            judge = Judge(transitions, self._meaning, self._subject.syntax.rewards, self._question)
            for operator in self._question.operators:
                part = self._part(judge, operator, checker, order)
                judge.settle(operator, part)
                parts.append(part)
        except (CertificateError, NotCertifiableError, LanguageError, ArithmeticError) as error:
            return Made(answer, reason=f"none was found near the values computed: {error}")
        certificate = Certificate(
            self._subject.digest,
            self._subject.constants,
            self._wanted.text,
            self._wanted.index,
            self._prop.text,
            {name: number_text(value) for name, value in self._wanted.constants.items()},
            numbers,
            parts,
        )
        return Made(answer, certificate, judge.finding(parts))

    def _part(self, judge: Judge, operator: Operator, checker: _Recorder, order: Ints) -> PartVectors:
        """Return vectors of one operator that satisfy its conditions, or come close to."""
        condition = judge.condition(operator)
        values = checker.values_of(self._resolved(operator))
        lower, upper = np.array(values.lower)[order], np.array(values.upper)[order]
        if operator.complement:
            lower, upper = 1.0 - upper, 1.0 - lower
        if isinstance(condition, Average):
            return averages(condition, lower, upper, self._options.criterion)
        lower, upper = mended(condition, lower, upper)
        return PartVectors(lower, upper)

    def _resolved(self, operator: Operator) -> Expression:
        """Return an operator as the checker knows it: without its bound, everything folded."""
        parsed = parse_properties(self._wanted.text, "<property>")
        alone = Property(None, operator.node, "", operator.node.position)
        found = resolve_properties(
            replace(parsed, properties=(alone, *(p for p in parsed.properties if p.name is not None))),
            self._subject.model,
            self._wanted.constants,
            keep_faults=True,
        )
        if found.properties[0].error is not None:
            raise found.properties[0].error
        return found.properties[0].formula


def _numbered(model: SymbolicModel) -> tuple[Ints, Ints]:
    """Return the states' numbers, ascending, and for each its place in the symbolic order."""
    bits = model.index.bits_at(np.arange(model.n_states, dtype=np.int64))
    numbers = np.zeros(model.n_states, np.int64)
    for v in model.source.variables:
        encoded = model.encoding.by_name[v.name]
        digit = np.zeros(model.n_states, np.int64)
        for bit in encoded.bits:
            digit = 2 * digit + bits[:, bit]
        numbers = numbers * (v.high - v.low + 1) + digit
    order = np.argsort(numbers, kind="stable")
    return numbers[order], order
