"""What the animated pictures share: a card that has its own background, so that it can be read on
any page, in light and dark colors; and the time. GitHub shows an SVG as an image: without scripts,
but with styles. Where motion is not wanted, or not known, the picture is whole and still."""

import html
import re
import textwrap
from pathlib import Path

PLAYER = Path(__file__).resolve().parents[2] / "tools/explore/player/player.css"


def of_player(rule: str) -> dict:
    """The colors of ranks and orders that a rule of the player's style sets."""
    block = re.search(rf"^{re.escape(rule)} {{(.*?)}}", PLAYER.read_text(),
                      re.MULTILINE | re.DOTALL)
    return dict(re.findall(r"--(r\d|order): (#\w+);", block[1]))


STEP, PAUSE = 1.2, 6  # seconds: of a step, and before it starts again
LIGHT = {"paper": "#fff", "ink": "#2b3a49", "quiet": "#5f6e7d", "line": "#c9d1d9",
         "shade": "#eaf2fb"} | of_player(".player")
DARK = {"paper": "#16191d", "ink": "#d5dbe1", "quiet": "#98a5b3", "line": "#38424d",
        "shade": "#22303f"} | of_player("html.dark-mode .player")
DEFS = "<defs>" + "".join(
    f'<marker id="{name}" viewBox="0 0 10 10" refX="8" refY="5" markerWidth="{size}" '
    f'markerHeight="{size}" orient="auto"><path d="M0 0L10 5L0 10z" fill="var(--{name})"/>'
    "</marker>"
    for name, size in (("r0", 6), ("r1", 6), ("order", 3.2))) + "</defs>"
FOOTER = "▸ click to step through it, with its code"


def colors(of: dict) -> str:
    return "".join(f"--{name}:{value};" for name, value in of.items())


def text(x: float, y: float, words: str, kind: str = "") -> str:
    kind = f' class="{kind}"' if kind else ""
    return f'<text x="{x:g}" y="{y:g}"{kind}>{html.escape(words, quote=False)}</text>'


def wrapped(sentence: str, most: int) -> list:
    """Its lines, of nearly the same length."""
    fewest = len(textwrap.wrap(sentence, most))
    return next(lines for width in range(1, most + 1)
                if len(lines := textwrap.wrap(sentence, width)) == fewest)


def timed(count: int, row: int) -> str:
    """The style of a curtain, and of a mark of the current row: both go down by a row per step."""
    whole = count * STEP + PAUSE
    end = 100 * count * STEP / whole
    below = f"transform:translateY({count * row}px)"
    return f""".curtain{{display:block;animation:open {whole:g}s infinite}}
.now{{animation:go {whole:g}s infinite}}
@keyframes open{{0%{{transform:none;animation-timing-function:steps({count},start)}}
{end:.1f}%,to{{{below}}}}}
@keyframes go{{0%{{transform:none;opacity:1;animation-timing-function:steps({count})}}
{end:.1f}%{{{below};opacity:1}}{end + .1:.1f}%,to{{opacity:0}}}}
"""


def card(title: str, sentence: str, wide: int, tall: int, style: str, motion: str,
         drawn: str) -> str:
    """The whole file. `drawn` begins below the sentence; `motion` is the style of what moves."""
    lines = wrapped(sentence, (wide - 32) // 8)
    top = 44 + 20 * len(lines)
    head = text(16, 30, title, "title")
    head += "".join(text(16, 52 + 20 * at, line) for at, line in enumerate(lines))
    height = top + tall + 34
    return f"""<svg xmlns="http://www.w3.org/2000/svg" role="img"
 viewBox="0 0 {wide} {height}" width="{wide}" height="{height}">
<title>{html.escape(f"{title}: {sentence}", quote=False)}</title>
<style>
svg{{{colors(LIGHT)}max-width:100%;height:auto;font:15px system-ui,sans-serif}}
@media (prefers-color-scheme:dark){{svg{{{colors(DARK)}}}}}
text{{fill:var(--ink)}}
.small{{font-size:13px}}
.bold{{font-weight:600}}
.title{{font-size:18px;font-weight:600}}
.quiet{{fill:var(--quiet);font-size:13px}}
.paper{{fill:var(--paper)}}
.edge{{fill:none;stroke:var(--line)}}
{"".join(f".r{rank}{{--rank:var(--r{rank})}}" for rank in range(4))}
{style}
@media (prefers-reduced-motion:no-preference){{
{motion}}}
</style>
{DEFS}
<rect class="paper" width="100%" height="100%" rx="8"/>
<g transform="translate(0 {top})">
{drawn}</g>
<rect class="paper" width="100%" height="{top}" rx="8"/>
{head}
{text(16, height - 14, FOOTER, "quiet")}
<rect class="edge" x=".5" y=".5" width="{wide - 1}" height="{height - 1}" rx="8"/>
</svg>
"""
