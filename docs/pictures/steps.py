"""An execution as an animated picture, for readers of the pages on GitHub: rank 0's steps on the
left, rank 1's on the right, and arrows from stores to the loads that read them. record.py writes
docs/pictures/NAME_steps.svg from docs/recordings/NAME.json."""

import html
import re
import sys

from card import card, timed

from picture import VERBS, condition, short

LINE, ROW = 17, 40            # pixels
GAP, SIDE = 84, 14            # between the lanes of the two ranks, and between lanes and text
LETTER = [8.3, 7.1]           # the width of a letter in both lines of a text, in a wide font
# What the picture of a recording tells, and the steps that it shows of the first scene, with their
# numbers in the player.
TOLD = {
    "signal": ("What a rank stores before its release, the other finds after its acquire.",
               range(2, 10)),
    "packet": ("Each half carries its own flag. A rank that has seen both flags has both numbers.",
               range(1, 9)),
    "barrier": ("Each rank signals the other, then waits for the other's signal. A fast rank may "
                "already signal the next barrier, so each waits for 1 or more.",
                [2, 3, 5, 6, 7, 8, 10, 11, 12]),
    "multicast_barrier": ("Each rank adds one to the counts of both, by the switch, then waits "
                          "until its own count has come to two.",
                          [2, 4, 6, 8, 10, 11, 12, 17, 19, 20, 21]),
    "abort_barrier": ("Two threads wait, each for one flag. After the sync all threads of the "
                      "block know what both have found, and go on or give up together.",
                      [3, 4, 5, 6, 12, 14, 15, 17, 18, 20, 22, 25]),
    "connection": ("The sender may be eight slots ahead. The tail counts the slots that are "
                   "filled, the head those that may be filled again.",
                   [5, 6, 7, 35, 36, 39, 41, 43, 92, 93, 95, 97]),
    "ll": ("Each half carries its own flag. The head tells the sender which slots are free again.",
           [6, 7, 8, 9, 11, 12, 14, 15, 18, 19, 21]),
    "ll128": ("A line of 128 bytes has one flag. The last thread stores it, and waits for it.",
              [17, 20, 21, 31, 36, 38, 45, 47, 49, 50]),
    "one_shot": ("Each rank sends its input to all others, and adds up what arrives: one trip.",
                 [5, 6, 11, 12, 13, 14, 15, 26, 27, 28]),
    "sentinel": ("A slot holds all ones until data arrives: the data is its own flag. The reader "
                 "clears the slot.", [5, 6, 11, 12, 13, 14, 15, 16, 17, 28, 29, 30, 31, 32]),
    "push": ("Rank 0 adds up its part of both inputs, and pushes the sum to rank 1. A slot that "
             "has been read is cleared.", [*range(9, 18), 26, 27, 28]),
    "rendezvous": ("The ranks tell each other where their buffers are. Then each may load and "
                   "store in the other's.", [6, 15, 21, 28, 31, 34, 36, 37]),
    "two_shot": ("Each rank adds up its half of both inputs, and stores the sum in both outputs.",
                 [6, 15, 21, 25, 27, 29, 32, 35, 38, 40, 41, 56]),
    "chunks": ("Rank 1 sends its input in chunks. Rank 0 adds up each chunk as soon as it has "
               "arrived, and stores the sum in rank 1's output.",
               [36, 37, 39, 40, 41, 43, 45, 46, 48, 50]),
    "multicast": ("Rank 0 loads the sum of both inputs, by the switch, and stores it to both "
                  "ranks.",
                  [5, 10, 14, 16, 17, 18, 20, 22, 24, 37, 39, 42, 43, 44]),
    "copy": ("Copy engines move the data, kernels add it up, and flags tell which piece has "
             "arrived.", [19, 23, 24, 26, 27, 29, 30, 32, 36, 38, 39, 55, 57, 82, 84]),
    "values": ("Rank 1 has waited for the tail. Which values may it load from slot 0 now? Each "
               "that is possible has an execution.",
               [*range(1, 7), 11]),  # without the answer, which is step 12
}
STYLE = """.end{text-anchor:end}.mid{text-anchor:middle}
.rank{fill:var(--rank);font-weight:600}
.order{fill:var(--order)}
.lane,.dot{stroke:var(--rank)}
.lane{opacity:.35;stroke-width:2}
.dot{stroke-width:2.5;fill:var(--paper)}
.store{fill:var(--rank)}
.read{fill:none;stroke:var(--rank);stroke-width:1.6}
.r0.read{marker-end:url(#r0)}
.r1.read{marker-end:url(#r1)}
.known{fill:none;stroke:var(--order);stroke-width:3.5;marker-end:url(#order)}
.now{fill:var(--shade);opacity:0}
.curtain{fill:var(--paper);display:none}"""


def words(step: dict, threads: list) -> list:
    """What the step does, in one or two lines of pieces, each with its class."""
    if "place" not in step:
        return [[(step["what"], "")]]
    verb, sign = VERBS.get(step["what"].split()[-1], ("waits", "←"))
    values = step["value"].replace(f" ({step.get('until')})", "").split(", ")
    value = values[0] if len(values) == 1 else f"{values[0]}, {values[1]}" if len(values) == 2 \
        else f"{values[0]} … {values[-1]}".replace("… ... …", "…")
    value = re.sub(r" \.\.\. ", " … ", re.sub(r" \((flag \d+)\)", r", \1", value))
    place = re.sub(r"\((?:from [^()]*)\)", "", step["place"])
    is_own = step["owner"] < 0 or threads[step["thread"]][1] == step["owner"]
    if "until" in step:
        wanted = condition(step["until"])
        verb = "waits for" if wanted == value else f"waits for {wanted}:"
    first = [(verb, ""), (value, "")]
    order = step["order"] if step["order"] in ("acquire", "release") else ""
    place = place if is_own else f"rank {step['owner']}'s {place}"
    second = [(sign, ""), (place + "," * bool(order), "" if is_own else f"rank r{step['owner']}")]
    return [first, second + [(order, "order")] * bool(order)]


def suffix(name: str) -> str:
    """What a thread's name has beside its rank's: `t1`, or `input` for a stream of copies."""
    return re.sub(r"rank \d|'s | stream", "", short(name)).strip()


def lanes(steps: list, threads: list) -> tuple[dict, list, float]:
    """Where the lane of each thread is, where the text on both sides of the lanes begins, and the
    width of all. Rank 0's lanes are left of the gap, rank 1's right of it."""
    of, room = [], []
    apart = 10 + 7 * max(len(suffix(threads[step["thread"]][0])) for step in steps)
    for rank in (0, 1):
        own = [step for step in steps if threads[step["thread"]][1] == rank]
        of.append(sorted({step["thread"] for step in own}))
        room.append(20 + max(len(" ".join(text for text, _ in line)) * LETTER[number]
                             for step in own for number, line in enumerate(words(step, threads))))
    left = room[0] + SIDE + apart * (len(of[0]) - 1)
    x = {thread: left - apart * at for at, thread in enumerate(reversed(of[0]))}
    x |= {thread: left + GAP + apart * at for at, thread in enumerate(of[1])}
    sides = [min(x.values()) - SIDE, max(x.values()) + SIDE]
    return x, sides, round(sides[1] + room[1])


def row(step: dict, threads: list, at: int, x: dict, sides: list) -> str:
    """A step's mark and text."""
    rank, here, y = threads[step["thread"]][1], x[step["thread"]], ROW * (at + .5)
    is_load = step["what"].endswith("load")
    mark = f'<path class="dot" d="M{here - 7:g} {y:g}h14"/>' if "place" not in step else \
        f'<circle class="dot{"" if is_load else " store"}" cx="{here:g}" cy="{y:g}" r="5"/>'
    lines = words(step, threads)
    texts = ""
    for number, pieces in enumerate(lines):
        spans = " ".join(f'<tspan class="{kind}">{html.escape(text, quote=False)}</tspan>' if kind
                         else html.escape(text, quote=False) for text, kind in pieces)
        below = y + 5 + (number - (len(lines) - 1) / 2) * LINE
        texts += (f'<text x="{sides[rank]:g}" y="{below:g}" '
                  f'class="{"end" * (rank == 0)}{" small" * number}">{spans}</text>')
    return f'<g class="r{rank}">{mark}{texts}</g>\n'


def arrows(run: dict, chosen: list, threads: list, x: dict) -> str:
    """From each store that is shown to the loads of other threads that read it. Other arrows, from
    a release to its acquire and from a sync, make known what came before."""
    steps, drawn = run["steps"], ""
    known = [tuple(pair) for pair in run["orders"]]
    for of, number in dict.fromkeys([*((steps[number].get("from"), number) for number in chosen),
                                     *known]):
        if of not in chosen or number not in chosen or \
                steps[of]["thread"] == steps[number]["thread"]:
            continue
        (x0, y0), (x1, y1) = [(x[steps[step]["thread"]], ROW * (chosen.index(step) + .5))
                              for step in (of, number)]
        side = 1 if x1 > x0 else -1
        drawn += (f'<path class="{"known" if (of, number) in known else "read"} '
                  f'r{threads[steps[of]["thread"]][1]}" '
                  f'd="M{x0 + 6 * side:g} {y0:g}L{x1 - 9 * side:g} {y1:g}"/>')
    return drawn


def picture(name: str, recording: dict) -> str:
    """The file's text."""
    sentence, numbers = TOLD[name]
    scene = recording["scenes"][0]
    threads, run = scene["threads"], scene["runs"][0]
    steps, chosen = run["steps"], [number - 1 for number in numbers]
    for number in chosen:
        if "until" in steps[number] and steps[number]["from"] not in [-1, *chosen]:
            sys.exit(f"docs/pictures/steps.py: {name}: step {number + 1} waits for step "
                     f"{steps[number]['from'] + 1}, which the picture does not show: choose again")
    shown = [steps[number] for number in chosen]
    x, sides, wide = lanes(shown, threads)
    tall = ROW * len(shown)
    heads = ""
    for rank, side in enumerate(sides):
        names = {at: suffix(threads[thread][0]) for thread, at in x.items()
                 if threads[thread][1] == rank}
        heads += "".join(f'<text class="mid small" x="{at:g}" y="16">{name}</text>'
                         for at, name in names.items() if name)
        at = side + (names[side + SIDE * (1 - 2 * rank)] > "") * 8 * (2 * rank - 1)
        heads += (f'<text class="rank r{rank}{" end" * (rank == 0)}" x="{at:g}" y="16">'
                  f"rank {rank}</text>")
    body = "".join(f'<path class="lane r{threads[thread][1]}" d="M{at:g} 0V{tall}"/>'
                   for thread, at in x.items())
    body += arrows(run, chosen, threads, x)
    body += "".join(row(step, threads, at, x, sides) for at, step in enumerate(shown))
    drawn = (f'{heads}<g transform="translate(0 26)"><rect class="now" x="6" width="{wide - 12}" '
             f'height="{ROW}" rx="6"/>{body}'
             f'<rect class="curtain" x="1" width="{wide - 2}" height="{tall + 60}"/></g>')
    return card(recording["title"], sentence, wide, tall + 32, STYLE, timed(len(shown), ROW), drawn)
