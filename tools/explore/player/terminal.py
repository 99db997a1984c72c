#!/usr/bin/env python3
"""Steps through executions: ./lab explore barrier --step, ./lab check --step

    terminal.py FILE [--browser]    FILE: of the explorer's --record. --browser: in a web page"""

import curses
import json
import sys
import textwrap
import webbrowser

import execution
import page
import sentences
from picture import label

COLORS = [curses.COLOR_BLUE, curses.COLOR_YELLOW, curses.COLOR_GREEN, curses.COLOR_MAGENTA]
MARKS = {"store": "●", "load": "○"}
KEYS = "← → step   Home End   ↑ ↓ another execution   q ends"


class Screen:
    """Shows one step of one of the rows."""

    def __init__(self, window, rows: list):
        self.window, self.rows = window, rows
        curses.curs_set(0)
        curses.use_default_colors()
        for rank, color in enumerate(COLORS if curses.has_colors() else []):
            curses.init_pair(rank + 1, color, -1)
        self.choose(0)

    def choose(self, number: int):
        self.number = number % len(self.rows)
        row = self.rows[self.number]
        self.scene = sentences.tell(execution.condensed([row]))
        self.run = self.scene["runs"][0]
        self.at = 0
        self.title = f"{row['protocol']}, {'limits may pass' if row['may_give_up'] else 'all end'}"

    def color(self, rank: int):
        return curses.color_pair(rank % 4 + 1) if rank >= 0 and curses.has_colors() else 0

    def write(self, line: int, column: int, text: str, style=0):
        """Returns the column after the text, which is cut off at the edge."""
        tall, wide = self.window.getmaxyx()
        if 0 <= line < tall and column < wide - 1:
            self.window.addnstr(line, column, text, wide - 1 - column, style)
        return column + len(text)

    def draw(self):
        self.window.erase()
        steps, threads = self.run["steps"], self.scene["threads"]
        tall, wide = self.window.getmaxyx()
        step = steps[self.at]
        self.write(0, 0, f"{self.title}: step {self.at + 1} of {len(steps)}", curses.A_BOLD)
        below = self.below(step, wide)
        rows = max(3, tall - len(below) - 4)
        first = max(0, min(self.at - rows // 2, len(steps) - rows))
        for line, number in enumerate(range(first, min(first + rows, len(steps)))):
            self.draw_row(line + 2, number, threads)
        line = min(rows, len(steps)) + 3
        for text, style in below:
            self.write(line, 0, text, style)
            line += 1
        self.write(tall - 1, 0, KEYS, curses.A_DIM)
        self.window.redrawwin()  # whole lines, also where another program has written
        self.window.refresh()

    def draw_row(self, line: int, number: int, threads: list):
        step = self.run["steps"][number]
        style = curses.A_BOLD if number == self.at else curses.A_DIM if number > self.at else 0
        mark = MARKS.get(step["what"].split()[-1], "─") if "place" in step else "─"
        for lane, (_, rank) in enumerate(threads):
            is_its = lane == step["thread"]
            self.write(line, 2 + 2 * lane, mark if is_its else "│", self.color(rank) | style)
        fault = number == self.run.get("fault")
        self.write(line, 0, "✗" if fault else "▸" if number == self.at else " ")
        column = 3 + 2 * len(threads)
        for text, rank in label(step, threads):
            column = self.write(line, column, text + " ", self.color(rank) | style)

    def below(self, step: dict, wide: int) -> list:
        """Lines about the step, and the memory after it."""
        lines = [(text, curses.A_BOLD) for text in textwrap.wrap(step["says"] + ".", wide - 1)]
        if len(step.get("may", [])) > 1:
            lines.append(("it may return " + ", ".join(
                f"[{value}]" if of == step["from"] else value for of, value in step["may"]), 0))
        if self.at == self.run.get("fault"):
            lines.append((f"at fault: {self.run['blame']}", curses.A_BOLD))
        if self.run["why"] and self.at + 1 == len(self.run["steps"]):
            lines += [("=> " + self.run["why"], curses.A_BOLD)]
        lines += [(f"{file.rpartition('/')[2]}  {text}", curses.A_DIM)
                  for file, text in step["source"]]
        cells = [[name, owner, value] for name, owner, value in self.scene["cells"]]
        for earlier in self.run["steps"][:self.at + 1]:
            stored = earlier.get("cells", []) if earlier["what"].endswith("store") else []
            for cell, value in earlier.get("hidden", []) + stored:
                cells[cell][2] = value
        touched = {cell for cell, _ in step.get("cells", [])}
        for owner in sorted({owner for _, owner, _ in cells}):
            text = "  ".join(f"{name}={value}" + "*" * (number in touched)
                             for number, (name, of, value) in enumerate(cells) if of == owner)
            told = textwrap.wrap(text, wide - 10)
            lines += [(f"{f'rank {owner}' if owner >= 0 else 'memory':<8}{told[0]}",
                       self.color(owner))] + [(" " * 8 + part, self.color(owner))
                                              for part in told[1:3]]
        return lines

    def run_keys(self):
        while True:
            self.draw()
            key = self.window.getch()
            last = len(self.run["steps"]) - 1
            moved = {curses.KEY_RIGHT: self.at + 1, ord(" "): self.at + 1,
                     curses.KEY_LEFT: self.at - 1, curses.KEY_HOME: 0, curses.KEY_END: last}
            if key in moved:
                self.at = max(0, min(moved[key], last))
            elif key in (curses.KEY_UP, curses.KEY_DOWN):
                self.choose(self.number + (1 if key == curses.KEY_DOWN else -1))
            elif key in (ord("q"), 27, -1):  # -1: the terminal is gone
                return


def in_browser(rows: list):
    """Opens a page with the rows, and prints its name."""
    scenes = [{"name": row["protocol"] + ", limits may pass" * row["may_give_up"]} |
              sentences.tell(execution.condensed([row])) for row in rows]
    file = execution.ROOT / "build/execution.html"
    recording = {"title": rows[0]["protocol"], "scenes": scenes}
    file.write_text(page.alone("execution", execution.with_lines(recording)))
    print(file)
    webbrowser.open(file.as_uri())


def show(rows: list, browser: bool) -> int:
    """Shows the rows, and first the one that has failed. Returns the exit status."""
    rows = sorted((row for row in rows if row["steps"]), key=lambda row: not row["failed"])
    if not rows:
        print("./lab: there is no execution to show", file=sys.stderr)
        return 1
    if browser:
        in_browser(rows)
    elif sys.stdin.isatty() and sys.stdout.isatty():
        curses.wrapper(lambda window: Screen(window, rows).run_keys())
    else:
        print("./lab: --step needs a terminal", file=sys.stderr)
        return 2
    return 0


def main() -> int:
    with open(sys.argv[1], encoding="utf-8") as file:
        return show([*map(json.loads, file)], "--browser" in sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
