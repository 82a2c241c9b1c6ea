"""Run the mutations: apply each to a copy of the tree, run the tests that should notice, and report.

    python -m tests.mutants.run [--only PATTERN] [-j 2] [--json FILE] [--record [FILE]]

A mutant is killed if its tests fail or last too long. Before anything else all tests that are named run on
the copy as it is, and must pass. Exit status: 0 if at least 95 % of the mutants that a test can notice were
killed.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import queue
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.mutants.mutations import ROOT, Mutation, read_mutations
from tests.runs import add_record_option, append_run

TREES = ("hybrid", "mtbdd", "gpu_kernels", "tests", "examples", "benchmarks", "docs")
FILES = (
    "pyproject.toml",
    "README.md",
    "CHANGELOG.md",
    "CITATION.cff",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "Makefile",
    "LICENSE",
)
SEED = "1"
OPTIONS = ("-x", "-q", "--no-header", "-p", "no:cacheprovider", f"--hypothesis-seed={SEED}")
LEAST_KILLED = 0.95
SECONDS = 600


@dataclass(frozen=True)
class Verdict:
    """What came of a mutant: killed, survived, or error (nothing can be said)."""

    name: str
    file: str
    verdict: str
    seconds: float
    by: str
    equal: str | None


_COMPILED = re.compile(r"numba|mtbdd\.base\.compiled")
"""What files with compiled functions import."""


class Copy:
    """A copy of the tree, which one mutation at a time is applied to, with caches of its own."""

    def __init__(self, folder: Path, seconds: float = SECONDS) -> None:
        self.root, self.seconds = folder / "tree", seconds
        self.cache = folder / "numba"
        self.temporary = folder / "tmp"
        for name in TREES:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, self.root / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in FILES:
            if (ROOT / name).is_file():
                shutil.copy2(ROOT / name, self.root / name)
        # The emulator's kernels, so that only the mutated ones are compiled.
        for built in (ROOT / "build").glob("host-kernels-*"):
            shutil.copytree(built, self.root / "build" / built.name)
        self.cache.mkdir()
        self.temporary.mkdir()

    def pytest(self, tests: tuple[str, ...], cache: Path) -> tuple[int, str, float]:
        """Run tests, one selection after the other until one fails; return status, last words and seconds."""
        begin = time.perf_counter()
        for words in selections(tests):
            command = [
                sys.executable,
                "-m",
                "pytest",
                "-x",
                "-q",
                "--no-header",
                "-p",
                "no:cacheprovider",
                *words,
            ]
            environment = {
                **os.environ,
                "PYTHONPATH": str(self.root),
                "HYBRID_TEST_SEED": SEED,
                "NUMBA_CACHE_DIR": str(cache),
            }
            try:
                done = subprocess.run(
                    command,
                    cwd=self.root,
                    env=environment,
                    capture_output=True,
                    text=True,
                    timeout=self.seconds,
                )
            except subprocess.TimeoutExpired:
                return 1, f"no end within {self.seconds} s", time.perf_counter() - begin
            if done.returncode != 0:
                lines = [x for x in done.stdout.splitlines() if x.startswith(("FAILED", "ERROR"))]
                words_ = lines[0] if lines else (done.stdout + done.stderr)[-400:]
                return done.returncode, words_, time.perf_counter() - begin
        return 0, "", time.perf_counter() - begin

    def judge(self, mutation: Mutation) -> Verdict:
        """Apply a mutation, run its tests, and take the mutation back."""
        path = self.root / mutation.file
        before, times = path.read_bytes(), path.stat()
        compiled = dependents(self.root, mutation.file)
        cache = self.cache
        if compiled:
            cache = Path(tempfile.mkdtemp(dir=self.temporary)) / "numba"
            shutil.copytree(self.cache, cache)
        try:
            mutation.apply(self.root)
            status, words, seconds = self.pytest(mutation.tests, cache)
        finally:
            path.write_bytes(before)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
            if compiled:
                shutil.rmtree(cache.parent, ignore_errors=True)
        # 1: tests failed; 2: none was collected; below 0: a signal ended them; others: the choice is wrong.
        killed = status in (1, 2) or status < 0
        verdict = "survived" if status == 0 else "killed" if killed else "error"
        return Verdict(mutation.name, mutation.file, verdict, round(seconds, 1), words[:300], mutation.equal)


def dependents(root: Path, file: str) -> set[str]:
    """Return the files with compiled functions that a file takes part in.

    Their functions are compiled anew, in a copy of the cache: it keeps one version of a function's text.
    """
    if not _COMPILED.search((root / file).read_text(encoding="utf-8")):
        return set()
    texts = {
        str(path.relative_to(root)): path.read_text(encoding="utf-8")
        for tree in ("hybrid", "mtbdd")
        for path in (root / tree).rglob("*.py")
    }
    compiled = {name: text for name, text in texts.items() if _COMPILED.search(text)}
    found, new = {file}, {file}
    while new:
        modules = [name.removesuffix(".py").replace("/", ".").rpartition(".") for name in new]
        imports = [re.compile(rf"{re.escape(p)}(\.| import ([\w, ]*, )?){m}\b") for p, _, m in modules]
        new = {n for n, text in compiled.items() if n not in found and any(i.search(text) for i in imports)}
        found |= new
    return found


def selections(tests: tuple[str, ...]) -> list[list[str]]:
    """Return the arguments of the runs of pytest: one for all without options, one for each with options."""
    plain = [test for test in tests if " " not in test]
    return ([plain] if plain else []) + [shlex.split(test) for test in tests if " " in test]


def check_selections(copy: Copy, mutations: list[Mutation]) -> str | None:
    """Run all tests that are named on the tree as it is; return what fails."""
    every = tuple(dict.fromkeys(test for m in mutations for test in m.tests))
    print(f"the tests as they are: {len(every)} selections", flush=True)
    status, words, seconds = copy.pytest(every, copy.cache)
    print(f"  {seconds:.0f} s", flush=True)
    return None if status == 0 else words


def run(
    mutations: list[Mutation], jobs: int, folder: Path, check: bool, seconds: float = SECONDS
) -> list[Verdict]:
    """Judge all mutations on some copies side by side; tests that last longer have noticed."""
    copies: queue.Queue[Copy] = queue.Queue()
    made = [Copy(folder / str(number), seconds) for number in range(jobs)]
    if check:
        failure = check_selections(made[0], mutations)
        if failure is not None:
            sys.exit(f"error: a test fails without any mutation; mend it first: {failure}")
    for copy in made:
        copies.put(copy)

    def judge(mutation: Mutation) -> Verdict:
        copy = copies.get()
        try:
            found = copy.judge(mutation)
        finally:
            copies.put(copy)
        by = found.by.removeprefix("FAILED ").partition(" - ")[0]
        print(f"{found.verdict:8} {found.seconds:6.1f} s  {found.name} {found.file}  {by}", flush=True)
        return found

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(judge, mutations))


def summarise(verdicts: list[Verdict], seconds: float) -> dict[str, object]:
    """Return the figures; a mutant that is equal by its explanation is counted apart."""
    counted = [v for v in verdicts if v.equal is None]
    killed = [v for v in counted if v.verdict == "killed"]
    return {
        "mutants": len(verdicts),
        "killed": sum(v.verdict == "killed" for v in verdicts),
        "survived": [v.name for v in counted if v.verdict == "survived"],
        "explained": [v.name for v in verdicts if v.equal is not None and v.verdict == "survived"],
        "killed_although_explained": [v.name for v in verdicts if v.equal and v.verdict == "killed"],
        "errors": [v.name for v in verdicts if v.verdict == "error"],
        "share": round(len(killed) / len(counted), 4) if counted else 1.0,
        "seconds": round(seconds),
        "verdicts": [asdict(v) for v in verdicts],
    }


def main() -> int:
    """Read the arguments, run, print, and return the exit status."""
    parser = argparse.ArgumentParser(description="run mutation tests")
    parser.add_argument(
        "--only", default="*", metavar="PATTERN", help="names or files that match, as in a shell"
    )
    parser.add_argument("-j", "--jobs", type=int, default=2, help="mutants side by side")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write verdicts and figures")
    parser.add_argument(
        "--no-check", action="store_true", help="do not run the tests without mutations first"
    )
    add_record_option(parser, "mutants")
    options = parser.parse_args()
    chosen = [m for m in read_mutations() if any(fnmatch.fnmatch(x, options.only) for x in (m.name, m.file))]
    problems = [p for m in chosen if (p := m.problem()) is not None]
    if problems or not chosen:
        print("\n".join(problems) or f"no mutation matches {options.only}", file=sys.stderr)
        return 2
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="hybrid-mutants-") as folder:
        verdicts = run(chosen, options.jobs, Path(folder), not options.no_check)
    figures = summarise(verdicts, time.perf_counter() - begin)
    if options.json is not None:
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    told = {key: value for key, value in figures.items() if key != "verdicts"}
    for key, value in told.items():
        print(f"{key}: {value}")
    if options.record is not None:
        append_run(options.record, only=options.only, whole=options.only == "*", jobs=options.jobs, **told)
    good = float(str(figures["share"])) >= LEAST_KILLED and not figures["errors"]
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
