"""The questions of a lab (exercises of the kind `predict`) as forms in its page of the site. They
need no compiler: predict.js judges the answers as tools/course/questions.py does. The right answer
is a checksum there, too, and what is said about an answer is encoded, so that a reader of the
page's source does not read either by accident."""

import base64
import functools
import html
import itertools
import json
import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / folder) for folder in ("tools/course", "docs/checks")]
import answers  # noqa: E402
import exercises  # noqa: E402
import lab_pages  # noqa: E402

SECTION = re.compile(r"^## Exercises .*?(?=^## )", re.MULTILINE | re.DOTALL)


@functools.cache
def of_page(page: str) -> list:
    """The questions of a lab's page."""
    return [e for e in exercises.load(seed=0)
            if e.kind == "predict" and page == f"labs/{e.lab}/README.md"]


def prose(text: str) -> str:
    """A task as HTML: paragraphs, blocks of indented lines, and code in backticks."""
    shown = []
    for kind, lines in itertools.groupby(html.escape(text, quote=False).strip().split("\n"),
                                         lambda line: line[:4].isspace() if line else None):
        if kind is not None:
            part = "\n".join(lines)
            shown.append(f"<pre>{part}</pre>" if kind else
                         "<p>" + re.sub("`([^`]+)`", r"<code>\1</code>", part) + "</p>")
    return "".join(shown)


def program(exercise) -> str:
    """The program that answers the question, if it is one of those that are explored."""
    text = answers.EXECUTIONS.read_text()
    lines = text.split("\n")

    def source(name: str) -> str:
        return "\n".join(lines[at] for at in sorted(lab_pages.find(lines, name,
                                                                   range(len(lines)))))

    names = re.findall(r"^(?:void|struct) (\w+)", text, re.MULTILINE)
    row = re.search(rf'\{{"{exercise.id}", (.*), \{{[\d, ]+\}}\}},$', text, re.MULTILINE)
    printing = [name for name in names if f'"{exercise.id}: ' in source(name)]
    called = row[1] if row else source(printing[0]) if printing else ""
    shown = [source(name) for name in names if re.search(rf"\b{name}\b", called)]
    if not called:
        return ""
    what = f": <code>{html.escape(row[1])}</code>" if row else ""
    return (f"<details><summary>The program{what}</summary><pre>" +
            html.escape("\n\n".join(shown), quote=False) + "</pre></details>")


def encoded(text: str) -> str:
    return base64.b64encode(" ".join(text.split()).encode()).decode()


def form(exercise) -> str:
    """Without scripts there is only the last sentence."""
    told = {answers.sealed(exercise, wrong.answer): encoded(wrong.say)
            for wrong in exercise.wrong}
    right = exercise.sealed[0]
    data = {"id": exercise.id, "right": right, "told": {**told, right: encoded(exercise.why)},
            "explored": answers.is_explored(exercise),
            "several": answers.SEVERAL if "commas" in exercise.task else ""}
    return (f'<form hidden data-question="{html.escape(json.dumps(data))}">'
            f'<label>Your answer to {exercise.id} <input autocomplete="off"></label> '
            '<button>Check</button></form><p class="verdict" role="status"></p>'
            '<p class="proof" role="status"></p>')


def question(exercise) -> str:
    page, _, section = exercise.read.partition(", ")
    link = os.path.relpath(page, f"labs/{exercise.lab}")
    needs = f" It needs {exercise.gpus} GPUs." if exercise.gpus else ""
    read = "" if link == "README.md" else (
        f'<p>Read first: <a href="{link}">{page}</a>{f", {section}" if section else ""}.</p>')
    return (f'<section><h2>{exercise.id} {html.escape(exercise.title)}</h2>'
            f"{read}{prose(exercise.task)}{program(exercise)}"
            f"{form(exercise) if exercise.sealed else ''}"
            f"<p>In a terminal: <code>./lab check {exercise.id} ANSWER</code>.{needs}</p>"
            "</section>")


def with_questions(page: str, text: str) -> str:
    """The page for Doxygen, with its questions at the end of the section Exercises."""
    if not of_page(page):
        return text
    sentences = html.escape(json.dumps({name: getattr(answers, name) for name in (
        "NO_NUMBER", "NOT_IT", "MISSING", "TOO_MANY", "BOTH")}))
    shown = (f'<div class="predict" data-sentences="{sentences}">'
             "<p>The questions of this lab, which need no compiler:</p>" +
             "".join(map(question, of_page(page))) +
             '<p class="import" role="status" hidden>This line records in your course what you '
             'have answered right here: <code></code> <button>Copy</button></p></div>'
             '<script defer src="predict.js"></script>')
    found = SECTION.search(text)
    if not found:
        sys.exit(f"{page}: it has questions, but no section Exercises")
    return (f"{text[:found.end()]}\\htmlonly[block]\n{shown}\n\\endhtmlonly\n\n"
            f"{text[found.end():]}")
