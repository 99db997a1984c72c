"""Executions that the explorer recorded (`--record`, docs/EXPLORE.md), made short enough to step
through: what no other step depends on is left out, and what a thread copies in a loop is one step.

    threads  [name, rank] of each
    cells    ranges of memory: [name, rank where it lies or -1, first value] of each
    runs     the executions, of one scene. Of each:
      why      the failure; empty if it is right
      orders   [step, step] of each two of which the first is known to the thread of the second
               from there on: a release and its acquire, a sync, the ends of kernels
      missing  the same, where the right execution has such an order, or a race needs one
      fault    the step at fault, and `blame`, a sentence
      parts    beside a right one: its first step that differs
      steps    of each: `thread`, `call` (kernels that the thread has ended before), `what`,
               `order`, `source` ([file, text] of its lines) and `says`, a sentence. If it accesses
               memory: `place`, `owner`, `value`, and `cells` ([cell, its value] of each). For a
               load: `from` (the step that stored the value; -1: it was there at first; -2: a step
               that is left out), `newer` (the newest store, if that is another), `may` ([step,
               value] of all that it could return, the newest first) and `until`, the values that
               end its wait. `hidden`: as cells, for what steps left out have stored since the
               step before
"""

import re
from collections import defaultdict
from itertools import groupby
from pathlib import Path

from names import base, by_number, names_of, place_of, reason, thread_of, values, word_of
from orders import SHOWS, compare, fault_of, meetings, read_orders

ROOT = Path(__file__).resolve().parents[3]
HIDDEN = re.compile(r"gave_up|shared\d|step$")  # only the scene, or a block itself, uses them


def ends_of(row: dict) -> dict:
    """For each end of a kernel, its thread and which of the thread's it is."""
    found, ended = {}, defaultdict(int)
    for number, step in enumerate(row["steps"]):
        if step["what"] == "kernel end":
            ended[thread_of(step)] += 1
            found[number] = thread_of(step), ended[thread_of(step)]
    return found


def told_steps(row: dict, used: dict, alone: set, threads: list | None, ends: set) -> list:
    """The numbers of a row's steps that are told. `used`: the cells that any row loads or stores;
    `alone`: blocks of one thread. `ends`: the ends of kernels, of thread and number, that an
    acquire makes known in some row."""
    numbers_of = ends_of(row)
    at_work = set()  # threads that have run the protocol since their kernel's start
    numbers = []
    for number, step in enumerate(row["steps"]):
        cells = {row["cells"][cell["cell"]]["name"] for cell in step["cells"]}
        is_last = bool(row["failed"]) and number + 1 == len(row["steps"])
        if any(HIDDEN.match(base(cell)) for cell in cells) or \
                threads is not None and step["thread"] not in threads and not is_last:
            continue
        if step["what"] == "kernel end":
            is_told = thread_of(step) in at_work or numbers_of[number] in ends
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
    return numbers or [*range(len(row["steps"]))]  # a thread that no other depends on


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
    """Lists of names: cells that are one range, because the same steps of the first row access
    them; cells that it does not access: of the next row."""
    uses, together = {}, defaultdict(list)
    for row, its_groups in zip(rows, groups, strict=True):
        its_uses = defaultdict(list)
        for number, group in enumerate(its_groups):
            for cell in dict.fromkeys(row["cells"][cell["cell"]]["name"]
                                      for step in group for cell in row["steps"][step]["cells"]):
                its_uses[cell].append((id(row), number))
        for cell, its in its_uses.items():
            uses.setdefault(cell, its)
    words = defaultdict(set)
    for name, its in uses.items():
        words[word_of(name)].update(its)
    for name in sorted(uses, key=by_number):
        together[name[:2], base(name), frozenset(words[word_of(name)])].append(name)
    return [*together.values()]


def source(step: dict, page: str) -> list:
    """The step's lines of source: of the protocol's page, and the innermost of a lab."""
    inside = [place for place in step["places"] if place.startswith(("labs/", "symm/"))]
    wanted = [place for place in inside if page and f"/{page}:" in place][:1] + inside[:1]
    lines = []
    for place in dict.fromkeys(wanted):
        file, _, number = place.rpartition(":")
        text = (ROOT / file).read_text().splitlines()[int(number) - 1:][:1]
        lines += [[file, line.strip()] for line in text]
    return lines


def condensed(rows: list, page: str = "", threads: list | None = None,
              streams: dict | None = None) -> dict:
    """The executions of rows of `--record`, all of one scene. `page`: the file of the protocol.
    `threads`: those that are told, by their numbers in the block. `streams`: names of ranks that
    stand for another rank's stream, and that rank."""
    used = {what: {row["cells"][cell["cell"]]["name"] for row in rows for step in row["steps"]
                   if step["what"].endswith(what) for cell in step["cells"]}
            for what in ("load", "store")}
    everybody = {thread: name for row in rows for thread, name in names_of(row).items()}
    blocks = [thread[:2] for thread in everybody]
    alone = {block for block in blocks if blocks.count(block) == 1}
    orders = [read_orders(row) for row in rows]
    ends = {ends_of(row).get(before) for row, found in zip(rows, orders, strict=True)
            for before, after, *_ in found if row["steps"][after]["what"] != "kernel end"}
    groups = [folded(row, told_steps(row, used, alone, threads, ends)) for row in rows]
    lanes = sorted({thread_of(row["steps"][number])
                    for row, its_groups in zip(rows, groups, strict=True)
                    for group in its_groups for number in group})
    parts = ranges(rows, groups)
    first = {cell["name"]: cell for row in rows for cell in row["cells"]}
    texts = {name: cell["first"] for name, cell in first.items()}
    cells = [[place_of(firsts := {name: texts[name] for name in part}), first[part[0]]["rank"],
              values(firsts)] for part in parts]
    runs = [execution(row, its_groups, page, lanes, parts, texts, found)
            for row, its_groups, found in zip(rows, groups, orders, strict=True)]
    named = [[everybody[lane], lane[0]] for lane in lanes]
    for run in runs:
        for rank, (name, _) in (streams or {}).items():
            run["why"] = re.sub(rf"\brank {rank}\b", name, run["why"])
    return {"threads": [(streams or {}).get(rank, [name, rank]) for name, rank in named],
            "cells": cells, "runs": runs}


def execution(row: dict, groups: list, page: str, lanes: list, parts: list, firsts: dict,
              orders: list) -> dict:
    part_of = {name: number for number, part in enumerate(parts) for name in part}
    step_of = {step: number for number, group in enumerate(groups) for step in group}
    raw = row["steps"]
    owners = {cell["name"]: cell["rank"] for cell in row["cells"]}
    own = {cell["name"]: cell["first"] for cell in row["cells"]}
    now = {name: value for name, value in firsts.items() if word_of(name) not in own} | own
    calls = dict.fromkeys(lanes, 0)
    steps = []
    seen = 0  # steps before the one that is told, of which those left out may have stored

    def at(step: int) -> int:
        return step if step < 0 else step_of.get(step, -2)

    def told_end(step: int) -> int:
        """Of the end of a kernel that is left out: the thread's last end before it that is told."""
        before = [number for raw_number, number in step_of.items() if raw_number < step and
                  raw[raw_number]["what"] == raw[step]["what"] == "kernel end" and
                  thread_of(raw[raw_number]) == thread_of(raw[step])]
        return step_of.get(step, max(before, default=-2))

    def cells_of(numbers) -> dict:
        return {row["cells"][cell["cell"]]["name"]: cell["value"]
                for number in numbers for cell in raw[number]["cells"]}

    def told(names, state: dict) -> list:
        return [[part, values({name: state.get(name, "") for name in parts[part]})]
                for part in sorted({part_of[name] for name in names})]

    for group in groups:
        first = raw[group[0]]
        left_out = cells_of(number for number in range(seen, group[0])
                            if number not in step_of and raw[number]["what"].endswith("store"))
        hidden = {name: value for name, value in left_out.items() if name in part_of}
        now |= hidden
        seen = max(seen, group[0])
        unsorted = cells_of(group)
        here = {name: unsorted[name] for name in sorted(unsorted, key=by_number)}
        step = {"thread": lanes.index(thread_of(first)), "call": calls[thread_of(first)],
                "what": first["what"], "order": first["order"] or "plain",
                "source": source(first, page)}
        if first["by_multicast"]:
            step["by switch"] = True
        if hidden:
            step["hidden"] = told(hidden, now)
        if here:
            step["place"] = place_of({name: own.get(name, firsts[name]) for name in here})
            step["owner"] = owners[next(iter(here))]
            step["value"] = values(here)
            if first["what"].endswith("store"):
                now |= here
            step["cells"] = told(here, now | here)
        if first["what"].endswith(("load", "waits")) and here:
            step["from"] = at(max(raw[number]["from"] for number in group))
            step["newer"] = at(first["newest"])
            step["may"] = [[at(choice["step"]), values({"": choice["value"]})]
                           for choice in first["choices"]]
            if first["until"]:
                kind, limit = re.fullmatch("((?:at least |not )?(?:flag )?)(.*)",
                                           first["until"]).groups()
                step["until"] = kind + values({"": limit})
        calls[thread_of(first)] += first["what"] == "kernel end"
        steps.append(step)
    run = {"why": reason(row) if row["failed"] else "", "steps": steps, "missing": [],
           "ordered": [[at(store), at(load)] for _, after, store, load in orders
                       if raw[after]["what"] != "kernel end"],
           "orders": [[told_end(before), at(after)] for before, after, *_ in orders],
           "met": [[at(number) for number in met] for met in meetings(row)]}
    if row["failed"]:
        number, blame, of = fault_of(row)
        known = at(number) >= 0
        run |= {"fault": at(number) if known else len(steps) - 1,
                "blame": [blame, at(of)] if known else [SHOWS, -1]}
        if row["why"].startswith("data race"):
            run["missing"] = [[at(of), at(number)]]
    return run


def same(one: dict, other: dict) -> bool:
    """Whether two steps do the same. One of them may end in the middle of a range."""
    def deed(step):
        return step["thread"], step["what"], step.get("owner"), base(step.get("place", ""))

    first, second = (step.get("value", "").split(" ... ")[0].split(", ") for step in (one, other))
    both = min(len(first), len(second))
    return deed(one) == deed(other) and first[:both] == second[:both]


def align(wrong: dict, right: dict):
    """Puts the steps of `wrong` in an order that is equivalent, and that follows the right one as
    long as possible, but for memory orders. Sets `parts`, and adds to `missing`."""
    steps = wrong["steps"]
    compare(wrong, right)
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
    differs = [n for n, (old, expected) in enumerate(zip(order, right["steps"], strict=False))
               if any(steps[old].get(key) != expected.get(key) for key in ("order", "until"))]
    wrong["parts"] = differs[0] if differs else min(len(order), len(steps) - 1)
    order += [n for n in range(len(steps)) if n not in order]
    place = {old: new for new, old in enumerate(order)} | {-1: -1, -2: -2}
    for step in steps:
        if "may" in step:
            step |= {"from": place[step["from"]], "newer": place[step["newer"]],
                     "may": [[place[of], value] for of, value in step["may"]]}
    wrong["steps"] = [steps[old] for old in order]
    for key in ("orders", "missing", "met"):
        wrong[key] = [[place[n] for n in pair] for pair in wrong[key]]
    blame, of = wrong["blame"]
    wrong |= {"fault": place[wrong["fault"]], "blame": [blame, place[of]]}


def with_lines(recording: dict) -> dict:
    """Moves the lines of source into a table, `lines`: a step's `source` has their numbers."""
    lines = []
    for scene in recording["scenes"]:
        for run in scene["runs"]:
            for step in run["steps"]:
                lines += [line for line in step["source"] if line not in lines]
                step["source"] = [lines.index(line) for line in step["source"]]
    return recording | {"lines": lines}
