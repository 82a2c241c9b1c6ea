"""`hybrid verify`: a certificate, checked against a model's text."""

from __future__ import annotations

import argparse
import json

from hybrid.app.cli.console import Console
from hybrid.base.errors import CertificateError
from hybrid.base.units import seconds_text
from hybrid.checking.certificates.verify import Verified, verify
from mtbdd.language import parse_constants


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
