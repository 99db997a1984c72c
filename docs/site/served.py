#!/usr/bin/env python3
"""Serves a copy of the site as GitHub Pages does, in a folder of another host, and opens the
course's pages there in a headless Chromium. Reports requests to other hosts, requests that fail,
broken pictures, and links that lead nowhere or out of the site other than by http."""

import contextlib
import http.server
import os
import shutil
import sys
import tempfile
import threading
from pathlib import Path

import browser
from address import SITE as ADDRESS
from look import COURSE, SITE
from pages import ROOT

sys.path.append(str(ROOT / "tools/lab"))
import tool  # noqa: E402

FOLDER = ADDRESS.rstrip("/").rpartition("/")[2]
SCRIPT = """
const origin = new URL(SITE).origin, links = new Map(), names = new Map();

async function visit(frame, page) {
    await new Promise(loaded => { frame.onload = loaded; frame.src = SITE + page; });
    await new Promise(passed => setTimeout(passed, 300));
    const document = frame.contentDocument;
    if (!document?.querySelector("h1, .title")) return faults.push(`${page}: was not loaded`);
    for (const image of document.images)
        if (!image.naturalWidth)
            faults.push(`${page}: broken picture ${image.getAttribute("src")}`);
    names.set(SITE + page, new Set([...document.querySelectorAll("[id], [name]")].flatMap(
        e => [e.id, e.getAttribute("name")])));
    for (const {href} of document.querySelectorAll("a[href]")) {
        const link = new URL(href), shown = `${page}: the link ${href}`;
        if (link.protocol === "javascript:") continue;  // the search box
        if (!/^https?:$/.test(link.protocol)) faults.push(`${shown} leads out of the site`);
        else if (link.origin === origin) links.set(href.replace(/#$/, ""), shown);
    }
}

async function follow() {
    for (const [href, shown] of links) {
        const [file, anchor] = href.split("#"), known = names.get(file);
        if (known && anchor && !known.has(decodeURIComponent(anchor)))
            faults.push(`${shown} leads to no part of the page`);
        if (!known) names.set(file, (await fetch(file, {method: "HEAD"})).ok ? null : undefined);
        if (names.get(file) === undefined || !file.startsWith(SITE))
            faults.push(`${shown} leads nowhere`);
    }
}

async function main() {
    const pages = [...PAGES];
    await Promise.all(Array.from({length: 4}, async () => {
        const frame = document.body.appendChild(document.createElement("iframe"));
        frame.style = "width: 1280px; height: 900px";
        for (let page; (page = pages.pop());) await visit(frame, page);
        frame.remove();
    }));
    await follow();
}
"""


class Server(http.server.SimpleHTTPRequestHandler):
    """Serves a folder. It is the browser's proxy, too, so it sees requests to other hosts."""

    faults: set = set()

    def do_GET(self):
        if self.path.startswith("/"):
            return super().do_GET()
        return self.outside()

    def outside(self):
        self.faults.add(f"a request to another host: {self.path}")
        self.send_error(403)

    do_CONNECT = do_POST = outside

    def log_request(self, code="-", size="-"):
        if int(code) >= 400 and self.path.startswith("/") and self.path != "/favicon.ico":
            page = Path(self.headers.get("Referer") or "").name
            self.faults.add(f"{page}: the request of {self.path} is answered by {int(code)}")

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def served(folder: str):
    """The port at which the folder is served."""
    def handler(*arguments):
        return Server(*arguments, directory=folder)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def check(site: Path, pages: list) -> int:
    """Prints the faults of these pages of a site. Returns the exit status."""
    Server.faults.clear()
    with tempfile.TemporaryDirectory(dir=ROOT / "build/docs") as root:
        shutil.copytree(site, Path(root) / FOLDER, copy_function=os.link)
        with served(root) as port:
            host = f"http://127.0.0.1:{port}"
            status = browser.run(SCRIPT, {"PAGES": pages, "SITE": f"{host}/{FOLDER}/"},
                                 "the served site", root, f"{host}/",
                                 f"--proxy-server={host}", "--disable-background-networking")
    for fault in sorted(Server.faults):
        print(fault, file=sys.stderr)
    return status or int(bool(Server.faults))


if __name__ == "__main__":
    tool.run(lambda: check(SITE, COURSE))
