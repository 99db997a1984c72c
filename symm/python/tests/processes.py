"""What the tests with PyTorch share: ranks that are processes, and cases by name."""

import multiprocessing
import sys
from collections.abc import Iterable

import symm
import torch


def chosen(usage: str, cases: Iterable[str]) -> list[str]:
    """The cases that the program was asked for; all if for none. Prints what they run on. Ends the
    program if there is no such case; `usage` is the second paragraph of its docstring."""
    names = sys.argv[1:] or list(cases)
    if not set(names) <= set(cases):
        print(usage.split("\n\n")[1], file=sys.stderr)
        sys.exit(2)
    print(f"symm {symm.__version__}, PyTorch {torch.__version__}, on "
          f"{'emulated GPUs' if symm.is_emulated() else torch.cuda.get_device_name()}")
    return names


def spawn(body, arguments: list, expected: list | None = None):
    """Runs body(*arguments[rank]) in a process per rank, which end with the expected statuses."""
    context = multiprocessing.get_context("spawn")
    ranks = [context.Process(target=body, args=mine) for mine in arguments]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join(300)
    codes = [process.exitcode for process in ranks]
    for process in ranks:
        process.kill()
    if codes != (expected or [0] * len(ranks)):
        raise RuntimeError(f"the ranks' exit statuses are {codes}")
