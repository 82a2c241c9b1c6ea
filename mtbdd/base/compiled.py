"""Numba's decorator with a cache that never fails, and runs nothing that others may have written.

Numba's own cache raises an exception where it finds no folder to write to, where the disk is full and where a
file was cut. It unpickles all that lies in its folder, of any author. It notices changes of a function's own
file alone, not of the functions that are compiled into it. The files are those of `mtbdd.base.kernel_store`.
Importing needs Numba.
"""

# mypy: disable-error-code="misc, no-untyped-call, attr-defined"
# Much of Numba has no types.

from __future__ import annotations

import functools
import hashlib
import logging
import pickle
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import llvmlite
import numba
from numba.core import compiler, config, serialize, sigutils
from numba.core.caching import _Cache
from numba.core.ccallback import CFunc
from numba.core.dispatcher import Dispatcher
from numba.core.runtime import rtsys

from mtbdd.base.budget import add_seconds_compiling, current_course
from mtbdd.base.kernel_store import KernelStore, store_of
from mtbdd.base.lazy_loading import deferred

_log = logging.getLogger(__name__)


NOTICE = 25
"""Level of what people who wait want to know, between information and warnings."""

_CONSTANTS = (bool, int, float, str)
_NEED_ALL = (b"_numba_hashsecret", b"numba_parallel_for", b"do_scheduling", b"get_num_threads")
"""Names that code links to where it hashes texts or runs loops in parallel."""


_INLINED = ("numba.cpython.builtins", "numba.np.arraymath", "numba.np.arrayobj")
"""Modules of functions that ours are compiled with; stored code names them, and never reads their fields."""


def njit(signature: Any = None, *, cache: bool = True, **options: Any) -> Callable[[Any], Any]:
    """Return a decorator that compiles a function as ``numba.njit`` does.

    `signature`: compile for it now, and for no other. `cache`: keep the code between processes, in
    NUMBA_CACHE_DIR or the user's cache folder. Where that is not possible the function works all the same,
    compiled by every process, and a warning is logged once. `**options`: of ``numba.njit``. Returns callable:
    maps a function without closure to its compiled form.
    """

    def decorate(function: FunctionType) -> Any:
        compiled: Any = numba.njit(**options)(function)
        if not isinstance(compiled, Dispatcher):
            # NUMBA_DISABLE_JIT leaves functions as they are.
            return compiled
        if cache:
            compiled._cache = _KernelCache(function)
        if signature is not None:
            compiled.compile(signature)
            compiled.disable_compile()
        return compiled

    return decorate


def c_function(signature: Any) -> Callable[[Any], Any]:
    """Return a decorator that compiles a function to one that libraries in C can call.

    `signature`: of C's types. Returns callable: maps a function without closure, which raises nothing, to
    what has its `address`; kept between processes as those of `njit` are.
    """

    def decorate(function: FunctionType) -> Any:
        compiled = CFunc(function, sigutils.normalize_signature(signature), locals={}, options={})
        compiled._cache = _KernelCache(function)
        compiled.compile()
        return compiled

    return decorate


_under_way: tuple[str, float] | None = None
"""Name of the function that is being compiled, and when that began, of `time.monotonic`."""


class _KernelCache(_Cache):
    """A dispatcher's cache of compiled code, in place of ``numba.core.caching.FunctionCache``."""

    def __init__(self, function: FunctionType) -> None:
        self._function = function
        self._name = f"{function.__module__}.{function.__qualname__}"
        self._store = store_of(str(config.CACHE_DIR), str(Path(function.__code__.co_filename).parent))
        self._enabled = function.__closure__ is None

    @property
    def cache_path(self) -> str | None:
        """Folder of the files."""
        return None if self._store.folder is None else str(self._store.folder)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the code for a signature; None if there is none."""
        if not self._enabled:
            return None
        try:
            version = self._version(sig, target_context.codegen())
            payload = self._store.read(self._name, version)
        except OSError as error:
            _log.debug("no code of %s: %s", self._name, error)
            return None
        if payload is None:
            _tell_first_use(self._store)
            _log.info("compiling %s, once on this machine", self._name)
            self._begin()
            return None
        try:
            with deferred("scipy.linalg.cython_blas"):  # linked to where matrices are multiplied: not by ours
                _prepare(target_context, payload)
                with ExitStack() as stack:
                    for module in _INLINED:
                        stack.enter_context(deferred(module))
                    found = compiler.CompileResult._rebuild(target_context, *pickle.loads(payload))
            if found.signature.args == sigutils.normalize_signature(sig)[0]:
                return found
        except Exception as error:
            # The payload is whole, yet not what it should be: a fault of ours or of Numba's, not the user's.
            _log.debug("code of %s cannot be used: %s", self._name, error)
        self._store.drop(self._name, version)
        return None

    def _begin(self) -> None:
        """Take notice that the function is compiled from now on; functions that it calls are part of it."""
        global _under_way
        if _under_way is None or _under_way[0] == self._name:
            _under_way = self._name, time.monotonic()
        course = current_course()
        if course is not None and not course.compiling:
            course.change(compiling=self._name, since=time.monotonic())

    def _end(self) -> None:
        global _under_way
        if _under_way is not None and _under_way[0] == self._name:
            add_seconds_compiling(time.monotonic() - _under_way[1])
            _under_way = None
        course = current_course()
        if course is not None and course.compiling == self._name:
            course.change(compiled=course.compiled + time.monotonic() - course.since, compiling="")

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the code for a signature."""
        self._end()
        if not self._enabled or data.library.has_dynamic_globals or any(not x.can_cache for x in data.lifted):
            return
        try:
            version = self._version(sig, data.codegen)
        except OSError as error:
            _log.debug("code of %s is not kept: %s", self._name, error)
            return
        self._store.write(self._name, version, serialize.dumps(data._reduce()))

    def enable(self) -> None:
        """Use the cache."""
        self._enabled = self._function.__closure__ is None

    def disable(self) -> None:
        """Use the cache no more."""
        self._enabled = False

    def flush(self) -> None:
        """Keep everything: files are named by all that their code depends on."""

    def _version(self, sig: Any, codegen: Any) -> str:
        """Return digests of the source texts, and of the signature, the processor and the versions.

        Raises OSError: a source file cannot be read.
        """
        files, constants = set(), set()
        for code, globals_ in _functions(self._function):
            files.add(code.co_filename)
            for name in _names(code):
                if isinstance(globals_.get(name), _CONSTANTS):
                    constants.add((name, repr(globals_[name])))
        source = hashlib.sha256()
        for file in sorted(files):
            source.update(_file_digest(file))
        rest = (
            self._function.__code__.co_firstlineno,
            str(sig),
            codegen.magic_tuple(),
            sorted(constants),
            (numba.__version__, llvmlite.__version__, sys.implementation.cache_tag),
        )
        return f"{source.hexdigest()[:16]}-{hashlib.sha256(repr(rest).encode()).hexdigest()[:24]}"


def _prepare(target_context: Any, payload: bytes) -> None:
    """Make known to the linker what code may refer to.

    Everything that Numba can compile is loaded by ``refresh``, which takes longer than all our code does to
    load. Code that is compiled already needs the memory manager alone, with few exceptions.
    """
    if any(name in payload for name in _NEED_ALL):
        target_context.refresh()
    else:
        rtsys.initialize(target_context)


@functools.cache
def _tell_first_use(store: KernelStore) -> None:
    """Say, where no function is kept yet, that there will be some to wait for."""
    if store.folder is not None and store.is_first:
        _log.log(
            NOTICE,
            "first use on this machine: the functions that an answer needs are compiled for this processor, "
            "which takes 3 to 10 s once for each kind of model and engine; they are kept in %s",
            store.folder.parent,
        )


@functools.cache
def _file_digest(path: str) -> bytes:
    return hashlib.sha256(Path(path).read_bytes()).digest()


def _functions(function: FunctionType) -> Iterator[tuple[CodeType, dict[str, Any]]]:
    """Yield the function, and all compiled functions and intrinsics that it calls, with their globals."""
    seen: set[CodeType] = set()
    waiting = [function]
    while waiting:
        own = waiting.pop()
        if own.__code__ in seen:
            continue
        seen.add(own.__code__)
        yield own.__code__, own.__globals__
        for name in _names(own.__code__):
            used = own.__globals__.get(name)
            # An intrinsic keeps its definition as _defn, a dispatcher its function as py_func.
            used = getattr(used, "py_func", getattr(used, "_defn", None))
            if isinstance(used, FunctionType):
                waiting.append(used)


def _names(code: CodeType) -> Iterator[str]:
    """Yield the names that code and the functions within it read."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
