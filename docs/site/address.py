#!/usr/bin/env python3
"""The addresses of the repository and of the site that .github/workflows/site.yml publishes. Pages
have the site's whole address in their links, because they are also read on GitHub.

    address.py           prints both addresses; exits with status 1 while they are placeholders
    address.py ADDRESS   sets them, here and in all pages, for the repository
                         https://github.com/NAME/REPOSITORY"""

import re
import subprocess
import sys
from pathlib import Path

REPOSITORY = "https://github.com/OWNER/symm"
PLACEHOLDER = "OWNER"  # README.md has a paragraph that begins with it, while it is one
FORM = re.compile(r"https://github\.com/([\w-]+)/([\w.-]+?)/?")


def site_of(repository: str) -> str:
    owner, name = FORM.fullmatch(repository).groups()
    return f"https://{owner}.github.io/{name}/"


SITE = site_of(REPOSITORY)


def foreign(text: str) -> list:
    """The addresses in a page that look like the site's, but are another owner's."""
    own = f"/{SITE.split('/')[3]}(?:/|$)|#player-"
    return [link for link in re.findall(r"https://[\w-]+\.github\.io/[^)\s\"]*", text)
            if not link.startswith(SITE) and re.search(own, link)]


def with_address(text: str, repository: str) -> str:
    """A page, or this file, with the addresses of another repository."""
    text = text.replace(SITE, site_of(repository))
    text = re.sub(re.escape(REPOSITORY) + r"(?![\w-])", repository, text)
    return re.sub(rf"^{PLACEHOLDER} .*?\n\n", "", text, flags=re.MULTILINE | re.DOTALL)


def main() -> int:
    if len(sys.argv) == 1:
        print(f"repository: {REPOSITORY}\nsite:       {SITE}")
        if f"/{PLACEHOLDER}/" in REPOSITORY:
            print(f"{PLACEHOLDER} is a placeholder. Set the owner: docs/site/address.py "
                  "https://github.com/NAME/REPOSITORY", file=sys.stderr)
            return 1
        return 0
    if len(sys.argv) > 2 or not FORM.fullmatch(sys.argv[1]):
        print(f"not an address of the form https://github.com/NAME/REPOSITORY: "
              f"{' '.join(sys.argv[1:])}", file=sys.stderr)
        return 2
    here = Path(__file__).resolve()
    root = here.parents[2]
    listed = subprocess.run(["git", "ls-files", "-z", "*.md"], cwd=root, check=True,
                            capture_output=True, text=True).stdout
    for path in [here, *(root / name for name in listed.split("\0")[:-1])]:
        text = path.read_text()
        changed = with_address(text, sys.argv[1].rstrip("/"))
        if changed != text:
            path.write_text(changed)
            print(path.relative_to(root))
    return 0


if __name__ == "__main__":
    sys.exit(main())
