#!/usr/bin/env python3
"""Draws two pictures of lab 06: shots.svg, one shot and two shots of four ranks, and banks.svg, why
two banks of scratch memory are enough. Colors can be read on white and on black.

usage: docs/pictures/shots.py
"""

from pathlib import Path

GREY, BLUE, GREEN = "#767d86", "#3d7fe0", "#1b9e77"


def text(x, y, words, color=GREY, anchor="middle", size=15, weight="normal"):
    return (f'<text x="{x:g}" y="{y:g}" fill="{color}" text-anchor="{anchor}" font-size="{size}" '
            f'font-weight="{weight}">{words}</text>\n')


def box(x, y, w, h, color=GREY, filled=False):
    return (f'<rect x="{x:g}" y="{y:g}" width="{w}" height="{h:g}" stroke="{color}" '
            f'fill="{color if filled else "none"}"/>\n')


def arrow(x1, y1, x2, y2, color):
    return (f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{color}" '
            f'stroke-width="1.5" marker-end="url(#{"blue" if color == BLUE else "green"})"/>\n')


def write(name, width, height, drawn):
    heads = "".join(
        f'<marker id="{id}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" '
        f'orient="auto"><path d="M0 1L10 5L0 9z" fill="{color}"/></marker>\n'
        for id, color in (("blue", BLUE), ("green", GREEN)))
    Path(__file__).with_name(name).write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" style="max-width: 100%; height: auto" font-family="sans-serif">\n'
        f"<defs>\n{heads}</defs>\n{drawn}</svg>\n")


RANKS, CELL, STEP = 4, 12, 57  # a buffer has one cell per rank
MINE = 2                       # the rank whose work is drawn


def at(rank, cell=0.0):
    return 62 + rank * STEP + cell * CELL


def row(y, name, height, rows, filled, color):
    """A buffer of each rank: cells in one row (`rows` = 1), or one slot per rank below another."""
    drawn = text(56, y + height / 2 + 5, name, anchor="end")
    for rank in range(RANKS):
        for part in range(RANKS):
            if rows == 1:
                place = (at(rank, part), y, CELL, height)
            else:
                place = (at(rank), y + part * height / rows, RANKS * CELL, height / rows)
            drawn += box(*place, color if filled(rank, part) else GREY, filled(rank, part))
    return drawn


def shot(title, rows, notes):
    drawn = text(at(1.9), 20, title, weight="bold", size=17)
    drawn += "".join(text(at(rank, 2), 46, f"rank {rank}") for rank in range(RANKS))
    return drawn + rows + "".join(text(4, 298 + 20 * i, note, anchor="start")
                                  for i, note in enumerate(notes))


def shots():
    def mine(_, part):
        return part == MINE

    def sent(rank, part):  # a rank adds up its own input where it is
        return part == MINE != rank

    one = row(56, "in", 26, 1, lambda rank, part: rank == MINE, BLUE)
    one += row(156, "scratch", 52, 4, sent, BLUE)
    one += row(248, "out", 26, 1, lambda rank, part: rank == MINE, GREEN)
    for rank in (0, 1, 3):
        one += arrow(at(MINE, 2), 82, at(rank, 2), 181, BLUE)
    one += arrow(at(MINE, 2), 208, at(MINE, 2), 246, GREEN)
    one += text(at(MINE, 1.4), 232, "adds up 4 inputs", GREEN, "end", 13)

    two = row(56, "in", 26, 1, mine, BLUE)
    two += box(at(MINE, 1.5), 152, CELL, 26, GREEN, True)
    two += text(at(MINE, 2.9), 170, "adds up", GREEN, "start", 13)
    two += row(248, "out", 26, 1, mine, GREEN)
    for rank in range(RANKS):
        two += arrow(at(rank, MINE + .5), 82, at(MINE, 2), 150, BLUE)
        two += arrow(at(MINE, 2), 178, at(rank, MINE + .5), 246, GREEN)

    half = at(RANKS) + 10
    left = shot("One shot", one, [
        "rank 2 sends its input to all its peers:", "3 x its size, packets 6 x",
        "1 trip: data"])
    right = shot("Two shots", two, [
        "rank 2 adds up part 2 for all ranks:", "sends 2 x 3/4 of an input's size",
        "5 trips: addresses, requests,", "data, sums, barrier"])
    return left + f'<g transform="translate({half} 0)">\n{right}</g>\n', 2 * half, 366


def banks():
    """Three calls of two ranks. Each starts by sending, and ends when it has the other's data."""
    top, low, height = 46, 190, 40

    def call(x, w, y, epoch):
        color = BLUE if epoch % 2 else GREEN
        return (box(x, y, w, height, color, True) +
                text(x + w / 2, y + 25, f"call {epoch}: bank {epoch % 2}", "#fff", size=14))

    drawn = text(8, top + 25, "rank 0", anchor="start") + text(8, low + 25, "rank 1",
                                                               anchor="start")
    for (x, w), (x1, w1), epoch in (((66, 172), (150, 130), 6), ((242, 172), (284, 170), 7),
                                    ((418, 172), (458, 132), 8)):
        color = BLUE if epoch % 2 else GREEN
        drawn += call(x, w, top, epoch) + call(x1, w1, low, epoch)
        drawn += arrow(x + 8, top + height, x1 + w1 * .55, low - 2, color)
        drawn += arrow(x1 + 8, low, x + w - 6, top + height + 2, color)
    drawn += text(590, 28, "sends into bank 0, which rank 1 has read", anchor="end")
    for i, note in enumerate((
            "rank 0 begins call 8 only after it has received call 7's data from rank 1;",
            "rank 1 sends that only after it has ended call 6, so it has read bank 0.",
            "It may not have read bank 1 yet: one bank would not be enough.")):
        drawn += text(8, 262 + 21 * i, note, anchor="start")
    return drawn, 600, 318


if __name__ == "__main__":
    for name, (drawn, width, height) in (("shots.svg", shots()), ("banks.svg", banks())):
        write(name, width, height, drawn)
