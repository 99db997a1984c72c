// Steps through recorded executions (execution.py), whose pictures are already drawn (picture.py).
// An element `<div class="player" data-recording="barrier">` becomes the player of
// symmRecordings.barrier; what it contains before is the still picture for readers without scripts.
// `data-pace`: the milliseconds that a step is shown.
"use strict";

/** Creates an element. `attributes` may have `text` and listeners such as `onclick`. */
function make(name, attributes = {}, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes))
        if (key === "text") element.textContent = value;
        else if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
        else element.setAttribute(key, value);
    element.append(...children);
    return element;
}

/** Whether a value in memory ends a wait. Counters may wrap. */
function ends(value, until) {
    if (/flag/.test(until)) return value.endsWith(`(${until})`);
    if (until.startsWith("at least ")) return (value - until.slice(9) | 0) >= 0;
    return until.startsWith("not ") ? value !== until.slice(4) : value === until;
}

/** Pairs of the steps of two executions, in their order. What a thread does in both stands together;
    between such pairs, the others do as they come. */
function paired(right, wrong) {
    const deeds = steps => steps.map(({thread, call, what, owner, place}) =>
        [thread, call, what, owner, place?.split(/[[+]/)[0]].join());
    const a = deeds(right), b = deeds(wrong), times = [];
    const most = Array.from({length: a.length + 1}, () => Array(b.length + 1).fill(0));
    for (let i = a.length; i-- > 0;)
        for (let j = b.length; j-- > 0;)
            most[i][j] = a[i] === b[j] ? most[i + 1][j + 1] + 1 : Math.max(most[i + 1][j], most[i][j + 1]);
    let others = [[], []], last = [0, 0];
    for (let i = 0, j = 0; i < a.length || j < b.length || others.flat().length;) {
        const both = a[i] !== undefined && a[i] === b[j], ended = i === a.length && j === b.length;
        if (!both && !ended) {
            if (j === b.length || i < a.length && most[i + 1][j] >= most[i][j + 1]) others[0].push(i++);
            else others[1].push(j++);
            continue;
        }
        for (let n = 0; n < Math.max(others[0].length, others[1].length); ++n)
            times.push(last = last.map((before, view) => others[view][n] ?? before));
        others = [[], []];
        if (both) times.push(last = [i++, j++]);
    }
    return times;
}

/** One execution: its picture, and what it does in the current step. */
class View {
    constructor(scene, run, lines, choose, choose_view) {
        this.scene = scene;
        this.run = run;
        this.lines = lines;
        this.choose = choose;
        this.steps = run.steps;
        const part = name => this[name] = make("div", {class: name});
        this.element = make("div", {class: run.why ? "view wrong" : "view right"},
            make("button", {type: "button", class: "name", onclick: choose_view,
                text: run.lacks ? `✗ ${run.lacks}` : "✓ right"}),
            make("div", {class: "now"}, part("says"), part("may"), part("blame"), part("end"),
                part("source")),
            part("graph"), make("div", {class: "side"}, part("threads"), part("memory")));
        this.says.setAttribute("aria-live", "polite");
        this.graph.innerHTML = run.picture;
        this.rows = [...this.graph.querySelectorAll(".row")];
        this.arrows = [...this.graph.querySelectorAll(".arrow")];
        this.rows.forEach((row, step) => row.addEventListener("click", () => choose(step)));
        this.cells = this.#memory();
        this.waits = scene.threads.map(([name, rank]) => {
            const state = make("span");
            const element = make("div", {class: `thread r${rank % 4}`}, make("b", {text: name}), state);
            this.threads.append(element);
            return {element, state};
        });
    }

    /** The cells of each rank's memory. */
    #memory() {
        const used = new Set(this.steps.flatMap(step => (step.cells ?? []).map(([cell]) => cell)));
        const cells = this.scene.cells.map(([name]) => {
            const value = make("span", {class: "value"});
            return {value, element: make("div", {class: "cell"}, make("span", {text: name}), value)};
        });
        const order = [...used].sort((a, b) => this.scene.cells[a][1] - this.scene.cells[b][1] ||
            this.scene.cells[a][0].localeCompare(this.scene.cells[b][0], "en", {numeric: true}));
        let group, before;
        for (const cell of order) {
            const owner = this.scene.cells[cell][1];
            if (owner !== before)
                this.memory.append(group = make("div", {class: `owner r${owner % 4}`}, make("b",
                    {text: owner < 0 ? "Memory" : `Memory of rank ${owner}`})));
            before = owner;
            group.append(cells[cell].element);
        }
        return cells;
    }

    /** What a thread waits for after step `at`, where memory is `now`. */
    #state(thread, at, now) {
        const done = this.steps.slice(0, at + 1).filter(step => step.thread === thread);
        const next = this.steps.slice(at + 1).filter(step => step.thread === thread);
        const last = done.at(-1), end = next.findIndex(({until}) => until === undefined);
        if (!next.length && last?.what === "kernel end") return "has ended";
        const polls = next.length ? next.slice(0, end < 0 ? next.length : end) :
            done.filter(({what}) => what === "waits");
        const wait = polls.find(({until, cells: [[cell]]}) => !until || !ends(now[cell], until));
        if (wait) {
            const {until, place, owner, cells: [[cell]]} = wait;
            const its = owner < 0 || this.scene.threads[thread][1] === owner ? "its" :
                `rank ${owner}'s`;
            const state = until ? `until ${its} ${place} ${/flag/.test(until) ? "has" : "is"} ${until}` :
                `at ${its} ${place}`;
            return `waits ${next.length ? "" : "for ever "}${state}; it holds ${now[cell]}`;
        }
        const syncs = of => this.steps.slice(0, at + 1).filter(
            step => step.thread === of && step.what.endsWith("sync")).length;
        const slow = last?.what.endsWith("sync") && this.scene.threads.some(([, rank], other) =>
            rank === this.scene.threads[thread][1] && syncs(other) < syncs(thread));
        return slow ? `waits at ${last.what}` : "";
    }

    /** A text in which each "step 12" leads there. */
    #linked(text) {
        return text.split(/(\bstep \d+)/).map((part, n) => n % 2 ? make("a", {href: "#", text: part,
            onclick: event => { event.preventDefault(); this.choose(part.slice(5) - 1); }}) : part);
    }

    show(at) {
        const step = this.steps[at];
        this.says.replaceChildren(make("b", {text: `${at + 1}`}), ...this.#linked(` ${step.says}.`));
        const may = (step.may ?? []).filter(([of, value]) =>
            of === step.from || !step.until || ends(value, step.until));
        this.may.replaceChildren(...(may.length > 1 ? ["It may return ",
            ...may.map(([of, value]) => make("span", {
                class: of === step.from ? "did" : "may"}, ...this.#linked(
                `${value} (${of < 0 ? "at first" : `step ${of + 1}`})`)))] : []));
        this.source.replaceChildren(...step.source.map(line => {
            const [file, text] = this.lines[line];
            return make("div", {}, make("span", {text: file.replace(/.*\//, "")}),
                make("code", {text}));
        }));
        this.rows.forEach((row, number) => {
            row.classList.toggle("future", number > at);
            row.classList.toggle("current", number === at);
            row.classList.toggle("candidate", may.some(([of]) => of === number));
        });
        for (const arrow of this.arrows) {
            arrow.classList.toggle("future", arrow.dataset.to > at);
            arrow.classList.toggle("current", +arrow.dataset.to === at);
        }
        this.graph.scrollTop += this.rows[at].getBoundingClientRect().top -
            this.graph.getBoundingClientRect().top - this.graph.clientHeight / 2;
        const now = this.scene.cells.map(([, , first]) => first);
        for (const {what, cells, hidden} of this.steps.slice(0, at + 1))
            for (const [cell, value] of [...hidden ?? [], ...what.endsWith("store") ? cells ?? [] : []])
                now[cell] = value;
        const touched = new Map(step.cells ?? []), is_load = step.what.endsWith("load");
        this.cells.forEach(({element, value}, cell) => {
            value.textContent = now[cell];
            element.classList.toggle("loaded", touched.has(cell) && is_load);
            element.classList.toggle("stored", touched.has(cell) && !is_load);
            if (touched.has(cell)) this.memory.scrollTop = element.offsetTop -
                this.memory.offsetTop - this.memory.clientHeight / 2;
        });
        this.waits.forEach(({element, state}, thread) => {
            state.textContent = this.#state(thread, at, now);
            element.classList.toggle("current", thread === step.thread);
        });
        const is_end = at + 1 === this.steps.length;
        this.end.textContent = !is_end ? "" : this.run.why ? `✗ ${this.run.why}` : "✓ All is right.";
        this.blame.replaceChildren(...at === this.run.fault ?
            this.#linked(`✗ At fault: ${this.run.blame}.`) : []);
        this.element.classList.toggle("fault", at === this.run.fault);
    }
}

/** The controls of a player, and the step that it shows. A subclass has `last` and show(step). */
class Stepper {
    constructor(root, title, ...lists) {
        this.root = root;
        this.timer = null;
        const button = (icon, label, onclick) =>
            make("button", {type: "button", class: icon, "aria-label": label, title: label, onclick});
        this.play = button("play", "Play (space)", () => this.toggle());
        this.slider = make("input", {type: "range", min: 0, "aria-label": "Step",
            oninput: () => this.go(+this.slider.value)});
        this.count = make("span", {class: "count"});
        root.replaceChildren(
            make("div", {class: "choices"}, make("b", {text: title}), ...lists),
            make("div", {class: "controls"}, button("first", "To the start (Home)", () => this.go(0)),
                button("back", "Back (←)", () => this.move(-1)), this.play,
                button("forward", "Forward (→)", () => this.move(1)),
                button("end", "To the end (End)", () => this.go(this.last)), this.slider, this.count));
        root.tabIndex = 0;
        root.addEventListener("keydown", event => this.key(event));
    }

    go(step) {
        this.step = Math.max(0, Math.min(step, this.last));
        this.slider.max = this.last;
        this.slider.value = this.step;
        this.count.textContent = `${this.step + 1} of ${this.last + 1}`;
        this.root.dataset.step = this.step;
        this.root.dataset.last = this.last;
        this.show(this.step);
        if (this.step === this.last) this.stop();
    }

    move(by) {
        this.stop();
        this.go(this.step + by);
    }

    toggle() {
        if (this.timer) return this.stop();
        if (this.step === this.last) this.go(0);
        this.timer = setInterval(() => this.go(this.step + 1), this.root.dataset.pace ?? 1000);
        this.play.className = "pause";
    }

    stop() {
        clearInterval(this.timer);
        this.timer = null;
        this.play.className = "play";
    }

    key(event) {
        const act = {ArrowRight: () => this.move(1), ArrowLeft: () => this.move(-1),
            Home: () => this.go(0), End: () => this.go(this.last), " ": () => this.toggle()}[event.key];
        // Keys of the focused control: a menu's, but to step, and a button's space.
        const other = event.target.localName === "select" && !event.key.startsWith("Arrow") ||
            event.key === " " && event.target.localName === "button";
        if (!act || other || event.ctrlKey || event.altKey || event.metaKey) return;
        event.preventDefault();
        act();
    }
}

/** Executions of a protocol, one, or a right and a wrong one side by side. */
class Player extends Stepper {
    constructor(root) {
        const recording = symmRecordings[root.dataset.recording];
        const scene = make("select", {"aria-label": "Ranks and threads",
            onchange: () => this.build()},
            ...recording.scenes.map(({name}, value) => make("option", {value, text: name})));
        const wrong = make("select", {"aria-label": "Beside it", onchange: () => this.build()});
        const call = make("select", {"aria-label": "Kernel", onchange: () =>
            this.choose(0, this.views[0].steps.findIndex(step => step.call === +call.value))});
        super(root, recording.title, scene, wrong, call);
        Object.assign(this, {recording, scene, wrong, call});
        this.views_box = make("div", {class: "views"});
        this.parting = make("div", {class: "parting"});
        const legend = make("div");
        legend.innerHTML = recording.legend;
        root.append(this.parting, this.views_box, legend);
        this.build();
    }

    get last() { return this.times.length - 1; }

    /** Goes to where a view shows this step. */
    choose(view, step) { this.go(this.times.findIndex(steps => steps[view] === step)); }

    /** Shows the chosen executions, from their start. */
    build() {
        const scene = this.recording.scenes[+this.scene.value], [first, ...others] = scene.runs;
        if (this.shown !== scene) {
            this.shown = scene;
            this.wrong.replaceChildren(make("option", {value: 0, text: "✓ the right execution"}),
                ...others.map(({lacks}, n) =>
                    make("option", {value: n + 1, text: `✗ ${lacks}`})));
            this.wrong.hidden = !others.length;
            const calls = [...new Set(first.steps.map(({call}) => call))];
            this.call.replaceChildren(...calls.map(value =>
                make("option", {value, text: `kernel ${value + 1}`})));
            this.call.hidden = calls.length < 2;
        }
        const runs = [first, ...+this.wrong.value ? [others[+this.wrong.value - 1]] : []];
        this.times = runs[1] ? paired(runs[0].steps, runs[1].steps) :
            first.steps.map((_, step) => [step]);
        this.views = runs.map((run, view) =>
            new View(scene, run, this.recording.lines, step => this.choose(view, step), event => {
                for (const {element} of this.views)
                    element.classList.toggle("chosen", element.contains(event.target));
                this.show(this.step);
            }));
        this.views.at(-1).element.classList.add("chosen");
        this.views_box.replaceChildren(...this.views.map(view => view.element));
        this.root.classList.toggle("two", runs.length > 1);
        this.stop();
        this.go(0);
    }

    show(time) {
        this.views.forEach((view, n) => view.show(this.times[time][n]));
        const {steps} = this.views[0], {parts, fault, lacks} = this.views.at(-1).run;
        this.call.value = Math.max(...steps.slice(0, this.times[time][0] + 1).map(({call}) => call));
        this.parting.replaceChildren(...fault === undefined ? [] : [
            make("a", {href: "#", class: "fault", text: `✗ ${lacks ? `${lacks[0].toUpperCase()}${lacks.slice(1)}. ` : ""}` +
                    `Step ${fault + 1} is at fault`,
                onclick: event => { event.preventDefault(); this.choose(this.views.length - 1, fault); }}),
            parts === undefined ? "" : make("span", {text: `. They differ from step ${parts + 1} on.`})]);
    }
}

addEventListener("DOMContentLoaded", () => {
    for (const root of document.querySelectorAll(".player[data-recording]")) new Player(root);
});
