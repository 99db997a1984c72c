#!/usr/bin/env python3
"""Checks that served.py reports each fault of a page that has all of them."""

import contextlib
import io
import sys
import tempfile
from pathlib import Path

import served

# What a page has, and a part of the line that reports it.
FAULTS = {
    '<img src="missing.svg" alt="">': "broken picture missing.svg",
    '<img src="page.html" alt="">': "broken picture page.html",
    '<a href="file:///etc/hosts">': "file:///etc/hosts leads out of the site",
    '<a href="../other.html">': "/other.html leads nowhere",
    '<a href="/page.html">': "/page.html leads nowhere",
    '<a href="missing.html">': "/missing.html leads nowhere",
    '<a href="#missing">': "#missing leads to no part of the page",
    '<script src="https://example.org/a.js"></script>': "another host: example.org:443",
    '<link rel="stylesheet" href="http://example.org/a.css">': "another host: http://example.org/a",
}
RIGHT = ('<h1 id="here">Page</h1><a href="#here">', '<a href="page.html#here">',
         '<a href="https://example.org/">', '<img src="right.svg" alt="">')


def reported(parts) -> str:
    with tempfile.TemporaryDirectory(dir=served.ROOT / "build/docs") as folder:
        Path(folder, "page.html").write_text("<!doctype html>" + "".join(parts))
        Path(folder, "right.svg").write_text(
            '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>')
        printed = io.StringIO()
        with contextlib.redirect_stderr(printed):
            served.check(Path(folder), ["page.html"])
    return printed.getvalue()


def main() -> int:
    printed = reported(RIGHT)
    if "not checked" in printed:
        return 0  # served.py says so
    if printed:
        print(f"served.py reports faults of a right page:\n{printed}", file=sys.stderr)
        return 1
    printed = reported([*RIGHT, *FAULTS])
    missing = [fault for fault in FAULTS.values() if fault not in printed]
    for fault in missing:
        print(f"served.py does not report: {fault}\nIt prints:\n{printed}", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    served.tool.run(main)
