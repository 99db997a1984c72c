#!/usr/bin/env python3
"""Tests what a check believes of a program.
usage: results_test.py REPOSITORY"""

import sys
import tempfile
import unittest
from pathlib import Path

REPOSITORY = Path(sys.argv.pop(1))
sys.path[:0] = [str(REPOSITORY / "tools/course"), str(REPOSITORY / "tools/lab")]
import exercises  # noqa: E402
import verdict  # noqa: E402

# A program that tells what its arguments say. It reads the key first.
PROGRAM = """
import os, socket, sys
check = socket.socket(fileno=int(os.environ["SYMM_COURSE_RESULTS"]))
key = check.recv(32).decode()
check.sendall("".join(f"{key} {line}\\n" for line in sys.argv[1:]).encode())
"""


def said_of(*lines: str) -> tuple[bool, str]:
    ended = verdict.run([sys.executable, "-c", PROGRAM, *lines], 60)
    exercise = exercises.Exercise("0", "", "write", "", [], [], "")
    return ended.is_right, "" if ended.is_right else verdict.explain(exercise, ended, "").say


class Results(unittest.TestCase):
    def test_count_if_all_that_were_announced_are_told_as_right(self):
        self.assertEqual(said_of("announced a", "announced b", "right b", "right a"), (True, ""))

    def test_that_are_wrong_count_though_the_program_ends_with_success(self):
        right, said = said_of("announced a", "announced b", "wrong b", "right a")
        self.assertFalse(right)
        self.assertIn("the test b fails", said)

    def test_that_are_missing_are_an_early_end(self):
        for lines, said in (([], "none has begun"), (["announced a"], "0 of 1 results"),
                            (["announced a", "announced b", "right b"], "1 of 2 results")):
            right, told = said_of(*lines)
            self.assertFalse(right)
            self.assertIn(said, told)

    def test_that_are_told_twice_or_never_announced_do_not_count(self):
        for lines in (["announced a", "right a", "right a"], ["announced a", "right a", "wrong a"],
                      ["announced a", "right a", "right b"], ["announced a", "announced a"],
                      ["announced a", "right a", "announced b", "right b"]):
            right, told = said_of(*lines)
            self.assertFalse(right, lines)
            self.assertIn("twice, or not announced", told)

    def test_without_the_key_spoil_all(self):
        right, told = said_of("announced a", "right a\nright a")  # the second line has none
        self.assertFalse(right)
        self.assertIn("Something other than the tests", told)

    def test_of_any_length_arrive(self):
        row = '["' + "x" * 3_000_000 + '"]'
        lines = ["announced a", f"description {row}", "right a"]
        program = PROGRAM.replace("sys.argv[1:]", repr(lines))
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write(program)
            file.flush()
            ended = verdict.run([sys.executable, file.name], 60)
        self.assertTrue(ended.is_right)
        self.assertEqual(ended.rows, [["x" * 3_000_000]])


if __name__ == "__main__":
    unittest.main()
