"""Turns a page's text drawing into SVG: characters - = | + become lines, and < > ^ v at their ends
become arrowheads. Everything else stays text, in the page's color."""

import html
import re

WIDTH, HEIGHT = 8.4, 18  # of a character
SMALLEST = 0.7           # of its size: a drawing that is still too wide scrolls
LINE = re.compile(r"[-=]{3,}|(?<! )[-=]{2}|[-=]{2}(?![a-z])|(?<=[+|<])-|-(?=[+|>])")
HEADS = {">": (1, 0), "<": (-1, 0), "v": (0, 1), "^": (0, -1)}


def is_drawing(block: str) -> bool:
    """Whether a fenced block is a drawing: boxes or arrows, and neither commands nor output."""
    return 3 <= block.count("\n") <= 20 and not re.search(r"\./lab|^driver:|^\$ ", block, re.M) \
        and bool(re.search(r"\+-{4,}|-\+$|[-=]{3,}>|\| \d \| \d \|", block, re.M))


def svg(block: str) -> str:
    rows = block.rstrip("\n").split("\n")
    level = {(r, c) for r, row in enumerate(rows) for run in LINE.finditer(row)
             for c in range(*run.span())}
    lines, heads, texts = "", "", ""

    def at(r, c):
        return rows[r][c:c + 1] if 0 <= r < len(rows) and c >= 0 else ""

    def draw(r, c):
        """The lines and the arrowhead of a character. Both are empty if it is text."""
        char, x, y, w, h = at(r, c), (c + .5) * WIDTH, (r + .5) * HEIGHT, WIDTH / 2, HEIGHT / 2
        if (r, c) in level:
            left, right = (w * (2 if at(r, beside) == "|" else 1) for beside in (c - 1, c + 1))
            return "".join(f"M{x - left:.1f} {y + by}h{left + right:.1f}"
                           for by in ([-2, 2] if char == "=" else [0])), ""
        if char == "|":
            return f"M{x:.1f} {y - h}v{HEIGHT}", ""
        joins = {(dx, dy) for head, (dx, dy) in HEADS.items()
                 if (r, c + dx) in level or dy and at(r + dy, c) in ("|", "+", head)}
        joined = "".join(f"M{x:.1f} {y}l{dx * w} {dy * h}" for dx, dy in joins)
        if char == "+":
            return joined, ""
        dx, dy = HEADS.get(char, (0, 0))
        beside = [side for side in (c - 1, c + 1) if at(r, side).strip() and (r, side) not in level]
        if dx and (-dx, 0) in joins or dy and not beside:
            back, wing, far = -dx * w, 4 * abs(dy), 4 * abs(dx)
            return joined, (f"M{x + back + wing:.1f} {y + far}L{x + dx * w:.1f} {y + dy * h}"
                            f"L{x + back - wing:.1f} {y - far}Z")
        return "", ""

    for r, row in enumerate(rows):
        text = ""
        for c, char in enumerate(row):
            line, head = draw(r, c)
            lines, heads, text = lines + line, heads + head, text + (" " if line + head else char)
        for run in re.finditer(r"\S+(?: \S+)*", text):
            texts += (f'<text x="{run.start() * WIDTH:.1f}" y="{(r + .72) * HEIGHT:.1f}" '
                      f'textLength="{len(run[0]) * WIDTH:.1f}" lengthAdjust="spacingAndGlyphs">'
                      f"{html.escape(run[0])}</text>")
    width = max(map(len, rows)) * WIDTH
    style = f"width:{width:.0f}px;max-width:max(100%,{width * SMALLEST:.0f}px)"
    return (f'<div class="drawing"><svg viewBox="0 0 {width:.1f} {len(rows) * HEIGHT}" '
            f'style="{style}"><path d="{lines}"/><path class="head" d="{heads}"/>{texts}'
            '</svg></div>')
