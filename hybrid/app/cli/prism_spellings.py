"""PRISM's spellings of options, beside those of `hybrid`; `hybrid.app.cli.prism_options.SAME` lists them."""

from __future__ import annotations

import argparse

from hybrid.app.cli.command_parser import JoinTexts


def add_const_spelling(parser: argparse.ArgumentParser) -> None:
    """Let `-const` be `--const`."""
    parser.add_argument("-const", dest="const", action=JoinTexts, const=",", help=argparse.SUPPRESS)


def add_check_spellings(parser: argparse.ArgumentParser) -> None:
    """Add PRISM's spellings of how `check` solves, hidden in its help."""
    hidden = argparse.SUPPRESS
    parser.add_argument("-epsilon", "-e", dest="epsilon", type=float, help=hidden)
    parser.add_argument("-paretoepsilon", dest="pareto_epsilon", type=float, help=hidden)
    parser.add_argument("-absolute", "-abs", dest="absolute", action="store_true", help=hidden)
    parser.add_argument("-relative", "-rel", dest="absolute", action="store_false", help=hidden)
    parser.add_argument("-exact", dest="exact", action="store_true", help=hidden)
    parser.add_argument("-maxiters", dest="max_iters", type=int, help=hidden)
    parser.add_argument("-omega", dest="omega", type=float, help=hidden)
    for names, method in (
        (("-power", "-pow"), "power"),
        (("-jacobi", "-jac"), "jacobi"),
        (("-gaussseidel", "-gs"), "gauss-seidel"),
        (("-jor",), "jor"),
        (("-intervaliter", "-ii"), "interval"),
    ):
        parser.add_argument(*names, dest="method", action="store_const", const=method, help=hidden)
    for names, engine in (
        (("-hybrid",), "hybrid"),
        (("-sparse", "-s"), "explicit"),
        (("-explicit", "-ex"), "explicit"),
        (("-mtbdd", "-m"), "symbolic"),
    ):
        parser.add_argument(*names, dest="engine", action="store_const", const=engine, help=hidden)
    parser.add_argument("-nofixdl", dest="no_fix_deadlocks", action="store_true", help=hidden)
