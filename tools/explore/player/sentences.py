"""Sentences for the steps of an execution (execution.py)."""

from orders import add_meetings


def tell(scene: dict) -> dict:
    """Adds `says` to each step, and makes `blame` a sentence."""
    for run in scene["runs"]:
        run.pop("ordered")
        add_meetings(run)
        for number, step in enumerate(run["steps"]):
            text = sentence(step, number, run, scene["threads"])
            step["says"] = text[0].upper() + text[1:]
            step.pop("waits for", None)
        if "blame" in run:
            blame, of = run["blame"]
            run["blame"] = blame.format(of + 1) if of >= 0 else \
                blame.replace("step {}", "an earlier step")
    return scene


def condition(until: str) -> str:
    """What must be true of the memory that a wait polls: `is at least 2`, `has flag 3`."""
    return ("has " if "flag" in until else "is ") + until


def sentence(step: dict, number: int, run: dict, threads: list) -> str:
    steps, what = run["steps"], step["what"]
    name, _ = threads[step["thread"]]
    if "place" not in step:
        others = " and ".join(threads[other][0] for other in step.get("waits for", []))
        known = {"kernel end": f"the kernel of {name} ends",
                 "fence": f"{name} makes a fence, {step['order']}",
                 "polls too late": f"{name} polls too late: a newer value has replaced the one it "
                                   "waits for"}
        text = known.get(what, f"{name} comes to {what}" if what.endswith("sync") else
                         f"{name} {what}")
        if others:
            return text + (f", and waits for {others}" if what.endswith("sync") else "")
        return text + knows(step, number, run, threads)
    owner = "" if step["owner"] < 0 else "its " if name.endswith(f"rank {step['owner']}") else \
        f"rank {step['owner']}'s "
    where = owner + step["place"]
    order = step["order"] + ", by the switch" * ("by switch" in step)
    if what == "waits":
        until = f" until {where} {condition(step['until'])}" if "until" in step else f" at {where}"
        return f"{name} waits for ever{until}; it holds {step['value']}"
    if not what.endswith("load"):
        value = step["value"] + " " * bool(step["value"])  # none where a race has prevented it
        return f"{name} stores {value}into {where}, {order}"
    of = step["from"]
    origin = ("its first value" if of == -1 else "stored earlier" if of == -2 else
              f"stored in step {of + 1}" if steps[of]["thread"] == step["thread"] else
              f"stored in step {of + 1} by {threads[steps[of]['thread']][0]}")
    newer = f"; step {step['newer'] + 1} stored a newer one" if step["newer"] >= 0 else ""
    does = f"waits until {where} {condition(step['until'])}, and loads {step['value']}" \
        if "until" in step else f"loads {step['value']} from {where}"
    return f"{name} {does}, {order}: {origin}{newer}{knows(step, number, run, threads)}"


def knows(step: dict, number: int, run: dict, threads: list) -> str:
    """What the thread knows from this step on, of threads of other ranks."""
    told = {}
    for before, after in run["orders"]:
        other, rank = threads[run["steps"][before]["thread"]]
        if after == number and rank != threads[step["thread"]][1]:
            told[other] = max(before, told.get(other, 0))
    return "".join(f". From here on it knows what {other} did up to step {before + 1}"
                   for other, before in told.items())
