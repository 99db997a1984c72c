"""An execution as a picture: a lane for each thread, a row for each step, an arrow from each store
to the loads that read it, and one between steps that are ordered. player.js steps through it; alone
it is a still picture."""

import html
import re

LANE, ROW, LETTER, NUMBER = 24, 26, 6.7, 26  # pixels
VERBS = {"store": ("stores", "→"), "load": ("loads", "←")}
# Beneath a picture. The arrows' kinds are those of arrow().
LEGEND = '<div class="legend">' + "".join(
    f'<span><svg width="{wide}" height="12">{drawn}</svg> {text}</span>' for wide, drawn, text in [
        (12, '<circle class="store" cx="6" cy="6" r="4"/>', "stores"),
        (12, '<circle class="load" cx="6" cy="6" r="4"/>', "loads"),
        (14, '<path class="bar" d="M0 6h14"/>', "syncs, ends"),
        (26, '<path class="arrow did" d="M0 6h26"/>', "reads"),
        (26, '<path class="arrow may" d="M0 6h26"/>', "may read"),
        (26, '<path class="arrow order" d="M0 6h26"/>', "makes known"),
        (26, '<path class="arrow missing" d="M0 6h26"/>', "no order")]) + "</div>"


def short(name: str) -> str:
    """A thread's name in a row: `rank 0 t1` for thread 1 of rank 0."""
    parts = re.findall(r"(t)hread (\d+)|(b)lock (\d+)", name)
    inside = "".join(f" {''.join(part)}" for part in reversed(parts))
    return name.split(" of ")[-1] + inside


def condition(until: str) -> str:
    return until.replace("at least ", "≥ ").replace("not ", "≠ ")


def label(step: dict, threads: list) -> list:
    """What the step does, in a few words, each with the rank that colors it, or -1: `rank 0 stores
    30 → rank 1's slot`."""
    name, rank = threads[step["thread"]]
    parts = [(short(name), rank)]
    if "place" not in step:
        what = "ends its kernel" if step["what"] == "kernel end" else step["what"]
        return parts + [(f"{what}, {step['order']}" if what == "fence" else what, -1)]
    verb, sign = VERBS.get(step["what"].split()[-1], ("waits for ever:", "←"))
    if "until" in step:
        verb = f"waits for {'ever for ' * (step['what'] == 'waits')}{condition(step['until'])}:"
    value = step["value"].replace(f" ({step.get('until')})", "")  # flag 3 is told already
    parts += [(f"{verb} {value} {sign}", -1)]
    if step["owner"] >= 0:
        own = name.endswith(f"rank {step['owner']}")
        parts += [("its" if own else f"rank {step['owner']}'s", step["owner"])]
    ordered = f", {step['order']}" if step["order"] in ("acquire", "release") else ""
    return parts + [(step["place"] + ordered, -1)]


def mark(step: dict, x: float, y: float) -> str:
    """A store is a disc, a load a ring, a sync or the end of a kernel a bar."""
    if "place" not in step:
        return f'<path class="bar" d="M{x - 7} {y}h14"/>'
    what = "store" if step["what"].endswith("store") else "load"
    return f'<circle class="{what}" cx="{x}" cy="{y}" r="5"/>'


def arrow(of: int, to: int, kind: str, places, bend: int = 0) -> str:
    (x0, y0), (x1, y1) = places(of), places(to)
    bend += 16 if x0 == x1 else 0
    middle = (y0 + y1) / 2
    path = f'<path class="arrow {kind}" data-to="{to}" d="'
    cross = f"M{(x0 + x1) / 2 + bend * .75 - 5:.0f} {middle - 5:.0f}l10 10m0 -10l-10 10"
    return (f'{path}M{x0} {y0}C{x0 + bend} {middle:.0f} {x1 + bend} {middle:.0f} {x1} {y1 - 6}"/>'
            + (kind == "missing") * f'{path.replace("missing", "missing cross")}{cross}"/>')


def svg(scene: dict, run: dict, rows: int | None = None) -> str:
    """The picture; `rows`: of the first steps only."""
    threads, steps = scene["threads"], run["steps"][:rows]
    left = NUMBER + len(threads) * LANE + 12
    tall = len(steps) * ROW + 8
    labels = [label(step, threads) for step in steps]
    others = [", ".join({value: 0 for _, value in step.get("may", []) if value != step["value"]})
              for step in steps]
    wide = left + 24 + max(
        len(" ".join(text for text, _ in words)) + len(f" (or {other})") * bool(other)
        for words, other in zip(labels, others, strict=True)) * LETTER

    def place(step):
        return NUMBER + LANE / 2 + steps[step]["thread"] * LANE, 4 + (step + .5) * ROW

    drawn = ""
    for lane, (_, rank) in enumerate(threads):
        x = NUMBER + LANE / 2 + lane * LANE
        drawn += f'<path class="lane r{rank % 4}" d="M{x} 0V{tall}"/>'
    for number, (step, words) in enumerate(zip(steps, labels, strict=True)):
        x, y = place(number)
        kinds = "".join(f" {kind}" for kind in ("parts", "fault") if number == run.get(kind))
        text = " ".join(html.escape(word) if rank < 0 else
                        f'<tspan class="rank r{rank % 4}">{html.escape(word)}</tspan>'
                        for word, rank in words)
        if others[number]:
            text += f'<tspan class="or"> (or {html.escape(others[number])})</tspan>'
        drawn += (f'<g class="row r{threads[step["thread"]][1] % 4}{kinds}" data-step="{number}">'
                  f'<rect class="back" x="0" y="{4 + number * ROW}" width="100%" height="{ROW}"/>'
                  f'<text class="number" x="{NUMBER - 4}" y="{y + 4:.0f}">{number + 1}</text>'
                  f'{mark(step, x, y)}<text x="{left}" y="{y + 4:.0f}">'
                  f'{"✗ " * ("fault" in kinds)}{text}</text></g>')
    arrows = [(of, number, "may") for number, step in enumerate(steps)
              for of, _ in step.get("may", []) if of >= 0 and of != step["from"]]
    arrows += [(step["from"], number, "did") for number, step in enumerate(steps)
               if step.get("from", -1) >= 0 and
               steps[step["from"]]["thread"] != step["thread"]]
    arrows += [(*pair, kind) for kind, pairs in (("order", run["orders"]),
                                                 ("missing", run["missing"])) for pair in pairs]
    for of, to, kind in arrows:
        if max(of, to) < len(steps):
            drawn += arrow(of, to, kind, place, {"order": 9, "missing": -9}.get(kind, 0))
    return (f'<svg width="{wide:.0f}" height="{tall}" role="img" '
            f'aria-label="the steps of each thread">{drawn}</svg>')


def bars(algorithms: list) -> str:
    """The bytes that a rank sends in an AllReduce: numbers, and what else crosses a link."""
    rows = ""
    most = max(sum(link["bytes"] for link in call["links"] if link["from"] == 0)
               for call in algorithms)
    for number, call in enumerate(algorithms):
        sent = [move for move in call["moves"] if move["from"] == 0]
        data = sum((last - first + 1) * call["element_bytes"]
                   for move in sent for first, last in move.get("elements", []))
        other = sum(move["bytes"] for move in sent) - data
        y, scale = 30 + number * 34, 220 / most
        rows += (f'<text x="0" y="{y - 3}">{call["title"]}, trips: {call["trips"]}</text>'
                 f'<rect class="payload" x="0" y="{y}" width="{data * scale:.0f}" height="10"/>'
                 f'<rect class="flags" x="{data * scale:.0f}" y="{y}" '
                 f'width="{other * scale:.0f}" height="10"/>'
                 f'<text x="{(data + other) * scale + 6:.0f}" y="{y + 9}">{data} + {other}</text>')
    return (f'<div class="bars"><svg viewBox="0 0 320 {34 * len(algorithms) + 16}" role="img" '
            'aria-label="bytes that a rank sends"><text x="0" y="12">Bytes that a rank sends: '
            '<tspan class="payload">numbers</tspan> + <tspan class="flags">flags</tspan>'
            f'</text>{rows}</svg></div>')
