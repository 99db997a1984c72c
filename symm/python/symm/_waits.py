"""Calls of C that wait, and Ctrl-C.

Python runs the handlers of signals in its main thread only, and there between two steps of its own:
never while a call of C waits. So a call of the main thread that may wait long is made in a thread
of its own, and the main thread waits in Python for that one, a tenth of a second at a time: a
signal that comes just before it sleeps, or in another thread, does not wake it."""

import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any

#: Runs a function in the thread that waits, and returns or raises what it does.
RunHere = Callable[[Callable[[], Any]], Any]


def is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _settle(future: Future[Any], function: Callable[[], Any]) -> None:
    try:
        future.set_result(function())
    except BaseException as error:
        future.set_exception(error)


def interruptible(body: Callable[[RunHere], Any],
                  interrupted: Callable[[Future[Any]], None]) -> Any:
    """Returns or raises what body() does. If a signal's handler raises meanwhile, as Ctrl-C does,
    calls interrupted() with the future of body(), which may still run, and raises that."""
    if not is_main_thread():
        return body(lambda function: function())
    ended: Future[Any] = Future()
    jobs: SimpleQueue[Any] = SimpleQueue()  # from the thread for this one; None: the body has ended
    left = threading.Event()

    def run_here(function: Callable[[], Any]) -> Any:
        job: Future[Any] = Future()
        jobs.put((job, function))
        if left.is_set():
            job.cancel()
        return job.result()

    def run() -> None:
        _settle(ended, lambda: body(run_here))
        jobs.put(None)

    try:
        started = _start(run)
        while started and (job := _get(jobs)) is not None:
            _settle(*job)
    except BaseException:
        left.set()
        while not jobs.empty() and (job := jobs.get()) is not None:
            job[0].cancel()
        interrupted(ended)
        raise
    return ended.result() if started else body(lambda function: function())


def _get(jobs: SimpleQueue[Any]) -> Any:
    while True:
        with contextlib.suppress(Empty):
            return jobs.get(timeout=0.1)


def _start(run: Callable[[], None]) -> bool:
    try:
        threading.Thread(target=run, name="symm", daemon=True).start()
    except RuntimeError:  # the interpreter is ending, and starts no thread
        return False
    return True
