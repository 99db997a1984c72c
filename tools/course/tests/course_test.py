#!/usr/bin/env python3
"""Tests what the course's commands do to files and to git, in a copy of the repository without its
build folders. usage: course_test.py REPOSITORY"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

REPOSITORY = Path(sys.argv.pop(1))
FILE = "labs/01_vmm_alloc/device_buffer.cpp"  # of 01.1 and 01.2
# A git hook that runs this would name its own repository.
ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}


class Runs(unittest.TestCase):
    root = REPOSITORY

    def run_command(self, *command, status=0) -> str:
        ended = subprocess.run(command, cwd=self.root, capture_output=True, text=True, check=False,
                               env=ENVIRONMENT)
        self.assertEqual(ended.returncode, status, ended.stdout + ended.stderr)
        return ended.stdout + ended.stderr

    def run_python(self, code: str) -> str:
        return self.run_command("env", f"PYTHONPATH={self.root}/tools/lab:{self.root}/tools/course",
                                sys.executable, "-B", "-c", code)


class Tools(Runs):
    def test_a_driver_that_does_not_work_is_reported(self):
        for result, said in ((100, ""), (999, "cuInit() returned CUresult 999")):
            output = self.run_python(f"""
import types, verdict
verdict.ctypes.CDLL = lambda _: types.SimpleNamespace(cuInit=lambda _: {result})
assert verdict.gpu_count() == 0
""")
            self.assertIn(said, output)
            self.assertEqual(output.count("\n"), 1 if said else 0)

    def test_programs_ignore_the_launcher_of_the_learners_shell(self):
        self.run_python("""
import exercises, verdict
for e in exercises.load():
    assert verdict.environment_of(e)["SYMM_LAUNCHER"] == "none", e.id
""")

    def test_a_fault_never_looks_like_waste(self):
        self.run_python("""
import dataclasses
import exercises, verdict
from exercises import Wrong
from verdict import Ended, Verdict
e = dataclasses.replace(exercises.load()[0], wrong=[
    Wrong(shows="waste: signals itself", is_waste=True, say="w", told=0),
    Wrong(has="int count", say="f", told=1)])
right = Verdict(True, "Right.", raw="waste: signals itself")
found = verdict.beyond_tests(e, "long count", right)
assert (found.passed, found.is_waste, found.wrong) == (True, True, 0), found
found = verdict.beyond_tests(e, "int count", right)
assert (found.passed, found.is_waste, found.wrong) == (False, False, 1), found
found = verdict.explain(e, Ended(66, right.raw + " WARNING: ThreadSanitizer: data race"), "")
assert (found.passed, found.wrong) == (False, -1), found
""")

    def test_what_the_code_looks_like_is_told_with_perhaps(self):
        self.run_python("""
import dataclasses
import exercises, verdict
from exercises import Wrong
from verdict import Ended, Verdict
e = dataclasses.replace(exercises.load()[0], wrong=[
    Wrong(shows="race", has="relaxed", say="A flag is relaxed.", told=0),
    Wrong(shows="race", say="No flag.", told=1), Wrong(has="int", say="But it is short.", told=2)])
assert verdict.explain(e, Ended(1, "race"), "relaxed").guess == "Perhaps"
assert verdict.explain(e, Ended(1, "race"), "acquire").guess == "A common cause"
found = verdict.beyond_tests(e, "int i", Verdict(True, "Right."))
assert found.say == "The tests pass. Perhaps, though, it is short.", found.say
for exercise in exercises.load():
    for wrong in exercise.wrong:
        if wrong.is_waste or wrong.has and not wrong.shows:
            say = exercise.wrong[wrong.told].say
            assert say.startswith("But "), (exercise.id, say)
""")

    def test_each_failure_of_the_explorers_has_its_sentence(self):
        self.run_python("""
import exercises, verdict
texts = "".join(path.read_text() for path in (exercises.ROOT / "tools/explore").glob("*.cpp"))
for why in ("data race on", "no thread can go on:", "atomic accesses of two sizes: ",
            "the host waits"):
    assert '"' + why in texts, why
    assert verdict.of_execution(why) != verdict.of_execution("another"), why
""")

    def test_files_of_exercises_are_shown_by_their_names(self):
        self.run_python("""
import exercises, verdict, execution
for file in {e.file for e in exercises.load() if e.file}:
    shown = execution.source({"places": ["scenes.hpp:3", f"{file}:1"]}, "")
    assert shown and shown[0][0] == file, shown
    for root in ("", "build/course_tree/", "/home/symm/"):
        lines = ["  Write of size 4 at 0x1 by thread T1:", f"    #0 f() {root}{file}:12:3 (x+0x1)"]
        assert f"{file}:12  f" in verdict.race(lines), verdict.race(lines)
""")

    def test_a_wrong_list_is_told_whether_values_are_missing_or_too_many(self):
        self.run_python("""
import dataclasses
import answers, exercises, questions
e = dataclasses.replace(exercises.load()[0], task="", wrong=[])
e.sealed = [answers.sealed(e, "1,3")]
for given, told in {"3": "missing", "1,2,3": "not belong", "2,3": "missing, and"}.items():
    assert told in questions.judge([], e, given).say, given
assert questions.judge([], e, "3, 1 1").passed
e.sealed = [answers.sealed(e, "1")]
assert questions.judge([], e, "2").say == "No, it is not 2."
""")

    def test_an_answer_that_is_no_number_is_told_so(self):
        self.run_python("""
import exercises, questions
course = {e.id: e for seed in (0, 1) for e in exercises.load(seed=seed)}
def refusal(given, number):
    try:
        questions.judge([], course[number], given)
        return ""
    except exercises.CourseError as error:
        return str(error)
assert "'abc' is not a whole number: this question asks for one." in refusal("abc", "01.6")
assert "or several" in refusal("0,x", "05.16")
assert refusal("4, 5", "05.16") == ""
""")

    def test_a_rule_that_claims_to_prove_another_answers_cause_is_a_fault(self):
        self.run_python("""
import dataclasses
import exercises, play, verdict
from exercises import Wrong
e = dataclasses.replace(exercises.load()[0], wrong=[
    Wrong(shows="race", say="a", told=0), Wrong(shows="race", say="b", told=1),
    Wrong(shows="race", has="=", say="c", told=2)])
found = verdict.Verdict(False, "", raw="a race")
play.try_others(e, 0, "no sync", found)
try:
    play.try_others(e, 0, "x = 1", found)
    raise SystemExit("not found")
except play.Fault as fault:
    assert "fits rule 2" in str(fault), fault
""")

    def test_a_program_that_failed_answers_no_question(self):
        self.run_python("""
import check_tree, exercises, verdict
check_tree.update = lambda *_: None
verdict.prepare = lambda: None
verdict.build = lambda *_: None
course = {e.id: e for e in exercises.load()}
def answer(number, status, output, stopped=""):
    verdict.run = lambda *_: verdict.Ended(status, output, stopped)
    try:
        return verdict.answer_of([], course[number])
    except exercises.CourseError:
        return "none"
assert answer("01.6", 0, "[] grew to 8M\\n") == "1"
assert answer("01.6", 1, "[] grew to 8M\\n") == "none"
assert answer("01.6", 0, "[] grew to 8M\\n", "It did not end") == "none"
assert answer("03.2", 1, "[0] error: rank 1 failed\\n") == "1"  # which is what it asks about
""")

    def test_code_varies_by_its_environment_and_keeps_its_rules(self):
        self.run_python("""
import exercises
course = {e.id: e for e in exercises.load(seed=1)}
assert course["01.4"].environment == {"SYMM_EMU_DEVICES": "6"}, course["01.4"].environment
assert course["01.4"].wrong and not course["01.6"].wrong
""")

    def test_a_score_is_what_the_only_line_says_that_counts(self):
        self.run_python("""
import exercises, results, score, verdict
course = {e.id: e for e in exercises.load()}
told = results.Told(announced=["A.B"], right={"A.B": True})
def counted(number, output, told=told):
    def run(command, seconds, environment):
        assert environment["SYMM_EMU_COUNT"] == "1"
        return verdict.Ended(0, output, told=told)
    verdict.run = run
    try:
        return score.count(course[number])
    except exercises.CourseError as error:
        return str(error)
assert counted("01.5", "a\\ndriver calls: 7\\n") == 7
assert counted("01.5", "score: 0\\ndriver calls: 7\\n") == 7
assert counted("01.7", "score: 5\\ndriver calls: 7\\n") == 5
for output in ("score: 0\\nscore: 5\\n", "score: 0 score: 5\\n", "xscore: 5\\n", "score: 5 \\n",
               "driver calls: 7\\n", ""):
    assert "01.7 has no score" in counted("01.7", output), output
assert "FewGranules.* fails" in counted("01.7", "score: 0\\n", results.Told(announced=["A.B"]))
def explore(command, _):
    assert "--executions=1" in command  # a search of all could be stopped before its last row
    row = {"over_links": 5, "may_give_up": False}
    return verdict.Ended(0, "", told=results.Told(described=[row, row]))
verdict.run = explore
assert score.count(course["05.17"]) == 10
""")

    def build_with(self, ninja, status) -> str:
        """Runs ./lab build in a folder that is configured, with another ninja."""
        (ninja.parent / "build/debug").mkdir(parents=True)
        (ninja.parent / "build/debug/build.ninja").touch()
        return self.run_command(
            "env", f"PATH={ninja.parent}:{os.environ['PATH']}",
            f"PYTHONPATH={REPOSITORY}/tools/lab", sys.executable, "-B", "-c", f"""
import pathlib, sys
import builds, main, tool
main.ROOT = builds.ROOT = pathlib.Path("{ninja.parent}")
sys.argv[1:] = ["build", "--preset", "debug"]
tool.run(main.main)
""", status=status)

    def test_a_build_that_fails_on_a_full_disk_says_so(self):
        with tempfile.TemporaryDirectory() as folder:
            ninja = Path(folder) / "ninja"
            ninja.write_text("#!/bin/sh\necho 'LLVM ERROR: IO failure: No space left on device'\n"
                             "exit 1\n")
            ninja.chmod(0o755)
            output = self.build_with(ninja, status=1)
            self.assertIn("./lab: no space is left on a disk", output)

    def test_a_build_that_a_signal_ends_says_so(self):
        with tempfile.TemporaryDirectory() as folder:
            ninja = Path(folder) / "ninja"
            ninja.write_text("#!/bin/sh\nkill -XFSZ $$\n")
            ninja.chmod(0o755)
            output = self.build_with(ninja, status=153)
            self.assertIn("ninja was ended by SIGXFSZ (see ulimit -f)", output)

    def test_a_failed_program_is_seen_though_the_parent_ignores_sigchld(self):
        with tempfile.TemporaryDirectory() as empty:
            ended = subprocess.run(
                ["env", "--ignore-signal=CHLD", f"PYTHONPATH={REPOSITORY}/tools/lab",
                 sys.executable, "-B", "-c", "import ninja, sys, tool; "
                 "tool.run(lambda: ninja.build(sys.argv[1], []))", empty],
                capture_output=True, check=False)
            self.assertEqual((ended.returncode, ended.stderr), (1, b""))

    def test_a_clone_with_autocrlf_can_run_the_scripts(self):
        with tempfile.TemporaryDirectory() as folder:
            for file in (".gitattributes", "lab"):
                shutil.copy(REPOSITORY / file, folder)
            for command in ("init -q", "add .",
                            "-c user.name=a -c user.email=a@b commit -q -m All",
                            "clone -q -c core.autocrlf=true . clone"):
                subprocess.run(["git", *command.split()], cwd=folder, check=True,
                               env=ENVIRONMENT)
            self.assertNotIn(b"\r", (Path(folder) / "clone/lab").read_bytes())

    def test_an_include_of_a_later_folder_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            for part in ("common", "labs", "symm", "tools", "docs/checks"):
                shutil.copytree(REPOSITORY / part, Path(folder) / part)
            check = (sys.executable, "-B", f"{folder}/docs/checks/folders.py")
            self.run_command(*check)
            for file, header, says in (
                    ("common/sys/x.hpp", '"common/ranks/rank.hpp"', "common/ranks: rank.hpp"),
                    ("common/sys/x.cpp", '"tools/show/recorder.hpp"', "tools/show: recorder.hpp"),
                    ("labs/01_vmm_alloc/x.hpp", "<symm/symm.hpp>", "symm/include/symm: symm.hpp"),
                    ("labs/01_vmm_alloc/x.cu", '"symm/c/symm.h"', "symm/c: symm.h"),
                    ("labs/01_vmm_alloc/main.cpp", '"labs/02_access/access.hpp"',
                     "labs/02_access: access.hpp"),
                    ("symm/nodes/x.cpp", '"tools/show/recorder.hpp"', "tools/show: recorder.hpp"),
                    ("symm/nodes/x.hpp", "<symm/symm.hpp>", "symm/include/symm: symm.hpp"),
                    ("labs/01_vmm_alloc/bench.cpp", "<symm/symm.hpp>", None),
                    ("labs/01_vmm_alloc/tests/x.cpp", '"tools/show/recorder.hpp"', None),
                    ("labs/05_device_prims/explore/x.hpp", '"labs/06_allreduce/x.hpp"', None),
                    ("tools/show/x.cpp", '"symm/c/symm.h"', None)):
                planted = Path(folder, file)
                before = planted.read_text() if planted.exists() else None
                planted.write_text(f"#include {header}\n")
                told = self.run_command(*check, status=1 if says else 0)
                self.assertEqual(told.partition(" includes the later ")[2],
                                 f"{says}\n" if says else "", file)
                if before is None:
                    planted.unlink()
                else:
                    planted.write_text(before)

    def test_ctrl_c_before_a_tool_can_handle_it_is_no_traceback(self):
        interrupted = ("import os, signal, sys; signal.pthread_sigmask(signal.SIG_BLOCK, [2]); "
                       "os.kill(os.getpid(), 2); os.execv(sys.argv[1], sys.argv[1:])")
        ended = subprocess.run(
            [sys.executable, "-c", interrupted, sys.executable, "-B",
             REPOSITORY / "tools/lab/main.py", "learn"], capture_output=True, text=True,
            check=False)
        self.assertEqual((ended.returncode, ended.stderr), (130, ""))


class Course(Runs):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name)
        for part in ("CMakeLists.txt", "CMakePresets.json", ".gitignore", "cmake", "common",
                     "labs", "symm", "tools"):
            source = REPOSITORY / part
            copy = shutil.copytree if source.is_dir() else shutil.copy
            copy(source, self.root / part)
        build = self.root / "build/course"
        build.mkdir(parents=True)
        (build / "build.ninja").touch()
        (build / "CMakeCache.txt").write_text("_DIRECTORY=/course_tree\n")
        self.addCleanup(self.folder.cleanup)
        self.untouched = (self.root / FILE).read_text()
        if "// exercise 0" in self.untouched:
            self.skipTest(f"an exercise is begun in {FILE}")

    def course(self, *arguments, status=0) -> str:
        return self.run_command(sys.executable, "-B", self.root / "tools/lab/main.py",
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
        (self.root / FILE).write_text(self.text().replace(call, "    // mine\n" + call, 1))
        self.assertEqual(re.findall(r"^[-+] .*", self.git("diff", "-U0"), re.M), ["+    // mine"])

    def test_other_edits_of_the_file_are_not_committed(self):
        self.begin_history()
        self.course("start", "01.1")
        (self.root / FILE).write_text("// a note\n" + self.text())
        self.course("start", "01.2")
        changed = re.findall(r"^[-+] ?.*", self.git("diff", "-U0"), re.M)
        self.assertEqual(changed[2:], ["+// a note"])

    def test_what_stood_there_is_found_again_in_git(self):
        self.begin_history()
        self.course("start", "01.1")
        shutil.rmtree(self.root / ".course")
        self.course("reset", "01")
        self.assertEqual(self.text(), self.untouched)

    def test_a_lab_is_skipped_by_who_answers_three_questions(self):
        told = self.run_python("""
import argparse, builtins, io, os, sys
import course, exercises, known
os.environ["SYMM_COURSE_SEED"] = "5"
all_exercises = exercises.load()
progress = course.Progress()
for group in sorted({e.group for e in all_exercises}):
    asked = known.questions([e for e in all_exercises if e.group == group])
    assert len({q.exercise.id for q in asked}) == 3, group
    for q in asked:
        assert len(set(q.choices)) == 3 and q.change, q
asked = known.questions([e for e in all_exercises if e.group == "02"])
def give(answers):
    sys.stdin = io.StringIO("".join(f"{answer}\\n" for answer in answers))
    try:
        return course.skip(all_exercises, progress, argparse.Namespace(id="2", if_known=True))
    except exercises.CourseError as error:
        return str(error)
right = [q.right for q in asked]
progress.set(next(e for e in all_exercises if e.id == "02.1"), "done")
print(give([*right[:2], right[2] % 3 + 1]), give(right[:2]), progress.data["state"])
print(give(right), sorted(set(progress.data["state"].values())), progress.state(asked[0].exercise))
""")
        self.assertIn("1 there was no answer, so nothing is skipped {'02.1': 'done'}", told)
        self.assertIn("You know 02_access: 9 exercises are skipped. Next: ./lab start 03.1\n"
                      "0 ['done', 'skipped']", told)

    def test_lost_marks_lose_nothing(self):
        self.course("start", "01.1")
        (self.root / FILE).write_text(
            "\n".join(line for line in self.text().split("\n") if "// exercise 01.1 " not in line))
        self.assertIn("Write them again", self.course("reset", "01.1", status=2))
        self.assertTrue((self.root / ".course/01.1.original").exists())

    def test_an_open_task_tells_the_best_score_and_keeps_the_learners(self):
        told = self.run_python("""
import argparse, os, subprocess
import check_tree, course, exercises, keep, score, verdict
for words in (["init", "-q"], ["add", "-A"],
              ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "All"]):
    subprocess.run(["git", *words], check=True)
task = next(e for e in exercises.load() if e.id == "02.9")
progress = course.Progress()
course.start(exercises.load(), progress, argparse.Namespace(id="02.9", no_open=True))
counts = iter([14, 15, 10])
score.count = lambda _: next(counts)
verdict.judge = lambda *_: verdict.Verdict(True, "Right.")
args = argparse.Namespace(id="02.9", all=False, raw=False, step=False, browser=False, answer=[],
                          yes=False)
for answer in ("one();", "two();", "three();"):
    text = exercises.read(task.path)
    exercises.write(task.path, exercises.with_answer(task, text, f"    {answer}\\n"))
    course.check(exercises.load(), progress, args)
    print(course.Progress().data["best"], keep.git("log", "--format=%h %s", "-1"))
task.hall.parent.mkdir()
task.hall.write_text("// somebody\\n    three();\\n")
print(score.best_known(task), score.told(task, 12))
try:
    course.solution(exercises.load(), progress, args)
except exercises.CourseError as refusal:
    print(refusal)
""")
        said = " ".join(told.split())
        self.assertIn("Score: 14 (calls of cuMemSetAccess for three tables of rights). "
                      "Best known: 11, by the author.", said)
        self.assertIn("That is better than the best known, 11: a pull request puts yours into "
                      "labs/02_access/hall/02.9.txt", said)
        kept = re.findall(r"'score': (\d+), 'commit': '(\w+)'}} (\w+) (.*) 02.9", told)
        self.assertEqual([(n, what) for n, _, _, what in kept],
                         [("14", "Solve"), ("14", "Solve"), ("10", "Score 10 in")])
        self.assertTrue(all(commit == head for _, commit, head, _ in kept), told)
        self.assertIn("('somebody', '    three();\\n') Score: 12 (calls", told)
        self.assertIn("Best known: 11, by somebody.", told)
        self.assertIn("./lab solution 02.9 --yes does", told)
        self.assertNotIn("author's version", told)

    def test_skip_does_not_take_out_what_is_done(self):
        self.course("start", "01.1")
        state = self.root / ".course/progress.json"
        state.write_text(state.read_text().replace('"begun"', '"done"'))
        self.assertIn("01.2 is skipped", self.course("skip"))
        self.assertIn("// exercise 01.1 begins", self.text())
        self.assertNotIn("// exercise 01.2 begins", self.text())
        self.assertIn("is done", self.course("skip", "01.1", status=2))

    def test_every_stub_and_wrong_answer_can_be_made(self):
        self.run_python("""
import exercises
for e in exercises.load():
    if e.file:
        solution = exercises.split(e, exercises.read(e.path))[1]
        exercises.stub_of(e, solution)
        for wrong in e.wrong:
            exercises.changed(solution, wrong.change)
""")

    def test_what_is_checked_on_another_branch_is_told(self):
        self.begin_history()
        self.course("start", "01.1")
        self.git("switch", "-q", "main")
        self.assertIn("git switch course", self.course("check", "01.1", status=2))

    def test_the_files_of_another_repository_are_left_alone(self):
        outer = self.root
        self.root = outer / "inner"
        self.root.mkdir()
        for part in ("CMakeLists.txt", ".gitignore", "cmake", "common", "labs", "tools"):
            (outer / part).rename(self.root / part)
        before = self.text()
        self.root, inner = outer, self.root
        self.git("init", "-q")
        (outer / ".git/info/exclude").write_text("/inner/\n")
        self.git("commit", "-q", "--allow-empty", "-m", "All")
        self.root = inner
        self.assertIn("Only these files keep your answers, and ./lab update cannot take a newer "
                      f"version: they are not tracked in {outer}", self.course("start", "01.1"))
        self.course("reset", "01")
        self.git("add", "--force", "labs")
        self.assertIn(f"these files belong to the git repository {outer}",
                      self.course("start", "01.1", status=2))
        self.assertEqual(self.text(), before)
        self.assertEqual(list((inner / ".course").glob("*.original")), [])

    def test_a_submodule_keeps_its_answers(self):
        self.begin_history()
        with tempfile.TemporaryDirectory() as other:
            module, self.root = self.root, Path(other)
            self.git("init", "-q")
            self.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", module,
                     "course")
            self.root = Path(other, "course")
            self.git("switch", "-q", "--detach")
            at = self.git("rev-parse", "--short", "HEAD").strip()
            self.assertIn(f"`git switch --detach {at}` shows", self.course("start", "01.1"))
            self.assertEqual(self.git("status", "--short"), "")
            self.assertEqual(self.git("branch", "--show-current"), "course\n")
            self.git("switch", "-q", "--detach", at)  # as `git submodule update` does
            for command in ("start", "check"):
                self.assertIn("git switch course", self.course(command, "01.1", status=2))

    def test_reset_brings_all_back(self):
        for with_git in (False, True):
            if with_git:
                self.begin_history()
            self.course("start", "01.1")
            self.course("start", "01.2")
            self.course("reset", "01.1")
            self.course("reset", "01.2")
            self.assertEqual(self.text(), self.untouched)
            self.course("reset", "01")
        self.assertEqual(self.git("status", "--short"), "")

    def test_exercises_of_a_labs_folder_are_a_group_of_their_own(self):
        self.begin_history()
        self.course("start", "B.8")
        self.assertNotIn("// exercise 0", self.git("grep", "-h", "// exercise", "--", "labs"))
        self.assertEqual(self.git("log", "-1", "--format=%s"), "Begin lab B\n")
        self.git("commit", "-q", "--allow-empty", "-m",
                 "Solve B.8 Wrong above 2 GiB\n\nWrong answers before: 3\n")
        self.run_python("""
import submission
solved = submission.own(set()).solved
assert solved == {"B.8": {"Wrong answers before": "3"}}, solved
""")
        self.course("reset", "06")
        self.assertIn("// exercise B.8 begins", self.git("grep", "-h", "// exercise", "--", "labs"))
        self.course("reset", "B")
        self.assertEqual(self.git("diff", "main"), "")

    def test_a_killed_start_or_reset_can_be_run_again(self):
        self.begin_history()
        (self.root / ".course").mkdir()
        (self.root / ".course/index.lock").touch()  # of a killed git in an older version
        for moment in range(1, 6):  # before each rename, and each change of git's
            for command in ("start", "reset"):
                ended = subprocess.run(
                    [sys.executable, "-B", "-c", f"""
import os, pathlib, signal, sys
sys.path[:0] = ["tools/lab", "tools/course"]
import course, exercises, keep, main
calls = 0
def counted(function, is_change):
    def call(*arguments, **more):
        global calls
        calls += is_change(*arguments)
        if calls == {moment}:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **more)
    return call
pathlib.Path.replace = counted(pathlib.Path.replace, lambda *_: True)
keep.git = counted(keep.git, lambda verb, *_: verb in ("update-ref", "reset"))
course.run(main.parse(["{command}", "01.1"]))
"""], cwd=self.root, env=ENVIRONMENT, capture_output=True, check=False)
                self.assertEqual(ended.returncode, -signal.SIGKILL, ended)
                self.course(command, "01.1")
                self.assertEqual(self.git("diff", "HEAD"), "", (command, moment))
                self.assertEqual("exercise 01.1 begins" in self.text(), command == "start")
                self.assertEqual((self.root / ".course/01.1.original").exists(),
                                 command == "start")
        self.course("reset", "01")
        self.assertEqual(self.text(), self.untouched)

    def test_no_solution_of_a_lab_that_is_begun_is_in_its_files(self):
        self.run_python("""
import subprocess, sys
import exercises, check_tree
course = exercises.load()
solutions = {e.id: exercises.split(e, exercises.read(e.path))[1] for e in course if e.file}
for lab in sorted({e.lab for e in course}):
    first = next(e for e in course if e.lab == lab and e.file)
    subprocess.run([sys.executable, "-B", "tools/lab/main.py", "start", first.id], check=True)
    for e in course:
        if e.file and e.lab == lab:
            assert check_tree.is_started(e) and not check_tree.has_answer(e), e.id
            assert solutions[e.id] not in exercises.read(e.path), e.id
""")

    def write_answer(self, line: str):
        """Puts a line into the answer to 01.1."""
        call = '    symm::missing("01.1"'
        (self.root / FILE).write_text(self.text().replace(call, line + call))

    def newer_version(self) -> dict:
        """Commits other solutions of 01.1, 01.2 and 01.4 on the branch main, which is not checked
        out. Returns the new texts of the changed files."""
        newer = {}
        with tempfile.TemporaryDirectory() as folder:
            self.git("worktree", "add", "-q", folder, "main")
            for name in ("device_buffer.cpp", "mem_alloc.cpp", "exercises.toml", "CMakeLists.txt"):
                file = Path(folder, "labs/01_vmm_alloc", name)
                file.write_text(re.sub("the mapping keeps the memory|(?<=memory_ =) |^sym",
                                       " /**/ ", file.read_text()))
                newer[self.root / file.relative_to(folder)] = file.read_text()
            self.git("-C", folder, "commit", "-q", "-a", "-m", "A newer version")
            self.git("worktree", "remove", "--force", folder)
        return newer

    def test_a_newer_version_is_taken(self):
        self.begin_history()
        self.course("start", "01.1")
        self.write_answer("    // mine\n")
        self.git("commit", "-q", "-a", "-m", "An answer of its own")
        self.write_answer("    // not committed\n")
        newer = self.newer_version()
        self.git("config", "user.useConfigOnly", "true")  # and there is no identity
        self.course("update", "main")
        self.assertIn("    // mine\n    // not committed\n", self.text())
        self.assertEqual(re.findall(r"^[-+] .*", self.git("diff", "HEAD"), re.M),
                         ["+    // not committed"])
        self.assertIn("    // mine\n", self.git("show", f"HEAD:{FILE}"))
        self.assertEqual(self.git("log", "-1", "--format=%P").split()[1],
                         self.git("rev-parse", "main").strip())
        self.assertIn("// exercise 01.4 begins",
                      (self.root / "labs/01_vmm_alloc/mem_alloc.cpp").read_text())
        head = self.git("rev-parse", "HEAD")
        self.course("update", "main")
        self.assertEqual(self.git("rev-parse", "HEAD"), head)
        self.course("reset", "01")
        for file, text in newer.items():
            self.assertEqual(file.read_text(), text)
        self.assertEqual(self.git("diff", "main"), "")

    def test_an_answer_follows_its_exercise_to_another_file(self):
        self.begin_history()
        self.course("start", "01.1")
        self.write_answer("    // done\n")
        self.git("commit", "-q", "-a", "-m", "An answer of its own")
        state = self.root / ".course/progress.json"
        state.write_text(state.read_text().replace('"begun"', '"done"'))
        self.course("start", "B.7")
        host_buffer = "labs/bugs_that_shipped/host_buffer.hpp"
        begun = (self.root / host_buffer).read_text()
        (self.root / host_buffer).write_text(begun.replace(
            "    return own", "    // mine\n    return own"))
        moved = {FILE: "labs/01_vmm_alloc/moved.cpp", host_buffer: "labs/moved.hpp"}
        with tempfile.TemporaryDirectory() as folder:
            self.git("worktree", "add", "-q", folder, "main")
            for old, new in moved.items():
                self.git("-C", folder, "mv", old, new)
            for page in Path(folder).glob("labs/*/exercises.toml"):
                text = page.read_text()
                for old, new in moved.items():
                    text = text.replace(f'file = "{old}"', f'file = "{new}"')
                page.write_text(text)
            self.git("-C", folder, "commit", "-q", "-a", "-m", "Moves")
        self.assertIn("01.1", self.course("update", "main"))
        self.course("learn")
        for old, text in ((FILE, "    // done\n"), (host_buffer, "    // mine\n")):
            self.assertFalse((self.root / old).exists())
            self.assertIn(text, (self.root / moved[old]).read_text())
        self.assertEqual(re.findall(r"^[-+] .*", self.git("diff", "HEAD"), re.M), ["+    // mine"])
        self.course("reset", "01")
        self.course("reset", "B")
        self.assertEqual(self.git("diff", "main"), "")

    def test_an_update_that_is_refused_changes_nothing(self):
        self.begin_history()
        self.course("start", "01.1")
        self.write_answer("    // not committed\n")
        page, other = "labs/01_vmm_alloc/exercises.toml", "CMakeLists.txt"
        before = self.state()
        self.assertIn("there is no version 'none'", self.course("update", "none", status=2))
        self.assertIn("origin", self.course("update", status=2))
        self.assertEqual(self.state(), before)
        self.newer_version()
        for changed, says in ((page, f"commit or stash them first, in {page}"),
                              (FILE, f"commit or stash them first, in {FILE}")):
            text = (self.root / changed).read_text()
            (self.root / changed).write_text(text + "\n")
            before = self.state()
            self.assertIn(says, self.course("update", "main", status=2))
            self.assertEqual(self.state(), before)
            (self.root / changed).write_text(text)
        build = "labs/01_vmm_alloc/CMakeLists.txt"
        (self.root / build).write_text("mine" + (self.root / build).read_text())
        self.git("commit", "-q", "-m", "Other", build)
        before = self.state()
        self.assertIn(f"conflicts in {build}, outside of exercises",
                      self.course("update", "main", status=2))
        self.assertEqual(self.state(), before)
        self.git("stash", "-q")
        self.run_command("git", "-c", "user.name=a", "-c", "user.email=a@b", "merge", "-q", "main",
                         status=1)
        self.assertIn("a merge is not finished", self.course("update", "main", status=2))
        self.git("checkout", "-q", "--ours", "labs")
        self.git("commit", "-q", "-a", "-m", "Merged")
        (self.root / other).write_text("# mine\n")  # which is not in the way
        self.course("update", "main")
        self.assertEqual((self.root / other).read_text(), "# mine\n")
        self.assertIn("/**/", (self.root / ".course/01.4.original").read_text())

    def state(self) -> list:
        """What an update may change."""
        files = [*(self.root / "labs/01_vmm_alloc").iterdir(), *(self.root / ".course").iterdir()]
        return [self.git("rev-parse", "HEAD"), self.git("status", "--short"),
                *sorted((str(f), f.read_bytes()) for f in files if f.is_file())]

    def test_an_update_can_be_interrupted(self):
        self.begin_history()
        self.course("start", "01.1")
        self.write_answer("    // not committed\n")
        self.newer_version()
        old = self.state()
        for verb in ("merge-tree", "checkout", "update-ref"):
            ended = subprocess.run([sys.executable, "-B", "-c", f"""
import os, signal, sys
sys.path[:0] = ["tools/lab", "tools/course"]
import course, keep, main, tool
real = keep.git
def interrupted(verb, *others, **more):
    if verb == "{verb}":
        os.kill(os.getpid(), signal.SIGINT)
    return real(verb, *others, **more)
keep.git = interrupted
tool.run(lambda: course.run(main.parse(["update", "main"])))
"""], cwd=self.root, env=ENVIRONMENT, capture_output=True, text=True, check=False)
            self.assertEqual((ended.returncode, ended.stderr), (130, ""))
            if verb == "merge-tree":
                self.assertEqual(self.state(), old)
                continue
            self.assertIn("    // not committed\n", self.text())
            self.assertEqual(re.findall(r"^[-+] .*", self.git("diff", "HEAD"), re.M),
                             ["+    // not committed"])
            self.assertIn("/**/", (self.root / ".course/01.4.original").read_text())
            self.newer_version()

    def test_a_clone_of_another_user_needs_git_to_trust_it(self):
        self.begin_history()
        text = self.run_python("""
import course, exercises, keep, main
environment = keep.environment
keep.environment = lambda: {**environment(), "GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"}
keep.require_place()
try:
    course.run(main.parse(["update"]))
except exercises.CourseError as error:
    print(error)
""")
        self.assertEqual(text.count(f"git config --global --add safe.directory '{self.root}'"), 2,
                         text)

    def three_exercises(self):
        """One is a stub, one a planted fault, and one is solved and accepted."""
        self.course("start", "01.1")
        self.course("start", "05.2", "--no-open")
        self.run_python("""
import check_tree, exercises, verdict
course = exercises.load()
solved = next(e for e in course if e.id == "01.1")
text = exercises.read(solved.path)
exercises.write(solved.path, exercises.with_answer(
    solved, text, "    // mine\\n" + exercises.read(check_tree.original(solved))))
verdict.build = lambda *_: None
verdict.test = lambda *_: verdict.Verdict(True, "Right.")
assert verdict.judge(course, solved).passed
""")

    def test_no_command_builds_a_stub(self):
        self.three_exercises()
        for part in ("lab", "docs"):
            copy = shutil.copytree if (REPOSITORY / part).is_dir() else shutil.copy
            copy(REPOSITORY / part, self.root / part)
        bin_folder, log = self.root / "bin", self.root / "log"
        bin_folder.mkdir()
        for name, text in (("ninja", f'pwd >>"{log}"; exit 1'), ("dpkg-query", "echo installed")):
            (bin_folder / name).write_text(f"#!/bin/sh\n{text}\n")
            (bin_folder / name).chmod(0o755)
        solved = self.root / "build/solved"
        for root in (self.root, solved):
            for preset in ("emulated", "debug", "tsan", "tidy"):
                (root / "build" / preset).mkdir(parents=True)
                (root / "build" / preset / "build.ninja").touch()
        help_text = self.run_command(self.root / "lab", "help")
        commands = set(re.findall(r"^  ([a-z]+)", help_text.split("The labs:\n")[1], re.M))
        building = {"run": ["01", "--preset", "debug"], "test": ["05"], "bench": ["01"],
                    "trace": [], "explore": ["05"], "build": [], "install": ["/nowhere"],
                    "tidy": [], "pages": ["01"]}
        self.assertEqual(commands - set(building),
                         {"list", "plot", "docs", "format", "lint", "matrix", "play", "commands",
                          "release", "setup"})
        for command, arguments in building.items():
            log.unlink(missing_ok=True)
            ended = subprocess.run(
                [self.root / "lab", command, *arguments], capture_output=True, text=True,
                check=False, env={**ENVIRONMENT, "SYMM_PRESET": "emulated",
                                  "PATH": f"{bin_folder}:{os.environ['PATH']}"})
            self.assertNotEqual(ended.returncode, 0, command)
            self.assertIn("(In build/solved: your answers", ended.stderr, command)
            self.assertEqual({str(solved)}, set(log.read_text().split()), command + ended.stderr)
        self.assertEqual(os.readlink(self.root / "build/bin"), "solved/build/bin")
        for copy in (solved / "labs").rglob("*"):
            if copy.is_file():
                text = copy.read_text()
                if copy == solved / FILE:
                    self.assertEqual(text.count("    // mine\n"), 1)
                    text = text.replace("    // mine\n", "")
                self.assertEqual(text, (REPOSITORY / copy.relative_to(solved)).read_text(), copy)
        output = self.run_command(self.root / "lab", "docs", status=1)
        self.assertEqual(output, "./lab: the reference is made of files without exercises: "
                                 "./lab reset 01, ./lab reset 05\n")
        (self.root / FILE).write_text(self.text().replace("    // mine\n", "    // other\n"))
        self.run_python("import check_tree, exercises; "
                        "assert check_tree.solve(exercises.load(), 'build')")
        self.assertEqual((solved / FILE).read_text(), self.untouched)

    def test_lost_marks_are_never_taken_for_a_solution(self):
        self.begin_history()
        self.course("start", "01.1")
        (self.root / FILE).write_text("".join(
            line for line in self.text().splitlines(keepends=True) if "exercise 01.1" not in line))
        make = "import check_tree; print(check_tree.make('build'))"
        self.assertRaisesRegex(AssertionError, "Write them again around your answer",
                               self.run_python, make)
        self.git("checkout", "-q", "--force", "main")
        self.assertEqual(self.run_python(make), "False\n")

    def test_cmake_refuses_stubs(self):
        for source in (".", "symm/python"):
            self.course("start", "02.1", "--no-open")
            output = self.run_command("cmake", "--fresh", "-S", self.root / source, "-B",
                                      self.root / "b", "-G", "Ninja", status=1)
            self.assertIn("of the course in it. `./lab reset 02`", " ".join(output.split()))
            self.course("reset", "02")
        project = self.root / "project"
        project.mkdir()
        (project / "CMakeLists.txt").write_text(f"""
cmake_minimum_required(VERSION 3.25)
project(user NONE)
include([[{self.root}/cmake/Exercises.cmake]])
install(CODE "include([[{self.root}/cmake/Exercises.cmake]])" ALL_COMPONENTS)
""")
        self.run_command("cmake", "-G", "Ninja", "-S", project, "-B", project / "b")
        build = ("cmake", "--build", project / "b")
        install = ("cmake", "--install", project / "b", "--component", "any")
        self.run_command(*build)
        self.run_command(*install)
        self.course("start", "05.2", "--no-open")
        self.assertIn("of the course", self.run_command(*build, status=1))
        self.assertIn("of the course", self.run_command(*install, status=1))
        self.course("reset", "05")
        self.run_command(*build)

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
        code = ("import exercises, check_tree; course = exercises.load(); "
                f"one = next((e for e in course if e.id == '{exercise}'), None); "
                "check_tree.update(course, one)")
        self.run_python(code)
        return (self.root / "build/course_tree" / FILE).read_text()

    @staticmethod
    def lines_as_compiled(text: str) -> dict:
        """The line number that the compiler reports, for each call of a stub."""
        number, found = 0, {}
        for line in text.splitlines():
            number += 1
            if given := re.match(r"#line (\d+)", line):
                number = int(given[1]) - 1
            elif call := re.search(r'symm::missing\("[\d.]+"', line):
                found[call[0]] = number
        return found

    def test_a_class_is_graded_by_what_is_in_git(self):
        self.begin_history()
        with tempfile.TemporaryDirectory() as folder:
            for name, said, answer in (("ann", "right", "4"), ("bob", "wrong", "3"),
                                       ("eve", None, None)):
                clone = Path(folder) / name
                subprocess.run(["git", "clone", "-q", self.root, clone], check=True,
                               env=ENVIRONMENT)
                self.run_python(f"""
import os, re, sys
os.environ["SYMM_COURSE_SEED"] = "1"
sys.path[0:0] = ["{clone}/tools/lab", "{clone}/tools/course"]
import course, main, questions, verdict
def judge(course, exercise, answer=None):
    text = answer or course_text(exercise)
    return verdict.Verdict("right" in text, "", wrong=-1 if "right" in text else 3)
def course_text(exercise):
    return exercise.path.read_text()
verdict.judge = judge
questions.judge = lambda c, e, given: verdict.Verdict(given == "4", "", wrong=0)
def run(*words):
    return course.run(main.parse(words))
if {said!r}:
    run("start", "01.1", "--no-open")
    file = course.ROOT / "{FILE}"
    file.write_text(file.read_text().replace('    symm::missing("01.1"', '    // {said}\\n    x('))
    run("check", "01.1")
    if {said!r} == "wrong":  # and then right, on a second try
        file.write_text(file.read_text().replace("// wrong", "// right"))
        run("check", "01.1")
    run("check", "01.6", {answer!r})
""")
            graded = json.loads(self.run_python(f"""
import questions, verdict
verdict.judge = lambda c, e, answer: verdict.Verdict(
    "right" in answer or "create(" in answer, "", wrong=3)
def judge_answer(course, exercise, given):
    assert exercise.command[-1] == "100M", "the seed's"
    return verdict.Verdict(given == "4", "")
questions.judge = judge_answer
import class_points, contained
contained.why_no_box = lambda: ""  # or stderr has a line; no program is run
class_points.grade(class_points.Path("{folder}"), True)
"""))
        by_name = {learner["name"]: learner for learner in graded["learners"]}
        self.assertEqual([by_name[n]["points"] for n in ("ann", "bob", "eve")], [4, 3, 0])
        self.assertEqual((by_name["ann"]["seed"], by_name["eve"]["seed"]), (1, 0))
        self.assertEqual(graded["class"]["01.2"]["states"], {"open": 3})
        counts = graded["class"]["01.1"]
        self.assertEqual(counts["states"], {"right": 2, "open": 1})
        self.assertEqual(counts["wrong_answers"], {"3": 1})

    def test_each_page_to_read_has_its_section(self):
        self.run_python("""
import exercises
for e in exercises.load():
    page, _, section = e.read.partition(", ")
    text = (exercises.ROOT / page).read_text()
    assert not section or f"## {section}\\n" in text, (e.id, e.read)
""")

    def test_bad_usage_is_told_in_one_line(self):
        for arguments, said in (("check 01.1 extra words", "unexpected word 'extra'"),
                                ("check --all 01.1", "unexpected word '01.1'"),
                                ("start 01.1 extra", "unexpected word 'extra'")):
            output = self.course(*arguments.split(), status=2)
            self.assertIn(said, output)
            self.assertEqual(output.count("\n"), 1, output)

    def test_a_damaged_progress_file_is_told_in_one_line(self):
        file = self.root / ".course/progress.json"
        file.parent.mkdir()
        for damaged in ("", "null", "\x81", '{"state": null}', '{"hints": {"01.1": "1"}}'):
            file.write_text(damaged, encoding="latin-1")
            output = self.course("learn", status=2)
            self.assertIn("progress.json is damaged: delete it", output, damaged)
            self.assertEqual(output.count("\n"), 1, output)

    def test_a_question_is_checked_without_a_build(self):
        shutil.rmtree(self.root / "build")
        self.assertIn("done", self.course("check", "03.2", "1"))
        self.assertIn("not yet", self.course("check", "03.2", "0", status=1))
        self.assertFalse((self.root / "build").exists())

    def test_a_wrong_answer_about_a_load_leads_to_an_execution(self):
        for given, execution in (("20", "05.9/30 --step"), ("10,20,30", "05.9/10 runs all")):
            said = " ".join(self.course("check", "05.9", given, status=1).split())
            self.assertIn(f"./lab explore {execution}", said)

    def test_what_is_next_comes_after_what_was_just_done(self):
        self.assertIn("Next: ./lab start 03.3", self.course("check", "03.2", "1"))
        self.assertIn("Next: ./lab start 03.3", self.course("learn"))
        self.course("start", "01.1", "--no-open")
        self.assertIn("Next: ./lab start 05.10", self.course("check", "05.9", "20,30"))
        self.assertIn("You are at 01.1", self.course("learn"))
        self.assertIn("Next: ./lab start 02.2", self.course("skip", "02.1"))
        last = self.run_python("import exercises; print(exercises.load()[-1].id)").strip()
        self.assertIn("Next: ./lab start 01.0", self.course("skip", last))

    def test_answers_of_the_site_are_judged_as_by_a_check(self):
        self.begin_history()
        for text, said in (("", "pass the answers"), ("03.2=1 05.9", "'05.9' answers no question"),
                           ("03.2=1 02.8=400", "'02.8=400' answers no question"),
                           ("03.2=1 01.1=1", "'01.1=1' answers no question"),
                           ("03.2=1 05.9=a", "'a' is not a whole number")):
            output = self.course("import", *text.split(), status=2)
            self.assertIn(said, output)
            self.assertFalse((self.root / ".course/progress.json").exists(), text)
        told = self.course("import", "03.2=1", "05.9=30,20", "05.10=20,30", status=1)
        self.assertIn("03.2 Which rank's error is it?: done\n", told)
        self.assertIn("05.9 Which values may this load return?: done\n", told)
        self.assertIn("05.10 The same with a relaxed poll: not yet. That was the answer with an "
                      "acquire.", told)
        state = json.loads((self.root / ".course/progress.json").read_text())
        self.assertEqual(state["state"], {"03.2": "done", "05.9": "done"})
        self.assertEqual(state["wrong"], {"05.10": [0]})
        self.assertIn("Answer: 30,20", self.git("log", "-1", "--format=%B"))
        told = self.course("import", "03.2=1", "05.9=30,20", "05.10=0,10,20,30")
        self.assertEqual(told.count("done before"), 2)
        self.assertIn("Next: ./lab start 05.11", told)
        self.assertIn("Wrong answers before: 0", self.git("log", "-1", "--format=%B"))

    def test_learn_lists_what_matches_a_word(self):
        self.assertIn("01.1", self.course("learn", "granularity"))
        self.assertNotIn("05.4", self.course("learn", "granularity"))


if __name__ == "__main__":
    unittest.main()
