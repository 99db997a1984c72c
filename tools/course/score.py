"""What right answers cost, for ./lab check and ./lab score. It is counted on emulated GPUs and in
the explorer's executions, so it is the same on every machine."""

import json
import os
import re
import subprocess
import tempfile

import check_tree
import exercises
import verdict
from exercises import CourseError, Exercise


def count(exercise: Exercise) -> int:
    """What the answer that was built last costs: accesses over links in the first execution of each
    protocol, or of an open task what its test has counted, else the driver calls of the tests."""
    if exercise.explore:
        program, *protocols = exercise.explore
        ended = verdict.run([str(verdict.BUILD / "bin" / program), *protocols, "--executions=1"],
                            exercise.seconds)
        return sum(row["over_links"] for row in ended.rows if not row["may_give_up"])
    ended = verdict.run([str(verdict.program_of(exercise)), f"--gtest_filter={exercise.score_of}"],
                        exercise.seconds, {**verdict.environment_of(exercise),
                                           "SYMM_EMU_COUNT": "1"})
    if not ended.is_right:
        raise CourseError(f"{exercise.id}: {exercise.score_of} fails:\n{ended.output}")
    # The only line that begins like this: an answer could print, too, or spoil the test's line.
    name = "score" if exercise.best else "driver calls"
    counted = re.findall(rf"^{name}: (\d+)$", ended.output, re.M)
    if len(counted) != 1 or ended.output.count(f"{name}: ") != 1:
        raise CourseError(f"{exercise.id} has no score: its test prints one line '{name}: NUMBER', "
                          "and this is not what was printed. Does your answer print anything, or "
                          f"close stdout?\n{ended.output}")
    return int(counted[0])


def measure(exercise: Exercise) -> dict:
    """Times in us of a call: of the answer that `check` has accepted last, of ours and of NCCL's.
    Empty without two GPUs."""
    if verdict.gpu_count() < 2 and os.environ.get("SYMM_DRIVER") != "emulated":
        return {}

    def row(name: str) -> dict:
        with tempfile.NamedTemporaryFile(suffix=".json") as rows:
            command = ["./lab", "bench", name, *exercise.measure[1:], "--json", rows.name]
            ended = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True,
                                   cwd=exercises.ROOT)
            if ended.returncode != 0:
                raise CourseError(f"{exercise.id}: {' '.join(command)} fails:\n{ended.stdout}")
            return json.load(rows)["benchmarks"][0]

    yours, ours = row(exercise.measure[0]), row("06")
    return {"yours": yours["out_us"], f"ours ({ours['label']})": ours["out_us"], **{
        name: ours[key] for name, key in (("NCCL", "nccl_us"),
                                          ("NCCL's windows", "nccl_symmetric_us")) if key in ours}}


def score_of(course: list, exercise: Exercise, answer: str) -> int | None:
    """What an answer costs, or None if it is not right."""
    if not verdict.judge(course, exercise, answer).passed:
        return None
    with check_tree.alone():
        return count(exercise)


def best_known(exercise: Exercise) -> tuple[str, str]:
    """Of an open task: whose answer it is, and the answer."""
    if not exercise.hall.exists():
        return "the author", check_tree.solution_of(exercise)
    name, answer = exercises.read(exercise.hall).split("\n", 1)
    return name.removeprefix("//").strip(), answer


def told(exercise: Exercise, counted: int) -> str:
    """What a right answer costs, beside the best that is known."""
    text = f"Score: {counted} ({exercise.score})."
    if not exercise.best:
        return text
    if counted < exercise.best:
        return (f"{text} That is better than the best known, {exercise.best}: a pull request puts "
                f"yours into {exercise.hall.relative_to(exercises.ROOT)} (CONTRIBUTING.md).")
    return f"{text} Best known: {exercise.best}, by {best_known(exercise)[0]}."


def keep_best(exercise: Exercise, counted: int, progress) -> bool:
    """Notes the learner's best score. Returns whether it was better than all before."""
    progress.load()
    best = progress.data["best"].get(exercise.id)
    if best and best["score"] <= counted:
        return False
    progress.data["best"][exercise.id] = {"score": counted}
    progress.save()
    return True


def show(course: list, number: str | None, progress):
    """Prints what the best known answers cost, and the learner's."""
    scored = [e for e in course if e.score and number in (None, e.id)]
    if not scored:
        raise CourseError("these exercises have a score: " +
                          ", ".join(e.id for e in course if e.score))
    print("Less is better. An answer counts if it passes ./lab check.\n\n"
          f"{'':6}{'counted':60} {'known':>5} {'yours':>5}  your best")
    for exercise in scored:
        if exercise.measure:
            show_measured(exercise, progress)
            continue
        known = exercise.best or score_of(course, exercise, check_tree.solution_of(exercise))
        yours = "-"
        if check_tree.has_answer(exercise):
            answer = exercises.answer_in(exercise, exercises.read(exercise.path))
            counted = score_of(course, exercise, answer)
            yours = "wrong" if counted is None else str(counted)
        best = progress.data["best"].get(exercise.id, {})
        print(f"{exercise.id:6}{exercise.score:60} {known or 'fails':>5} {yours:>5}  "
              f"{best.get('score', '-')} {best.get('commit', '')}".rstrip(), flush=True)


def show_measured(exercise: Exercise, progress):
    answer = check_tree.has_answer(exercise) and exercises.answer_in(
        exercise, exercises.read(exercise.path))
    if not answer or not check_tree.accepted(exercise).exists() or (
            answer != exercises.read(check_tree.accepted(exercise))):
        told = f"measured once ./lab check {exercise.id} accepts it"
    elif times := measure(exercise):
        keep_best(exercise, round(times["yours"], 2), progress)
        told = ", ".join(f"{name} {us:.2f}" for name, us in times.items())
        told += f"; your best {progress.data['best'][exercise.id]['score']}"
    else:
        told = f"not measured: {verdict.gpu_count()} GPUs here"
    print(f"{exercise.id:6}{exercise.score}: {told}", flush=True)
