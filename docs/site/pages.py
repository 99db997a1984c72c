#!/usr/bin/env python3
"""The pages of the site, in the order of the course, and a filter through which Doxygen reads
each page. It adds what GitHub does not need: names of pages and sections, a table of contents, the
table of a header (after each sentence "The table at the top of [`FILE`](FILE) ..."), all tables of
docs/results (in place of `<!-- results.py: everything -->`), drawings as SVG, the labs' questions
as forms, links to the previous and next page, and the player `player-NAME` in place of each
paragraph that begins with the picture docs/pictures/NAME_steps.svg, which has a link to that player
in the published site.

    pages.py layout      prints Doxygen's layout: the sidebar. Fails if a page has a fault
    pages.py PAGE        prints a page for Doxygen"""

import collections
import html
import json
import os
import re
import sys
from pathlib import Path

import address
import drawing

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tools/explore/player"), str(ROOT / "docs")]
import page as player  # noqa: E402
import results  # noqa: E402

FIRST = ["README.md", "docs/ONE_DAY.md", "docs/READ.md"]
LAST = ["docs/GLOSSARY.md", "docs/WHERE.md", "docs/RESULTS.md", "docs/MEASURED.md",
        "docs/NCCL.md", "docs/QUESTIONS.md", "docs/DRIVER_CALLS.md", "docs/EXPLORE.md",
        "docs/EXPLORE_YOURS.md", "docs/FAILURES.md", "docs/DESIGN.md", "common/emu/README.md",
        "docs/ENVIRONMENT.md", "docs/SETUPS.md", "docs/TEACHING.md", "CONTRIBUTING.md",
        "CHANGELOG.md"]
MEASURED = "<!-- results.py: everything -->\n"
MANY = 6  # sections: a page that has them gets a table of contents
RECORDED = re.compile(r"^\[!\[[^\]]*\]\(\s*(\S*docs/pictures/(\w+)_steps\.svg)\)\]\(\s*(\S+)\).*?"
                      r"(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)
FENCED = re.compile(r"^(```\w*\n.*?^```\n)", re.MULTILINE | re.DOTALL)


def lessons(page: str, found: list) -> list:
    """Adds the page to `found`, then the pages of its folder that it links to, in order."""
    found.append(page)
    folder = os.path.dirname(page) + "/"
    for link in re.findall(r"\]\(([^():#]+\.md)", (ROOT / page).read_text()):
        linked = os.path.normpath(folder + link)
        if linked.startswith(folder) and linked not in found and (ROOT / linked).is_file():
            lessons(linked, found)
    return found


LABS = [path.relative_to(ROOT).as_posix() for path in sorted(ROOT.glob("labs/*/README.md"))]
PARTS = [lessons(page, []) for page in (*LABS, "symm/README.md", "tools/README.md")]
ORDER = FIRST + sum(PARTS, []) + LAST


def name(page: str) -> str:
    """A page's name in the site: its file is NAME.html."""
    return re.sub(r"\W", "_", re.sub(r"(^|/)README\.md$|\.md$", "", page)) or "index"


def title(page: str) -> str:
    if name(page) == "index":
        return "Front page"
    return (ROOT / page).read_text().partition("\n")[0].lstrip("# ").replace("`", "")


HEADINGS = collections.Counter()  # of the page that is filtered


def section(page: str, anchor: str) -> str:
    """The site's name of the section that GitHub calls #ANCHOR."""
    return f"{name(page)}-{anchor}"


def slug(heading: str) -> str:
    """GitHub's anchor for a heading."""
    return re.sub(r"[^\w -]", "", heading.strip().lower()).replace(" ", "-")


def table(page: str, sentence: str, link: str) -> str:
    """The sentence, and the first table of the header's comment."""
    path = (ROOT / page).parent / link
    rows = re.search(r"(?:^/// \|.*\n)+", path.read_text() if path.is_file() else "", re.MULTILINE)
    if not rows:
        sys.exit(f"{page} includes the table of {link}, which has none")
    return f"{sentence}\n\n" + re.sub("^/// ", "", rows[0], flags=re.MULTILINE)


def with_player(page: str, link: re.Match) -> str:
    picture, recorded, target = link.groups()
    path = ROOT / f"docs/recordings/{recorded}.json"
    for file in (path, (ROOT / page).parent / picture):
        if not file.is_file():
            sys.exit(f"{page} shows {picture}: {file.resolve()} does not exist")
    own = f"{address.SITE}{name(page)}.html#player-{recorded}"
    if target != own:
        sys.exit(f"{page}: the link of {recorded}_steps.svg leads to {target} instead of {own}")
    shown = player.element(recorded, json.loads(path.read_text()))
    return (f"\\htmlonly[block]\n<script defer src=\"recording_{recorded}.js\"></script>\n"
            f"{shown}\n\\endhtmlonly")


def prose(page: str, text: str) -> str:
    """Filters the text between fenced blocks."""
    def heading(found):
        marks, words = found[1], found[2].replace("`", "")
        own = name(page) if marks == "#" else section(page, slug(words))
        HEADINGS[own] += 1
        own += f"-{HEADINGS[own] - 1}" * (HEADINGS[own] > 1)  # as GitHub does
        return found[0] if own == "index" else f"{marks} {words} {{#{own}}}"

    def link(found):
        other = os.path.join(os.path.dirname(page), found[1]) if found[1] else page
        return f"](@ref {section(os.path.normpath(other), found[2])})"

    if re.search(r"^The table: ", text, re.MULTILINE):
        sys.exit(f"{page}: write 'The table at the top of [`FILE`](FILE) shows ...'")
    text = re.sub(r"^(#+) (.*)$", heading, text, flags=re.MULTILINE)
    text = re.sub(r"\[[^\]\[]*\]\(", lambda found: re.sub(r"\s*\n\s*", " ", found[0]), text)
    text = re.sub(r"\[`([^]`]+)`\](?=\([^():]*\.md)", r"[\1]", text)
    text = re.sub(r"\]\(([^():]*\.md|)#([\w-]+)\)", link, text)
    # Else doxygen closes it after its first paragraph.
    text = re.sub(r"^(<details>.*|</details>)$", r"\\htmlonly[block]\n\1\n\\endhtmlonly", text,
                  flags=re.MULTILINE)
    text = RECORDED.sub(lambda found: with_player(page, found), text)
    return re.sub(r"(?<=\n\n)The table at the top of\s\[`[^`]+`\]\((\S+)\).*?(?=\n\n|\Z)",
                  lambda found: table(page, found[0], found[1]), text, flags=re.DOTALL)


def block(text: str) -> str:
    """Filters a fenced block."""
    inside = text.partition("\n")[2].removesuffix("```\n")
    if text.startswith("```\n") and drawing.is_drawing(inside):
        return f"\\htmlonly[block]\n{drawing.svg(inside)}\n\\endhtmlonly\n"
    return text


def neighbours(page: str) -> str:
    """The links to the previous and the next page."""
    place = ORDER.index(page)
    links = [f'<a rel="{rel}" href="{name(ORDER[at])}.html">{html.escape(title(ORDER[at]))}</a>'
             if 0 <= at < len(ORDER) else "<span></span>"
             for rel, at in [("prev", place - 1), ("next", place + 1)]]
    return f'\n\\htmlonly[block]\n<nav class="neighbours">{"".join(links)}</nav>\n\\endhtmlonly\n'


def filtered(page: str) -> str:
    text = (ROOT / page).read_text()
    for link in address.foreign(text):
        sys.exit(f"{page}: {link} is not an address of {address.SITE}. Set the repository's with "
                 "docs/site/address.py")
    if MEASURED in text:
        text = text.replace(MEASURED, results.everything())
    parts = FENCED.split(text)
    if sum(len(re.findall("^## ", part, re.MULTILINE)) for part in parts[::2]) >= MANY:
        parts[0] = parts[0].replace("\n", "\n\n[TOC]\n", 1)  # below the title
    shown = "".join(block(part) if at % 2 else prose(page, part) for at, part in enumerate(parts))
    if page in LABS:
        import predict  # which takes a while: Doxygen runs this program for each page
        shown = predict.with_questions(page, shown)
    return shown + neighbours(page)


def layout() -> str:
    """The sidebar: all pages, with those of a lab, or of a building, below it."""
    def tab(page, kind, rest):
        shown = html.escape(title(page), quote=False)
        return f'<tab type="{kind}" url="@ref {name(page)}" title="{shown}"{rest}>\n'

    tabs = "".join(tab(first, "usergroup", "") + "".join(tab(page, "user", "/") for page in below) +
                   "</tab>\n" for first, *below in [FIRST[1:], *PARTS, *([page] for page in LAST)])
    return ('<doxygenlayout version="1.0"><navindex>\n'
            f'<tab type="mainpage" visible="yes" title="{title(FIRST[0])}"/>\n{tabs}'
            '<tab type="pages" visible="no"/>\n'
            '<tab type="classlist" visible="yes" title="All classes"/>\n'
            '<tab type="filelist" visible="yes" title="All headers"/>\n'
            '</navindex></doxygenlayout>\n')


def main() -> int:
    if sys.argv[1] != "layout":
        print(filtered(os.path.relpath(sys.argv[1], ROOT)), end="")
        return 0
    folders = ("", "docs/", "labs/**/", "common/**/", "symm/**/", "tools/**/")
    found = {path.relative_to(ROOT).as_posix() for folder in folders
             for path in ROOT.glob(folder + "*.md")}
    for page in sorted(found - set(ORDER)):
        print(f"{page}: link to it from its lab's README.md, or add it to LAST in "
              "docs/site/pages.py", file=sys.stderr)
    for page in sorted(set(ORDER) - found):
        print(f"{page} is listed in docs/site/pages.py, but does not exist", file=sys.stderr)
    if found != set(ORDER):
        return 1
    for page in ORDER:
        filtered(page)  # exits if a table is missing
    print(layout(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
