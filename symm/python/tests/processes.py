"""Ranks that are processes, for the tests with PyTorch."""

import multiprocessing


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
