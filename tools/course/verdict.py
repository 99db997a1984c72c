"""Builds an exercise, explores its kernels, runs its tests, and puts the result into words."""

import ctypes
import functools
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import builds
import exercises
import contained
import ninja
import check_tree
import refusal
import results
from exercises import ROOT, CourseError, Exercise, TooFewGpus, split

BUILD = ROOT / "build" / "course"
NATIVE = ROOT / "build"  # for exercises that measure real GPUs: what ./lab run has built
OUTPUT_LIMIT = 16 << 20  # bytes, for endless loops that print
EXPLORED_FOR = 10  # seconds, for each protocol and mode: a right answer takes less than 2
CUDA_ERROR_NO_DEVICE = 100
COUNTEREXAMPLE_LINES = 11  # of a failing execution, before the line that says what is wrong


@dataclass
class Verdict:
    """The verdict on an answer."""

    passed: bool
    say: str
    output: str = ""  # of the compiler or the test
    wrong: int = -1  # which of the exercise's known wrong answers it resembles
    guess: str = ""  # "A common cause" or "Perhaps": `say` fits what was seen, and is not proved
    is_waste: bool = False  # it has passed, but it is wasteful, or not what the task wanted
    raw: str = ""  # all that the explorer or the test printed
    execution: dict = field(default_factory=dict)  # that fails: a row of the explorer's --json
    seconds: float = 0


@dataclass
class Ended:
    """A command that has ended, one way or another."""

    status: int  # as subprocess reports it: negative for a signal
    output: str
    stopped: str = ""  # why it was stopped, if it was
    told: results.Told = field(default_factory=results.Told)  # what the check believes

    @property
    def rows(self) -> list:
        """What the explorer has explored."""
        return self.told.described

    @property
    def is_right(self) -> bool:
        return self.status == 0 and not self.stopped and self.told.is_right()


def run(command: list, limit: float, environment: dict | None = None) -> Ended:
    """Runs a command for at most `limit` seconds. Nothing that it started is left behind."""
    command = contained.boxed(command)
    with tempfile.TemporaryFile() as output, results.Results() as told:
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=subprocess.STDOUT,
                                   env={**os.environ, **(environment or {}), **told.environment},
                                   pass_fds=[told.descriptor], start_new_session=True,
                                   preexec_fn=without_core_file)
        stopped = ""
        end = time.monotonic() + limit
        try:
            while process.poll() is None and not stopped:
                if time.monotonic() > end:
                    stopped = f"It did not end within {limit} s, so it was stopped"
                elif told.is_too_long() or os.fstat(output.fileno()).st_size > OUTPUT_LIMIT:
                    stopped = "It printed more than 16 MiB, so it was stopped"
                time.sleep(0.02)
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)  # and everything that it has started
            except ProcessLookupError:
                pass
            process.wait()
        ninja.require_space(tempfile.gettempdir())  # or some of the output may be missing
        output.seek(0)
        text = output.read(OUTPUT_LIMIT).decode(errors="replace")
        return Ended(contained.status_of(process.returncode),
                     text.replace(f"{check_tree.TREE}/", ""), stopped, told.told())


def without_core_file():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


@functools.cache
def gpu_count() -> int:
    """How many GPUs a program finds here. A driver that does not work is reported on stderr."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int(0)
    failed = cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count))
    if failed not in (0, CUDA_ERROR_NO_DEVICE):
        print(f"./lab: the NVIDIA driver does not work, so no GPU is used: cuInit() returned "
              f"CUresult {failed}. nvidia-smi may show why.", file=sys.stderr, flush=True)
    return 0 if failed else count.value


def has_gpus_for(exercise: Exercise) -> bool:
    return exercise.gpus == 0 or exercise.gpus <= gpu_count()


def require_gpus_for(exercise: Exercise):
    if not has_gpus_for(exercise):
        raise TooFewGpus(f"{exercise.id} needs {exercise.gpus} GPUs, but this machine has "
                         f"{gpu_count() or 'none'}: ./lab skip {exercise.id} leaves it out.")


def program_of(exercise: Exercise) -> Path:
    return (NATIVE if exercise.gpus else BUILD) / "bin" / exercise.target


def build(exercise: Exercise, target: str) -> Verdict | None:
    """Builds one of its programs. Returns None if that succeeds."""
    if exercise.gpus:
        if not program_of(exercise).exists():
            print("building for GPUs, which may take a few minutes", flush=True)
        ended = run(["./lab", "run", exercise.target, "--", "--help"], limit=900)  # also configures
        status, output = ended.status, ended.output
    else:
        printed = []
        status = ninja.build(str(BUILD), [target], printed)
        output = "".join(printed).replace(f"{check_tree.TREE}/", "")
    if status == 0:
        return None
    lines = [line for line in output.splitlines() if not line.startswith(("[", "FAILED: "))]
    unknown = re.search(r"undefined (?:symbol:|reference to [`'])\s*(cu[A-Z]\w+?)(?:_v\d)?\b",
                        output)
    if unknown:
        return Verdict(False, f"It compiles, but there is no {unknown[1]} in the emulated driver: "
                              "common/driver/functions.inc lists the functions that it has.",
                       raw=output)
    unseen = re.search(r"the explorer would not see: (.*?)\. Do", " ".join(output.split()))
    if unseen:
        return Verdict(False, f"It compiles, but it calls {unseen[1]}, whose accesses of memory "
                              "the explorer does not see. Do without it.", raw=output)
    errors = [i for i, line in enumerate(lines) if re.search(r"error:|undefined reference", line)]
    if not errors:
        return Verdict(False, "The build failed:", "\n".join(lines[-6:]), raw=output)
    first = errors[0]
    where = f" in {exercise.file}" if exercise.file and exercise.file in lines[first] else ""
    return Verdict(False, f"It does not compile yet. The first error{where}:",
                   "\n".join(lines[first:first + 6]), raw=output)


def environment_of(exercise: Exercise) -> dict:
    """The variables of its programs. They start their own ranks, also if the learner's shell is a
    rank of a launcher's. Waits end after 5 s, so that a hang is reported soon."""
    if exercise.gpus:
        return {"SYMM_DRIVER": "native", "SYMM_LAUNCHER": "none", **exercise.environment}
    return {"SYMM_DRIVER": "emulated", "SYMM_LAUNCHER": "none", "SYMM_TIMEOUT": "5",
            "SYMM_COURSE": "1", "TSAN_OPTIONS": "halt_on_error=1:atexit_sleep_ms=0",
            **exercise.environment}


def doing(text: str):
    """Shows the current work on a terminal, until the next line."""
    if sys.stdout.isatty():
        ninja.Line().show(text)


def prepare():
    """What the first check needs before it builds."""
    builds.fix_addresses()
    builds.configure("course")


def judge(course: list, exercise: Exercise, answer: str | None = None) -> Verdict:
    """The verdict on the answer in the exercise's file, or on `answer` in its place."""
    prepare()
    begun = time.monotonic()
    doing(f"{exercise.id}: checking")
    is_learners = answer is None
    with check_tree.alone():
        check_tree.update(course, exercise, answer)
        if is_learners:
            answer = split(exercise, exercises.read(exercise.path))[1]
        verdict = refuse(exercise, answer)
        if verdict.passed and exercise.explore:
            verdict = explore(exercise, answer)
        if verdict.passed:
            explored = verdict
            verdict = (build(exercise, exercise.target) or test(exercise, answer)
                       if exercise.target else Verdict(True, "Right."))
        if verdict.passed:
            verdict.raw = explored.raw + verdict.raw
            verdict = beyond_tests(exercise, answer, verdict)
            verdict.say += explored.say if verdict.passed else ""
    ninja.Line().clear()
    if verdict.passed and is_learners:
        exercises.write(check_tree.accepted(exercise),
                        "".join(answer.splitlines(keepends=True)[1:-1]))
    verdict.seconds = time.monotonic() - begun
    return verdict


def refuse(exercise: Exercise, answer: str) -> Verdict:
    """Whether the answer's text may be built at all."""
    reason = refusal.reason(answer, check_tree.solution_of(exercise))
    return Verdict(not reason, reason)


def explore(exercise: Exercise, answer: str) -> Verdict:
    """The verdict of the explorer, which is the same each time: it visits every execution."""
    program, *protocols = exercise.explore
    verdict = build(exercise, program)
    if verdict is not None:
        return verdict
    doing(f"{exercise.id}: exploring {' and '.join(protocols)} in every execution")
    ended = run([str(BUILD / "bin" / program), *protocols, f"--lines={COUNTEREXAMPLE_LINES}",
                 f"--seconds={EXPLORED_FOR}"], exercise.seconds)
    if not ended.is_right:
        return explain(exercise, ended, answer)
    number = sum(row["executions"] for row in ended.rows)
    names = " and ".join(protocols)
    which = "All" if all(row["exhausted"] for row in ended.rows) else "The first"
    return Verdict(True, f" The only execution of {names} is right." if number == 1 else
                   f" {which} {number} executions of {names} are right.",
                   raw=ended.output + costs(ended.rows))


def costs(rows: list) -> str:
    """What right executions cost, a line each, for the rules on waste."""
    return "".join(f"accesses over links: {row['protocol']} {row['over_links']}\n" +
                   f"polls over links: {row['protocol']}\n" * row["polls_over_links"]
                   for row in rows if not row["may_give_up"])


def test(exercise: Exercise, answer: str) -> Verdict:
    """The verdict of the tests. A fault of order shows differently from run to run: the tests run
    up to three times, until they show a known one."""
    begun = time.monotonic()
    doing(f"{exercise.id}: running its tests{how_tested()}")
    verdict = test_once(exercise, answer)
    for _ in range(2):
        if verdict.passed or verdict.wrong >= 0 or time.monotonic() - begun > 10:
            break
        again = test_once(exercise, answer)
        verdict = again if again.wrong >= 0 else verdict
    return verdict


def how_tested() -> str:
    cache = (BUILD / "CMakeCache.txt").read_text(encoding="utf-8")
    return ", under ThreadSanitizer" if "SYMM_SANITIZE:STRING=thread" in cache else ""


def test_once(exercise: Exercise, answer: str) -> Verdict:
    """The verdict of one run of the tests."""
    ended = run([str(program_of(exercise)), f"--gtest_filter={exercise.filter}", "--gtest_brief=1"],
                exercise.seconds, environment_of(exercise))
    if not ended.is_right:
        return explain(exercise, ended, answer)
    number = f"{len(ended.told.right)} test{'s' if len(ended.told.right) > 1 else ''}"
    return Verdict(True, f"Right: {number}{how_tested()}.", raw=ended.output)


def beyond_tests(exercise: Exercise, answer: str, verdict: Verdict) -> Verdict:
    """The verdict on an answer that has passed: whether its code shows a fault that no test can
    see, or else that it is wasteful. What is wasteful may also be seen in the tests' output."""
    for is_waste in (False, True):
        for wrong in exercise.wrong:
            if wrong.is_waste == is_waste and fits(wrong, verdict.raw, answer) and (
                    is_waste or not wrong.shows):
                say = exercise.wrong[wrong.told].say
                if wrong.has:
                    say = say.replace("But ", "Perhaps, though, ", 1)
                return Verdict(is_waste, f"{'Right.' if is_waste else 'The tests pass.'} {say}",
                               wrong=wrong.told, is_waste=is_waste, raw=verdict.raw)
    return verdict


def fits(wrong: exercises.Wrong, output: str, answer: str) -> bool:
    """Whether the output and the code are those of this wrong answer."""
    return bool((wrong.shows or wrong.has) and re.search(wrong.shows, output, re.DOTALL) and
                re.search(wrong.has, answer, re.DOTALL))


def answer_of(course: list, exercise: Exercise) -> str:
    """The answer to a question, computed by running the command."""
    require_gpus_for(exercise)
    if exercise.gpus and (begun := [e.id for e in course if check_tree.is_started(e) and
                                    e.begins in exercises.read(e.path)]):
        raise CourseError("The build for GPUs contains the exercises that you have begun "
                          f"({', '.join(begun)}): check this one on the branch that you cloned "
                          "(`git switch main`), or ./lab reset them first.")
    if not exercise.gpus:
        prepare()
    with check_tree.alone():
        check_tree.update(course, exercise)
        verdict = build(exercise, exercise.target)
        if verdict is not None:
            raise CourseError(f"{verdict.say}\n{verdict.output}")
        command = [str(program_of(exercise)), *exercise.command]
        ended = run(command, exercise.seconds, environment_of(exercise))
    if ended.stopped or exercise.count and ended.status != 0:  # a program that ends early has less
        raise CourseError(f"{' '.join(command)} failed: {ended.stopped or ended.status}\n"
                          f"{ended.output}")
    if exercise.count:
        return str(len(re.findall(exercise.count, ended.output, re.MULTILINE)))
    found = re.search(exercise.answer, ended.output, re.MULTILINE)
    if not found:
        raise CourseError(f"{' '.join(command)} did not print the answer:\n{ended.output}")
    return found[1]


def explain(exercise: Exercise, ended: Ended, answer: str) -> Verdict:
    """The verdict on a run of the explorer or of the tests that has failed."""
    output = ended.output
    missing = re.search(r"exercise (\S+) is not written yet: follow (.*)", output)
    if missing:
        return Verdict(False, f"Exercise {missing[1]} is not written yet: follow {missing[2]}.",
                       raw=output)
    if ended.status == 0 and not ended.stopped and not ended.told.wrong():
        return Verdict(False, ended.told.why_incomplete(), output, raw=output)
    failed = next((row for row in ended.rows if row["failed"]), {})
    for wrong in exercise.wrong:
        if wrong.shows and not wrong.is_waste and fits(wrong, output, answer):
            return Verdict(False, exercise.wrong[wrong.told].say, evidence(ended),
                           wrong=wrong.told, raw=output, execution=failed,
                           guess="Perhaps" if wrong.has else "A common cause")
    say = of_execution(failed["why"]) if failed else in_general(ended)
    return Verdict(False, say, evidence(ended), raw=output, execution=failed)


def of_execution(why: str) -> str:
    """A sentence about a failing execution for which the exercise has no verdict."""
    if why.startswith("data race"):
        return ("There is an execution with a data race: one thread reads or writes what another "
                "one writes, and nothing orders the two. The last steps before it:")
    if " polls nothing" in why:
        return ("A thread waits in a poll that loads no word, so no store can end its wait. Which "
                "load belongs into the poll? The last steps:")
    if why.startswith("no thread can go on:") and " polls " not in why:
        return ("There is an execution that does not end: threads wait at a barrier that others do "
                "not reach. Which thread left, or took another way? The last steps:")
    if why.startswith("no thread can go on"):
        return ("There is an execution that does not end: every thread waits. Which thread should "
                "have stored what they wait for? The last steps:")
    if why.startswith("the host waits"):
        return ("The host waits while it queues work, before any of it runs, so nothing can end "
                "its wait. Let a kernel or a stream wait instead.")
    if "accesses of two sizes" in why:
        return ("A word is accessed as a whole and in parts. C++ has no rule for which bytes such "
                "a load returns: use the functions that load and store whole words.")
    return "There is an execution that goes wrong. The last steps before it:"


def in_general(ended: Ended) -> str:
    """A sentence about a failed run for which the exercise has no verdict."""
    if "ThreadSanitizer: data race" in ended.output:
        return ("A data race: one thread reads or writes what another one writes, and nothing "
                "orders the two. Both are named below.")
    if ended.stopped:
        return (f"{ended.stopped}: look for a loop whose condition never changes, or a wait for "
                "something that is never sent.")
    if "in a kernel for" in ended.output:
        return "A kernel waited for something that did not come. Which rank should have sent it?"
    if (re.search("left (something|this) behind", ended.output)
            and "thrown in the test body" not in ended.output):
        return ("Something that was acquired is never released: memory, addresses, a mapping or a "
                "handle. The tests count what is left.")
    if ended.told.wrong():
        return f"It compiles and ends, but the test {ended.told.wrong()[0]} fails:"
    if "terminate called after throwing" in ended.output:
        return ("An exception left a function that must not throw, such as a destructor. The lines "
                "below have its text, or the call that failed:")
    crash = re.search(r"ThreadSanitizer:(?:DEADLYSIGNAL|.*?(SEGV|FPE|BUS|ABRT|ILL))", ended.output)
    if ended.status < 0 or crash:
        name = (signal.Signals(-ended.status).name if ended.status < 0
                else "SIG" + (crash[1] or "SEGV"))
        cause = {"SIGFPE": "a division or % by 0",
                 "SIGILL": "code that was never to be reached, such as a path without a return",
                 "SIGABRT": "an assertion, or an exception that nothing catches"}.get(
                     name, "a null pointer, or an index beyond the end")
        return f"It crashed ({name}): look for {cause}."
    return f"It ended with status {ended.status}."


def evidence(ended: Ended) -> str:
    """The most telling lines of the output: a counterexample, or what a test has printed."""
    for row in ended.rows:
        if row["failed"]:
            return "\n".join(row["counterexample"])
    # The ranks have printed their errors before the test says that there were some.
    output = re.sub(r".*run_as\.hpp:\d+: Failure\n.*\n  run_ranks.*\n    Which is: 1\n  0\n", "",
                    ended.output)
    lines = output.splitlines()
    for i, line in enumerate(lines):
        if "WARNING: ThreadSanitizer" in line:
            return race(lines[i:])
    failures = [i for i, line in enumerate(lines) if ": Failure" in line or "rror" in line]
    noise = r"^(\[[ =-]|Running main\(\)|Failed$|\s*$)|-byte object <|run_as\.hpp"
    kept = {}  # by the text without the rank that reports it
    for line in lines[failures[0] if failures else -10:]:
        if kept and line.startswith("[  FAILED  ]"):
            break
        if not re.search(noise, line):
            kept.setdefault(re.sub(r"^\[\d+\] error: ", "", line), line)
    return "\n".join(list(kept.values())[:7])


def race(lines: list) -> str:
    """The two accesses of a data race, each with the functions that made it."""
    accesses = []
    for line in lines:
        frame = re.match(r"\s*#\d+ (.*) (?:\S*/)?((?:labs|common|symm)/\S+:\d+):\d+", line)
        if re.search(r"^  (Previous )?(atomic )?(read|write) of size", line, re.IGNORECASE):
            accesses.append((line.strip().split(" at ")[0], []))
        elif frame and accesses:
            accesses[-1][1].append(f"    {frame[2]}  {function_name(frame[1])}")
        elif re.match(r"  (Location|Thread|Mutex)", line) or line.startswith("SUMMARY"):
            break
    kept = []
    for access, frames in accesses:
        of_labs = [frame for frame in frames if not re.match(r" *common/(emu|cuda|sys)/", frame)]
        kept += [access, *(of_labs[:3] or frames[:1])]
    return "\n".join(kept)


def function_name(signature: str) -> str:
    """`symm::Ring::send` of a signature with its template arguments, parameters and result."""
    before = ""
    while before != signature:
        before = signature
        signature = re.sub(r"<[^<>]*>", "", signature)
    return re.sub(r"\(.*", "", signature.replace("operator()", "operator")).split()[-1]
