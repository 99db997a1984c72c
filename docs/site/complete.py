#!/usr/bin/env python3
"""Completes the site that doxygen builds. Makes links to sources work: doxygen keeps only links to
other pages. Joins questions and their folded answers: doxygen separates them. Puts tables into
boxes that scroll. Shows pictures as images, which have no background of their own. Keeps names in
code on one line. Adds the recordings that players show, and the scripts of doxygen-awesome to each
page, if the site has them.
Exits with status 1 if a link is broken; doxygen itself checks links to sections."""

import json
import os
import re
import sys
import xml.etree.ElementTree

from pages import ORDER, ROOT, name, player, results

SITE = ROOT / "build/docs/html"
SCRIPTS = {"doxygen-awesome-darkmode-toggle.js": "DoxygenAwesomeDarkModeToggle",
           "doxygen-awesome-fragment-copy-button.js": "DoxygenAwesomeFragmentCopyButton"}
FOLDED_APART = re.compile(r"</summary></details>\s*</p>\s*<p[^>]*>\s*<details>")
TABLE = re.compile(r'<table class="markdownTable">.*?</table>', re.DOTALL)
PICTURE = re.compile(r'<object type="image/svg\+xml" data="([^"]+)"[^>]*>([^<]*)</object>')
CODE = re.compile(r"(?<=<code>)[^<]+(?=</code>)")
NAME = re.compile(r"[^\s&]*[-/[][^\s&]*")  # a browser may break a line at - / [
LONGEST = 34  # characters: on a phone a longer name has to break


def unbroken(code: re.Match) -> str:
    return NAME.sub(lambda name: f'<span class="name">{name[0]}</span>'
                    if len(name[0]) <= LONGEST else name[0], code[0])


def pages() -> dict:
    """The site's page for each file of the repository that has one."""
    found = {ROOT / page: name(page) + ".html" for page in ORDER}
    tags = xml.etree.ElementTree.parse(ROOT / "build/docs/files.tag").getroot()
    for file in tags.iterfind("compound[@kind='file']"):
        path = (ROOT / file.findtext("path") / file.findtext("name")).resolve()
        html = file.findtext("filename")
        found.setdefault(path, html if html.endswith(".html") else html + ".html")
    return found


def main() -> int:
    known = pages()
    origin = {html: path for path, html in known.items()}
    broken = []
    for path in ROOT.glob("docs/recordings/*.json"):
        recording = json.loads(path.read_text())
        if "algorithms" in recording:
            recording["measured"] = results.times()
        script = player.script(path.stem, recording)
        (SITE / f"recording_{path.stem}.js").write_text(script)
    for page in sorted(SITE.glob("*.html")):
        def link(found, page=page):
            attribute, target, anchor = found.groups("")
            if re.match(r"\w+:", target) or (SITE / target).exists():
                return found[0]
            file = (origin.get(page.name, page).parent / target).resolve()
            if file in known:
                return f'{attribute}="{known[file]}"'
            if not file.exists() or not file.is_relative_to(ROOT):
                broken.append(f"{page.name}: {target}")
            return f'{attribute}="{os.path.relpath(file, SITE)}{anchor}"'

        text = page.read_text(errors="replace")
        changed = re.sub(r'\b(href|src)="([^"#?]+)([#?][^"]*)?"', link, text)
        changed = FOLDED_APART.sub("</summary>", changed)
        changed = TABLE.sub(r'<div class="wide">\g<0></div>', changed)
        if 'class="name"' not in text:
            changed = CODE.sub(unbroken, changed)
        changed = PICTURE.sub(r'<img src="\1" alt="\2"/>', changed)
        if 'class="player"' in text and "player.js" not in text:
            scripts = "".join(f'<script defer src="{script}"></script>'
                              for script in ("player.js", "allreduce.js"))
            changed = changed.replace("</head>", scripts + "</head>", 1)
        for script, name_of_class in SCRIPTS.items():
            if (SITE / script).exists() and script not in text:
                tags = f'<script src="{script}"></script><script>{name_of_class}.init()</script>\n'
                changed = changed.replace("</head>", tags + "</head>", 1)
        if changed != text:
            page.write_text(changed)
    for line in sorted(set(broken)):
        print(f"broken link: {line}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
