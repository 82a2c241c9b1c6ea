"""Certificates of small models, made and spoilt."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hybrid.analysis.run.options import CheckOptions
from hybrid.checking.certificates.archive import Certificate, read_certificate, write_certificate
from hybrid.checking.certificates.builder import CertificateBuilder, CertifiedAnswer
from hybrid.checking.certificates.certified_text import PropertyText
from hybrid.checking.certificates.verify import Verified, verify
from hybrid.models.loading import load
from hybrid.properties import parse_properties, resolve_properties

__all__ = ["Case", "make"]

EXAMPLES = Path(__file__).resolve().parents[4] / "examples"


class Case:
    """A certificate on disk beside its model."""

    def __init__(self, model: Path, file: Path, constants: Mapping[str, Any], made: CertifiedAnswer) -> None:
        self.model, self.file, self.constants, self.made = model, file, constants, made
        self.certificate = read_certificate(file)

    def verify(self) -> Verified:
        return verify(self.model, self.file, self.constants)

    def spoilt(self, change: Callable[[Certificate], None]) -> Verified:
        """Check a changed copy."""
        copy = replace(self.certificate, parts=[], states=self.certificate.states.copy())
        copy.constants, copy.property_constants = dict(copy.constants), dict(copy.property_constants)
        for part in self.certificate.parts:
            bias = None if part.bias is None else part.bias.copy()
            copy.parts.append(replace(part, lower=part.lower.copy(), upper=part.upper.copy(), bias=bias))
        change(copy)
        file = self.file.with_suffix(".spoilt")
        write_certificate(file, copy)
        return verify(self.model, file, self.constants)


def make(
    folder: Path, model: str | Path, text: str, constants: Mapping[str, Any] | None = None, **options: Any
) -> Case:
    """Write a model's text unless it is a file, answer a property and write its certificate."""
    given = dict(constants or {})
    path = model if isinstance(model, Path) else folder / "model.prism"
    if not isinstance(model, Path):
        path.write_text(model, encoding="utf-8")
    parsed = parse_properties(text, "<property>")
    own = {c.name: given[c.name] for c in parsed.constants if c.name in given}
    maker = CertificateBuilder(path, given, CheckOptions.of(**options), PropertyText(text, 0, own))
    built = load(path, {k: v for k, v in given.items() if k not in own})
    prop = resolve_properties(parsed, built.source, own).properties[0]
    made = maker.make(built, prop)
    assert made.certificate is not None, made.reason
    file = folder / "answer.certificate"
    made.size = made.write(file)
    return Case(path, file, given, made)
