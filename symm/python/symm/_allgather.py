"""Creation of a communicator by a function of the user's, which C calls."""

import contextlib
import ctypes
from collections.abc import Callable, Iterator
from typing import Any

from ._library import Allgather, Options, SymmError, c
from ._waits import RunHere


@contextlib.contextmanager
def creation_by(allgather: Callable[[bytes], list[bytes]], rank: int,
                ranks: int) -> Iterator[Callable[[Any, Options, RunHere], int]]:
    """A function for Comm. Raises what `allgather` has raised in the place of C's error."""
    raised = []

    def create(where: Any, how: Options, run_here: RunHere) -> int:
        def call(_context: Any, mine: int, every: int, size: int) -> int:
            try:
                bytes_of_mine = ctypes.string_at(mine, size)
                parts = run_here(lambda: allgather(bytes_of_mine))
                if parts is None or [len(part) for part in parts] != [size] * ranks:
                    raise ValueError(
                        f"allgather must return {size} bytes of each of {ranks} ranks")
                ctypes.memmove(every, b"".join(parts), size * ranks)
            except BaseException as error:  # it cannot pass C
                raised.append(error)
            return len(raised)

        return int(c.symm_comm_create_by_allgather(where, rank, ranks, Allgather(call), None, how))

    try:
        yield create
    except SymmError as error:
        raise (*raised, error)[0] from None
