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

/** The questions of an execution: for a step that loads, and whose memory has had other values, what
    is asked, the values, those that it may load, and the oldest store that it may return. One
    for each line of the source and number of values, up to three. */
function questions(scene, {steps}) {
    const asked = new Set(), found = new Map();
    steps.forEach((step, at) => {
        const {what, cells = [], may = [], source, until, place, owner, thread, order} = step;
        const key = `${what} ${source} ${Math.min(may.length, 3)}`;
        if (!what.endsWith("load") || cells.length !== 1 || asked.has(key)) return;
        const [[cell, value]] = cells, [name, rank] = scene.threads[thread];
        const stored = steps.slice(0, at).filter(({what}) => what.endsWith("store"))
            .flatMap(({cells = []}) => cells.filter(([of]) => of === cell)).map(([, value]) => value);
        const values = [...new Set([scene.cells[cell][2], ...stored])];
        const right = may.length ? [...new Set(may.map(([, value]) => value))] : [value];
        if (values.length < 2 || right.some(value => !values.includes(value))) return;
        asked.add(key);
        const its = owner < 0 ? "" : owner === rank ? "its " : `rank ${owner}'s `;
        const who = name[0].toUpperCase() + name.slice(1);
        found.set(at, {values, right,
            knows: may.length ? Math.min(...may.map(([of]) => of)) : step.from,
            text: (until ? `${who} polls ${its}${place}, ${order}. Which of these may one poll return?` :
                `${who} loads ${its}${place}, ${order}. Which of these values may it be?`)});
    });
    return found;
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
            this.name = make("button", {type: "button", class: "name", onclick: choose_view,
                text: run.lacks ? `✗ ${run.lacks}` : "✓ right"}),
            make("div", {class: "now"}, this.live = make("div", {}, part("says"), part("blame"), part("end")),
                part("question"), part("may"), part("source")),
            part("graph"), make("div", {class: "side"}, part("threads"), part("memory")));
        this.graph.innerHTML = run.picture;
        this.memory.setAttribute("role", "region");
        this.memory.setAttribute("aria-label", "Memory");
        const list = this.graph.querySelector("svg");
        list.setAttribute("role", "listbox");
        list.setAttribute("aria-label", `the steps of each thread, ${run.lacks ?? "right"}`);
        this.rows = [...this.graph.querySelectorAll(".row")];
        this.arrows = [...this.graph.querySelectorAll(".arrow")];
        this.rows.forEach((row, step) => {
            row.addEventListener("click", () => choose(step));
            row.setAttribute("role", "option");
        });
        list.addEventListener("keydown", event => this.#walk(event));
        this.questions = questions(scene, run);
        this.cells = this.#memory();
        this.waits = scene.threads.map(([name, rank]) => {
            const state = make("span");
            const element = make("div", {class: `thread r${rank % 4}`}, make("b", {text: name}), state);
            this.threads.append(element);
            return {element, state};
        });
    }

    /** The up and down arrows go to the row above or below, and take the focus there. */
    #walk(event) {
        const current = this.rows.findIndex(row => row.getAttribute("tabindex") === "0");
        const to = current + {ArrowUp: -1, ArrowDown: 1}[event.key];
        if (!this.rows[to]) return;
        event.preventDefault();
        this.choose(to);
        this.rows[to].focus({preventScroll: true});
    }

    /** The cells of each rank's memory. Those of one array stand together, below its name. */
    #memory() {
        const used = new Set(this.steps.flatMap(step => (step.cells ?? []).map(([cell]) => cell)));
        const named = this.scene.cells.map(([name, owner], cell) => {
            const [, array, place] = name.match(/^(.+?)((?:\[[^\]]*\])?(?: (?:1st|2nd) half)?)$/);
            return {array: `${owner} ${array}`, place: used.has(cell) ? place : "", name};
        });
        const is_alone = ({array}) => named.filter(other => other.place && other.array === array).length < 2;
        const cells = named.map(cell => {
            const value = make("span", {class: "value"});
            const text = is_alone(cell) ? cell.name : cell.place.replace(" half", "");
            return {value, element: make("div", {class: "cell"}, make("span", {text}), value)};
        });
        const order = [...used].sort((a, b) => this.scene.cells[a][1] - this.scene.cells[b][1] ||
            this.scene.cells[a][0].localeCompare(this.scene.cells[b][0], "en", {numeric: true}));
        let group, array, before;
        for (const cell of order) {
            const [name, owner] = this.scene.cells[cell];
            if (owner !== before)
                this.memory.append(group = make("div", {class: `owner r${owner % 4}`}, make("b",
                    {text: owner < 0 ? "Memory" : `Memory of rank ${owner}`})));
            before = owner;
            if (is_alone(named[cell])) {
                group.append(cells[cell].element);
                continue;
            }
            if (array?.dataset.name !== named[cell].array) group.append(array = make("div",
                {class: "array", "data-name": named[cell].array},
                make("span", {text: name.slice(0, name.length - named[cell].place.length)})));
            array.append(cells[cell].element);
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

    /** Asks which values step `at` may load, before it is shown. */
    ask(at, done) {
        const {text, values, right, knows} = this.questions.get(at);
        this.show(at);
        this.told = text;
        this.rows[at].setAttribute("aria-label", `${at + 1}: ${text}`);
        this.element.classList.add("asks");
        const verdict = make("div", {role: "status"});
        const choices = values.map(value => make("button", {type: "button", class: "text",
            "aria-pressed": "false", text: value, onclick: ({target}) => target.setAttribute(
                "aria-pressed", target.getAttribute("aria-pressed") !== "true")}));
        const answer = make("button", {type: "button", class: "text answer", text: "Answer", onclick: () => {
            const is_wrong = choices.filter((choice, n) =>
                (choice.getAttribute("aria-pressed") === "true") !== right.includes(values[n]));
            this.element.classList.remove("asks");
            this.says.replaceChildren(make("b", {text: `${at + 1}`}),
                ...this.#linked(` ${this.steps[at].says}.`));
            choices.forEach((choice, n) => {
                choice.disabled = true;
                choice.classList.toggle("did", right.includes(values[n]));
            });
            answer.remove();
            verdict.className = is_wrong.length ? "no" : "yes";
            verdict.replaceChildren(is_wrong.length ? "✗ Not quite. " : "✓ Right. ",
                ...this.#linked(`It may load ${right.join(" or ")}` + (right.length === values.length ?
                    ": nothing that it knows of orders these stores before it." : knows < 0 ? "." :
                    `, and nothing older: from an order before it, it knows of step ${knows + 1}.`)));
            done();
        }});
        this.says.replaceChildren(make("b", {text: `${at + 1}`}), ` ${text}`);
        this.question.replaceChildren(make("div", {class: "answers", role: "group", "aria-label": text},
            ...choices), answer, verdict);
    }

    /** This view is the one that is read out, and on a phone the one that is shown. */
    set is_chosen(chosen) {
        this.element.classList.toggle("chosen", chosen);
        this.name.setAttribute("aria-pressed", chosen);
        this.live.setAttribute("aria-live", chosen ? "polite" : "off");
    }

    /** `hides`: rows that are still to come do not tell what they do. */
    show(at, hides = false) {
        const step = this.steps[at];
        this.told = step.says;
        this.element.classList.remove("asks");
        this.question.replaceChildren();
        this.says.replaceChildren(make("b", {text: `${at + 1}`}), ...this.#linked(` ${step.says}.`));
        const may = step.may ?? [], ends_it = ([of, value]) =>
            of === step.from || !step.until || ends(value, step.until);
        this.may.replaceChildren(...(may.length > 1 ? [step.until ? "One poll may return " : "It may return ",
            ...may.map(one => make("span", {
                class: one[0] === step.from ? "did" : ends_it(one) ? "may" : "polls"}, ...this.#linked(
                `${one[1]} (${one[0] < 0 ? "at first" : `step ${one[0] + 1}`}` +
                `${ends_it(one) ? "" : ", and go on polling"})`)))] : []));
        this.source.replaceChildren(...step.source.map(line => {
            const [file, text] = this.lines[line];
            return make("div", {}, make("span", {text: file.replace(/.*\//, "")}),
                make("code", {text}));
        }));
        this.rows.forEach((row, number) => {
            row.classList.toggle("future", number > at);
            row.classList.toggle("current", number === at);
            row.setAttribute("aria-selected", number === at);
            row.setAttribute("tabindex", number === at ? 0 : -1);
            row.setAttribute("aria-label", hides && number > at ? `${number + 1}` :
                `${number + 1}: ${this.steps[number].says}`);
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
                if (value) now[cell] = value;  // none where a race has prevented it
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
        this.end.textContent = !is_end ? "" : this.run.why ? `✗ ${this.run.why}` :
            `✓ ${this.run.ends ?? "All is right."}`;
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
        this.speed = make("select", {"aria-label": "Speed"}, ...Object.entries(
            {slow: 3000, normal: 1200, fast: 400}).map(([text, value]) => make("option", {text, value})));
        this.speed.value = 1200;
        this.chapters_box = make("div", {class: "chapters", role: "group", "aria-label": "Chapters"});
        root.replaceChildren(
            make("div", {class: "choices"}, make("b", {text: title}), ...lists),
            make("div", {class: "controls"}, button("first", "To the start (Home)", () => this.go(0)),
                button("back", "Back (←)", () => this.move(-1)), this.play,
                button("forward", "Forward (→)", () => this.forward()),
                button("end", "To the end (End)", () => this.go(this.last)), this.slider, this.count,
                this.speed), this.chapters_box);
        root.tabIndex = 0;
        root.setAttribute("role", "group");
        root.setAttribute("aria-label", title);
        root.addEventListener("keydown", event => this.key(event));
    }

    /** The milliseconds that a step is shown. */
    get pace() { return +(this.root.dataset.pace ?? this.speed.value); }

    /** Shows links to steps: [text, step] of each, and of those that stand out, a class. */
    set chapters(chapters) {
        this.chapters_box.replaceChildren(...chapters.map(([text, step, kind = ""]) =>
            make("button", {type: "button", class: `text ${kind}`, "data-step": step, text,
                onclick: () => { this.stop(); this.go(step); }})));
    }

    go(step) {
        this.step = Math.max(0, Math.min(step, this.last));
        this.slider.max = this.last;
        this.slider.value = this.step;
        this.root.dataset.step = this.step;
        this.root.dataset.last = this.last;
        const chapters = [...this.chapters_box.children];
        const current = chapters.findLast(({dataset}) => +dataset.step <= this.step);
        for (const chapter of chapters) chapter.setAttribute("aria-current", chapter === current);
        this.keeping_focus(() => this.show(this.step));
        this.tell();
        if (this.step === this.last) this.stop();
    }

    move(by) {
        this.stop();
        this.go(this.step + by);
    }

    forward() {
        this.stop();
        this.advance();
    }

    toggle() {
        if (this.timer) return this.stop();
        if (this.step === this.last) this.go(0);
        const next = () => {
            this.timer = setTimeout(next, this.pace);
            this.advance();
        };
        this.timer = setTimeout(next, this.pace);
        this.#says("pause", "Pause (space)");
    }

    stop() {
        clearTimeout(this.timer);
        this.timer = null;
        this.#says("play", "Play (space)");
    }

    /** To the next step. */
    advance() { this.go(this.step + 1); }

    /** What is shown: its number, how many there are, and a sentence. */
    get shown_now() {
        return [this.step + 1, this.last + 1, this.root.querySelector(".says").textContent];
    }

    tell() {
        const [step, steps, text] = this.shown_now;
        this.count.textContent = `step ${step} of ${steps}`;
        this.slider.setAttribute("aria-valuetext", `${this.count.textContent}: ${text}`);
    }

    /** If `act` removes the element that has the focus, the player gets it. */
    keeping_focus(act) {
        const had = this.root.contains(document.activeElement);
        act();
        if (had && !this.root.contains(document.activeElement)) this.root.focus({preventScroll: true});
    }

    #says(icon, label) {
        this.play.className = icon;
        this.play.title = label;
        this.play.setAttribute("aria-label", label);
    }

    key(event) {
        const act = {ArrowRight: () => this.forward(), ArrowLeft: () => this.move(-1),
            Home: () => this.go(0), End: () => this.go(this.last), " ": () => this.toggle()}[event.key];
        // Keys of the focused control: a menu's, but to step, a button's space, and a list's arrows.
        const {localName, type} = event.target;
        const other = localName === "select" && !event.key.startsWith("Arrow") ||
            event.key === " " && ["button", "input"].includes(localName) || type === "radio" ||
            type === "range" && event.target !== this.slider;
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
        const asks = make("input", {type: "checkbox", onchange: () => {
            root.classList.toggle("asking", asks.checked);
            this.show(this.step);
        }});
        super(root, recording.title, scene,
            make("label", {}, asks, " ask me which values a load may return"));
        Object.assign(this, {recording, scene, asks, tried: new Set(), answered: new Set()});
        this.views_box = make("div", {class: "views"});
        this.parting = make("div", {class: "parting", role: "status"});
        this.breaks = make("fieldset", {class: "breaks"});
        const legend = make("div");
        legend.innerHTML = recording.legend;
        root.append(this.breaks, this.parting, this.views_box, legend);
        this.build();
    }

    get last() { return this.times.length - 1; }

    /** Goes to where a view shows this step. */
    choose(view, step) { this.go(this.times.findIndex(steps => steps[view] === step)); }

    /** Shows the chosen scene's right execution, and what one may take away. */
    build() {
        const scene = this.shown = this.recording.scenes[+this.scene.value];
        const [right, ...wrong] = scene.runs;
        this.faults = [...wrong.map(run => ({lacks: run.lacks, run})),
            ...(scene.harmless ?? []).map(([lacks, executions]) => ({lacks, executions}))]
            .sort((a, b) => a.lacks < b.lacks ? -1 : 1);
        const name = `break-${this.root.dataset.recording}`;
        this.breaks.hidden = !this.faults.length;
        this.breaks.replaceChildren(make("legend", {text: "Try to break it:"}),
            ...[{lacks: "nothing is missing"}, ...this.faults].map((fault, n) =>
                fault.label = make("label", {}, make("input", {type: "radio", name, value: n,
                    onchange: () => this.break(fault), ...n ? {} : {checked: ""}}), ` ${fault.lacks}`)));
        this.mark();
        this.break({run: right});
    }

    /** Shows what is known of the faults that were tried, in print of all. */
    mark() {
        for (const {lacks, run, label} of this.faults) {
            label.classList.toggle("tried", this.tried.has(`${this.shown.scene} ${lacks}`));
            label.dataset.mark = run ? "✗" : "✓";
        }
    }

    /** Shows the right execution, and beside it the one that goes wrong without what is taken away. */
    break(fault) {
        const [first] = this.shown.runs, wrong = fault.run ?? first;
        const runs = wrong === first ? [first] : [first, wrong];
        this.fault = fault;
        this.tried.add(`${this.shown.scene} ${fault.lacks}`);
        this.mark();
        this.times = runs[1] ? paired(runs[0].steps, runs[1].steps) :
            first.steps.map((_, step) => [step]);
        this.views = runs.map((run, view) =>
            new View(this.shown, run, this.recording.lines, step => this.choose(view, step), event => {
                for (const view of this.views)
                    view.is_chosen = view.element.contains(event.target);
                this.go(this.step);
            }));
        this.views.forEach((view, n) => view.is_chosen = n + 1 === runs.length);
        this.views_box.replaceChildren(...this.views.map(view => view.element));
        this.root.classList.toggle("two", runs.length > 1);
        this.asks.disabled = runs.length > 1;
        this.say_what_differs();
        this.chapters = this.#chapters();
        this.stop();
        this.go(0);
    }

    /** The first step of each kernel, and the step at fault; or the first wait that may end with
        several values, or else a load that may return several and makes other steps known. */
    #chapters() {
        const [{steps}] = this.views, wrong = this.views.at(-1).run, found = [];
        const calls = [...new Set(steps.filter(({what, cells}) =>
            cells && !what.startsWith("plain")).map(({call}) => call))].sort((a, b) => a - b);
        if (calls.length > 1) calls.forEach((call, n) => {
            const first = steps.findIndex(step => step.call === call);
            found.push([`call ${n + 1}`, this.times.findIndex(([at]) => at === first)]);
        });
        const open = steps.findIndex(({may = [], until}) =>
            may.filter(([, value]) => until && ends(value, until)).length > 1);
        const knowing = steps.findIndex(({may, says}) => may?.length > 1 && /knows what/.test(says));
        const at = wrong.why ? this.times.findIndex(time => time.at(-1) === wrong.fault) :
            open >= 0 ? open : knowing >= 0 ? knowing : steps.findIndex(({may}) => may?.length > 1);
        if (at >= 0) found.push([wrong.why ? "the step at fault" : "the interesting step", at, "point"]);
        return found.sort((a, b) => a[1] - b[1]);
    }

    /** To the next step. Before a load it asks, where that is wanted: once. */
    advance() {
        const [view] = this.views, next = this.step + 1, key = `${this.shown.scene} ${next}`;
        if (!this.asks.checked || this.views[1] || !view.questions.has(next) ||
            this.answered.has(key)) return super.advance();
        this.stop();
        this.go(next);
        view.ask(next, () => {
            this.answered.add(key);
            this.root.focus({preventScroll: true});
        });
        this.tell();
    }

    get shown_now() {
        const view = this.views.findIndex(({element}) => element.classList.contains("chosen"));
        const {steps, told} = this.views[view];
        return [this.times[this.step][view] + 1, steps.length, told];
    }

    show(time) {
        const hides = this.asks.checked && this.views.length === 1;
        this.views.forEach((view, n) => view.show(this.times[time][n], hides));
    }

    say_what_differs() {
        const {run = this.shown.runs[0], lacks, executions} = this.fault, text = lacks ? lacks[0].toUpperCase() + lacks.slice(1) : "";
        if (executions) {
            const other = this.recording.scenes.findIndex(({runs}) =>
                runs.some(run => run.lacks === lacks));
            return this.parting.replaceChildren(make("b", {text: `✓ ${text}. Nothing goes wrong`}),
                `. This scene has ${executions} different executions, and the explorer ran them all.`,
                ...other < 0 ? [] : [" It goes wrong in the scene ",
                    make("a", {href: "#", text: this.recording.scenes[other].name, onclick: event => {
                        event.preventDefault();
                        this.scene.value = other;
                        this.keeping_focus(() => {
                            this.build();
                            this.breaks.querySelectorAll("input")[1 + this.faults.findIndex(fault =>
                                fault.lacks === lacks)].click();
                        });
                    }}), "."]);
        }
        this.parting.replaceChildren(...!run.why ? [] : [
            make("a", {href: "#", class: "fault", text: `✗ ${text && `${text}. `}Step ${run.fault + 1}` +
                `${this.views[1] ? " of the wrong one" : ""} is at fault`,
                onclick: event => {
                    event.preventDefault();
                    this.choose(this.views.length - 1, run.fault);
                }}),
            run.parts === undefined ? "" :
                make("span", {text: `. The two part at its step ${run.parts + 1}.`})]);
    }
}

/** Goes to the player and the scene that the page's address names: #player-values=05.9/30. */
function follow(players) {
    const [, name, scene] = decodeURIComponent(location.hash).match(/^#player-(\w+)=(.*)$/) ?? [];
    const player = players.find(({root}) => root.dataset.recording === name);
    if (!player) return;
    player.scene.value = player.recording.scenes.findIndex(other => other.scene === scene);
    player.build();
    player.root.scrollIntoView();
    player.root.focus();
}

addEventListener("DOMContentLoaded", () => {
    const players = [...document.querySelectorAll(".player[data-recording]")].map(
        root => new Player(root));
    follow(players);
    addEventListener("hashchange", () => follow(players));
});
