#!/usr/bin/env python3
"""Answers each question of the site in a headless Chromium, at both WIDTHS: with words, wrong, and
right. Reports verdicts that differ from those of ./lab check, a line for ./lab import that it would
refuse, answers that are lost when the page is opened again, what is cut off, forms without labels,
and questions that without scripts do not say how to answer them."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tools/course"), str(ROOT / "tools/lab")]
import questions  # noqa: E402, before `pages`, whose `results` is another module than the course's
import answers  # noqa: E402
import browser  # noqa: E402
import exercises  # noqa: E402
import tool  # noqa: E402
from look import SITE, WIDTHS  # noqa: E402
from pages import name  # noqa: E402
from play import SCRIPT as PLAY  # noqa: E402

SCRIPT = PLAY.partition("async function play")[0] + """
const SANDBOX = "allow-same-origin allow-scripts allow-forms";
const expect = (name, what, shown, wanted) => shown === wanted ||
    faults.push(`${name}: ${what}: ${JSON.stringify(shown)} instead of ${JSON.stringify(wanted)}`);

function answer(form, given) {
    const input = form.querySelector("input");
    input.focus();
    input.value = given;
    form.requestSubmit();  // as Enter does
    return form.nextElementSibling.textContent;
}

async function visit(frame, page, width) {
    const document = await open(frame, page, SANDBOX, width);
    const answered = [];
    document.defaultView.localStorage.clear();
    await open(frame, page, SANDBOX, width);
    for (const {id, says, right} of QUESTIONS[page]) {
        const name = `${page}, ${width} px wide, ${id}`;
        const form = frame.contentWindow.document.querySelector(`form[data-question*='"${id}"']`);
        if (!form?.getBoundingClientRect().height) return faults.push(`${name}: shows no form`);
        expect(name, "label", form.querySelector("input").labels.length, 1);
        expect(name, "role", form.nextElementSibling.getAttribute("role"), "status");
        for (const [given, verdict] of says)
            expect(name, given, answer(form, given), verdict);
        answered.push(`${id}=${right}`);
        expect(name, "line", frame.contentWindow.document.querySelector(".import code").textContent,
               `./lab import ${answered.join(" ")}`);
    }
    const line = frame.contentWindow.document.querySelector(".import");
    line.querySelector("button").click();
    expect(page, "selected by Copy", frame.contentWindow.getSelection().toString(),
           line.querySelector("code").textContent);
    look(frame, page, width, ".predict *");
    const again = await open(frame, page, SANDBOX, width);
    expect(page, "answers kept", again.querySelectorAll(".verdict.right").length, answered.length);
    again.defaultView.localStorage.clear();
}

async function main() {
    const frame = document.body.appendChild(document.createElement("iframe"));
    for (const page of Object.keys(QUESTIONS)) {
        const still = await open(frame, page, "allow-same-origin", WIDTHS[0]);
        for (const question of still.querySelectorAll(".predict section"))
            if (!question.innerText.includes("In a terminal: ./lab check") ||
                question.querySelector("input")?.getBoundingClientRect().height)
                faults.push(`${page}: a question is not as it should be without scripts`);
        for (const width of WIDTHS) await visit(frame, page, width);
    }
}
"""


def verdicts(course: list, exercise, right: str) -> list:
    """Answers, and what is said about them: words, known wrong ones, others, and the right one."""
    said = []
    known = [wrong.answer for wrong in exercise.wrong]
    for given in ("many", *known, "999", f"{right},999", right):
        try:
            found = questions.judge(course, exercise, given)
            why = exercise.why * found.passed
            said.append((given, " ".join(f"{found.say} {why}".replace("`", "").split())))
        except exercises.CourseError as error:
            said.append((given, str(error).partition(" ./lab check")[0]))
    return said


def main() -> int:
    course = exercises.load(seed=0)
    asked = {}
    for exercise in (e for e in course if e.sealed):
        right = ",".join(answers.opened(exercise))
        page = f"{name(f'labs/{exercise.lab}/README.md')}.html"
        asked.setdefault(page, []).append({"id": exercise.id, "right": right,
                                           "says": verdicts(course, exercise, right)})
    for of_page in asked.values():  # the line that a page shows
        words = [f"{question['id']}={question['right']}" for question in of_page]
        for exercise, answer in answers.imported(course, words):
            assert questions.judge(course, exercise, answer).passed, exercise.id
    values = {"QUESTIONS": asked, "WIDTHS": WIDTHS, "SITE": SITE.as_uri() + "/"}
    return browser.run(SCRIPT, values, "questions")


if __name__ == "__main__":
    tool.run(main)
