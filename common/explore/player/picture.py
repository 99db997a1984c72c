"""An execution as a picture: a lane for each thread, a row for each step, and an arrow from each
store to the loads that read it. player.js steps through it; alone it is a still picture."""

import html

LANE, ROW, LETTER = 24, 26, 6.9  # pixels
DIRECTION = {"store": "→", "load": "←"}


def label(step: dict) -> str:
    """What the step does, in a few words: `30 → slot`, a store, or `30 ← slot`, a load."""
    if "place" not in step:
        return step["what"]
    order = f", {step['order']}" if step["order"] in ("acquire", "release") else ""
    return f"{step['value']} {DIRECTION[step['what'].split()[-1]]} {step['place']}{order}"


def mark(step: dict, x: float, y: float) -> str:
    """A store is a disc, a load a ring, a sync or the end of a kernel a bar."""
    if "place" not in step:
        return f'<path class="bar" d="M{x - 7} {y}h14"/>'
    return f'<circle class="{step["what"].split()[-1]}" cx="{x}" cy="{y}" r="5"/>'


def arrow(of: int, to: int, steps: list, kind: str, places) -> str:
    (x0, y0), (x1, y1) = places(of), places(to)
    bend = 16 if x0 == x1 else 0
    return (f'<path class="arrow {kind}" data-to="{to}" d="M{x0} {y0}C{x0 + bend} '
            f'{(y0 + y1) / 2:.0f} {x1 + bend} {(y0 + y1) / 2:.0f} {x1} {y1 - 6}"/>')


def svg(scene: dict, run: dict, rows: int | None = None) -> str:
    """The picture; `rows`: of the first steps only."""
    threads, steps = scene["threads"], run["steps"][:rows]
    left = len(threads) * LANE + 12
    tall = len(steps) * ROW + 8
    texts = [label(step) for step in steps]
    wide = left + 30 + max(map(len, texts)) * LETTER

    def place(step):
        return LANE / 2 + steps[step]["thread"] * LANE, 4 + (step + .5) * ROW

    drawn = ""
    for lane, (name, rank) in enumerate(threads):
        x = LANE / 2 + lane * LANE
        drawn += f'<path class="lane r{rank % 4}" d="M{x} 0V{tall}"/>'
    for number, (step, text) in enumerate(zip(steps, texts)):
        x, y = place(number)
        parts = " parts" if number == run.get("parts") else ""
        owner = f'<tspan class="owner r{step["owner"] % 4}">r{step["owner"]}</tspan> ' \
            if step.get("owner", -1) >= 0 else ""
        drawn += (f'<g class="row r{threads[step["thread"]][1] % 4}{parts}" data-step="{number}">'
                  f'<rect class="back" x="0" y="{4 + number * ROW}" width="100%" height="{ROW}"/>'
                  f'{mark(step, x, y)}<text x="{left}" y="{y + 4:.0f}">{owner}'
                  f'{html.escape(text)}</text></g>')
    for number, step in enumerate(steps):
        for of, _ in step.get("may", []):
            if 0 <= of < len(steps) and of != step["from"]:
                drawn += arrow(of, number, steps, "may", place)
        if 0 <= step.get("from", -1) < len(steps) and \
                steps[step["from"]]["thread"] != step["thread"]:
            drawn += arrow(step["from"], number, steps, "did", place)
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
