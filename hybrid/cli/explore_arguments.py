"""The options of `hybrid explore`, beside those that every command with a model takes."""

from __future__ import annotations

import argparse


def add_explore(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "--to",
        required=True,
        metavar="FILE.html",
        help="the page; constants with ranges put models beside each other",
    )
    parser.add_argument("--backend", default="auto", choices=("auto", "cpu", "gpu", "reference"))
    parser.add_argument(
        "--measure", action="store_true", help="time a product at every level that fits in memory"
    )
    parser.add_argument("--title", default="", help="heading of the page (default the model's name)")
