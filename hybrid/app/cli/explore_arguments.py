"""The options of `hybrid explore`."""

from __future__ import annotations

import argparse

from hybrid.app.cli.common_arguments import add_model


def add_explore(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_model(parser, ", or ranges of them, N=2:2:10")
    parser.add_argument(
        "--to",
        required=True,
        metavar="FILE.html",
        help="the page; constants with ranges put models beside each other",
    )
    parser.add_argument("--backend", default="auto", choices=("auto", "cpu", "gpu", "reference"))
    parser.add_argument(
        "--measure",
        action="store_true",
        help="time a product at every level that fits in memory, and weigh levels that are built",
    )
    parser.add_argument("--title", default="", help="heading of the page (default the model's name)")
