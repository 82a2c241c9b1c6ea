"""The options `--timeout`, `--memory` and `--limit`, which `hybrid.cli.bounded` obeys."""

from __future__ import annotations

import argparse

from mtbdd.language.limit_defaults import DEFAULT_LIMITS

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def add_limits(parser: argparse.ArgumentParser) -> None:
    """Add the options to a command."""
    parser.add_argument(
        "--timeout", type=_seconds, metavar="S", help="end after S seconds, with the answers found so far"
    )
    parser.add_argument(
        "--memory", type=_bytes, metavar="BYTES", help="end beyond so much memory; K, M, G, T may follow"
    )
    parser.add_argument(
        "--limit",
        dest="limits",
        type=_limit,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a limit on what texts may ask for; may be repeated; by default "
        + ", ".join(f"{name}={value}" for name, value in DEFAULT_LIMITS.items()),
    )


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a positive number of seconds, got {text!r}")
    return seconds


def _bytes(text: str) -> int:
    number, unit = (text[:-1], text[-1:].upper()) if text[-1:].upper() in ("K", "M", "G", "T") else (text, "")
    try:
        size = float(number) * _UNITS[unit]
    except ValueError:
        size = 0.0
    if not 1 <= size < 2.0**63:
        raise argparse.ArgumentTypeError(
            f"expected a positive number of bytes, like 4G or 500M, got {text!r}"
        )
    return int(size)


def _limit(text: str) -> tuple[str, int]:
    from mtbdd.language.limits import Limits  # help is shown without

    name, sign, value = text.partition("=")
    try:
        Limits().changed(name, int(value))
    except ValueError as error:
        message = str(error) if sign and value.lstrip("-").isdigit() else f"expected NAME=VALUE, got {text!r}"
        raise argparse.ArgumentTypeError(message) from None
    return name, int(value)
