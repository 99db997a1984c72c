"""Tests of ranks that multiprocessing starts, in each of its ways, from a program that has symm."""

import multiprocessing
import os
import subprocess
import sys
import unittest

import symm


def add_up(rank: int, name: str):
    with symm.Communicator(rank, 2, name) as communicator:
        x = communicator.empty((100,), "float32")
        x[:] = rank + 1
        communicator.all_reduce(x)
        communicator.synchronize()
        assert (x == 3).all()


def two_ranks(way: str):
    context = multiprocessing.get_context(way)
    name = f"multiprocessing {way} {os.getpid()}"
    ranks = [context.Process(target=add_up, args=(rank, name)) for rank in range(2)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join(60)
        rank.kill()
    assert [rank.exitcode for rank in ranks] == [0, 0]


class Ranks(unittest.TestCase):
    def test_may_be_started_in_any_way(self):
        for way in multiprocessing.get_all_start_methods():
            with self.subTest(way):  # a new program: after other tests' calls, fork is refused
                subprocess.run([sys.executable, __file__, way], check=True)


if __name__ == "__main__":
    two_ranks(sys.argv[1])
