"""Entries of compiled functions: the same function, as one that takes its arguments as words of 64 bits.

Compiled code can call an entry by its address without the interpreter, for arguments of any types.
An entry is a few dozen machine instructions that load the words and call the function.
"""

# mypy: disable-error-code="attr-defined, misc, no-untyped-call"
# Much of Numba and LLVM's binding has no types.

from __future__ import annotations

import functools
import struct
import weakref
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numba import types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher
from numba.core.registry import cpu_target
from numba.np.numpy_support import as_dtype
from numpy.typing import NDArray

from hybrid.matrix.cpu.arguments import PerPart, SharedArguments

# Arguments of compiled functions as words of 64 bits: a number's bits, an array's address and shape.

Words = NDArray[np.int64]

_ACCEPTED: dict[type, tuple[type, ...]] = {
    int: (int, np.integer),
    float: (float, int, np.floating),
    bool: (bool, np.bool_),
}
_KNOWN = 64
"""Arrays whose words are remembered, of each argument."""

_DOUBLE, _WORD = struct.Struct("d"), struct.Struct("q")


class Mismatch(Exception):
    """Arguments are not those that a function was compiled for."""


class NumberWords:
    """An argument of 64 bits, or a truth value.

    Attributes
    ----------
    count : int
        Words that it takes.
    """

    count = 1

    def __init__(self, kind: type) -> None:
        self._kind = kind
        self._accepted = _ACCEPTED[kind]

    def words(self, argument: Any) -> list[int]:
        """Return the word of an argument."""
        if type(argument) not in self._accepted and not isinstance(argument, self._accepted[1:]):
            raise Mismatch
        return list(_WORD.unpack(_DOUBLE.pack(argument))) if self._kind is float else [int(argument)]

    def words_of_parts(self, values: Any) -> Words:
        """Return the words of whole numbers, one a part, shape (parts, 1)."""
        numbers = np.asarray(values)
        if self._kind is not int or numbers.dtype.kind not in "iu":
            raise Mismatch
        return numbers.astype(np.int64)[:, None]


class ArrayWords:
    """A C-contiguous array; its words are its address and its shape."""

    def __init__(self, element: str, dimensions: int, written: bool) -> None:
        self._element, self._dimensions, self._written = element, dimensions, written
        self.count = 1 + dimensions
        self._known: dict[int, tuple[weakref.ref[Any], list[int]]] = {}

    def words(self, argument: Any) -> list[int]:
        """Return the words of an array; they are remembered as long as it is there."""
        known = self._known.get(id(argument))
        if known is not None and known[0]() is argument:
            return known[1]
        words = self._words(argument)
        if len(self._known) >= _KNOWN:
            self._known.clear()
        self._known[id(argument)] = weakref.ref(argument), words
        return words

    def _words(self, argument: Any) -> list[int]:
        if not isinstance(argument, np.ndarray):
            raise Mismatch
        about = argument.__array_interface__
        shape, (address, read_only) = about["shape"], about["data"]
        if (
            about["strides"] is not None
            or about["typestr"] != self._element
            or len(shape) != self._dimensions
            or (read_only and self._written)
            or not argument.flags.aligned
        ):
            raise Mismatch
        return [address, *shape]

    def words_of_parts(self, values: Any) -> Words:
        """Return the words of the rows of an array, one a part, shape (parts, count)."""
        words = np.empty((len(values), self.count), np.int64)
        words[:] = self.words(values[0])
        words[:, 0] += np.arange(0, values.nbytes, values.strides[0])
        return words

    def fields(self, word: int, lines: list[str]) -> list[str]:
        """Return what Numba passes for an array, whose words are those from `word` on; add what computes it.

        Two words of an owner, of which there is none, elements, bytes of one, address, shape, strides.
        """
        bytes_ = str(np.dtype(self._element).itemsize)
        shape = [f"%w{word + 1 + k}" for k in range(self._dimensions)]
        size, strides = "1", [bytes_]
        for k, length in enumerate(shape):
            lines.append(f"%n{word}.{k} = mul i64 {size}, {length}")
            size = f"%n{word}.{k}"
        for k, length in enumerate(shape[:0:-1]):
            lines.append(f"%s{word}.{k} = mul i64 {strides[0]}, {length}")
            strides.insert(0, f"%s{word}.{k}")
        return ["0", "0", size, bytes_, f"%w{word}", *shape, *strides]


WordsOf = NumberWords | ArrayWords
NO_ARGUMENT = ArrayWords("", -1, False)
"""Of an argument too many."""


def words_of(argument: Any) -> WordsOf:
    """Return what finds the words of arguments of a type.

    Parameters
    ----------
    argument : numba.core.types.Type

    Raises
    ------
    Mismatch
        Of another type than C-contiguous arrays, numbers of 64 bits and truth values.
    """
    if isinstance(argument, types.Array) and argument.layout == "C" and argument.aligned:
        return ArrayWords(as_dtype(argument.dtype).str, argument.ndim, argument.mutable)
    for kind, number in ((types.int64, int), (types.float64, float), (types.boolean, bool)):
        if argument == kind:
            return NumberWords(number)
    raise Mismatch


_AFTER = 500
"""Threads woken for a function, over all its calls, after which its entry is made: that takes milliseconds,
and spares some 30 microseconds a thread."""

_KNOWN_ENTRIES = 32
"""Calls whose words are remembered, of each function."""

_LARGE = (np.ndarray, SharedArguments, PerPart)


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
        """Return the words of a call, shape (parts, words), read only.

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
        if len(self._known) >= _KNOWN_ENTRIES:
            self._known.clear()
        kept = [argument for argument in arguments if not isinstance(argument, _LARGE)]
        there = [weakref.ref(argument) for argument in arguments if isinstance(argument, _LARGE)]
        self._known[key] = words, there, kept
        return words

    def _words(self, arguments: Sequence[Any], parts: int) -> Words:
        words = np.empty((parts, self._width), np.int64)
        kinds, waiting, at = iter(self._kinds), list[int](), 0
        for argument in arguments:
            if isinstance(argument, SharedArguments):
                own = self._words_of_fixed(argument, list(islice(kinds, len(argument.arguments))))
            elif isinstance(argument, PerPart):
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

    def _words_of_fixed(self, fixed: SharedArguments, kinds: Sequence[WordsOf]) -> Words:
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
