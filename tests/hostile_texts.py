"""Texts that ask for more than any machine has, each with what becomes of it."""

from __future__ import annotations

__all__ = ["ANSWERED", "REFUSED", "doubling"]

_DECLARED = "s : [0..1] init 0;"
_MOVE = "[] true -> (s'=1-s);"
_DEPTH = 60  # definitions that each mention the one before twice: 2^60 nodes when written out


def model(declared: str = _DECLARED, commands: str = _MOVE, before: str = "", kind: str = "dtmc") -> str:
    """Return a model of one module."""
    return f"{kind}\n{before}\nmodule m\n{declared}\n{commands}\nendmodule\n"


def doubling(pattern: str, first: str = "s", kind: str = "formula", depth: int = _DEPTH) -> str:
    """Return definitions of which each holds the one before, `@` in the pattern, more than once."""
    quote = '"' if kind == "label" else ""
    lines = [f"{kind} {quote}f0{quote} = {first};"]
    for i in range(1, depth + 1):
        lines.append(f"{kind} {quote}f{i}{quote} = {pattern.replace('@', f'{quote}f{i - 1}{quote}')};")
    return "\n".join(lines)


def _guarded(pattern: str, guard: str, first: str = "s") -> str:
    return model(commands=f"[] {guard} -> (s'=1-s); [] !({guard}) -> true;", before=doubling(pattern, first))


def _synchronised(kind: str, weights: bool) -> str:
    modules = []
    for i in range(12):
        commands = " ".join(
            f"[t] true -> {f'{1 + (i + 1) * (j + 1) * 0.0137}:' if weights else ''}(a{i}'={j});"
            for j in range(10)
        )
        modules.append(f"module m{i} a{i} : [0..9]; {commands} endmodule")
    return f"{kind}\n" + "\n".join(modules)


_WIDE = "x : [0..1000000];"

ANSWERED: dict[str, tuple[str, int]] = {
    "300 free bits": (
        model(
            "".join(f"a{i}:bool;" for i in range(300)),
            "".join(f"[] true -> (a{i}'=!a{i});" for i in range(300)),
        ),
        2**300,
    ),
    "sums that double, unused": (model(before=doubling("@+@")), 2),
    "sums that double in a guard": (_guarded("@+@", "f60 >= 0 & s<2"), 2),
    "differences that double": (_guarded("@-@", "f60 = 0"), 2),
    "quotients that double": (_guarded("(@+@)/2", "f60 >= 0"), 2),
    "minima that double": (_guarded("min(@,@)", "f60 >= 0"), 2),
    "branches that double": (_guarded("s=0?@:1-@", "f60 >= 0"), 2),
    "moduli that double": (_guarded("mod(@,2)+mod(@,3)", "f60 >= 0"), 2),
    "conditions that double": (_guarded("(@&s=0)|(@&s=1)", "f60", "s=0|s=1"), 2),
    "equivalences that double": (_guarded("@<=>@", "f60", "s=0"), 2),
    "a doubling assignment": (
        model(commands="[] true -> (s'=min(1,max(0,f60)));", before=doubling("@-@")),
        1,
    ),
    "a doubling weight": (model(commands="[] true -> 1+0*f60:(s'=1-s);", before=doubling("@-@")), 2),
    "doubling labels": (model() + doubling("(@&s=0)|(@&s=1)", '"init"', "label"), 2),
    "a doubling reward": (
        model(before=doubling("@-@")) + "rewards f60>=0 : f60; [] f60<=0 : 1+f60; endrewards",
        2,
    ),
    "a doubling module, copied twice": (
        model(commands="[] f60>=0 -> (s'=1-s);", before=doubling("@-@"))
        + "module n=m[s=t] endmodule module o=n[t=u] endmodule",
        8,
    ),
    "doubling constants": (
        "dtmc const int f0 = 1;\n"
        + "\n".join(f"const int f{i} = min(f{i - 1}, f{i - 1});" for i in range(1, 61))
        + "module m s : [0..1]; [] f60=1 -> (s'=1-s); endmodule",
        2,
    ),
    "R7, an integer with 5,000 zeros in front": (
        model(commands="[] s < " + "0" * 5000 + "7 -> (s'=1-s);"),
        2,
    ),
    "R6, a range near 2^63 that is compared alone": (
        model("x : [0..9223372036854775807];", "[] x<5 -> (x'=5); [] x>=5 -> (x'=0);"),
        2,
    ),
    "1,000 commands of one module": (
        model("x : [0..1000];", "\n".join(f"[] x={i} -> (x'={i + 1});" for i in range(1000)), "", "mdp"),
        1001,
    ),
}

REFUSED: dict[str, tuple[str, str]] = {
    "definitions on circles": (
        "dtmc "
        + "".join(f"formula f{i}=f{i + 1}+f0;" for i in range(3000))
        + "formula f3000=f0; "
        + model()[5:],
        "definitions depend on one another: f0 -> f1 -> ",
    ),
    "doubling systems": (
        'dtmc module m s : [0..1]; endmodule system "s60" endsystem system "s0" m endsystem '
        + " ".join(f'system "s{i}" "s{i - 1}" || "s{i - 1}" endsystem' for i in range(1, 61)),
        'the system block "s59" is used twice',
    ),
    "steps through a range of 2^40": (
        model(f"x : [0..{2**40}];", "[] x<5 -> (x'=x+1); [] x>=5 -> true;"),
        f"expected at most 131072 values where they must be told apart, got {2**40 + 1}",
    ),
    "R6, steps through all 64 bits": (
        model(f"x : [-{2**63 - 1}-1..{2**63 - 1}];", "[] x<5 -> (x'=x+1);"),
        f"values where they must be told apart, got {2**64}",
    ),
    "R6, a bound beyond 64 bits": (
        model("x : [0..9223372036854775808];"),
        "expected an integer up to 92233720368",
    ),
    "an integer of 100,000 digits": (
        model(commands="[] s < " + "7" * 100_000 + " -> (s'=1-s);"),
        "expected an integer up to 9223372036854775807, got '7777777777777777777777777777777777777777'",
    ),
    "a million variables": (
        model("".join(f"a{i}:bool;" for i in range(25_000))),
        "expected at most 20000 variables in a model, got more; raise the limit with limits=Limits(",
    ),
    "more bits than diagrams have levels for": (
        model("".join(f"a{i}:bool;" for i in range(3000))),
        "expected variables of at most 2000 bits together, got more with 'a2000' of the range [0..1]",
    ),
    "wide sums": (
        model(_WIDE + "y : [0..1000000];", "[] x+y<10 -> (x'=0);"),
        "values where they must be told apart, got 1000001; give the variable a smaller range",
    ),
    "a million values, told apart in many ways": (
        model(_WIDE, "".join(f"[] x<{i} -> (x'=mod(x+{i},1000000));" for i in range(1, 2000))),
        "entries of tables up to here; give variables smaller ranges, split wide expressions, or raise",
    ),
    "a sum of 5,000 over a million values": (
        model(_WIDE, "[] x" + "+x" * 5_000 + ">0 -> (x'=0);"),
        "raise the limit with limits=Limits(table_steps=",
    ),
    "10^12 combinations of an MDP": (
        _synchronised("mdp", False),
        "expected at most 100000 combinations of commands that may take the action 't' in one state, got "
        "1000000000000",
    ),
    "10^12 products of rates": (
        _synchronised("ctmc", True),
        "raise the limit with limits=Limits(pair_steps=",
    ),
    "copies of a large module": (
        model(commands=_MOVE * 2000) + "".join(f"module n{i}=m[s=t{i}]endmodule\n" for i in range(3000)),
        "expected a model with at most 1000000 commands, got more with module 'n499' written out",
    ),
    "copies of a large expression": (
        model(commands="[] s" + "+s" * 20_000 + ">0 -> (s'=0);")
        + "".join(f"module n{i}=m[s=t{i}]endmodule\n" for i in range(600)),
        "expected a model with at most 5000000 operators and names in its copies, got more",
    ),
    "40,000 faults": (
        model(commands="".join(f"[] ab{i}=cd{i} -> true;" for i in range(20_000))),
        "more than 100 faults: mend these first, or raise the limit with limits=Limits(faults=200)",
    ),
    "names as long as the text": (
        "dtmc const int "
        + "ab" * 100_000
        + "=1; "
        + model(commands="[] " + "ba" * 100_000 + "=1 -> true;")[5:],
        "declare it as a constant, a formula or a variable",
    ),
    "5,000 unknown modules": (
        model() + "".join(f"module n{i}=q{i}[s=t{i}]endmodule\n" for i in range(5_000)),
        "copies the unknown module 'q0'; known are m, n0,",
    ),
    "5,000 assignments of a million values": (
        model(_WIDE, "\n".join(f"[] x={i} -> (x'={i}+x);" for i in range(5_000))),
        "raise the limit with limits=Limits(table_steps=",
    ),
    "brackets without end": (model(commands="[] " + "(" * 100_000), "expected at most 100 levels of nesting"),
}
