#!/usr/bin/env python3
"""Records an execution of each protocol, a right one and wrong ones beside it, for the players on
the pages, and draws a picture of it for readers on GitHub. The programs are those of the preset
tsan: the explorer's, and its mutants.

    record.py [NAME...]   writes docs/recordings/NAME.json and docs/pictures/NAME_steps.svg
    --pictures            only draws the pictures anew, of the recordings that are there
    --check               writes nothing, and fails if a file is not what it would write today

Without names it takes all protocols, and the executions behind the exercises that ask which values
a load may return (`values`). The name `allreduce` records calls of lab 06's program on
emulated GPUs, built by g++ without sanitizers: `--bin` is its folder, build/emulated/bin by
default."""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / folder) for folder in ("tools/explore/player", "tools/lab",
                                               "docs/pictures")]
import execution  # noqa: E402
import sentences  # noqa: E402
import steps  # noqa: E402
import tiles  # noqa: E402
import tool  # noqa: E402

BIN = ROOT / "build/tsan/bin"
# The title, the file whose lines are shown, the explorer's program, and the scenes. Of each scene:
# what it has, and its mutants (cmake/Mutants.cmake) with what they lack; then those without which
# no execution of this scene goes wrong.
PROTOCOLS = {
    "signal": ("A signal and a wait", "signal.hpp", "05", {
        "signal": ("2 ranks", {"signal_relaxed": "the signal's release is missing",
                               "wait_relaxed": "the wait's acquire is missing"},
                   {"no_wrap": "a comparison that does not wrap",
                    "wait_for_equal": "waits for exactly the value, not for at least that"}),
        "signal/wrap": ("2 ranks, the flag wraps", {
            "no_wrap": "a comparison that does not wrap"})}),
    "packet": ("A packet", "ll_packet.hpp", "05", {
        "packet": ("2 ranks", {"one_flag": "one of the two flags is not checked"})}),
    "barrier": ("A barrier", "barrier.hpp", "05", {
        "barrier/2x1": ("2 ranks", {"wait_relaxed": "the wait's acquire is missing",
                                    "wait_for_equal": "waits for exactly the epoch"},
                        {"no_sync_before": "the sync before the signals is missing",
                         "no_sync_after": "the sync after the waits is missing",
                         "epoch_not_stored": "the epoch is not kept for the next call"}),
        "barrier/2x2": ("2 ranks of 2 threads", {
            "no_sync_before": "the sync before the signals is missing",
            "no_sync_after": "the sync after the waits is missing"},
            {"epoch_not_stored": "the epoch is not kept for the next call"}),
        "barrier/2x2/2": ("2 ranks of 2 threads, 2 calls", {
            "epoch_not_stored": "the epoch is not kept for the next call"}),
        "barrier/3x1": ("3 ranks", {})}),
    "multicast_barrier": ("A barrier by the switch", "multicast_barrier.hpp", "05", {
        "multicast_barrier/2x1": ("2 ranks", {
            "multicast_polled_relaxed": "the poll's acquire is missing",
            "multicast_waits_for_equal": "waits for exactly the count"},
            {"multicast_no_sync_before": "the sync before the addition is missing",
             "multicast_no_sync_after": "the sync after the poll is missing"})}),
    "abort_barrier": ("A barrier of a block that may give up", "abort_barrier.hpp", "05", {
        "abort_barrier": ("2 ranks, one of 3 threads", {
            "abort_does_not_stay": "the answer is not kept"})}),
    "connection": ("A connection", "fifo.hpp", "04", {
        "connection/1": ("2 ranks", {"one_slot_too_many": "a slot too many is used",
                                     "tail_store_relaxed": "the tail's release is missing"}),
        "staged/1": ("2 ranks, staged", {})}),
    "ll": ("LL", "ll.hpp", "ring", {
        "ll/1/credit": ("2 ranks, one slot left", {
            "one_flag": "one of the two flags is not checked"}),
        "ll/1": ("2 ranks, 10 steps", {"ll_no_credit": "the sender waits for no credit"}),
        "ll/2": ("2 ranks of 2 threads", {})}),
    "ll128": ("LL128", "ll128.hpp", "ring", {
        "ll128/32/credit": ("2 ranks of 32 threads, 2 shown; one slot left", {
            "line_flag_store_relaxed": "the flag is stored without release"})}),
    "one_shot": ("One shot", "one_shot.hpp", "06_one_shot", {
        "one_shot/2x1": ("2 ranks", {"one_flag": "one of the two flags is not checked",
                                     "one_bank": "one bank instead of two"},
                         {"epoch_no_sync": "the sync before the epoch is stored is missing"}),
        "one_shot/2x2": ("2 ranks of 2 threads", {
            "epoch_no_sync": "the sync before the epoch is stored is missing"}),
        "one_shot/3x1": ("3 ranks", {})}),
    "sentinel": ("One shot by sentinels", "sentinel.hpp", "06_sentinel", {
        "sentinel/2x1": ("2 ranks", {
            "one_half": "one half of a pack is not checked",
            "one_bank": "one bank instead of two",
            "not_cleared": "slots are not cleared"},
            {"epoch_no_sync": "the sync before the epoch is stored is missing"}),
        "sentinel/2x2": ("2 ranks of 2 threads", {
            "epoch_no_sync": "the sync before the epoch is stored is missing"})}),
    "push": ("Two shots by sentinels", "push.hpp", "06_push", {
        "push/2x1/empty": ("2 ranks, one pack", {
            "not_cleared": "slots are not cleared",
            "one_half": "one half of a pack is not checked"},
            {"no_fence": "the fence of a rank with no part is missing"}),
        "push/2x1": ("2 ranks, two packs", {
            "one_bank": "one bank instead of two",
            "gather_not_cleared": "slots of the second trip are not cleared"},
            {"no_fence": "the fence of a rank with no part is missing"}),
        "push/3x1/mixed": ("3 ranks, of which one has no part", {
            "no_fence": "the fence of a rank with no part is missing"})}),
    "rendezvous": ("The rendezvous of two shots", "rendezvous.hpp", "06_two_shot", {
        "two_shot/2x1/one": ("2 ranks, one element", {
            "rendezvous_relaxed": "the wait's acquire is missing",
            "rendezvous_same_epoch": "the epoch stays the same"})}),
    "two_shot": ("Two shots", "two_shot.hpp", "06_two_shot", {
        "two_shot/2x1": ("2 ranks", {"no_barrier": "the barrier at the end is missing",
                                     "signal_relaxed": "the release of the barrier at the end is "
                                                       "missing"},
                         {"rendezvous_no_sync": "the sync after the rendezvous is missing",
                          "no_sync_before": "the sync before the barrier at the end is missing"}),
        "two_shot/2x2": ("2 ranks of 2 threads", {
            "rendezvous_no_sync": "the sync after the rendezvous is missing",
            "no_sync_before": "the sync before the barrier at the end is missing"}),
        "two_shot/3x1": ("3 ranks", {})}),
    "chunks": ("Two shots in chunks", "chunks.hpp", "06_chunks", {
        "chunks/2x1": ("2 ranks", {"no_end": "the barrier at the end is missing",
                                   "not_counted": "steps are not counted"}),
        "chunks/3x1": ("3 ranks", {})}),
    "multicast": ("Two shots by the switch", "multicast.hpp", "06_multicast", {
        "multicast/two_shots/2x1": ("2 ranks", {
            "no_second_barrier_two_shots": "the barrier after the sums is missing",
            "each_stores_all": "both ranks reduce all packs"})}),
    "copy": ("Two shots by the copy engine", "copy.hpp", "06_copy", {
        "copy/2x1": ("2 ranks", {"wait_relaxed": "the wait's acquire is missing"}),
        "reduce_scatter/copy/2x1": ("2 ranks, ReduceScatter", {
            "no_end": "the barrier at the end is missing"})}),
}
# Lab 06's program records these itself.
ALGORITHMS = {"oneshot": "One shot, packets", "sentinel": "One shot, sentinels",
              "push": "Two shots, sentinels", "twoshot": "Two shots, windows",
              "chunks": "Two shots, chunks", "copy": "Two shots, copy engine"}
SHOW = "06_allreduce --show --ranks {} --bytes {} --algo {} --json {}"
BYTES = {2: 64, 4: 64, 8: 128}  # of a call, by its ranks: at least 16 for each
SHOWN_RANKS = 4
LARGEST = 10_000  # bytes of a picture
SHOWN_THREADS = {"ll128": [0, 31]}
STREAMS = {"copy": {2: ["rank 0's input stream", 0], 3: ["rank 1's input stream", 1],
                    4: ["rank 0's sum stream", 0], 5: ["rank 1's sum stream", 1]}}


def searches(program: str, scene: str, executions: int) -> list:
    """The rows of the searches of a scene: where every wait ends, and where waits may give up."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        ended = subprocess.run([BIN / f"explore_{program}", scene, f"--executions={executions}",
                                "--seconds=600", f"--record={file.name}"],
                               capture_output=True, text=True)
        rows = [json.loads(row) for row in Path(file.name).read_text().splitlines()]
    rows = [row for row in rows if row["protocol"] == scene]
    if not rows:
        sys.exit(f"explore_{program} {scene} recorded nothing:\n{ended.stdout}{ended.stderr}")
    return rows


def right(program: str, scene: str) -> dict:
    return searches(program, scene, 1)[0]


def wrong(program: str, scene: str) -> dict:
    rows = searches(program, scene, 100_000)
    if not (failed := [row for row in rows if row["failed"]]):
        sys.exit(f"explore_{program} {scene} finds no failure")
    return failed[0]


def without_failure(program: str, scene: str) -> int:
    """How many executions there are, of which none goes wrong."""
    rows = searches(program, scene, 100_000)
    if len(rows) != 2 or not all(row["exhausted"] and not row["failed"] for row in rows):
        sys.exit(f"explore_{program} {scene}: a search fails, or does not end")
    return sum(row["executions"] for row in rows)


def check(scene: str, short: dict):
    """Ends the program if a plain load finds other values than the memory that is shown."""
    for run in short["runs"]:
        now = [first for _, _, first in short["cells"]]
        for number, step in enumerate(run["steps"]):
            stored = step.get("cells", []) if step["what"].endswith("store") else []
            for cell, value in step.get("hidden", []) + stored:
                now[cell] = value
            if step["what"] == "plain load" and any(now[cell] != value
                                                    for cell, value in step["cells"]):
                sys.exit(f"{scene}: step {number + 1} loads what the memory shown does not hold")


def recording(name: str) -> dict:
    title, page, program, scenes = PROTOCOLS[name]
    told = []
    for scene, (what, mutants, *harmless) in scenes.items():
        rows = [right(program, scene), *(wrong(f"{program}_{mutant}", scene)
                                         for mutant in mutants)]
        short = execution.condensed(rows, page, SHOWN_THREADS.get(name), STREAMS.get(name))
        first, *others = short["runs"]
        for run, lacks in zip(others, mutants.values(), strict=True):
            run["lacks"] = lacks
            execution.align(run, first)
        check(scene, short)
        told.append({"scene": scene, "name": what} | sentences.tell(short))
        if harmless:
            told[-1]["harmless"] = [[lacks, without_failure(f"{program}_{mutant}", scene)]
                                    for mutant, lacks in harmless[0].items()]
    return {"title": title, "scenes": told}


def values() -> dict:
    """For each exercise and each of its answers, an execution that proves it."""
    program, told = BIN / "explore_values", []
    found = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    for exercise, answers in re.findall(r"^(\d+\.\d+): (\S+) in", found, re.MULTILINE):
        for answer in answers.split(","):
            scene = f"{exercise}/{answer}"
            short = sentences.tell(execution.condensed([wrong("values", scene)], "values.cpp"))
            short["runs"] = [run | {"why": "", "ends": f"So the answer may be {answer}."}
                             for run in short["runs"]]
            for run in short["runs"]:
                del run["fault"], run["blame"]
            told.append({"scene": scene, "name": f"{exercise}, the answer {answer}"} | short)
    return {"title": "Which values may this load return?", "scenes": told}


def shown(programs: Path, algorithm: str, ranks: int) -> dict:
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = SHOW.format(ranks, BYTES[ranks], algorithm, file.name).split()
        subprocess.run([programs / command[0], *command[1:]], check=True, capture_output=True,
                       env={**os.environ, "SYMM_DRIVER": "emulated"})
        call = json.loads(Path(file.name).read_text())
    call["moves"].sort(key=lambda move: (move["trip"], json.dumps(move)))  # one trip: no order
    return call


def sent(call: dict) -> list:
    """The trips of a call, and of each byte of its input: the bytes that rank 0 sends of numbers,
    and of what else crosses a link."""
    moves = [move for move in call["moves"] if move["from"] == 0]
    numbers = sum((last - first + 1) * call["element_bytes"]
                  for move in moves for first, last in move.get("elements", []))
    other = sum(move["bytes"] for move in moves) - numbers
    size = call["elements"] * call["element_bytes"]
    return [call["trips"], numbers / size, other / size]


def allreduce(programs: Path) -> dict:
    """A call of each algorithm on four emulated GPUs."""
    calls = []
    for algorithm, title in ALGORITHMS.items():
        by_ranks = {ranks: shown(programs, algorithm, ranks) for ranks in BYTES}
        calls.append({"title": title} | by_ranks[SHOWN_RANKS] | {
            "sent": {ranks: sent(call) for ranks, call in by_ranks.items()}})
    return {"title": "An AllReduce of four ranks", "algorithms": calls}


def text_of(recording: dict) -> str:
    """JSON with a step per line, so that changes can be read."""
    if "scenes" in recording:
        recording = execution.with_lines(recording)
    text = json.dumps(recording, ensure_ascii=False, separators=(",", ":"))
    text = text.replace('{"trip":', '\n{"trip":').replace('{"title":', '\n{"title":')
    return text.replace('{"thread":', '\n{"thread":').replace('"lines":', '\n"lines":') + "\n"


def drawing_of(name: str, text: str) -> str:
    """The picture of a recording. Pages show several, so it may not be large."""
    recording = json.loads(text)
    drawn = tiles.picture(recording) if name == "allreduce" else steps.picture(name, recording)
    if len(drawn.encode()) > LARGEST:
        sys.exit(f"{name}_steps.svg has {len(drawn.encode())} bytes, more than {LARGEST}: show "
                 "fewer steps (docs/pictures/steps.py)")
    return drawn


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--bin", type=Path, default=ROOT / "build/emulated/bin")
    parser.add_argument("name", nargs="*", default=[])
    arguments = parser.parse_args()
    names = arguments.name or [*PROTOCOLS, "values", *(["allreduce"] if arguments.pictures else [])]
    changed = []
    for name in names:
        path = Path(__file__).with_name(f"{name}.json")
        text = path.read_text() if arguments.pictures else text_of(
            allreduce(arguments.bin) if name == "allreduce" else
            values() if name == "values" else recording(name))
        picture = ROOT / f"docs/pictures/{name}_steps.svg"
        for file, content in ((path, text), (picture, drawing_of(name, text))):
            if file.is_file() and file.read_text() == content:
                continue
            changed.append(name)
            if not arguments.check:
                file.write_text(content)
                print(f"{file.relative_to(ROOT)}: {len(content)} bytes")
    if arguments.check and changed:
        again = f"{'--pictures ' * arguments.pictures}{' '.join(dict.fromkeys(changed))}"
        print(f"not what the programs record today, or drawn from an older recording. Make them "
              f"again:\ndocs/recordings/record.py {again}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    tool.run(main)
