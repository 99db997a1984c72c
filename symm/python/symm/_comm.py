"""One rank's symm_comm: who may use it, what its calls in flight use, and how it ends."""

import atexit
import contextlib
import ctypes
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any

from ._arrays import Array
from ._library import SymmError, c, check, last_error
from ._waits import RunHere, interruptible, is_main_thread

#: Seconds that calls in flight have to end in when nobody waits for them.
LAST_CALLS = 2.0
_AFTER_CTRL_C = 0.5
_PER_THREAD = 2
_IDLE = 0.1  # those that a communicator without calls in flight ends in
_ALL: "weakref.WeakSet[Comm]" = weakref.WeakSet()


class Comm:
    """Owns a symm_comm. Use it within `with comm as pointer`, which raises ValueError if it is
    destroyed, in a forked child, and while another thread, or a call that waits, uses it."""

    def __init__(self, create: Callable[[Any, RunHere], int]):
        """create(where, run_here) calls a function of C that puts the pointer there."""
        self._pointer = ctypes.c_void_p()
        self._process = os.getpid()
        # The thread that uses it. Not a lock, which Ctrl-C can leave locked.
        self._user: dict[str, int] = {}
        self._waits = False  # in a thread of its own (_waits.py)
        self._left = False  # to that thread, after Ctrl-C, which destroys it then
        self._kept: deque[tuple[int, list[Any]]] = deque()  # (mark, what the calls before it use)
        self._unmarked: list[list[Any]] = []  # what calls use that have no mark
        self._called: set[str] = set()  # names of functions that have queued a call
        _ALL.add(self)

        interruptible(lambda run_here: check(create(ctypes.byref(self._pointer), run_here)),
                      self._interrupted)

    def is_usable(self) -> bool:
        """Not destroyed, nor a parent process's."""
        return bool(self._pointer) and os.getpid() == self._process

    def require_usable(self) -> None:
        if os.getpid() != self._process:
            raise ValueError(f"the communicator belongs to process {self._process}, from which "
                             "this one was forked: start ranks as new programs (in "
                             "multiprocessing by \"spawn\")")
        if not self._pointer:
            raise ValueError("the communicator was destroyed")

    def __enter__(self) -> ctypes.c_void_p:
        self.require_usable()
        me = threading.get_ident()
        if self._waits or self._user.setdefault("thread", me) != me:
            raise ValueError("another call of this communicator has not returned: one thread uses "
                             "it at a time")
        return self._pointer

    def __exit__(self, *_: Any) -> None:
        self._user.clear()

    # Calls

    def queue(self, function: Any, may_wait: Any, arguments: tuple[Any, ...], stream: int,
              arrays: list[Array]) -> None:
        """Calls function(pointer, *arguments, stream), and keeps the arrays' memory until the work
        that this queues has ended. may_wait() has the same arguments, and says whether the call may
        wait for other ranks; None: it does once."""
        kept = [array.kept for array in arrays if array.kept is not None]
        with self as pointer:
            self._forget_ended(pointer)
            for producer in {array.producer for array in arrays} - {None, stream}:
                check(c.symm_comm_follow(pointer, stream, producer))
            self._unmarked.append(kept)  # first, since Ctrl-C may come after the call
            try:
                # Another thread has another CU_STREAM_PER_THREAD.
                if is_main_thread() and stream != _PER_THREAD and (
                        function.__name__ not in self._called if may_wait is None else
                        may_wait(pointer, *arguments, stream)):
                    self._wait_within(function, pointer, *arguments, stream)
                else:
                    check(function(pointer, *arguments, stream))
                self._called.add(function.__name__)
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
        if is_main_thread():
            with self as pointer:
                mark = self._mark(pointer, stream)
                for _ in range(1000):  # about a millisecond, less than a thread is worth
                    ended = self._passed(pointer) >= mark
                    if ended:
                        break
            if not ended:
                self.wait(c.symm_comm_synchronize, stream)
        with self as pointer:
            check(c.symm_comm_synchronize(pointer, stream))
            self._forget_ended(pointer)

    def wait(self, function: Any, *arguments: Any) -> None:
        """Calls function(pointer, *arguments), which waits. Ctrl-C ends the calls in flight."""
        with self as pointer:
            self._wait_within(function, pointer, *arguments)

    def _wait_within(self, function: Any, *arguments: Any) -> None:
        try:
            self._waits = True
            interruptible(lambda _: check(function(*arguments)), self._interrupted)
        finally:
            self._waits = self._left

    def _interrupted(self, call: Future[Any]) -> None:
        def end(_: Future[Any]) -> None:
            self._waits = False
            self.close(0)

        if self.is_usable():  # else it was being created
            self.abort()
        if wait([call], _AFTER_CTRL_C).not_done:
            self._left = True
            call.add_done_callback(end)

    # From any thread, also while another one uses it

    def async_error(self) -> str:
        self.require_usable()
        return last_error() if c.symm_comm_async_error(self._pointer) else ""

    def abort(self) -> None:
        if os.getpid() == self._process:
            self.require_usable()
            check(c.symm_comm_abort(self._pointer))

    # The end

    def destroy(self) -> None:
        """Waits for the calls in flight."""
        if self._left or not self.is_usable():
            return
        try:
            with contextlib.suppress(SymmError):  # that a call has no result: synchronize() says it
                self.wait(c.symm_comm_finish)
        except ValueError:  # another thread uses it
            raise
        except BaseException:  # a signal's handler raised
            if not self._left:
                self._end(None)
            raise
        self._end(None)

    def _end(self, seconds: float | None) -> None:
        """Destroys it, after it has ended calls that are in flight for that long."""
        with self as pointer:
            if seconds is not None:
                c.symm_comm_finish_within(pointer, seconds)
            destroyed, self._pointer = pointer, ctypes.c_void_p()
            check(c.symm_comm_destroy(destroyed))
            self._kept.clear()
            self._unmarked.clear()

    def close(self, seconds: float = LAST_CALLS) -> None:
        """For a communicator that nobody has destroyed: does not wait longer than that."""
        if not self.is_usable():
            return
        try:
            with contextlib.suppress(SymmError):
                self._end(seconds)
        except ValueError:  # a daemon thread is in a call, which it may not outlive
            self.abort()

    def __del__(self) -> None:
        if hasattr(self, "_unmarked"):
            self.close()


@atexit.register
def _close_all() -> None:
    end = time.monotonic() + LAST_CALLS
    for comm in list(_ALL):
        comm.close(max(_IDLE, end - time.monotonic()))
