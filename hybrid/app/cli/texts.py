"""`hybrid completion` and `hybrid man`: texts that are made from the parser."""

from __future__ import annotations

import argparse


def print_text(options: argparse.Namespace) -> int:
    """Print the text that a command makes; return the exit status."""
    import sys

    if options.command == "completion":
        from hybrid.app.cli.completion import completion

        text = completion(options.shell)
    else:
        from hybrid.app.cli.manual import manual_markdown, manual_roff

        text = manual_markdown() if options.markdown else manual_roff()
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        return 1
    except OSError as error:
        print(f"error: cannot write to standard output: {error.strerror or error}", file=sys.stderr)
        return 2
    return 0
