"""Answers that break more than a test, and answers that cheat: each must get a clear verdict soon,
and leave nothing behind. `./lab play bad` tries them, and has `./lab grade` grade a class with
some."""

import contextlib
import dataclasses
import io
import json
import re
import subprocess
import tempfile
from pathlib import Path
from unittest import mock

import check_tree
import class_points
import contained
import exercises
import refusal
import verdict

LIMIT = 15  # seconds, instead of an exercise's own

# A name, the code that the learner writes before the solution, and a pattern of the verdict.
BAD_ANSWERS = [
    ("a broken build", "    bytes = ;\n", r"does not compile yet\. The first error in labs/01"),
    ("a crash", "    *reinterpret_cast<volatile int*>(8) = 1;\n", r"crashed \(SIGSEGV\)"),
    ("an abort", "    __builtin_trap();\n", r"crashed.*(without a return|an assertion)"),
    ("an endless loop", "    for (volatile bool on = true; on;) {\n    }\n", "did not end within"),
    ("endless output", "    while (true) {\n        puts(\"again and again\");\n    }\n",
     "printed more than 16 MiB"),
    ("an endless wait", "    pause();\n", "did not end within"),
    ("a leak", "    CUdeviceptr lost = 0;\n    (void)cuMemAlloc(&lost, 100);\n",
     "is never released"),
    ("a process that stays", "    if (fork() == 0) {\n        pause();\n    }\n"
     "    std::_Exit(1);\n", "ended with status 1"),
    ("a path without a return", "    const auto lost = [](int i) -> int {\n        if (i > 0) {\n"
     "            return i;\n        }\n    };\n    (void)lost;\n",
     r"does not compile yet\. The first error in labs/01"),
    ("an exception", "    throw 1;\n", r"the test \S+ fails"),
]

# Before a planted fault, or before the solution of 01.5. They are refused; here they are also run,
# since an answer may do the same without the words that are looked for.
CHEATS = [
    ("an early exit", "01.5", "    std::_Exit(0);\n", r"ended before its tests did.* 2 of 11"),
    ("an exit before the tests", "B.7", "static const int early = [] {\n    std::_Exit(0);\n"
     "    return 0;\n}();\n", "ended before its tests did.*none has begun"),
    ("a part of the tests", "B.7",
     'static const int shard = ::setenv("GTEST_TOTAL_SHARDS", "9", 1) +\n'
     '                         ::setenv("GTEST_SHARD_INDEX", "8", 1);\n',
     "A rank took the bytes of a handle"),
    ("an exit with success", "B.8", "    static const int late = std::atexit([] { std::_Exit(0); "
     "});\n", "A chunk begins at a wrong byte"),
    ("an exit with success, explored", "B.5", "    static const int late = std::atexit([] { "
     "std::_Exit(0); });\n", "calls atexit, whose accesses"),
    ("a destructor that exits, explored", "B.5", "    static const struct Late {\n"
     "        ~Late() { std::_Exit(0); }\n    } late;\n", "A rank waits for data"),
    ("a forged report", "01.5", """\
    for (int file = 3; file < 64; ++file) {
        (void)!::write(file, "right Growable.Grows\\n", 21);
    }
    std::_Exit(0);
""", "Something other than the tests"),
    ("a second process", "01.5", "    if (fork() == 0) {\n        return;\n    }\n"
     "    std::_Exit(0);\n", r"ended before its tests did.* 2 of 11"),
]

WRITTEN = exercises.ROOT / "build/written_by_an_answer"
# Learners, the code before their solution, and the state of their answer.
CLASS = [
    ("ann", "", "right"),
    ("leaves a process", "    static const bool left = [] {\n        if (fork() == 0) {\n"
     "            setsid();\n            if (fork() == 0) {\n                pause();\n"
     "            }\n            _exit(0);\n        }\n        return true;\n    }();\n"
     "    (void)left;\n", "right|wrong"),
    ("takes memory", "    for (volatile char* taken = nullptr;; taken += 4096) {\n"
     "        if (reinterpret_cast<std::uintptr_t>(taken) % (1 << 26) == 0) {\n"
     "            taken = static_cast<char*>(malloc(1 << 26));\n        }\n        *taken = 1;\n"
     "    }\n", "unchecked"),
    ("writes a file", f'    if (auto* file = fopen("{WRITTEN}", "w"); file != nullptr) {{\n'
     "        fclose(file);\n    }\n", "right|wrong"),
    ("zoe", "", "right"),
]


def processes_of(target: str) -> str:
    """The target's processes that still run."""
    return subprocess.run(["pgrep", "-f", f"bin/{target}"], capture_output=True, text=True,
                          check=False).stdout.strip()


def judge(course: list, exercise, answer: str) -> verdict.Verdict:
    """The verdict on an answer that is not refused, whatever is in it."""
    with mock.patch.object(refusal, "reason", lambda *_: ""):
        return verdict.judge(course, exercise, answer)


def try_all(course: list) -> list:
    """Returns the faults, one for each bad answer that is not handled well."""
    exercise = next(e for e in course if e.id == "01.5")
    exercise = dataclasses.replace(exercise, seconds=LIMIT, wrong=[])
    solution = exercises.split(exercise, exercises.read(exercise.path))[1]
    faults = []
    for name, code, expected in BAD_ANSWERS:
        found = judge(course, exercise, code + solution)
        print(f"== {name}: {found.say} ({found.seconds:.0f} s)", flush=True)
        if found.passed or not re.search(expected, found.say):
            faults.append(f"{name}: '{found.say}' instead of '{expected}'\n{found.output}")
        if processes_of(exercise.target):
            faults.append(f"{name}: a process is left")
    return faults + try_cheats(course) + try_class(exercise, solution)


def try_cheats(course: list) -> list:
    """Returns the faults, one for each cheat that passes, or whose story is not true."""
    faults = []
    for name, number, code, expected in CHEATS:
        exercise = next(e for e in course if e.id == number)
        solution = check_tree.solution_of(exercise)
        answer = code + (exercises.stub_of(exercise, solution) if exercise.stub else solution)
        if not refusal.reason(answer, solution):
            faults.append(f"{name}: it is not refused")
        found = judge(course, exercise, answer)
        print(f"== {name}: {found.say} ({found.seconds:.0f} s)", flush=True)
        if found.passed or not re.search(expected, found.say):
            faults.append(f"{name}: '{found.say}' instead of '{expected}'\n{found.output}")
    return faults


def try_class(exercise: exercises.Exercise, solution: str) -> list:
    """Has a class graded. Returns the faults."""
    text = exercises.read(exercise.path)
    faults = []
    WRITTEN.unlink(missing_ok=True)
    with (tempfile.TemporaryDirectory() as folder,
          contextlib.redirect_stdout(io.StringIO()) as printed,
          mock.patch.object(refusal, "reason", lambda *_: "")):  # what it would refuse is run
        for name, code, _ in CLASS:
            path = Path(folder) / name / exercise.file
            path.parent.mkdir(parents=True)
            path.write_text(exercises.with_answer(exercise, text, code + solution))
        contained.MEMORY = 2 << 30  # less than CI's machines have
        class_points.grade(Path(folder), as_json=True)
    learners = {learner["name"]: learner for learner in json.loads(printed.getvalue())["learners"]}
    for name, _, state in CLASS:
        row = learners[name]["exercises"][exercise.id]
        print(f"== {name}: {row['state']} {row.get('say', '')}", flush=True)
        if not re.fullmatch(state, row["state"]):
            faults.append(f"{name}: {row['state']} instead of {state}")
    if processes_of(exercise.target):
        faults.append("a process of the class is left")
    if WRITTEN.exists() and not contained.why_no_box():
        faults.append(f"an answer has written {WRITTEN}")
    WRITTEN.unlink(missing_ok=True)
    return faults
