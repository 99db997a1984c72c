#!/usr/bin/env python3
"""Completes the site that doxygen builds. Makes links to sources work: doxygen keeps only links to
other pages. Joins questions and their folded answers: doxygen separates them. Puts tables into
boxes that scroll. Adds the switch for dark and light to each page, if the site has its script.
Exits with status 1 if a link is broken; doxygen itself checks links to sections."""

import os
import re
import sys
import xml.etree.ElementTree

from pages import ORDER, ROOT, name

SITE = ROOT / "build/docs/html"
SWITCH = "doxygen-awesome-darkmode-toggle.js"
SWITCH_TAGS = (f'<script src="{SWITCH}"></script>\n'
               "<script>DoxygenAwesomeDarkModeToggle.init()</script>\n</head>")
FOLDED_APART = re.compile(r"</summary></details>\s*</p>\s*<p[^>]*>\s*<details>")
TABLE = re.compile(r'<table class="markdownTable">.*?</table>', re.DOTALL)


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
        if (SITE / SWITCH).exists() and SWITCH not in text:
            changed = changed.replace("</head>", SWITCH_TAGS, 1)
        if changed != text:
            page.write_text(changed)
    for line in sorted(set(broken)):
        print(f"broken link: {line}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
