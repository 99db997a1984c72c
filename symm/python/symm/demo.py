"""Adds up an array of each rank; the ranks are threads: python -m symm.demo [RANKS]"""

import argparse
import os
import sys
from concurrent.futures import ThreadPoolExecutor

import symm


def add_up(communicator: symm.Communicator) -> str:
    """What this rank has to say. Raises SymmError if a sum is wrong."""
    if not symm.is_emulated():
        import torch  # ranks that share a GPU need a stream each
        torch.cuda.set_stream(torch.cuda.Stream(communicator.device))
    x = communicator.empty((10, 100), "float32")  # in a window
    x[:] = communicator.rank + 1
    communicator.all_reduce(x)
    communicator.synchronize()
    total = sum(range(1, communicator.ranks + 1))
    if not bool((x == total).all()):
        raise symm.SymmError(f"rank {communicator.rank} has a wrong sum")
    terms = " + ".join(str(rank + 1) for rank in range(communicator.ranks))
    return (f"rank {communicator.rank}, on {'an emulated' if symm.is_emulated() else 'a'} GPU: "
            f"1000 sums are right: {terms} = {total}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m symm.demo")
    parser.add_argument("ranks", nargs="?", type=int, choices=range(1, 17), default=2)
    ranks = parser.parse_args().ranks

    def run(rank: int) -> str:
        with symm.Communicator(rank, ranks, f"demo {os.getpid()}") as communicator:
            return add_up(communicator)

    try:
        with ThreadPoolExecutor(ranks) as threads:
            print(*threads.map(run, range(ranks)), sep="\n")
    except (symm.SymmError, ImportError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
