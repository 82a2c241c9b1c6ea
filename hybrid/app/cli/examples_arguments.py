"""The options of `hybrid examples`."""

from __future__ import annotations

import argparse

from hybrid.app.cli.common_arguments import add_output


def add_examples(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="examples, such as kanban (default all of them)"
    )
    parser.add_argument(
        "--to",
        metavar="FOLDER",
        help="copy models and properties there instead of listing them; it is made if need be",
    )
    parser.add_argument("--force", action="store_true", help="replace files that are there")
    add_output(parser)
