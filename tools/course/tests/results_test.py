#!/usr/bin/env python3
"""Tests what a check believes of a program, and which answers it refuses to build.
usage: results_test.py REPOSITORY"""

import sys
import tempfile
import unittest
from pathlib import Path

REPOSITORY = Path(sys.argv.pop(1))
sys.path[:0] = [str(REPOSITORY / "tools/course"), str(REPOSITORY / "tools/lab")]
import check_tree  # noqa: E402
import exercises  # noqa: E402
import refusal  # noqa: E402
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


# What is refused, for its text alone, beside what is not.
REFUSED = """
#define fail(...)
# /**/ include <csignal>
%: define fail
/* a comment */ #undef fail
std::_Exit(0);
static const int cheat = std::atexit(f);
extern char** environ;
setenv("GTEST_TOTAL_SHARDS", "9", 1);
std::memcpy(std::getenv("HOME") - 5, "A=", 2);
std::ofstream("/pr" "oc/self/mem");
open("/pr" "oc/self/mem", O_RDWR);
[[gnu::constructor]] void f();
[[ using gnu : no_sanitize("thread")]] void f();
__attribute__((constructor)) void f();
__tsan_ignore_thread_begin();
#pragma clang attribute push(__no, apply_to = function)
#pragma redefine_extname fail fine
asm volatile("");
wmemcpy(to, from, 4);
template <> struct std::hash<int>;
const_cast<std::vector<Tensor>&>(tensors).clear();
namespace explore { void fail(); }
::testing::GTEST_FLAG(filter) = "";
bool operator==(Path, Path) { return true; }
return; /*
return; R"(
} void write() {
} } namespace symm { {
std::longjmp(b, 1);
std::signal(SIGSEGV, f);
if (fork() == 0) {}
"""
ACCEPTED = """
#pragma unroll
#pragma GCC unroll 4
// #define it as _Exit(0), or in a namespace
/* #define */ int exits = 1'000;
puts("exit of \\"main\\" # fork");
const char quote = '"', brace = '{';
symm::signal(&flag, 1);
std::memcpy(to, from, 16);
wait_for(static_cast<const int*>(flag));
const auto text = R"(#define { )";
for (int i = 0; i < 3; ++i) { if (a <= b && c == d) { e >> f; } }
struct Less { bool operator()(int a, int b) const { return a < b; } };
return waiter.until(test, [&] { return true; });
template <class T> T twice(T t) { return t + t; }
"""


class Refusals(unittest.TestCase):
    def test_are_for_what_only_a_cheat_needs(self):
        in_two_lines = ["#def\\\nine fail(...)", "std::_Ex\\\nit(0);"]
        for code in REFUSED.strip().splitlines() + in_two_lines:
            self.assertTrue(refusal.reason(f"    a();\n{code}\n    b();\n", "    a();\n"), code)
        for code in ACCEPTED.strip().splitlines():
            self.assertEqual(refusal.reason(f"    a();\n{code}\n    b();\n", "    a();\n"), "")

    def test_spare_what_the_solution_has(self):
        solution = "#ifdef A\n    std::_Exit(0);\n#endif\n}  // the class\n"
        self.assertEqual(refusal.reason(solution.replace("0", "1"), solution), "")
        self.assertIn("#ifdef B", refusal.reason(solution.replace("A", "B"), solution))
        self.assertIn("closes a brace", refusal.reason(solution + "struct A {\n", solution))

    def test_are_for_no_answer_that_the_course_knows(self):
        for exercise in exercises.load():
            if exercise.file:
                solution = check_tree.solution_of(exercise)
                answers = [solution, exercises.stub_of(exercise, solution),
                           *(w.text or exercises.changed(solution, w.change)
                             for w in exercise.wrong if w.text or w.change)]
                for answer in answers:
                    self.assertEqual(refusal.reason(answer, solution), "", exercise.id)


if __name__ == "__main__":
    unittest.main()
