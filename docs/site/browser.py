"""Runs a script in a headless Chromium that looks at pages of the site."""

import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

BROWSERS = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"]
PAGE = """<meta charset="utf-8"><pre id="faults"></pre><script>
const {NAMES} = VALUES, faults = [];
SCRIPT
document.body.onload = () => main().catch(error => faults.push(String(error.stack))).then(
    () => document.getElementById("faults").textContent = [...faults.sort(), "end"].join("\\n"));
</script>"""


def run(script: str, values: dict, checked: str, folder: str | None = None, served: str = "",
        *flags: str) -> int:
    """Calls the script's main(), which adds lines to `faults`, and prints these. `values` are its
    global constants. A script that looks at a server's pages has to come from there: from the
    `folder` that is `served` at an address. `flags` are the browser's. Returns the exit status: 1
    if there are faults, or an error on the console. Without Chromium it says that what is to be
    `checked` was not, and returns 1 where the variable CI is set."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if not browser:
        print(f"{checked} not checked: chromium-headless-shell is not installed", file=sys.stderr)
        return 1 if "CI" in os.environ else 0
    text = PAGE.replace("NAMES", ", ".join(values)).replace("VALUES", json.dumps(values))
    with tempfile.NamedTemporaryFile("w", suffix=".html", dir=folder, encoding="utf-8") as file:
        file.write(text.replace("SCRIPT", script))
        file.flush()
        shown = subprocess.run(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,1000",
             "--allow-file-access-from-files", "--virtual-time-budget=3600000", "--dump-dom",
             "--enable-logging=stderr", *flags,
             served + Path(file.name).name if served else Path(file.name).as_uri()],
            capture_output=True, text=True, timeout=300)
    faults = re.search(r'id="faults">(.*?)</pre>', shown.stdout, re.DOTALL)
    lines = html.unescape(faults[1] if faults else "").split("\n")
    if lines.pop() != "end":
        lines = ["the browser did not visit all pages"]
    lines += re.findall(r":CONSOLE[^\]]*\] (\"(?:Uncaught|Error|Failed).*)", shown.stderr)
    print(*lines, sep="\n", end="\n" * bool(lines), file=sys.stderr)
    return 1 if lines else 0
