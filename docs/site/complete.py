#!/usr/bin/env python3
"""Completes the site that doxygen builds, so that a copy of build/docs/html is all of it. Makes
links to sources work: doxygen keeps only links to other pages. A source that has no page is in the
repository (address.py); a picture is copied into the site. Joins questions and their folded
answers: doxygen separates them. Puts tables into boxes that scroll. Shows pictures as images, which
have no background of their own, with the text that they have on GitHub. Keeps names in code on one
line. Says what is the title, and which headings are below it. Adds the language, the recordings
that players show, and the scripts of doxygen-awesome to each page, if the site has them.
Exits with status 1 if a link is broken, or leaves the site other than by http or https; doxygen
itself checks links to sections."""

import json
import re
import shutil
import sys
import xml.etree.ElementTree
from pathlib import Path

from address import REPOSITORY, SITE as ADDRESS
from pages import ORDER, ROOT, name, player, results

SITE = ROOT / "build/docs/html"
SCRIPTS = {"doxygen-awesome-darkmode-toggle.js": "DoxygenAwesomeDarkModeToggle",
           "doxygen-awesome-fragment-copy-button.js": "DoxygenAwesomeFragmentCopyButton"}
FOLDED_APART = re.compile(r"</summary></details>\s*</p>\s*<p[^>]*>\s*<details>")
TABLE = re.compile(r'<table class="markdownTable">.*?</table>', re.DOTALL)
LINK = re.compile(r'\b(href|src)="([^"#?]+)([#?][^"]*)?"')
TITLE = re.compile(r'<div class="title">')
HEADING = re.compile(r"<h([1-5])>")
UNNAMED = re.compile(r'(<img [^>]*alt=")("[^>]*) title="([^"]*)"')
CAPTION = re.compile(r'(<img [^>]*alt=")("/?>\s*<div class="caption">\s*)([^<]*)')
OUTSIDE = re.compile(r"https?:|javascript:void\(0\)$")  # the sidebar's links, which a script fills
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


def elsewhere(file: Path, anchor: str) -> str:
    """The link to a file of the repository that has no page."""
    if file.suffix in (".svg", ".png"):
        shutil.copy(file, SITE)
        return file.name
    kind = "tree" if file.is_dir() else "blob"
    return f"{REPOSITORY}/{kind}/main/{file.relative_to(ROOT)}{anchor}"


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
    search = SITE / "menu.js"
    search.write_text(re.sub(r'id="MSearch(Field|Select)"(?! aria)',
                             r'id="MSearch\1" aria-label="Search"', search.read_text()))
    for page in sorted(SITE.glob("*.html")):
        def link(found, page=page):
            attribute, target, anchor = found.groups("")
            if target.startswith(ADDRESS):
                target = target.removeprefix(ADDRESS) or "index.html"
                if not (SITE / target).is_file():
                    broken.append(f"{page.name}: {found[2]}")
                return f'{attribute}="{target}{anchor}"'
            if re.match(r"\w+:", target):
                if not OUTSIDE.match(target):
                    broken.append(f"{page.name}: {target}")
                return found[0]
            if (SITE / target).resolve().is_relative_to(SITE) and (SITE / target).exists():
                return found[0]
            file = (origin.get(page.name, page).parent / target).resolve()
            if file in known:
                return f'{attribute}="{known[file]}"'
            if not file.exists() or not file.is_relative_to(ROOT):
                broken.append(f"{page.name}: {target}")
                return found[0]
            return f'{attribute}="{elsewhere(file, anchor)}"'

        text = page.read_text(errors="replace")
        changed = LINK.sub(link, text)
        changed = re.sub(r"(<html [^>]*?)( lang=\"\w+\")?>", r'\1 lang="en">', changed, count=1)
        changed = FOLDED_APART.sub("</summary>", changed)
        changed = TABLE.sub(r'<div class="wide">\g<0></div>', changed)
        if 'class="name"' not in text:
            changed = CODE.sub(unbroken, changed)
        changed = PICTURE.sub(r'<img src="\1" alt="\2"/>', changed)
        changed = UNNAMED.sub(r"\1\3\2", changed)
        changed = CAPTION.sub(r"\1\3\2\3", changed)
        changed = TITLE.sub(r'<div class="title" role="heading" aria-level="1">', changed)
        changed = HEADING.sub(lambda own: f'<h{own[1]} aria-level="{int(own[1]) + 1}">', changed)
        if 'class="player"' in text and 'src="player.js"' not in text:
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
