"""The check of a certificate against a model's text."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hybrid.base.errors import CertificateError, NotCertifiableError
from hybrid.checking.certificates.archive import Certificate, read_certificate
from hybrid.checking.certificates.certified_text import CertifiedText, PropertyText, number_text
from hybrid.checking.certificates.judge import Finding, Judge, Question
from hybrid.checking.certificates.states import TextSemantics
from hybrid.properties.tree import Property
from mtbdd.language.errors import LanguageError

_NUMBER = re.compile(r"-?[0-9]+(/0*[1-9][0-9]*)?")


@dataclass(frozen=True)
class Verified:
    """A verified result for the initial states, and how much was swept over to verify it.

    Attributes
    ----------
    property : str
        Its text.
    finding : Finding
        The value, truth value or bounds that the certificate proves.
    states, choices, transitions : int
        Of the model; a chain has a choice a state.
    exact : int
        Inequalities decided in whole numbers; the others were decided in doubles with error bounds.
    seconds : float
        Wall time.
    """

    property: str
    finding: Finding
    states: int
    choices: int
    transitions: int
    exact: int
    seconds: float

    def record(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {
            "property": self.property,
            **self.finding.record(),
            "states": self.states,
            "choices": self.choices,
            "transitions": self.transitions,
            "exact_inequalities": self.exact,
            "seconds": self.seconds,
        }


def verify(
    model: str | os.PathLike[str],
    certificate: str | os.PathLike[str],
    constants: Mapping[str, bool | int | float] | None = None,
) -> Verified:
    """Check a certificate.

    Parameters
    ----------
    model : path-like
        The model's text.
    certificate : path-like
    constants : mapping, optional
        Values of the constants that the model leaves open, and if wanted of those of the property's text.

    Returns
    -------
    Verified
        What is true of the initial states, and what was swept over to show it.

    Raises
    ------
    CertificateError
        The certificate is damaged, is about another model, or does not show what it claims.
    LanguageError
        The model's text is at fault.
    MemoryError
        The vectors do not fit.

    Notes
    -----
    Time: one sweep over all transitions for each vector, searches on the graph, and reading the commands.
    Memory: about 100 bytes a transition.
    """
    started = time.perf_counter()
    given = constants or {}
    found = read_certificate(certificate)
    try:
        subject = CertifiedText(model, given)
        _check_subject(subject, found, given)
        own = {name: _read_number(text) for name, text in found.property_constants.items()}
        prop, meaning, question = _question(subject, PropertyText(found.properties, found.index, own))
        if prop.text != found.property:
            raise CertificateError("the property named is not the one in the certificate's text")
        if len(found.parts) != len(question.operators):
            raise CertificateError(
                f"expected vectors of {len(question.operators)} operators, got those of {len(found.parts)}"
            )
        transitions = subject.transitions(found.states, meaning)
        judge = Judge(transitions, meaning, subject.syntax.rewards, question)
        for operator, part in zip(question.operators, found.parts, strict=True):
            judge.settle(operator, part)
        shown = judge.finding(found.parts)
    except NotCertifiableError as error:
        raise CertificateError(str(error)) from None
    except RecursionError:
        raise CertificateError("expected expressions nested less deeply") from None
    except OverflowError as error:
        raise CertificateError(f"a number is too large for a double: {error}") from None
    return Verified(
        found.property,
        shown,
        transitions.states.size,
        transitions.state.size,
        transitions.target.size,
        judge.sweep.exact,
        time.perf_counter() - started,
    )


def _question(subject: CertifiedText, wanted: PropertyText) -> tuple[Property, TextSemantics, Question]:
    """Return the certificate's question; a fault of its text is the certificate's."""
    try:
        return subject.question(wanted)
    except LanguageError as error:
        raise CertificateError(f"the certificate's property: {error}") from None


def _check_subject(subject: CertifiedText, found: Certificate, given: Mapping[str, object]) -> None:
    """Refuse a certificate of another model or of other constants."""
    if found.constants != subject.constants:
        theirs, ours = (
            ", ".join(f"{k}={v}" for k, v in sorted(c.items())) or "none"
            for c in (found.constants, subject.constants)
        )
        raise CertificateError(f"the certificate is about the constants {theirs}; given are {ours}")
    if found.digest != subject.digest:  # lemma: text
        raise CertificateError(
            f"the certificate is about another text than {subject.file} has now: the digests differ"
        )
    for name, value in given.items():
        if name not in subject.given and name not in found.property_constants:
            raise CertificateError(f"neither the model nor the certificate's property leaves {name} open")
        own, now = found.property_constants.get(name), number_text(value)
        if own is not None and own != now:
            raise CertificateError(f"the certificate's property has {name}={own}; given is {now}")


def _read_number(text: str) -> bool | int | Fraction:
    """Read a constant of a certificate."""
    if text in ("true", "false"):
        return text == "true"
    if len(text) > 4000 or not _NUMBER.fullmatch(text):
        raise CertificateError(f"expected a whole number, a fraction, true or false, got {text[:40]!r}")
    number = Fraction(text)
    return int(number) if number.denominator == 1 else number
