#!/usr/bin/env python3
"""Opens the site's pages in a headless Chromium: the course's pages and one of the reference in
both WIDTHS, the rest of the reference in the smaller one. Reports elements that do not fit: those
that reach beyond the window, are cut off, or scroll without the shade that shows it. Without
Chromium it reports that nothing was checked."""

import html
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from pages import ORDER, ROOT, name

sys.path.append(str(ROOT / "cmake"))
import tool  # noqa: E402

SITE = ROOT / "build/docs/html"
BROWSERS = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"]
WIDTHS = [1280, 390]
A_HEADER = "signal_8hpp.html"  # of the reference, to see that it has the sidebar
PAGE = """<pre id="faults"></pre><script>
const {PAGES, COURSE, WIDTHS, SITE} = VALUES, faults = [];

function look(frame, page, width) {
    const view = frame.contentWindow, done = new Set();  // elements seen, with all their children
    const fault = (what, e) => faults.push(`${page}, ${width} px wide: <${e.localName} ` +
        `class="${e.className}"> ${what}: ` +
        e.textContent.trim().slice(0, 60).replace(/\\s+/g, " "));
    if (width > 1000 && view.document.querySelectorAll("#nav-tree .item").length < 10)
        fault("has no sidebar of all pages", view.document.body);
    for (const e of view.document.querySelectorAll("#titlearea *, #side-nav *, #doc-content *")) {
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
            await new Promise(drawn => setTimeout(drawn, frame.sandbox.length > 1 ? 200 : 0));
            look(frame, page, width);
        }
    }
}

document.body.onload = () => Promise.all(Array.from({length: 4}, read)).then(
    () => document.getElementById("faults").textContent = [...faults.sort(), "end"].join("\\n"));
</script>"""


def main() -> int:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if not browser:
        print("page layout not checked: chromium-headless-shell is not installed")
        return 0
    pages = sorted(page.name for page in SITE.glob("*.html")
                   if not re.search(r"_source\.html$|-members\.html$", page.name))
    values = {"PAGES": pages, "COURSE": [name(page) + ".html" for page in ORDER] + [A_HEADER],
              "WIDTHS": WIDTHS, "SITE": SITE.as_uri() + "/"}
    with tempfile.NamedTemporaryFile("w", suffix=".html") as file:
        file.write(PAGE.replace("VALUES", json.dumps(values)))
        file.flush()
        shown = subprocess.run(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,1000",
             "--allow-file-access-from-files", "--virtual-time-budget=3600000", "--dump-dom",
             Path(file.name).as_uri()], capture_output=True, text=True, timeout=300).stdout
    faults = re.search(r'id="faults">(.*?)</pre>', shown, re.DOTALL)
    lines = html.unescape(faults[1] if faults else "").split("\n")
    if lines.pop() != "end":
        lines = ["the browser did not visit all pages"]
    print(*lines, sep="\n", end="\n" * bool(lines), file=sys.stderr)
    return 1 if lines else 0


if __name__ == "__main__":
    tool.run(main)
