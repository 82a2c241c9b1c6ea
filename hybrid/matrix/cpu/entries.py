"""Entries of compiled functions: the same function, as one that takes its arguments as words of 64 bits.

Compiled code can call an entry by its address without the interpreter, whatever the function's arguments are.
An entry is a few dozen machine instructions that load the words and call the function.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher
from numba.core.registry import cpu_target

from hybrid.matrix.cpu.argument_words import NO_ARGUMENT, ArrayWords, Mismatch, Words, WordsOf, words_of
from hybrid.matrix.cpu.arguments import Each, Fixed

# mypy: disable-error-code="attr-defined, misc, no-untyped-call"
# Much of Numba and LLVM's binding has no types.


_AFTER = 500
"""Threads woken for a function, over all its calls, after which its entry is made: that takes milliseconds,
and spares some 30 microseconds a thread."""

_KNOWN = 32
"""Calls whose words are remembered, of each function."""

_LARGE = (np.ndarray, Fixed, Each)


class CallEntry:
    """A compiled function that can be called with words.

    Parameters
    ----------
    kernel : numba.core.dispatcher.Dispatcher
    compiled : numba.core.compiler.CompileResult
        One of its overloads, of C-contiguous arrays and scalars of 64 bits, that returns nothing.

    Attributes
    ----------
    address : int
        Of ``int32 entry(const int64 *words)``, which returns 0 unless the function raised an exception.

    Raises
    ------
    Mismatch
        There are other types among its arguments.
    """

    def __init__(self, kernel: Dispatcher, compiled: Any) -> None:
        self._kinds = [words_of(argument) for argument in compiled.signature.args]
        self._width = sum(kind.count for kind in self._kinds)
        self.address = _emit(f"{kernel.__name__}_{id(compiled):x}", compiled, self._kinds)
        self._kept = compiled  # with its code
        self._known: dict[tuple[int, ...], tuple[Words, list[weakref.ref[Any]], list[Any]]] = {}

    def words(self, arguments: Sequence[Any], parts: int) -> Words:
        """Return the words of a call, shape (parts, words), which nobody may write to.

        Those of a call with the same objects are remembered: iterations take the same vectors again.

        Raises
        ------
        Mismatch
            Arguments are of other types, or not contiguous.
        """
        key = (parts, *map(id, arguments))
        known = self._known.get(key)
        # Arrays are not kept, and their numbers used again once they are no more.
        if known is not None and all([there() is not None for there in known[1]]):
            return known[0]
        words = self._words(arguments, parts)
        if len(self._known) >= _KNOWN:
            self._known.clear()
        kept = [argument for argument in arguments if not isinstance(argument, _LARGE)]
        there = [weakref.ref(argument) for argument in arguments if isinstance(argument, _LARGE)]
        self._known[key] = words, there, kept
        return words

    def _words(self, arguments: Sequence[Any], parts: int) -> Words:
        words = np.empty((parts, self._width), np.int64)
        kinds, waiting, at = iter(self._kinds), list[int](), 0
        for argument in arguments:
            if isinstance(argument, Fixed):
                own = self._words_of_fixed(argument, list(islice(kinds, len(argument.arguments))))
            elif isinstance(argument, Each):
                own = next(kinds, NO_ARGUMENT).words_of_parts(argument.values)
            else:
                waiting += next(kinds, NO_ARGUMENT).words(argument)
                continue
            begin = at + len(waiting)
            words[:, at:begin] = waiting
            at = begin + own.shape[-1]
            words[:, begin:at] = own
            waiting.clear()
        if at + len(waiting) != self._width:
            raise Mismatch
        words[:, at:] = waiting
        return words

    def _words_of_fixed(self, fixed: Fixed, kinds: Sequence[WordsOf]) -> Words:
        if len(kinds) != len(fixed.arguments):
            raise Mismatch
        if fixed.words is None or fixed.words[0] is not self:
            found = [kind.words(value) for kind, value in zip(kinds, fixed.arguments, strict=True)]
            words = np.array([word for some in found for word in some], np.int64)
            fixed.words = self, words
            return words
        return fixed.words[1]


class CallEntries:
    """The entries of one function, made once it has been called some times.

    Parameters
    ----------
    kernel : callable
        Compiled by `mtbdd.base.compiled.njit`, or not at all where Numba compiles nothing.
    """

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel
        self._woken = 0
        self._found: list[CallEntry] = []
        self._overloads = 0

    def packed(self, arguments: Sequence[Any], parts: int, threads: int) -> tuple[int, Words] | None:
        """Return the address of the entry and the words of a call; None where it has to be a plain one."""
        self._woken += threads - 1
        if self._woken <= _AFTER or not isinstance(self._kernel, Dispatcher):
            return None
        if self._overloads != len(self._kernel.overloads):
            self._find()
        for entry in self._found:
            try:
                return entry.address, entry.words(arguments, parts)
            except Mismatch:
                continue
        return None

    def _find(self) -> None:
        with global_compiler_lock:
            compiled = list(self._kernel.overloads.values())
            for overload in compiled[self._overloads :]:
                with suppress(Mismatch):
                    self._found.append(CallEntry(self._kernel, overload))
            self._overloads = len(compiled)


@functools.cache
def entries_of(kernel: Any) -> CallEntries:
    """Return the entries of a function."""
    return CallEntries(kernel)


def _emit(name: str, compiled: Any, kinds: Sequence[WordsOf]) -> int:
    """Compile the entry of a function; return its address."""
    call = cpu_target.target_context.call_conv.get_function_type(
        compiled.signature.return_type, compiled.signature.args
    )
    result, raised, *expected = call.args
    lines, given, word = [], [], 0
    for kind in kinds:
        for k in range(word, word + kind.count):
            lines += [f"%p{k} = getelementptr i64, i64* %words, i64 {k}", f"%w{k} = load i64, i64* %p{k}"]
        given += kind.fields(word, lines) if isinstance(kind, ArrayWords) else [f"%w{word}"]
        word += kind.count
    for k, (form, value) in enumerate(zip(map(str, expected), given, strict=True)):
        convert = "inttoptr" if form.endswith("*") else "bitcast" if form in ("double", "i64") else "trunc"
        lines.append(f"%a{k} = {convert} i64 {value} to {form}")
    function = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)
    operands = ", ".join(f"{form} %a{k}" for k, form in enumerate(expected))
    text = "\n".join(
        [
            f'define i32 @"{name}"(i64* %words) {{',
            f"%result = alloca {result.pointee}",
            f"%raised = alloca {raised.pointee}",
            *lines,
            f"%function = inttoptr i64 {function} to {call}*",
            f"%status = call i32 %function({result} %result, {raised} %raised, {operands})",
            "ret i32 %status",
            "}",
        ]
    )
    engine = _engine()
    engine.add_module(llvm.parse_assembly(text))
    engine.finalize_object()
    address: int = engine.get_function_address(name)
    return address


@functools.cache
def _engine() -> Any:
    """Return what compiles entries; it lives as long as the process."""
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), opt=1, jit=True
    )
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
