"""One rank's symm_comm: who may use it, what its calls in flight use, and how it ends."""

import ctypes
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from ._library import c, check, last_error


class Comm:
    """Owns a symm_comm. Use it within `with comm as pointer`, which raises ValueError if it is
    destroyed, and while another thread uses it."""

    def __init__(self, create: Callable[[Any], int]):
        """create(where) calls a function of C that puts the pointer there."""
        self._pointer = ctypes.c_void_p()
        self._turn = threading.Lock()
        self._kept: deque = deque()  # (mark, what the calls before it use)
        self._unmarked: list = []  # what calls use that have no mark
        check(create(ctypes.byref(self._pointer)))

    def is_usable(self) -> bool:
        """Not destroyed."""
        return bool(self._pointer)

    def require_usable(self) -> None:
        if not self._pointer:
            raise ValueError("the communicator was destroyed")

    def __enter__(self) -> ctypes.c_void_p:
        self.require_usable()
        if not self._turn.acquire(blocking=False):
            raise ValueError("another thread is in a call of this communicator: it is used by one "
                             "thread at a time")
        return self._pointer

    def __exit__(self, *_: Any) -> None:
        self._turn.release()

    # Calls

    def queue(self, function: Any, arguments: tuple, stream: int, arrays: list) -> None:
        """Calls function(pointer, *arguments, stream), and keeps the arrays' memory until the work
        that this queues has ended."""
        kept = [array.kept for array in arrays if array.kept is not None]
        with self as pointer:
            self._forget_ended(pointer)
            for producer in {array.producer for array in arrays} - {None, stream}:
                check(c.symm_comm_follow(pointer, stream, producer))
            self._unmarked.append(kept)  # first, since a signal's handler may raise after the call
            try:
                check(function(pointer, *arguments, stream))
            except ValueError:  # nothing was queued
                self._unmarked.pop()
                raise
            if not kept:
                self._unmarked.pop()
            elif mark := self._mark(pointer, stream):
                self._kept.append((mark, self._unmarked.pop()))

    def _mark(self, pointer: ctypes.c_void_p, stream: int) -> int:
        """0 if the stream is captured."""
        mark = ctypes.c_size_t()
        check(c.symm_comm_mark(pointer, stream, mark))
        return mark.value

    def _passed(self, pointer: ctypes.c_void_p) -> int:
        mark = ctypes.c_size_t()
        check(c.symm_comm_passed(pointer, mark))
        return mark.value

    def _forget_ended(self, pointer: ctypes.c_void_p) -> None:
        if self._kept:
            passed = self._passed(pointer)
            while self._kept and self._kept[0][0] <= passed:
                self._kept.popleft()

    def synchronize(self, stream: int) -> None:
        with self as pointer:
            check(c.symm_comm_synchronize(pointer, stream))
            self._forget_ended(pointer)

    def wait(self, function: Any, *arguments: Any) -> None:
        """Calls function(pointer, *arguments), which waits."""
        with self as pointer:
            check(function(pointer, *arguments))

    # From any thread, also while another one uses it

    def async_error(self) -> str:
        self.require_usable()
        return last_error() if c.symm_comm_async_error(self._pointer) else ""

    def abort(self) -> None:
        if self.is_usable():
            check(c.symm_comm_abort(self._pointer))

    # The end

    def destroy(self) -> None:
        """Waits for the calls in flight."""
        if not self.is_usable():
            return
        with self as pointer:
            destroyed, self._pointer = pointer, ctypes.c_void_p()
            check(c.symm_comm_destroy(destroyed))
            self._kept.clear()
            self._unmarked.clear()

    def __del__(self) -> None:
        if hasattr(self, "_unmarked"):
            self.destroy()
