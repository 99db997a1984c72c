#!/usr/bin/env python3
"""Tests what ./lab grade does with the repositories of a hostile class.
 usage: class_test.py REPOSITORY"""

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
import zlib
from pathlib import Path

from hostile_class import (ENVIRONMENT, FILE, RIGHT, ROOT, HostileClass, class_points, exercises,
                           processes, rows_of, source, state_of)

import likeness


class Class(HostileClass):
    def test_a_class_of_twelve_has_a_row_each_and_the_same_points_as_alone(self):
        self.hand_in("ann")
        self.hand_in("bob", "echo wrong", "3")
        cat = self.hand_in("cat")
        self.git("cat", "update-ref", "refs/remotes/origin/course", "refs/heads/course")
        self.git("cat", "update-ref", "-d", "refs/heads/course")
        self.git("cat", "gc", "-q")
        self.assertFalse((cat / ".git/refs/remotes/origin/course").exists())
        (self.folder / "dan" / FILE).parent.mkdir(parents=True)
        (self.folder / "dan" / FILE).write_text(source(RIGHT))
        (self.folder / "eve").mkdir()
        self.git("eve", "init", "-q")
        self.hand_in("fay", notes="Seed: 1\nWrong answers before: 0\n")
        hostile = self.put_hostile()
        (self.folder / "list of names.txt").touch()
        before = state_of(self.folder, self.outside, ROOT)
        together = self.graded()["learners"]
        rows = rows_of(together)
        self.assertEqual(
            {name: rows.pop(name) for name in ("ann", "bob", "cat", "dan", "eve", "fay")},
            {"ann": 4, "bob": 0, "cat": 4, "dan": 3, "eve": 0, "fay": 4})
        self.assertEqual(set(rows), set(hostile))
        for name, expected in hostile.items():
            self.assertRegex(str(rows[name]), f"^{expected}", name)
        self.assertEqual(state_of(self.folder, self.outside, ROOT), before)
        self.assertEqual(processes(self.mark), [])
        alone = []
        for name in filter(os.path.isdir, sorted(self.folder.iterdir())):
            with tempfile.TemporaryDirectory() as folder:
                name.rename(f"{folder}/{name.name}")
                (Path(folder) / "zoe/labs/x").mkdir(parents=True)  # one that can be graded
                alone.append(self.graded(Path(folder))["learners"][0])
        self.assertEqual(together, alone)

    def put_hostile(self) -> dict:
        """Six repositories, with a pattern of the row of each."""
        self.hand_in("\n  149  forged\033[2K")  # a name that prints another row

        # Its configuration has git fetch missing objects by a program of the learner's.
        lazy = self.hand_in("lazy")
        blob = self.git("lazy", "rev-parse", f"course:{FILE}")
        (lazy / ".git/objects" / blob[:2] / blob[2:]).unlink()
        (lazy / ".git/config").write_text(
            "[core]\nrepositoryformatversion = 1\n[extensions]\npartialclone = x\n"
            f"[remote \"x\"]\nurl = .\npromisor = true\nuploadpack = touch {self.outside}/ran; x\n")

        # Numbers that Python refuses to read, and one that no wrong answer has.
        self.hand_in("numbers", notes=f"Seed: {'9' * 5000}\nWrong answers before: {'1' * 5000}, "
                     "999\n")

        self.hand_in("bomb")  # a few KB that are a gigabyte
        with tempfile.TemporaryFile() as zeros:
            zeros.truncate(1 << 25)
            blob = subprocess.run(["git", "-C", self.folder / "bomb", "hash-object", "-w",
                                   "--stdin"], stdin=zeros, capture_output=True, check=True)
        self.commit("bomb", f"100644,{blob.stdout.decode().strip()}", "Answer: 4\n")

        # A process with a name that looks like the rest of its line in /proc, and which no signal
        # but SIGKILL ends, in a session of its own.
        self.hand_in("names", "printf ') R 1 1 1' >/proc/$$/comm; trap '' TERM HUP INT; "
                     "(setsid sh -c \"printf ') Z 1 1' >/proc/\\$\\$/comm; sleep 1000 & "
                     "sleep 1000\" &); echo right")

        broken = self.hand_in("broken")  # a commit whose object has another one's data
        commit = self.git("broken", "rev-parse", "course")
        path = broken / ".git/objects" / commit[:2] / commit[2:]
        path.chmod(0o600)
        path.write_bytes(zlib.compress(b"commit 99999999999\0tree " + b"0" * 40))
        return {r"\n  149  forged\x1b[2K": "4", "lazy": "1",
                "numbers": "4", "bomb": "1", "names": "4", "broken": "git log: "}

    def test_a_repository_that_names_another_one_takes_none_of_its_answers(self):
        ann = self.hand_in("ann")
        commit = self.git("ann", "rev-parse", "course")
        for name in ("borrows", "follows", "points", "reads"):
            (self.folder / name).mkdir()
        for name in ("borrows", "follows", "reads"):
            self.git(name, "init", "-q")
        (self.folder / "borrows/.git/objects/info/alternates").write_text(f"{ann}/.git/objects\n")
        (self.folder / "borrows/.git/refs/heads/course").write_text(f"{commit}\n")
        (self.folder / "follows/.git/refs/heads/course").symlink_to(
            ann / ".git/refs/heads/course")
        (self.folder / "points/.git").write_text(f"gitdir: {ann}/.git\n")
        (self.folder / "reads/.git/refs/heads/course").write_text(
            "ref: ../../../ann/.git/refs/heads/course\n")
        (self.folder / "linked").symlink_to(ann)
        shutil.copytree(ann, self.folder / "objects")
        shutil.rmtree(self.folder / "objects/.git/objects")
        (self.folder / "objects/.git/objects").symlink_to(ann / ".git/objects")
        rows = self.rows()
        self.assertEqual(rows.pop("ann"), 4)
        for name, why in (("borrows", "names another repository"), ("follows", "cannot be read"),
                          ("points", "name another one"), ("reads", "does not name a commit"),
                          ("linked", "not a folder"), ("objects", "cannot be read")):
            self.assertIn(why, str(rows.pop(name)))
        self.assertEqual(rows, {})

    def test_a_folder_in_another_ones_repository_has_none_of_its_answers(self):
        self.hand_in("ann")
        (self.folder / "ann/inner/labs/x").mkdir(parents=True)
        self.assertEqual(self.rows(self.folder / "ann")["inner"], 0)

    def test_progress_that_a_learner_claims_earns_nothing(self):
        self.hand_in("ann", "echo wrong", "3")
        for name, text in (("ann", json.dumps({"state": {e.id: "done" for e in exercises.load()}})),
                           ("bob", "[]")):
            (self.folder / name / ".course").mkdir(parents=True)
            (self.folder / name / ".course/progress.json").write_text(text)
            (self.folder / name / "labs/x").mkdir(parents=True)
        self.assertEqual(self.rows(), {"ann": 0, "bob": 0})

    def test_a_file_that_is_none_spoils_only_its_own_exercises(self):
        kinds = {"fifo": os.mkfifo, "link": lambda path: path.symlink_to("/dev/zero"),
                 "folder": Path.mkdir, "huge": lambda path: os.truncate(path, 1 << 40),
                 "latin": lambda path: path.write_bytes(b"\xe9" + source(RIGHT).encode())}
        for name, make in kinds.items():
            path = self.folder / name / FILE
            path.parent.mkdir(parents=True)
            if name == "huge":
                path.touch()
            make(path)
        self.hand_in("in git", about="120000")
        for learner in self.graded()["learners"]:
            self.assertIn("exercises", learner)
            row = learner["exercises"]["01.1"]
            self.assertEqual(row["state"], "wrong", learner["name"])
            self.assertRegex(row["say"], "regular file|cannot be read|more than|UTF-8")
            self.assertEqual(learner["exercises"]["02.1"]["state"], "open")

    def test_nothing_in_a_copied_git_folder_is_run(self):
        ann = self.hand_in("ann") / ".git"
        run = f"touch {self.outside}/ran"
        (ann / "config").write_text(
            f"[core]\nfsmonitor = {run}\npager = {run}\nsshCommand = {run}\n"
            f"hooksPath = {ann}/hooks\nalternateRefsCommand = {run}\n[log]\nshowSignature = true\n"
            f"[gpg]\nprogram = {ann}/hooks/x\n[alias]\nlog = !{run}\n"
            f"[diff \"x\"]\ntextconv = {run}\n[filter \"x\"]\nsmudge = {run}\n")
        (ann / "info").mkdir(exist_ok=True)
        (ann / "info/attributes").write_text("* filter=x diff=x\n")
        for hook in ("x", "post-index-change", "reference-transaction"):
            (ann / "hooks" / hook).write_text(f"#!/bin/sh\n{run}\n")
            (ann / "hooks" / hook).chmod(0o755)
        signed = (f"tree {self.tree_of('ann')}\nauthor a <a@b> 0 +0000\n"
                  "committer a <a@b> 0 +0000\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n"
                  " -----END PGP SIGNATURE-----\n\nSolve 01.6 x\n\nAnswer: 4\n")
        (ann / "config").rename(ann / "theirs")
        commit = self.git("ann", "hash-object", "-t", "commit", "-w", "--stdin",
                          text=signed.encode())
        self.git("ann", "update-ref", "--no-deref", "refs/heads/course", commit)
        (ann / "theirs").rename(ann / "config")
        (self.outside / "ran").unlink(missing_ok=True)  # by the hook, for this test's own git
        subprocess.run(["git", "-C", ann, "log", "--format=%B", "course"], env=ENVIRONMENT,
                       capture_output=True, check=False)
        self.assertTrue((self.outside / "ran").exists(), "a plain git log runs nothing either")
        (self.outside / "ran").unlink()
        self.assertEqual(self.rows(), {"ann": 4})
        self.assertFalse((self.outside / "ran").exists())

    def tree_of(self, name: str) -> str:
        return self.git(name, "rev-parse", "course^{tree}")

    def test_a_row_names_what_an_answer_contains_and_which_are_alike(self):
        self.assertEqual(likeness.contained_words("std::_Exit(0); [[x]] // asm", "[[y]]"), ["exit"])
        self.assertEqual(likeness.contained_words('f("exit\\"", \'\\\'\'); __asm__("");', ""),
                         ["exit", "assembly"])
        exercise = self.long_exercise()
        text, mine = exercises.read(exercise.path), class_points.solution_of(exercise)
        renamed = re.sub(r"\b(auto|const)\b", r"/* mine */ \1", mine)
        shapes = {name: likeness.shape(exercise, code, text) for name, code in (
            ("a", mine), ("b", renamed), ("c", " ".join(reversed(likeness.tokens(mine)))))}
        self.assertEqual(likeness.pairs(shapes), [("a", "b")])

    def long_exercise(self) -> exercises.Exercise:
        return next(e for e in exercises.load() if e.kind == "write" and len(likeness.tokens(
            class_points.solution_of(e))) > likeness.TOKENS)

    def test_the_table_has_a_line_for_each_learner_and_names_the_pairs(self):
        exercise = self.long_exercise()
        text, solution = exercises.read(ROOT / exercise.file), class_points.solution_of(exercise)
        for name, before in (("ann", ""), ("bob\n 149  bob", "[[maybe_unused]] int x = 0;\n")):
            path = self.folder / name / exercise.file
            path.parent.mkdir(parents=True)
            path.write_text(exercises.with_answer(exercise, text,
                                                  f"// sh: {RIGHT}\n{before}{solution}"))
        self.hand_in("cat", answer="3", notes="Seed: 1\nWrong answers before: 0\n")
        (self.folder / "dan").mkdir()
        lines = self.printed(False).split("\n")
        number = exercise.id
        self.assertEqual([line.split("  ")[:3] for line in lines if re.match(" *[-0-9]+  ", line)][
            :4], [["", " 3", "ann"], ["", " 3", r"bob\n 149"], ["", " 3", "cat"],
                  ["", " -", "dan"]], lines)
        self.assertIn(f"        contains attributes: {number}", lines)
        self.assertEqual(lines.count(f"        like the author's: {number}"), 2)
        self.assertIn(f"{number:5}  ann and bob\\n 149  bob", lines)


if __name__ == "__main__":
    unittest.main()
