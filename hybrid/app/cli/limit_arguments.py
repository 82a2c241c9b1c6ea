"""The options `--timeout`, `--memory` and `--limit`, which `hybrid.app.cli.bounded` obeys."""

from __future__ import annotations

import argparse
import re

from mtbdd.language.limit_defaults import DEFAULT_LIMITS

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_DURATIONS = {"": 1, "s": 1, "m": 60, "h": 3600}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_WHOLE = re.compile(r"-?\d{1,18}", re.ASCII)
_SHOWN = 60  # characters of a value that are shown where it is refused


def add_limits(parser: argparse.ArgumentParser) -> None:
    """Add the options to a command."""
    parser.add_argument(
        "--timeout",
        type=_seconds,
        metavar="S",
        help="end after S seconds, with the answers found so far; s, m (minutes) or h may follow",
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
    seconds = _measured(text, _DURATIONS)
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(
            f"expected a positive number of seconds, or one like 90s, 5m or 1.5h, got {text[:_SHOWN]!r}"
        )
    return seconds


def _bytes(text: str) -> int:
    size = _measured(text.upper(), _UNITS)
    if not 1 <= size < 2.0**63:
        raise argparse.ArgumentTypeError(
            f"expected a positive number of bytes, like 4G or 500M, got {text[:_SHOWN]!r}"
        )
    return int(size)


def _measured(text: str, units: dict[str, int]) -> float:
    """Return a number times the unit behind it; 0 where it is none."""
    unit = text[-1:] if text[-1:] in units else ""
    number = text.removesuffix(unit)
    return float(number) * units[unit] if _NUMBER.fullmatch(number) else 0.0


def _limit(text: str) -> tuple[str, int]:
    from mtbdd.language.limits import Limits  # help is shown without

    name, _, value = text.partition("=")
    if not _WHOLE.fullmatch(value):
        raise argparse.ArgumentTypeError(
            f"expected NAME=VALUE, the value a whole number of at most 18 digits, got {text[:_SHOWN]!r}"
        )
    try:
        Limits().changed(name, int(value))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return name, int(value)
