"""Executions that the explorer recorded (`--record`, docs/EXPLORE.md), made short enough to step
through: what no other step depends on is left out, and what a thread copies in a loop is one step.

    threads  [name, rank] of each
    cells    ranges of memory: [name, rank where it lies or -1, first value] of each
    runs     the executions, of one scene. Of each:
      why    the failure; empty if it is right
      parts  beside a right one: its first step that differs
      steps  of each: `thread`, `call` (kernels that the thread has ended before), `what`, `order`,
             `source` ([file, text] of its lines) and `says`, a sentence. If it accesses memory:
             `place`, `owner`, `value`, and `cells` ([cell, its value] of each). For a load: `from`
             (the step that stored the value; -1: it was there at first; -2: a step that is left
             out), `newer` (the newest store, if that is another) and `may` ([step, value] of all
             that it could return, the newest first)
"""

import re
from collections import defaultdict
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
HIDDEN = re.compile(r"gave_up|shared\d|step$")  # only the scene, or a block itself, uses them
SHOWN = 4  # values of a range; of more, the first and the last


def base(name: str) -> str:
    """The name of the memory, without the rank and the place in it."""
    return re.sub(r"^r\d+\.", "", re.split(r"[+\[]", name)[0])


def by_number(name: str) -> list:
    """Sorts names as numbers are: out[2] before out[10]."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def values(texts: list) -> str:
    numbers = [number for text in texts for number in text.split(", ") if number]
    return ", ".join(numbers) if len(numbers) <= SHOWN else f"{numbers[0]} ... {numbers[-1]}"


def thread_of(step: dict) -> tuple:
    return step["rank"], step["block"], step["thread"]


def name_of(step: dict) -> str:
    return re.match(r"(thread \d+ of |block \d+ of )*rank \d+", step["says"])[0]


def told_steps(row: dict, used: dict, alone: set, threads: list | None) -> list:
    """The numbers of a row's steps that are told. `used`: the cells that any row loads or stores;
    `alone`: blocks of one thread."""
    at_work = set()  # threads that have run the protocol since their kernel's start
    numbers = []
    for number, step in enumerate(row["steps"]):
        cells = {row["cells"][cell["cell"]]["name"] for cell in step["cells"]}
        is_last = bool(row["failed"]) and number + 1 == len(row["steps"])
        if any(HIDDEN.match(base(cell)) for cell in cells) or \
                threads is not None and step["thread"] not in threads and not is_last:
            continue
        if step["what"] == "kernel end":
            is_told = thread_of(step) in at_work
            at_work.discard(thread_of(step))
        elif step["what"].endswith("load"):
            is_told = bool(cells & used["store"])
        elif step["what"] == "plain store":
            is_told = bool(cells & used["load"])
        else:
            is_told = not step["what"].endswith("sync") or thread_of(step)[:2] not in alone
        if is_told or is_last or row["failed"] and step["matters"] and cells:
            numbers.append(number)
            if any("/explore/" not in place for place in step["places"]):
                at_work.add(thread_of(step))
    return numbers


def folded(row: dict, numbers: list) -> list:
    """Lists of numbers: plain accesses of one thread to one memory, one after the other, are one
    step, also if it loads and stores in turns."""
    steps = row["steps"]
    groups = []
    for (_, is_plain), run in groupby(numbers, lambda number: (
            thread_of(steps[number]), steps[number]["what"].startswith("plain"))):
        of = {}
        for number in run:
            step = steps[number]
            memory = step["location"][:2], base(step["location"])
            place = (step["what"], memory, *step["places"][:1])
            of.setdefault(place if is_plain else number, []).append(number)
        groups += of.values()
    return groups


def ranges(rows: list, groups: list) -> list:
    """Lists of names: cells that are one range, because the same steps access them in all rows."""
    uses = defaultdict(list)
    for row, its_groups in zip(rows, groups):
        for number, group in enumerate(its_groups):
            for step in group:
                for cell in row["steps"][step]["cells"]:
                    use = id(row), number
                    name = row["cells"][cell["cell"]]["name"]
                    if use not in uses[name]:
                        uses[name].append(use)
    together = defaultdict(list)
    for name in sorted(uses, key=by_number):
        together[name[:2], base(name), tuple(uses[name])].append(name)
    return [*together.values()]


def source(step: dict, page: str) -> list:
    """The step's lines of source: of the protocol's page, and the innermost of a lab."""
    inside = [place for place in step["places"] if "labs/" in place]  # also of the course's copy
    wanted = [place for place in inside if page and f"/{page}:" in place][:1] + inside[:1]
    lines = []
    for place in dict.fromkeys(wanted):
        file, _, number = place.rpartition(":")
        text = (ROOT / file).read_text().splitlines()[int(number) - 1:][:1]
        lines += [[file[file.index("labs/"):], line.strip()] for line in text]
    return lines


def condensed(rows: list, page: str = "", threads: list | None = None,
              streams: dict | None = None) -> dict:
    """The executions of rows of `--record`, all of one scene. `page`: the file of the protocol.
    `threads`: those that are told, by their numbers in the block. `streams`: names of ranks that
    stand for another rank's stream, and that rank."""
    used = {what: {row["cells"][cell["cell"]]["name"] for row in rows for step in row["steps"]
                   if step["what"].endswith(what) for cell in step["cells"]}
            for what in ("load", "store")}
    everybody = {thread_of(step): name_of(step) for row in rows for step in row["steps"]}
    blocks = [thread[:2] for thread in everybody]
    alone = {block for block in blocks if blocks.count(block) == 1}
    groups = [folded(row, told_steps(row, used, alone, threads)) for row in rows]
    lanes = sorted({thread_of(row["steps"][number]) for row, its_groups in zip(rows, groups)
                    for group in its_groups for number in group})
    parts = ranges(rows, groups)
    first = {cell["name"]: cell for row in rows for cell in row["cells"]}
    whose = [(first[part[0]]["rank"], base(part[0])) for part in parts]
    cells = []
    for part, of in zip(parts, whose):
        name = re.sub(r"^r\d+\.", "", part[0])
        cells.append([re.sub(r"(\[\d+\]|\+\d+)+$", "", name) if whose.count(of) == 1 else name,
                      of[0], values([first[name]["first"] for name in part])])
    runs = [execution(row, its_groups, page, lanes, parts, cells)
            for row, its_groups in zip(rows, groups)]
    named = [[everybody[lane], lane[0]] for lane in lanes]
    for run in runs:
        for rank, (name, _) in (streams or {}).items():
            run["why"] = re.sub(rf"\brank {rank}\b", name, run["why"])
    return {"threads": [(streams or {}).get(rank, [name, rank]) for name, rank in named],
            "cells": cells, "runs": runs}


def execution(row: dict, groups: list, page: str, lanes: list, parts: list, cells: list) -> dict:
    part_of = {name: number for number, part in enumerate(parts) for name in part}
    step_of = {step: number for number, group in enumerate(groups) for step in group}
    now = {cell["name"]: cell["first"] for cell in row["cells"]}
    calls = dict.fromkeys(lanes, 0)
    steps = []

    def at(step: int) -> int:
        return step if step < 0 else step_of.get(step, -2)

    for group in groups:
        first = row["steps"][group[0]]
        here = {row["cells"][cell["cell"]]["name"]: cell["value"]
                for number in group for cell in row["steps"][number]["cells"]}
        if first["what"].endswith("store"):
            now |= here
        touched = sorted({part_of[name] for name in here})
        step = {"thread": lanes.index(thread_of(first)), "call": calls[thread_of(first)],
                "what": first["what"], "order": first["order"] or "plain",
                "source": source(first, page)}
        if touched:
            step["place"] = cells[touched[0]][0]
            if len(touched) > 1:
                step["place"] = f"{base(step['place'])}[{len(here)} words]"
            step["owner"] = cells[touched[0]][1]
            step["value"] = values([here[name] for name in sorted(here, key=by_number)])
            step["cells"] = [[part, values([here.get(name, now.get(name, "")) for name in
                                            parts[part]])] for part in touched]
        if first["what"].endswith("load") and touched:
            step["from"] = at(max(row["steps"][number]["from"] for number in group))
            step["newer"] = at(first["newest"])
            step["may"] = [[at(choice["step"]), choice["value"]] for choice in first["choices"]]
        calls[thread_of(first)] += first["what"] == "kernel end"
        steps.append(step)
    return {"why": reason(row) if row["failed"] else "", "steps": steps}


def reason(row: dict) -> str:
    """The failure, with names for threads and memory, and without what the picture shows."""
    names = {"r{}.b{}.t{}".format(*thread_of(step)): name_of(step) for step in row["steps"]}
    why = re.sub(r" \(step \d+\)| = 0x[0-9a-f]+( of step \d+)?", "", row["why"])
    why = re.sub(r"r\d+\.b\d+\.t\d+", lambda thread: names.get(thread[0], thread[0]), why)
    return re.sub(r"\br(\d+)\.(?=\w)", r"rank \1's ", why)


def same(one: dict, other: dict) -> bool:
    """Whether two steps do the same. One of them may end in the middle of a range."""
    def deed(step):
        return step["thread"], step["what"], step.get("owner"), base(step.get("place", ""))

    first, second = (step.get("value", "").split(" ... ")[0].split(", ") for step in (one, other))
    both = min(len(first), len(second))
    return deed(one) == deed(other) and first[:both] == second[:both]


def align(wrong: dict, right: dict):
    """Puts the steps of `wrong` in an order that is equivalent, and that follows the right one as
    long as possible, but for memory orders. Sets `parts`."""
    steps = wrong["steps"]
    needs = []  # the steps that must come before each
    for number, step in enumerate(steps):
        mine = {cell for cell, _ in step.get("cells", [])}
        is_load = step["what"].endswith("load")
        need = {n for n, other in enumerate(steps[:number])
                if other["thread"] == step["thread"] or
                mine & {cell for cell, _ in other.get("cells", [])} and
                not (is_load and other["what"].endswith("load"))}
        before = max((n for n in need if steps[n]["thread"] == step["thread"]), default=None)
        if before is not None and not steps[before].get("cells"):  # all have come to this sync
            need |= {n for n, other in enumerate(steps[:number])
                     if other["what"] == steps[before]["what"]}
        needs.append(need)
    order = []
    for expected in right["steps"]:
        following = next((n for n, step in enumerate(steps)
                          if step["thread"] == expected["thread"] and n not in order), None)
        if following is None or not same(steps[following], expected) or \
                not needs[following] <= set(order):
            break
        order.append(following)
    wrong["parts"] = next((n for n, (old, expected) in enumerate(zip(order, right["steps"]))
                           if steps[old]["order"] != expected["order"]),
                          min(len(order), len(steps) - 1))
    order += [n for n in range(len(steps)) if n not in order]
    place = {old: new for new, old in enumerate(order)} | {-1: -1, -2: -2}
    for step in steps:
        if "may" in step:
            step |= {"from": place[step["from"]], "newer": place[step["newer"]],
                     "may": [[place[of], value] for of, value in step["may"]]}
    wrong["steps"] = [steps[old] for old in order]


def tell(scene: dict) -> dict:
    """Adds `says` to each step."""
    for run in scene["runs"]:
        for step in run["steps"]:
            text = sentence(step, run["steps"], [name for name, _ in scene["threads"]])
            step["says"] = text[0].upper() + text[1:]
    return scene


def with_lines(recording: dict) -> dict:
    """Moves the lines of source into a table, `lines`: a step's `source` has their numbers."""
    lines = []
    for scene in recording["scenes"]:
        for run in scene["runs"]:
            for step in run["steps"]:
                lines += [line for line in step["source"] if line not in lines]
                step["source"] = [lines.index(line) for line in step["source"]]
    return recording | {"lines": lines}


def sentence(step: dict, steps: list, threads: list) -> str:
    name, what = threads[step["thread"]], step["what"]
    if "place" not in step:
        known = {"kernel end": f"the kernel of {name} ends",
                 "fence": f"{name} makes a fence, {step['order']}",
                 "polls too late": f"{name} polls too late: a newer value has replaced the one it "
                                   "waits for"}
        return known.get(what, f"{name} waits for the other threads, {what}"
                         if what.endswith("sync") else f"{name} {what}")
    where = f"rank {step['owner']}'s {step['place']}" if step["owner"] >= 0 else step["place"]
    if not what.endswith("load"):
        value = step["value"] + " " * bool(step["value"])  # none where a race has prevented it
        return f"{name} stores {value}into {where}, {step['order']}"
    of = step["from"]
    origin = ("its first value" if of == -1 else "stored earlier" if of == -2 else
              f"stored in step {of + 1} by {threads[steps[of]['thread']]}")
    newer = f"; step {step['newer'] + 1} stored a newer one" if step["newer"] >= 0 else ""
    return f"{name} loads {step['value']} from {where}, {step['order']}: {origin}{newer}"
