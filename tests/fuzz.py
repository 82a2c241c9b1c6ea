"""Random damage to models and properties: parsed, resolved and built, with nothing but messages for faults.

`python -m tests.fuzz --seconds 600 --seed 7` runs for long; the tests run a few hundred cases.  Every case is
made from the seed and its number alone, so that `--case` repeats it.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from hybrid.properties import parse_properties, resolve_properties
from mtbdd.base.budget import Budget, BudgetError, spending
from mtbdd.build.build import build_model
from mtbdd.language import LanguageError, parse_model, resolve
from mtbdd.language.limits import Limits, limited
from tests.hostile_texts import ANSWERED

__all__ = ["Outcome", "run_case"]

# Small, so that many cases fit into a run; what they refuse is refused at every size alike.
LIMITS = Limits(
    bits=80, variables=200, commands=300, nodes=20_000, values=1 << 10, combinations=500,
    table_steps=1 << 26, pair_steps=1 << 13,
)  # fmt: skip
SECONDS = 10.0
BYTES = 4 << 30

_TOKEN = re.compile(r'[A-Za-z_]\w*|\d+\.?\d*|"[^"\n]*"|\.\.|->|<=|>=|!=|=>|\S|\s+')
_SPARE = tuple(
    """0 1 2 7 0.5 1e300 1e-300 9223372036854775807 4294967296 00000 ( ) [ ] { } ; : , ' = != < <= > >= & | !
    => <=> + - * / ^ ? .. -> true false min max floor ceil round pow mod log s x init endinit module endmodule
    formula label const int double bool global rewards endrewards system endsystem dtmc ctmc mdp "init"
    "deadlock" s' P S R F G U X W filter =? C I \0 é \u2028""".split()
)
_EXAMPLES = Path(__file__).parents[1] / "examples"
_PROPERTIES = (
    'P=? [ F s=1 ]; "a": P>0.5 [ s=0 U<=3 s=1 ]; S=? [ s=0 ]; filter(max, P=? [ X s=1 ], "init");',
    'const int k; label "l" = s=0 | "deadlock"; P=? [ G<=k "l" ]; R=? [ C<=k ]; R{"r"}=? [ F "l" ];',
)


@dataclass(frozen=True)
class Outcome:
    """What became of a case: "built", "refused" or "given up", or the name of a defect.

    Attributes
    ----------
    result : str
    seconds : float
    text : str
        The model.
    """

    result: str
    seconds: float
    text: str

    @property
    def is_sound(self) -> bool:
        """Whether the program behaved."""
        return self.result in ("built", "refused", "given up") and self.seconds < 6 * SECONDS


def _seeds() -> list[str]:
    texts = [text for text, _ in ANSWERED.values() if len(text) < 6000]
    for path in sorted(_EXAMPLES.glob("*.prism")):
        texts.append(path.read_text(encoding="utf-8"))
    return [text for text in texts if len(text) < 6000]


_SEEDS = _seeds()


def _damaged(text: str, rng: random.Random) -> str:
    """Return a text with some tokens removed, doubled, exchanged or replaced."""
    tokens = _TOKEN.findall(text)
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        if not tokens:
            break
        at, other = rng.randrange(len(tokens)), rng.randrange(len(tokens))
        kind = rng.randrange(6)
        if kind == 0:
            del tokens[at]
        elif kind == 1:
            tokens.insert(at, tokens[other])
        elif kind == 2:
            tokens[at], tokens[other] = tokens[other], tokens[at]
        elif kind == 3:
            tokens[at] = rng.choice(_SPARE)
        elif kind == 4:
            tokens[at : at + 1] = tokens[at : at + 1] * rng.choice((2, 3, 50))
        else:
            low, high = sorted((at, other))
            tokens[at:at] = tokens[low : min(high, low + 40)]
    return "".join(tokens)


def run_case(seed: int, number: int) -> Outcome:
    """Run one case."""
    rng = random.Random(f"{seed}:{number}")
    text = _damaged(rng.choice(_SEEDS), rng)
    properties = _damaged(rng.choice(_PROPERTIES), rng)
    started = time.monotonic()
    result = "built"
    try:
        with limited(LIMITS), spending(Budget.of(SECONDS, BYTES)):
            source = resolve(parse_model(text), {"N": 2, "K": 2, "t": 1, "n": 2, "c": 1}, ignore_unknown=True)
            try:
                resolve_properties(parse_properties(properties), source, {"k": 3}, keep_faults=True)
            except LanguageError:
                pass
            build_model(source)
    except LanguageError:
        result = "refused"
    except BudgetError:
        result = "given up"
    except Exception as error:
        result = f"{type(error).__name__}: {error}"
    return Outcome(result, time.monotonic() - started, text)


def main() -> int:
    """Run cases for some time and tell what became of them; 1 if one showed a defect."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--case", type=int, help="run this case alone, and print its text")
    options = parser.parse_args()
    if options.case is not None:
        outcome = run_case(options.seed, options.case)
        print(outcome.text, outcome.result, f"{outcome.seconds:.1f} s", sep="\n")
        return 0 if outcome.is_sound else 1
    counts: dict[str, int] = {}
    defects, slowest, number = 0, 0.0, 0
    started = time.monotonic()
    while time.monotonic() - started < options.seconds:
        outcome = run_case(options.seed, number)
        slowest = max(slowest, outcome.seconds)
        if outcome.is_sound:
            counts[outcome.result] = counts.get(outcome.result, 0) + 1
        else:
            defects += 1
            print(f"case {number}: {outcome.result} ({outcome.seconds:.1f} s)", flush=True)
        number += 1
    told = ", ".join(f"{count} {result}" for result, count in sorted(counts.items()))
    print(f"{number} cases: {told}, {defects} defects; slowest {slowest:.1f} s")
    return 1 if defects else 0


if __name__ == "__main__":
    sys.exit(main())
