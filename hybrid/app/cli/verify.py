"""Certificates: `hybrid verify` checks one against a model's text, `hybrid check --certificate` makes one.

What verifies is loaded without what makes.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid.app.cli.console import Console
from hybrid.app.cli.output_file import OutputFile
from hybrid.base.errors import CertificateError, NotCertifiableError, OptionError
from hybrid.base.units import bytes_text, seconds_text
from hybrid.checking.certificates.verify import Verified, verify
from mtbdd.language import parse_constants
from mtbdd.language.tokens import read_source

if TYPE_CHECKING:
    from hybrid.analysis.run.options import CheckOptions
    from hybrid.app.cli.progress_monitor import CommandMonitor
    from hybrid.checking.answer import Answer
    from hybrid.checking.certificates.builder import CertificateBuilder, CertifiedAnswer
    from hybrid.properties import Properties, Property
    from mtbdd.build.model import SymbolicModel


def run(options: argparse.Namespace, console: Console) -> int:
    """Check the certificate, print what it shows; return the exit status."""
    constants = parse_constants(options.const)
    try:
        found = verify(options.model, options.certificate, constants)
    except CertificateError as error:
        if options.json:
            console.print(json.dumps({"valid": False, "error": str(error)}))
        console.error(f"not verified: {error}")
        return 1
    if options.json:
        console.print(json.dumps({"valid": True, "error": None, **found.record()}))
    else:
        console.print(_text(found))
    return 0


def _text(found: Verified) -> str:
    """Return what was shown as lines of text."""
    swept = f"{found.states:,} states, {found.transitions:,} transitions"
    if found.choices != found.states:
        swept = f"{found.states:,} states, {found.choices:,} choices, {found.transitions:,} transitions"
    return "\n".join(
        [
            found.property,
            f"  verified     {found.finding.text()}",
            f"  sweep        {swept} in {seconds_text(found.seconds)}, {found.exact:,} inequalities in "
            "whole numbers",
        ]
    )


class Certifier:
    """Makes the certificate that a command line asks for, and writes it to its file."""

    def __init__(self, maker: CertificateBuilder, file: str, following: CommandMonitor) -> None:
        self._maker, self._file, self._following = maker, file, following
        self._output = OutputFile(file, "--certificate")
        self._made: CertifiedAnswer | None = None

    @classmethod
    def of(
        cls,
        options: argparse.Namespace,
        properties: Properties | None,
        combinations: Sequence[str],
        chosen: CheckOptions,
        console: Console,
    ) -> Certifier:
        """Return what a command line with a certificate asks for.

        An `OptionError` says that not one property is requested, or that it has no certificate, before
        anything is computed.
        """
        from hybrid.app.cli.building import selected_properties

        if len(combinations) > 1:
            raise OptionError("--certificate is about one run; give constants without ranges")
        if options.scheduler is not None:
            raise OptionError("--certificate and --scheduler are two runs; give one of them")
        found = () if properties is None else properties.properties
        if properties is not None:
            found = selected_properties(properties, options).properties
        if properties is None or len(found) != 1:
            raise OptionError(
                f"--certificate is about one property, and {len(found)} are to be checked; choose one with "
                "--prop"
            )
        target = Path(options.certificate)
        if target.is_dir() or not target.absolute().parent.is_dir():
            raise OptionError(
                f"--certificate: cannot write {target}: expected a file in a folder that exists"
            )
        from hybrid.app.cli.progress_monitor import CommandMonitor
        from hybrid.checking.certificates.builder import CertificateBuilder
        from hybrid.checking.certificates.certified_text import PropertyText

        constants = parse_constants(combinations[0])
        index = next(i for i, p in enumerate(properties.properties) if p is found[0])
        inline = properties.file == "<property>"
        text = options.property if inline else read_source(properties.file, "properties")
        declared = {c.name for c in properties.constants}
        own = {name: value for name, value in constants.items() if name in declared}
        following = CommandMonitor(console)
        try:
            maker = CertificateBuilder(
                options.model, constants, chosen, PropertyText(text, index, own), following
            )
        except NotCertifiableError as error:
            raise OptionError(f"--certificate: {error}") from None
        return cls(maker, options.certificate, following)

    @property
    def failed(self) -> bool:
        """Whether there is an answer without a certificate."""
        return self._made is not None and self._made.certificate is None

    def close(self) -> None:
        """Leave the file as it was, unless a certificate was written."""
        self._output.discard()

    def answer(self, model: SymbolicModel, prop: Property) -> Answer:
        """Return the answer to the one property, resolved; its certificate is written to its file."""
        made = self._made = self._maker.make(model, prop)
        if made.certificate is not None:
            with self._output.told():
                made.size = made.write(str(self._output.temporary))
            self._output.publish()
        return made.answer

    def check(self) -> None:
        """Raise what ended the iterations before their time, once the answer is printed."""
        self._following.check()

    def record(self) -> dict[str, Any] | None:
        """Return what the certificate shows as plain JSON values."""
        made = self._made
        if made is None:
            return None
        if made.finding is None:
            return {"file": None, "error": made.reason}
        return {"file": self._file, "bytes": made.size, "error": None, **made.finding.record()}

    def text(self) -> str:
        """Return what the certificate shows as a line of text."""
        made = self._made
        if made is None or made.finding is None:
            return f"  certificate  none: {made.reason if made else 'nothing was checked'}"
        return f"  certificate  {made.finding.text()}; written to {self._file}, {bytes_text(made.size)}"
