#!/usr/bin/env python3
"""Opens the site's pages in a headless Chromium: the course's pages and one of the reference in
both WIDTHS, the rest of the reference in the smaller one. Reports elements that do not fit: those
that reach beyond the window, are cut off, or scroll without the shade that shows it."""

import re
import sys

import browser
from pages import ORDER, ROOT, name

sys.path.append(str(ROOT / "tools/lab"))
import tool  # noqa: E402

SITE = ROOT / "build/docs/html"
WIDTHS = [1280, 390]
A_HEADER = "signal_8hpp.html"  # of the reference, to see that it has the sidebar
COURSE = [name(page) + ".html" for page in ORDER] + [A_HEADER]
SCRIPT = """
const wait = milliseconds => new Promise(passed => setTimeout(passed, milliseconds));
// A page's scripts load others after the page. What never becomes true is reported by the caller.
async function until(isTrue) {
    for (let tries = 0; !isTrue() && tries < 1000; ++tries) await wait(50);
}
const items = frame => frame.contentDocument.querySelectorAll("#nav-tree .item").length;

function look(frame, page, width, elements = "#titlearea *, #side-nav *, #doc-content *") {
    const view = frame.contentWindow, done = new Set();  // elements seen, with all their children
    const fault = (what, e) => faults.push(`${page}, ${width} px wide: <${e.localName} ` +
        `class="${e.className}"> ${what}: ` +
        e.textContent.trim().slice(0, 60).replace(/\\s+/g, " "));
    if (width > 1000 && items(frame) < 10)
        fault("has no sidebar of all pages", view.document.body);
    for (const e of view.document.querySelectorAll(elements)) {
        const beyond = e.getBoundingClientRect().right > width + 1;
        const wide = e.clientWidth && e.scrollWidth > e.clientWidth + 1;
        if (done.has(e.parentElement)) {
            done.add(e);
        } else if (beyond || wide) {
            const style = view.getComputedStyle(e), clips = wide && style.overflowX != "visible";
            if (beyond || clips) done.add(e);
            if (beyond) fault("reaches beyond the window", e);
            else if (clips && /hidden|clip/.test(style.overflowX)) fault("cuts its content off", e);
            else if (clips && !style.backgroundImage.includes("gradient"))
                fault("scrolls without showing it", e);
        }
    }
}

async function read() {
    const frame = document.body.appendChild(document.createElement("iframe"));
    for (let page; (page = PAGES.pop());) {
        // Only the course's pages run their scripts, which build the sidebar: the others are many.
        frame.sandbox = "allow-same-origin" + (COURSE.includes(page) ? " allow-scripts" : "");
        await new Promise(loaded => { frame.onload = loaded; frame.src = SITE + page; });
        for (const width of COURSE.includes(page) ? WIDTHS : WIDTHS.slice(1)) {
            frame.style = `width: ${width}px; height: 900px; visibility: hidden`;
            if (width > 1000) await until(() => items(frame) >= 10);
            await wait(frame.sandbox.length > 1 ? 200 : 0);
            look(frame, page, width);
        }
    }
}

const main = () => Promise.all(Array.from({length: 4}, read));
"""


def main() -> int:
    pages = sorted(page.name for page in SITE.glob("*.html")
                   if not re.search(r"_source\.html$|-members\.html$", page.name))
    values = {"PAGES": pages, "COURSE": COURSE, "WIDTHS": WIDTHS, "SITE": SITE.as_uri() + "/"}
    return browser.run(SCRIPT, values, "page layout")


if __name__ == "__main__":
    tool.run(main)
