"""Ranks that are threads, and their values, for the tests."""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy
import symm

runs = iter(range(1000))


def on_ranks(ranks: int, body, **options) -> list:
    """Runs body(communicator) in a thread per rank. Returns or raises what the bodies do."""
    name = f"test {os.getpid()} {next(runs)}"

    def run(rank: int):
        with symm.Communicator(rank, ranks, name, **options) as communicator:
            return body(communicator)

    with ThreadPoolExecutor(ranks) as threads:
        return list(threads.map(run, range(ranks)))


def alone(**options) -> symm.Communicator:
    """A communicator of one rank."""
    return symm.Communicator(0, 1, f"test {os.getpid()} {next(runs)}", **options)


def values(rank: int, shape, dtype: str) -> numpy.ndarray:
    """A rank's input: small whole numbers, which differ by rank and index."""
    count = int(numpy.prod(shape))
    return (numpy.arange(count) % 7 + rank + 1).astype(dtype).reshape(shape)
