"""PRISM's options: those that mean the same here, and advice on the others in daily use."""

from __future__ import annotations

SAME: dict[str, str] = {
    "-const": "--const",
    "-pf, -pctl, -csl": "PROPERTY as text",
    "-prop, -property": "--prop",
    "-epsilon, -e": "--epsilon",
    "-paretoepsilon": "--pareto-epsilon",
    "-absolute, -abs": "--absolute",
    "-relative, -rel": "without --absolute",
    "-exact": "--exact",
    "-maxiters": "--max-iters",
    "-omega": "--omega",
    "-power, -pow": "--method power",
    "-jacobi, -jac": "--method jacobi",
    "-gaussseidel, -gs": "--method gauss-seidel",
    "-jor": "--method jor",
    "-intervaliter, -ii": "--method interval",
    "-hybrid": "--engine hybrid",
    "-sparse, -s": "--engine explicit",
    "-explicit, -ex": "--engine explicit",
    "-mtbdd, -m": "--engine symbolic",
    "-nofixdl": "--no-fix-deadlocks",
}
"""Options of PRISM that `hybrid check` takes, and what they stand for here."""

_ELSEWHERE = {
    "exportresults": "write answers with --csv FILE, or --json",
    "exportmodel": "write models with 'hybrid export MODEL --to FILE...'",
    "exporttrans": "write models with 'hybrid export MODEL --to FILE.tra'",
    "exportstates": "write states with 'hybrid export MODEL --to FILE.sta'",
    "exportlabels": "write labels with 'hybrid export MODEL --to FILE.lab'",
    "exportadv": "write schedulers with --scheduler FILE",
    "exportstrat": "write schedulers with --scheduler FILE",
    "exportvector": "write the values of all states with --values FILE",
    "importmodel": "give the file itself: hybrid check MODEL.tra",
    "importtrans": "give the file itself: hybrid check MODEL.tra",
    "simpath": "sample paths with 'hybrid simulate MODEL --steps N'",
    "sim": "estimate with 'hybrid simulate MODEL PROPERTY'",
    "steadystate": "ask S=? [ states ], or use model.steady_state() in Python",
    "ss": "ask S=? [ states ], or use model.steady_state() in Python",
    "transient": "ask P=? [ F[t,t] states ], or use model.transient(t) in Python",
    "tr": "ask P=? [ F[t,t] states ], or use model.transient(t) in Python",
    "timeout": "write --timeout S",
    "cuddmaxmem": "bound the memory of all parts with --memory",
    "javamaxmem": "bound the memory of all parts with --memory",
    "bgaussseidel": "take --method gauss-seidel",
    "sor": "take --method gauss-seidel with --omega",
}


def advice_on(option: str) -> str:
    """Return `"; ..."` for an option of PRISM that stands for something else here, otherwise nothing."""
    found = _ELSEWHERE.get(option.lstrip("-")) if option.startswith("-") else None
    return f"; {found}" if found else ""
