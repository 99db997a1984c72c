#!/usr/bin/env python3
"""A picture of a terminal: what was typed (lines that begin with `$ `) and what was printed, from
stdin, as SVG on stdout. Escape sequences for red and green text are kept."""

import html
import re
import sys

WIDTH, LINE, MARGIN = 7.8, 18, 16  # of a character, of a line, around all: pixels
COLORS = {"31": "#ff7b72", "32": "#7ee787"}


def spans(line: str) -> str:
    """The line's text, with its colours."""
    if line.startswith("$ "):
        return ('<tspan fill="#8b949e">$ </tspan>'
                f'<tspan font-weight="bold">{html.escape(line[2:])}</tspan>')
    parts, fill = [], None
    for part in re.split(r"(\033\[[\d;]*m)", line):
        if part.startswith("\033"):
            fill = COLORS.get(part[2:-1].split(";")[-1])
        elif part:
            parts.append(f'<tspan fill="{fill}">{html.escape(part)}</tspan>' if fill
                         else html.escape(part))
    return "".join(parts)


def main():
    lines = sys.stdin.read().rstrip("\n").split("\n")
    longest = max(len(re.sub(r"\033\[[\d;]*m", "", line)) for line in lines)
    width, height = longest * WIDTH + 2 * MARGIN, len(lines) * LINE + 2 * MARGIN
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" '
          f'width="{width:.0f}" height="{height}" font-family="monospace" font-size="13">')
    print('<rect width="100%" height="100%" rx="6" fill="#0d1117"/>'
          '<g fill="#e6edf3" xml:space="preserve">')
    for number, line in enumerate(lines):
        print(f'<text x="{MARGIN}" y="{MARGIN + LINE * number + 13}">{spans(line)}</text>')
    print("</g></svg>")


if __name__ == "__main__":
    main()
