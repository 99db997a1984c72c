#!/usr/bin/env python3
"""Plays each player of the site in a headless Chromium: with all its choices, by keyboard, to its
end, at both WIDTHS. Reports players that stop before, what is cut off, errors on the console, and
players that have no picture for readers without scripts."""

import re
import sys

import browser
from look import SCRIPT as LOOK, SITE, WIDTHS
from pages import ROOT

sys.path.append(str(ROOT / "tools/lab"))
import tool  # noqa: E402

SCRIPT = LOOK.partition("async function read")[0] + """
async function open(frame, page, sandbox, width) {
    frame.sandbox = sandbox;
    frame.style = `width: ${width}px; height: 800px`;
    await new Promise(loaded => { frame.onload = loaded; frame.src = SITE + page; });
    const document = frame.contentDocument;
    const isBuilt = () => ![...document.querySelectorAll(".player")].some(e => !e.dataset.last) &&
        ![...document.querySelectorAll("form[data-question]")].some(e => !e.clientHeight);
    if (sandbox.includes("scripts")) await until(isBuilt);
    await wait(200);
    return document;
}

async function play(frame, page, width, root) {
    const document = root.ownerDocument, data = root.dataset;
    const name = `${page}, ${width} px wide, ${data.recording ?? "allreduce"}`;
    const press = key => document.activeElement.dispatchEvent(new frame.contentWindow.KeyboardEvent(
        "keydown", {key, bubbles: true, cancelable: true}));
    const expect = (step, what) => +data.step === +step || faults.push(
        `${name}: ${what} leads to step ${data.step} instead of ${step}`);
    if (!(+data.last > 0)) return faults.push(`${name}: has no steps`);
    root.focus();
    if (document.activeElement !== root) return faults.push(`${name}: cannot have the focus`);
    const [scene] = root.querySelectorAll("select");
    const breaks = () => [...root.querySelectorAll(".breaks input")];
    const choose = (list, value) => {
        list.value = value;
        list.dispatchEvent(new Event("change"));
        root.focus();
    };
    for (const {value} of scene.options) {
        choose(scene, value);
        for (let n = 0; n < (data.recording ? breaks().length : 1); ++n) {
            if (n) breaks()[n].click();
            root.focus();
            press("End");
            expect(data.last, "End");
            look(frame, name, width, ".player :not(svg *)");
            press("Home");
            expect(0, "Home");
            for (let step = 1; step <= data.last; ++step) {
                press("ArrowRight");
                expect(step, "the right arrow");
                const seen = root.querySelector(".says").textContent;
                if (!seen) faults.push(`${name}: step ${step} says nothing`);
                if (step === 3 && (value > 0 || n || width < 1000)) break;
            }
            if (!n) look(frame, name, width, ".player :not(svg *)");
            const at = data.step;
            press("ArrowLeft");
            expect(at - 1, "the left arrow");
            if (!n) continue;
            if (/^✓.*Nothing goes wrong/.test(root.querySelector(".parting").textContent)) continue;
            root.querySelector(".parting .fault")?.click();
            if (!root.querySelector(".wrong .row.fault.current"))
                faults.push(`${name}: no step of wrong execution ${n} is marked as at fault`);
            for (const box of width > 1000 ? root.querySelectorAll(".memory") : [])
                if (box.getBoundingClientRect().top - root.getBoundingClientRect().top > 735)
                    faults.push(`${name}: memory lies below a window of 800 lines`);
        }
    }
    choose(scene, 0);
    data.pace = 1;
    press(" ");
    await wait(10 * (+data.last + 10));
    expect(data.last, "playing");
}

async function main() {
    const frame = document.body.appendChild(document.createElement("iframe"));
    for (const page of PAGES) {
        const still = await open(frame, page, "allow-same-origin", WIDTHS[0]);
        for (const root of still.querySelectorAll(".player"))
            if (!root.querySelector("svg")?.getBoundingClientRect().height)
                faults.push(`${page}: a player has no picture without scripts`);
        for (const width of WIDTHS) {
            const shown = await open(frame, page, "allow-same-origin allow-scripts", width);
            for (const root of shown.querySelectorAll(".player"))
                await play(frame, page, width, root);
        }
    }
}
"""


def main() -> int:
    pages = [page.name for page in sorted(SITE.glob("*.html"))
             if 'class="player"' in page.read_text(errors="replace")]
    recorded = {path.stem for path in ROOT.glob("docs/recordings/*.json")}
    shown = {name for page in pages
             for name in re.findall(r"recording_(\w+)\.js", (SITE / page).read_text())}
    for name in sorted(recorded - shown):
        print(f"docs/recordings/{name}.json: no page has its player", file=sys.stderr)
    values = {"PAGES": pages, "WIDTHS": WIDTHS, "SITE": SITE.as_uri() + "/"}
    return browser.run(SCRIPT, values, "players") or (1 if recorded - shown else 0)


if __name__ == "__main__":
    tool.run(main)
