"""What orders the steps of an execution (execution.py), and which is at fault in a wrong one."""

from collections import defaultdict

from names import base, thread_of

# Why a step is at fault: surely, or unless the threads wait for other values than they should.
RACES = "nothing orders it after step {}"
OLD = "it returns an old value, though step {} has stored a newer one"
EARLIER = "it takes for new what step {} has stored in an earlier call"
LOSES = "it overwrites what step {} has stored, which no thread has read"
ENDLESS = "no thread ends this wait"
EARLY = "it comes too early: in the right execution another thread has stored there before"
SHOWS = "here the failure shows"
OTHERS = "in the right execution this wait has another condition"


def read_orders(row: dict) -> list:
    """What loads order: [before, after, store, load] of each. A relaxed store makes known what came
    before the last release fence, or the last end of a kernel; what a relaxed load has read is
    known after the next acquire fence, or the next end of a kernel."""
    found = []
    published, released, reads = {}, {}, defaultdict(list)
    for number, step in enumerate(row["steps"]):
        thread, what, order = thread_of(step), step["what"], step["order"]
        acquires = order in ("acquire", "acq_rel", "seq_cst")
        releases = order in ("release", "acq_rel", "seq_cst")
        if what == "store":
            released[number] = number if releases else published.get(thread)
        before = released.get(step["from"]) if what == "load" else None
        if before is not None and thread_of(row["steps"][before]) != thread:
            (found if acquires else reads[thread]).append([before, number, step["from"], number])
        if what == "kernel end" or acquires and what == "fence":
            found += [[before, number, store, load]
                      for before, _, store, load in reads.pop(thread, [])]
        if what == "kernel end" or releases and what == "fence":
            published[thread] = number
    return found


def meetings(row: dict) -> list:
    """Lists of the steps with which threads have come to the same sync, or end of a kernel."""
    nth, found = defaultdict(int), defaultdict(list)
    for number, step in enumerate(row["steps"]):
        thread, what = thread_of(step), step["what"]
        if what == "kernel end" or what.endswith("sync"):
            block = None if what == "kernel end" else thread[1]
            warp = thread[2] // 32 if what == "warp.sync" else 0
            nth[thread, what] += 1
            found[thread[0], block, warp, what, nth[thread, what]].append(number)
    most = defaultdict(int)
    for key, steps in found.items():
        most[key[:4]] = max(most[key[:4]], len(steps))
    return [steps for key, steps in found.items() if len(steps) == most[key[:4]]]


def fault_of(row: dict) -> tuple:
    """The step at fault in a wrong execution, and why, with another step's number as {}: the later
    access of a race, the store that overwrites what is not read yet, the load that returns an old
    value; else the last step."""
    steps, last = row["steps"], len(row["steps"]) - 1
    if row["why"].startswith("data race"):
        first, later = sorted(row["involved"])
        return later, RACES, first
    kernels, ended = [], defaultdict(int)
    for step in steps:
        kernels.append(ended[thread_of(step)])
        ended[thread_of(step)] += step["what"] == "kernel end"
    over = [number for number, step in enumerate(steps) if step["over"] >= 0]
    if over:
        return over[0], LOSES, steps[over[0]]["over"]
    for number in range(last, -1, -1):
        step = steps[number]
        of = step["from"]
        if step["what"] == "polls too late":
            return overwriting(steps, number) or (number, ENDLESS, -1)
        if not step["matters"] or step["what"] != "load":
            continue
        if step["newest"] >= 0:
            return number, OLD, step["newest"]
        if step["until"] and of >= 0 and kernels[of] < kernels[number]:
            return number, EARLIER, of
    return last, SHOWS, -1


def overwriting(steps: list, late: int) -> tuple | None:
    """The store of the value that a wait that polls too late finds, if it was made before another
    thread had read the one before."""
    wait = next((step for step in steps[late:]
                 if step["what"] == "waits" and thread_of(step) == thread_of(steps[late])), None)
    if not wait:
        return None
    stores = [number for number, step in enumerate(steps) if step["what"] == "store" and
              step["location"] == wait["location"]]
    before = stores[stores.index(wait["from"]) - 1] if wait["from"] in stores[1:] else -1
    is_read = any(step["from"] == before for step in steps if step["what"] == "load")
    return (wait["from"], LOSES, before) if before >= 0 and not is_read else None


def add_meetings(run: dict):
    """Adds to `orders` that all threads which meet know what each had done: the last to come makes
    it known. Sets, for those that come before, which threads each waits for (`waits for`)."""
    steps = run["steps"]
    for met in run.pop("met"):
        *early, last = sorted(number for number in met if number >= 0) or [-1]
        for number in early:
            steps[number]["waits for"] = sorted({steps[n]["thread"] for n in [*early, last]
                                                 if n > number})
            following = (n for n in range(last, len(steps))
                         if steps[n]["thread"] == steps[number]["thread"])
            run["orders"] += [[number, last], *([last, n] for n in [*following][:1])]
    run["orders"] = [*map(list, sorted({(of, to) for of, to in run["orders"] if min(of, to) >= 0}))]


def compare(wrong: dict, right: dict):
    """Adds to `missing` what is ordered in the right execution. A wait that ends with other values
    than there is at fault, if nothing surer is known."""
    steps = wrong["steps"]

    def pairs(run, numbers):
        return {(tuple(str(run["steps"][n].get(key)) for n in pair
                       for key in ("thread", "what", "owner", "place", "value"))): pair
                for pair in numbers if min(pair) >= 0}

    reads = [[step["from"], n] for n, step in enumerate(steps) if step["what"] == "load"]
    ordered = pairs(right, right["ordered"])
    lacking = {(steps[store]["thread"], steps[load]["thread"]): [store, load]
               for deed, (store, load) in pairs(wrong, reads).items()
               if deed in ordered and [store, load] not in wrong["ordered"]}
    if wrong["missing"]:  # of a race: only what could have ordered it
        [[store, load]] = wrong["missing"]
        ends = steps[store]["thread"], steps[load]["thread"]
        lacking = {ends: lacking[ends]} if ends in lacking else {}
    wrong["missing"] += lacking.values()

    def wait(step):
        until = step.get("until")
        return step["thread"], until, "" if until else step["place"]

    awaited = {wait(step) for step in right["steps"] if step["what"] == "load"}
    others = [n for n, step in enumerate(steps)
              if step["what"] in ("load", "waits") and wait(step) not in awaited]
    is_sure = wrong["blame"][0] in (RACES, OLD, EARLIER) or \
        steps[wrong["fault"]]["what"] == "plain store"
    if others and not is_sure:
        wrong |= {"fault": others[-1], "blame": [OTHERS, -1]}
    last = steps[-1]
    if wrong["blame"][0] == SHOWS and last["what"] == "plain load":
        same = [step for step in right["steps"] if step["what"] == last["what"] and
                all(step[key] == last[key] for key in ("thread", "call", "owner")) and
                base(step["place"]) == base(last["place"]) and step["from"] >= 0]
        if any(right["steps"][step["from"]]["thread"] != step["thread"] for step in same):
            wrong["blame"] = [EARLY, -1]
