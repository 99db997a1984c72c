#!/usr/bin/env python3
"""Opens the course's pages in a headless Chromium, in light and in dark colors, and reports what
keeps readers out: a page without title or language, headings that skip a level, pictures without a
text, text with too little contrast, controls without a name or a visible focus. Skips players."""

import sys

import browser
from look import COURSE, SITE
from pages import ROOT

sys.path.append(str(ROOT / "tools/lab"))
import tool  # noqa: E402

LEAST = 4.5  # of contrast, as WCAG 2 AA has it; 3 for large text
SCRIPT = """
const channels = color => color.match(/[\\d.]+/g).map(Number);

function luminance(rgb) {
    const [r, g, b] = rgb.map(c => (c /= 255) <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
}

/** A color with alpha, over another. */
const over = ([r, g, b, alpha = 1], below) =>
    [r, g, b].map((c, n) => c * alpha + below[n] * (1 - alpha));

function background(view, element) {
    if (!element) return [255, 255, 255];
    const color = channels(view.getComputedStyle(element).backgroundColor);
    if (color.length < 4) return color;
    return color[3] === 0 ? background(view, element.parentElement) :
        over(color, background(view, element.parentElement));
}

function contrasts(view, document, colors, fault) {
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), seen = new Set();
    while (walker.nextNode()) {
        const element = walker.currentNode.parentElement;
        if (!walker.currentNode.data.trim() || seen.has(element)) continue;
        seen.add(element);
        if (element.closest(".player, script, style, noscript, .ttc") ||
            !element.checkVisibility({visibilityProperty: true, opacityProperty: true})) continue;
        const style = view.getComputedStyle(element), below = background(view, element);
        const paint = element.closest("svg") ? style.fill : style.color;
        const both = [over(channels(paint), below), below].map(luminance).sort((a, b) => b - a);
        const ratio = (both[0] + .05) / (both[1] + .05), size = parseFloat(style.fontSize);
        const is_large = size >= 24 || size >= 18.66 && style.fontWeight >= 700;
        if (ratio < (is_large ? 3 : LEAST) - .005)
            fault(`${colors}: contrast ${ratio.toFixed(2)}, ${paint} on ${below.map(Math.round)}`,
                element);
    }
}

function named(document, fault) {
    if (!document.title.trim()) fault("has no title", document.body);
    if (!document.documentElement.lang) fault("has no language", document.body);
    let level = 0;
    const shown = e => e.checkVisibility();
    for (const heading of document.querySelectorAll(
        "#doc-content :is(h1, h2, h3, h4, h5, h6, [role=heading]):not(.toc *, .player *)")) {
        if (!shown(heading)) continue;
        const own = +(heading.ariaLevel ?? heading.localName[1]);
        if (own > level + 1) fault(`h${own} after h${level}`, heading);
        level = own;
    }
    for (const image of document.images)
        if (shown(image) && !image.alt.trim() && !image.ariaLabel)
            fault("a picture has no text", image);
    for (const control of document.querySelectorAll("a[href], button, input, select, svg[role]"))
        if (shown(control) && !control.closest(".player") &&
            !(control.textContent.trim() || control.ariaLabel || control.title ||
              control.labels?.length || control.querySelector("img[alt]")))
            fault("a control has no name", control);
}

function focused(view, document, fault) {
    const seen = new Set();
    for (const control of document.querySelectorAll(
        "a[href], button, input, summary, [tabindex]")) {
        const kind = `${control.localName} ${control.className} ${control.parentElement.className}`;
        if (!control.checkVisibility({visibilityProperty: true}) || control.closest(".player") ||
            control.tabIndex < 0 || seen.has(kind)) continue;
        seen.add(kind);
        control.focus();
        const rings = [control, control.closest("#MSearchBox")].map(
            e => e && view.getComputedStyle(e)).some(style => style?.outlineStyle === "solid");
        if (document.activeElement === control && !rings)
            fault("does not show that it has the focus", control);
    }
}

async function read() {
    const frame = document.body.appendChild(document.createElement("iframe"));
    frame.style = "width: 1280px; height: 900px";
    for (let page; (page = PAGES.pop());) {
        await new Promise(loaded => { frame.onload = loaded; frame.src = SITE + page; });
        await new Promise(drawn => setTimeout(drawn, 300));
        const view = frame.contentWindow, own = frame.contentDocument;
        const fault = (what, e) => faults.push(`${page}: ${what}: <${e.localName} id="${e.id}" ` +
            `class="${e.className.baseVal ?? e.className}"> ` +
            e.textContent.trim().slice(0, 40).replace(/\\s+/g, " "));
        named(own, fault);
        focused(view, own, fault);
        for (const colors of ["light", "dark"]) {
            own.documentElement.className = `${colors}-mode`;
            contrasts(view, own, colors, fault);
        }
    }
}

const main = () => Promise.all(Array.from({length: 2}, read));
"""


def main() -> int:
    return browser.run(SCRIPT, {"PAGES": COURSE, "SITE": SITE.as_uri() + "/", "LEAST": LEAST},
                       "readability")


if __name__ == "__main__":
    tool.run(main)
