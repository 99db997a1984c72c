"""HTML for player.js: a player in a page of the site, or in a page of its own."""

import html
import json
from pathlib import Path

from picture import LEGEND, bars, svg

HERE = Path(__file__).parent


def script(name: str, recording: dict) -> str:
    """The recording as a script, since a page of a file system may not read a file."""
    for scene in recording.get("scenes", []):
        for run in scene["runs"]:
            run["picture"] = svg(scene, run)
    recording["legend"] = LEGEND
    text = json.dumps(recording, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    return f"(window.symmRecordings ??= {{}})[{json.dumps(name)}] = {text};\n"


def element(name: str, recording: dict) -> str:
    if "algorithms" in recording:
        return (f'<div id="player-{name}" class="player" data-allreduce>'
                f'{bars(recording["algorithms"])}</div>')
    scene = recording["scenes"][0]
    faults = "".join(f"<li>✗ {capital(run['lacks'])}. Then an execution goes wrong.</li>"
                     for run in scene["runs"][1:])
    faults += "".join(f"<li>✓ {capital(lacks)}. Nothing goes wrong in this scene.</li>"
                      for lacks, _ in scene.get("harmless", []))
    return (f'<div id="player-{name}" class="player" data-recording="{name}">'
            f'<b>{html.escape(recording["title"])}, {scene["name"]}</b>'
            f'<div class="graph">{svg(scene, scene["runs"][0])}</div>{LEGEND}'
            f'<ul class="faults">{faults}</ul></div>')


def capital(text: str) -> str:
    return html.escape(text[:1].upper() + text[1:])


def alone(name: str, recording: dict) -> str:
    """A page with nothing else."""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{html.escape(recording["title"])}</title>
<meta name="viewport" content="width=device-width">
<style>
:root {{ color-scheme: light dark; --shade: rgba(100, 140, 200, .45) }}
body {{ font-family: system-ui, sans-serif; max-width: 1200px; margin: 0 auto; padding: 8px }}
.dark-mode {{ --page-background-color: #16191d; --page-foreground-color: #d5dbe1;
    --page-secondary-foreground-color: #98a5b3; --separator-color: #38424d;
    --fragment-background: #1f252b; background: #16191d }}
{(HERE / "player.css").read_text()}</style>
<script>
if (matchMedia("(prefers-color-scheme: dark)").matches)
    document.documentElement.className = "dark-mode";
{script(name, recording)}{(HERE / "player.js").read_text()}</script>
<script>{(HERE / "allreduce.js").read_text()}</script></head>
<body>{element(name, recording)}</body></html>
"""
