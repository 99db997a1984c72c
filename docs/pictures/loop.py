#!/usr/bin/env python3
"""Draws loop.svg: an exercise of the course, from start to finish, as a terminal shows it. Runs the
commands in a clone, and draws their output without times. It takes about a minute, because the
first check builds the libraries.

usage: docs/pictures/loop.py
"""

import html
import os
import re
import signal
import subprocess
import tempfile
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SESSION = ("./lab start 05.2", "./lab check",
           "sed -i s/simt::Order::kRelaxed/kOrder/ \\\n    labs/05_device_prims/signal.hpp",
           "./lab check")

COLUMNS = 68  # few, so that the text is large enough on a phone
WIDTH, HEIGHT, MARGIN = 8.4, 18, 16  # of a character and a line, at a font size of 14
STYLES = {"1": ' font-weight="bold"', "31": ' fill="#ff7b72"', "32": ' fill="#56d364"',
          "36": ' fill="#79c0ff"'}


def run(command: str, folder: Path) -> str:
    """The output of a command in a terminal."""
    plain = {name: value for name, value in os.environ.items()
             if name not in ("EDITOR", "VISUAL", "TERM_PROGRAM", "SYMM_PRESET")}
    return subprocess.run(["script", "-qec", command, "/dev/null"], cwd=folder, check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          env={**plain, "TERM": "xterm"}).stdout.decode()


def record() -> list:
    """The lines of the session."""
    lines = []
    with tempfile.TemporaryDirectory() as scratch:
        clone = Path(scratch) / "symm"
        subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
        for command in ("./lab commands", "./lab check"):  # configuring prints lines
            run(command, clone)
        for command in SESSION:
            lines += [f"\033[36;1m{line}" for line in f"$ {command}".split("\n")]
            for line in run(command, clone).rstrip().replace("\r\n", "\n").split("\n"):
                line = re.sub(r".*\r(\033\[K)?", "", line)  # erased progress lines
                lines.append(re.sub(r" \(\d+ s\)$", "", line))
            lines += [""] if lines[-1] else []
    return wrapped(lines[:-1])


def wrapped(lines: list) -> list:
    """The lines, with at most COLUMNS characters. Wider paragraphs are filled again."""
    out, rest = [], ""
    for line in lines:
        line = f"{rest} {line}" if rest and line else line
        out += [rest] if rest and not line else []
        rest = ""
        indent = re.match(r"[ |]*(=> )?", line)[0].replace("=>", "  ")
        pieces = [line]
        if "\033" not in line and len(line) > COLUMNS:
            pieces = textwrap.wrap(line, COLUMNS, subsequent_indent=indent)
            rest = "" if indent else pieces.pop()
        out += pieces
    return out


def drawn(line: str, y: float) -> str:
    """A line as SVG. Each piece of one color has the width of its characters in any font."""
    out, column, style = "", 0, ""
    for codes, text in re.findall(r"(?:\033\[([\d;]*)m)?([^\033]*)", line):
        for code in codes.split(";") if codes else []:
            style = "" if code == "0" else style + STYLES[code]
        if piece := text.strip():
            x = MARGIN + WIDTH * (column + len(text) - len(text.lstrip()))
            out += (f'<text x="{x:.1f}" y="{y:.0f}"{style} textLength="{len(piece) * WIDTH:.1f}">'
                    f"{html.escape(piece, quote=False)}</text>\n")
        column += len(text)
    return out


def picture(lines: list) -> str:
    width, height = 2 * MARGIN + COLUMNS * WIDTH, 2 * MARGIN + HEIGHT * len(lines)
    rows = "".join(drawn(line, MARGIN + HEIGHT * i + 13) for i, line in enumerate(lines))
    return f"""<svg xmlns="http://www.w3.org/2000/svg"
 viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}"
 style="max-width: 100%; height: auto"
 font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
 font-size="14" fill="#d1d7e0">
<rect x="0.5" y="0.5" width="{width - 1:.0f}" height="{height - 1}" rx="8"
 fill="#0d1117" stroke="#3d444d"/>
<style>text {{ white-space: pre }}</style>
{rows}</svg>
"""


if __name__ == "__main__":
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, it would lose exit statuses
    Path(__file__).with_name("loop.svg").write_text(picture(record()))
