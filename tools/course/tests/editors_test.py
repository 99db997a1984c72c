"""Tests of how an exercise's file is opened: programs with editors' names print their arguments.
usage: editors_test.py REPOSITORY"""

import contextlib
import io
import os
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(sys.argv.pop(1))
sys.path += [str(ROOT / "tools/course"), str(ROOT / "tools/lab")]
import editors  # noqa: E402

FILE = "labs/05_Level/a file.hpp"
OPENED = {  # by $VISUAL, the words that the program gets
    "vim": ["+12", FILE],
    "nvim -p": ["-p", "+12", FILE],
    "vi": ["+12", FILE],
    "emacs-29.1 -nw": ["-nw", "+12", FILE],
    "emacsclient -t": ["-t", "+12", FILE],
    "emacsclient": ["+12", FILE],
    "hx": [f"{FILE}:12"],
    "code": ["--goto", f"{FILE}:12"],
    "code --wait": ["--goto", f"{FILE}:12"],
    "codium -w": ["--goto", f"{FILE}:12"],
    "windsurf": ["--goto", f"{FILE}:12"],
    "zed --wait": [f"{FILE}:12"],
    "subl -n -w": ["-n", f"{FILE}:12"],
    "kate": ["-l", "12", FILE],
    "clion.sh": ["--line", "12", FILE],
    "pycharm --wait": ["--line", "12", FILE],
    "gedit": ["+12", FILE],
    "unknown -x": ["-x", FILE]}


class Editor(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.said = self.folder / "said"

    def open(self, editor: str, script: str = ""):
        """In an editor that runs the script, and then says the words that it has got."""
        program = self.folder / editor.split()[0]
        program.write_text(f"#!/bin/sh\n{script}\nprintf '%s\\n' \"$@\" >{self.said}.part\n"
                           f"mv {self.said}.part {self.said}\n", encoding="utf-8")
        program.chmod(0o755)
        self.said.unlink(missing_ok=True)
        path = f"{self.folder}:{os.environ['PATH']}"
        environment = {"PATH": path, "VISUAL": editor, "TERM_PROGRAM": ""}
        with mock.patch.dict(os.environ, environment), \
                mock.patch.object(sys.stdout, "isatty", lambda: True):
            editors.open_at(f"{FILE}:12")

    def words(self) -> list:
        end = time.monotonic() + 20
        while not self.said.exists() and time.monotonic() < end:
            time.sleep(0.01)
        return self.said.read_text(encoding="utf-8").splitlines()

    def test_gets_the_file_and_the_line_as_it_wants_them(self):
        for editor, words in OPENED.items():
            with self.subTest(editor):
                self.open(editor)
                self.assertEqual(self.words(), words)

    def test_with_a_window_is_not_waited_for(self):
        begun = time.monotonic()
        self.open("code --wait", script="sleep 3")
        self.assertLess(time.monotonic() - begun, 2)
        self.assertEqual(self.words(), ["--goto", f"{FILE}:12"])

    def test_in_the_terminal_is_waited_for(self):
        self.open("vim", script="sleep 0.2")
        self.assertTrue(self.said.exists())

    def test_that_is_missing_is_named(self):
        with mock.patch.dict(os.environ, {"VISUAL": "no-such-editor", "TERM_PROGRAM": ""}), \
                contextlib.redirect_stdout(io.StringIO()) as printed:
            printed.isatty = lambda: True
            editors.open_at(f"{FILE}:12")
        self.assertIn("could not start no-such-editor", printed.getvalue())


unittest.main()
