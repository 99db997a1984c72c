#!/usr/bin/env python3
"""The course's commands in a copy of the repository, without what is built: what they do to files
and to git. usage: course_test.py REPOSITORY"""

import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

REPOSITORY = Path(sys.argv.pop(1))
FILE = "labs/01_vmm_alloc/device_buffer.cpp"  # of 01.1 and 01.2


class Course(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name)
        for part in ("CMakeLists.txt", "CMakePresets.json", ".gitignore", "cmake", "common",
                     "labs"):
            source = REPOSITORY / part
            copy = shutil.copytree if source.is_dir() else shutil.copy
            copy(source, self.root / part)
        self.untouched = (self.root / FILE).read_text()

    def tearDown(self):
        self.folder.cleanup()

    def run_command(self, *command, status=0) -> str:
        ended = subprocess.run(command, cwd=self.root, capture_output=True, text=True, check=False)
        self.assertEqual(ended.returncode, status, ended.stdout + ended.stderr)
        return ended.stdout + ended.stderr

    def course(self, *arguments, status=0) -> str:
        return self.run_command(sys.executable, "-B", self.root / "common/course/course.py",
                                *arguments, status=status)

    def git(self, *arguments) -> str:
        return self.run_command("git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments)

    def begin_history(self):
        self.git("init", "-q", "-b", "main")
        self.git("add", ".")
        self.git("commit", "-q", "-m", "All")

    def text(self) -> str:
        return (self.root / FILE).read_text()

    def test_the_solution_is_not_in_the_diff(self):
        self.begin_history()
        self.course("start", "01.1")
        self.assertEqual(self.git("diff", "HEAD"), "")
        self.assertEqual(self.git("branch", "--show-current"), "course\n")
        self.assertNotIn("PhysicalMemory::create(", self.git("show", f"HEAD:{FILE}"))
        call = "    symm::missing("
        (self.root / FILE).write_text(self.text().replace(call, "    // mine\n" + call))
        self.assertEqual(re.findall(r"^[-+] .*", self.git("diff", "-U0"), re.M), ["+    // mine"])

    def test_what_is_checked_on_another_branch_is_told(self):
        self.begin_history()
        self.course("start", "01.1")
        self.git("switch", "-q", "main")
        self.assertIn("git switch course", self.course("check", "01.1", status=2))

    def test_reset_brings_all_back(self):
        for with_git in (False, True):
            if with_git:
                self.begin_history()
            self.course("start", "01.1")
            self.course("start", "01.2")
            self.course("reset", "01.1")
            self.course("reset", "01.2")
            self.assertEqual(self.text(), self.untouched)
        self.assertEqual(self.git("status", "--short"), "")

    def test_a_check_builds_the_solution_of_all_others(self):
        self.course("start", "01.1")
        self.course("start", "01.2")
        built = self.built_for("01.2")
        self.assertIn("PhysicalMemory::create(", built)
        self.assertNotIn('symm::missing("01.1"', built)
        self.assertIn('symm::missing("01.2"', built)
        self.assertEqual(self.lines_as_compiled(built)['symm::missing("01.2"'],
                         self.lines_as_compiled(self.text())['symm::missing("01.2"'])
        self.assertIn('symm::missing("01.1"', self.built_for("01.1"))
        self.assertNotIn("symm::missing(", self.built_for(None))

    def built_for(self, exercise) -> str:
        code = ("import exercises, tree; course = exercises.load(); "
                f"tree.update(course, next((e for e in course if e.id == '{exercise}'), None))")
        self.run_command("env", f"PYTHONPATH={self.root}/common/course", sys.executable, "-B", "-c",
                         code)
        return (self.root / "build/course_tree" / FILE).read_text()

    @staticmethod
    def lines_as_compiled(text: str) -> dict:
        """The line number that the compiler names, for each call that says what is missing."""
        number, found = 0, {}
        for line in text.splitlines():
            number += 1
            if given := re.match(r"#line (\d+)", line):
                number = int(given[1]) - 1
            elif call := re.search(r'symm::missing\("[\d.]+"', line):
                found[call[0]] = number
        return found

    def test_learn_lists_what_has_to_do_with_a_word(self):
        self.assertIn("01.1", self.course("learn", "granularity"))
        self.assertNotIn("05.4", self.course("learn", "granularity"))


if __name__ == "__main__":
    unittest.main()
