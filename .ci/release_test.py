#!/usr/bin/env python3
"""Tests ./lab release in a repository with the files that it reads. usage: release_test.py ROOT"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

REPOSITORY = Path(sys.argv.pop(1))
HEADER = "symm/c/symm.h"
CHANGELOG = """# Changelog

## 9.8.7 - 2026-01-02

### The course
- New.

## 9.8.6 - 2026-01-01
"""


class Release(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name, "clone")
        origin = Path(folder.name, "origin")
        for file in ("lab", "tools/lab/main.py", "tools/lab/tool.py", ".ci/release.py",
                     "CMakeLists.txt", HEADER):
            (origin / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / file, origin / file)
        subprocess.run(["git", "init", "-q", "-b", "main", origin], check=True)
        self.root.symlink_to(origin)
        self.write("CHANGELOG.md", CHANGELOG)
        self.git("config", "user.name", "a")
        self.git("config", "user.email", "a@b")
        self.commit()

    def git(self, *arguments) -> str:
        return subprocess.run(["git", *arguments], cwd=self.root, check=True, capture_output=True,
                              text=True).stdout

    def commit(self):
        self.git("add", ".")
        self.git("commit", "-q", "-m", "All")

    def write(self, file: str, text: str):
        (self.root / file).write_text(text)

    def release(self, *arguments) -> tuple:
        ended = subprocess.run([self.root / "lab", "release", *arguments], capture_output=True,
                               text=True, check=False)
        return ended.returncode, ended.stdout + ended.stderr

    def refused(self, says: str, *arguments):
        status, output = self.release(*arguments)
        self.assertEqual(status, 1, output)
        self.assertIn(says, output)
        self.assertEqual(self.git("tag"), "")

    def test_each_file_has_to_agree(self):
        date = "2026-01-02"
        self.assertEqual(self.release()[0], 2)
        self.refused("'9.8' is not a version", "9.8")
        self.refused("CMakeLists.txt has version", "9.8.7", date)
        text = (self.root / "CMakeLists.txt").read_text()
        version = text.split("project(symm VERSION ")[1].split()[0]
        self.write("CMakeLists.txt", text.replace(f"VERSION {version}", "VERSION 9.8.7"))
        self.refused("not committed", "9.8.7", date)
        self.commit()
        self.refused(f"{HEADER} has version {version}", "9.8.7", date)
        text = (self.root / HEADER).read_text()
        for part, old, new in zip(("MAJOR", "MINOR", "PATCH"), version.split("."), "987",
                                  strict=True):
            text = text.replace(f"SYMM_VERSION_{part} {old}\n", f"SYMM_VERSION_{part} {new}\n")
        self.write(HEADER, text)
        self.commit()
        self.refused("the first heading of CHANGELOG.md is '## 9.8.7 - 2026-01-02', not", "9.8.7")
        self.write("CHANGELOG.md", "## Unreleased\n" + CHANGELOG)
        self.commit()
        self.refused("is '## Unreleased'", "9.8.7", date)
        self.write("CHANGELOG.md", CHANGELOG)
        self.commit()
        self.git("switch", "-q", "--create", "course")
        self.refused("from the branch main", "9.8.7", date)
        self.git("switch", "-q", "main")
        status, output = self.release("9.8.7", date)
        self.assertEqual(status, 0, output)
        self.assertIn("git push --atomic origin main v9.8.7\n", output)
        self.assertEqual(self.git("tag", "--list", "--format=%(objecttype) %(contents)"),
                         "tag symm 9.8.7\n\n### The course\n- New.\n\n")
        self.assertEqual(self.release("9.8.7", date),
                         (1, "./lab: there is a tag v9.8.7 already\n"))


if __name__ == "__main__":
    for name in [name for name in os.environ if name.startswith("GIT_")]:  # a hook's
        del os.environ[name]
    unittest.main()
