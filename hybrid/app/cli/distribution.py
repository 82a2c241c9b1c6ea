"""`hybrid distribution`: how likely each reward is until a set is reached."""

from __future__ import annotations

import argparse
import json
import math

from hybrid.app.cli.building import built_model, model_record, model_text
from hybrid.app.cli.console import Console
from hybrid.app.cli.output_file import output_of, refuse_overwriting
from hybrid.app.distributions import Distribution, distribution
from hybrid.base.errors import HybridError
from hybrid.base.figures import check_ending
from hybrid.properties import parse_properties
from mtbdd.language import parse_constants
from mtbdd.language.errors import LanguageError

_ROWS = 20
"""Rows that are printed at most; the file has all."""


def run(options: argparse.Namespace, console: Console) -> int:
    """Build, count, print, write and draw; return the exit status."""
    refuse_overwriting(options)
    if options.plot is not None:
        check_ending(options.plot)
    undeclared = parse_properties(options.property).undeclared()
    with output_of(options.csv, "--csv") as table, output_of(options.plot, "--plot") as plot:
        model = built_model(options, console, spare=undeclared)
        console.progress("distribution")
        try:
            found = distribution(
                model, options.property, parse_constants(options.const), tail=options.tail,
                epsilon=options.epsilon, max_iterations=options.max_iters, engine=options.engine,
                backend=options.backend,
            )  # fmt: skip
            record = found.record(options.quantiles, options.tail_means)
        except LanguageError:
            raise
        except HybridError as error:
            console.error(str(error))
            return 1
        for file, write in ((table, found.write), (plot, found.plot)):
            if file is not None:
                with file.told():
                    write(file.temporary)
                file.publish(console)
    if options.json:
        console.print(json.dumps({"model": model_record(model), "distribution": record}))
    else:
        console.print(model_text(model_record(model)))
        console.print("")
        console.print(_text(found, options))
    return 0


def _text(found: Distribution, options: argparse.Namespace) -> str:
    """Return the plain output: mean, quantiles, means of tails, and the rewards that are likely."""
    lines = [found.text, f"  mean         {_shown(found.mean)}", f"  reached      {_shown(found.reached)}"]
    lines += [f"  {f'up to {p:g}':<12} {_shown(found.quantile(p))}" for p in options.quantiles]
    lines += [f"  {f'beyond {p:g}':<12} {_shown(found.tail_mean(p))} on average" for p in options.tail_means]
    low, high = found.masses
    likely = [k for k in range(len(low)) if high[k] > options.tail]
    lines += ["", f"  {'reward':>12}  {'probability':>12}  {'or less':>12}"]
    for k in likely[:_ROWS]:
        own, less = 0.5 * (low[k] + high[k]), 0.5 * (found.lower[k] + found.upper[k])
        lines.append(f"  {found.rewards[k]:>12g}  {own:>12.6g}  {less:>12.6g}")
    if len(likely) > _ROWS:
        lines.append(f"  ... and {len(likely) - _ROWS:,} more: --csv FILE writes all")
    return "\n".join(lines)


def _shown(bounds: tuple[float, float]) -> str:
    """Return bounds as text: one number where they are as good as one."""
    lower, upper = bounds
    if lower == upper or math.isclose(lower, upper, rel_tol=1e-12):
        return f"{0.5 * (lower + upper):.12g}"
    return f"{0.5 * (lower + upper):.9g} (between {lower!r} and {upper!r})"
