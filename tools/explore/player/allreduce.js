// Shows how the numbers of an AllReduce go from rank to rank, trip by trip, as recorded by
// `06_allreduce --show --json`; and how long calls of any size take, as measured. Uses player.js.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const RANKS = [2, 4, 8];

/** 1M for 1048576 bytes. */
function size(bytes) {
    const unit = Math.min(3, Math.floor(Math.log2(Math.max(bytes, 1)) / 10));
    const number = bytes / 1024 ** unit;
    return `${Math.round(number) === number || number >= 100 ? Math.round(number) : number.toFixed(1)}` +
        ["", "K", "M", "G"][unit];
}

/** What a call of any size sends, by each algorithm, and the times that were measured. */
class Sizes {
    constructor({algorithms, measured}) {
        Object.assign(this, {algorithms, measured});
        this.bytes = make("input", {type: "range", min: 10, max: 30, value: 14,
            "aria-label": "Bytes of each rank's input", oninput: () => this.show()});
        this.ranks = make("select", {"aria-label": "Ranks", onchange: () => this.show()},
            ...RANKS.map(ranks => make("option", {value: ranks, text: `${ranks} ranks`})));
        this.ranks.value = 4;
        this.size = make("b");
        this.rows = make("div");
        this.measure = make("div", {class: "measure", role: "status"});
        this.element = make("div", {class: "sizes"}, make("div", {class: "head"},
            "A call of ", this.size, this.bytes, this.ranks), this.rows, this.measure);
        this.show();
    }

    show() {
        const ranks = +this.ranks.value, bytes = 2 ** this.bytes.value;
        this.size.textContent = size(bytes);
        this.bytes.setAttribute("aria-valuetext", `${size(bytes)} bytes`);
        const calls = this.algorithms.map(({title, algorithm, sent}) => {
            const [trips, numbers, other] = sent[ranks];
            return {title, trips, numbers: numbers * bytes, time: this.measured?.[ranks]?.[algorithm]?.[bytes],
                flags: algorithm === "oneshot" ? other * bytes : 0, is_exact: algorithm === "oneshot" || !other};
        });
        const most = Math.max(...calls.map(({numbers, flags}) => numbers + flags));
        this.rows.replaceChildren(...calls.map(({title, trips, numbers, flags, time, is_exact}) =>
            make("div", {class: "sent"}, make("span", {text: `${title}, trips: ${trips}`}),
                make("span", {class: "bar"}, make("i", {style: `width: ${70 * numbers / most}%`}),
                    make("i", {class: "flags", style: `width: ${70 * flags / most}%`}),
                    ` ${size(numbers)}${flags ? ` + ${size(flags)}` : is_exact ? "" : " + a few"}`),
                make("span", {class: "time", text: time ? `${time} us` : ""}))));
        const {ours, nccl, algorithm} = this.measured?.[ranks]?.best?.[bytes] ?? {};
        this.measure.textContent = !ours ? "" : `Measured on ${ranks} H200s, float, in a graph: the ` +
            `library takes ${ours} us, by ${this.algorithms.find(call => call.algorithm === algorithm).title.toLowerCase()}; NCCL ${nccl} us.`;
    }
}

class AllReduce extends Stepper {
    constructor(root) {
        const {title, algorithms} = symmRecordings.allreduce;
        const choice = make("select", {"aria-label": "Algorithm", onchange: () => this.build()},
            ...algorithms.map(({title}, value) => make("option", {value, text: title})));
        super(root, title, choice);
        Object.assign(this, {algorithms, choice});
        this.says = make("div", {class: "says", "aria-live": "polite"});
        this.cards = make("div", {class: "cards"});
        this.arrows = document.createElementNS(SVG, "svg");
        this.arrows.setAttribute("class", "arrows");
        this.arrows.setAttribute("aria-hidden", "true");
        root.append(make("div", {class: "whole"}, make("div", {class: "all"}, this.says,
            make("div", {class: "field"}, this.cards, this.arrows)),
            new Sizes(symmRecordings.allreduce).element));
        new ResizeObserver(() => this.#draw()).observe(this.cards);
        this.build();
    }

    get last() { return this.frames.length - 1; }

    build() {
        const call = this.call = this.algorithms[+this.choice.value];
        this.part = call.elements / call.ranks;
        this.frames = [{says: `Each rank has ${call.elements} numbers, in ${call.ranks} parts.`}];
        for (let trip = 1; trip <= call.trips; ++trip) {
            const moves = call.moves.filter(move => move.trip === trip);
            if (moves.length) this.frames.push({moves, says: this.#trip(trip, moves)});
            const sums = call.sums.filter(({after}) => after === trip);
            const writes = call.writes.filter(({after}) => after === trip);
            if (sums.length || writes.length)
                this.frames.push({sums, writes, says: this.#work(sums, writes)});
        }
        this.chapters = this.frames.map((frame, step) =>
            [!step ? "start" : frame.moves ? `trip ${frame.moves[0].trip}` : "sums", step]);
        this.stop();
        this.go(0);
    }

    /** What flies stops, too. */
    stop() {
        super.stop();
        for (const motion of this.motions ?? []) motion.pause();
    }

    toggle() {
        const flying = (this.motions ?? []).filter(({playState}) => playState === "paused");
        super.toggle();
        if (this.timer) for (const motion of flying) motion.play();
    }

    #trip(trip, moves) {
        const kinds = new Set(moves.map(({how, what, of, place}) => {
            const is_load = how === "load";
            const where = {in: "inputs", out: "outputs"}[place] ?? place.replace(/ from rank \d+/, "");
            const things = what === "flag" ? "flags" : of.length > 1 ? "sums" : "inputs";
            return is_load ? `${things} are loaded from the peers' ${where}` :
                `${things} are ${how === "copy" ? "copied" : "stored"} into the peers' ${where}`;
        }));
        const request = moves.some(({how}) => how === "load") ? `s ${trip - 1} and ${trip}` :
            ` ${trip}`;
        return `Trip${request}: ${[...kinds].join("; ")}.`;
    }

    #work(sums, writes) {
        const all = sums.some(({elements: [[first, last]]}) => last - first + 1 > this.part);
        return sums.length ? `Each rank adds up ${all ? "everything" : "its part"}` +
            `${writes.length ? ", and writes the sum into its output" : ""}.` :
            "Each rank copies a sum that has arrived into its output.";
    }

    /** The numbers of the parts that [[first, last], ...] cover. */
    #parts(elements) {
        return elements.flatMap(([first, last]) => Array.from(
            {length: Math.ceil((last + 1) / this.part) - Math.floor(first / this.part)},
            (_, n) => Math.floor(first / this.part) + n));
    }

    show(step) {
        const {ranks} = this.call, all = Array.from({length: ranks}, (_, rank) => rank);
        const state = all.map(rank => ({in: all.map(() => [rank]), out: all.map(() => null),
            from: all.map(() => all.map(() => null))}));
        const sent = all.map(() => 0), fresh = [];
        for (const [number, {moves = [], writes = []}] of this.frames.slice(0, step + 1).entries()) {
            for (const {from, to, of, elements, place, bytes} of moves) {
                sent[from] += bytes;
                for (const part of this.#parts(elements ?? [])) {
                    const row = place === "out" ? "out" : `from${from}`;
                    (row === "out" ? state[to].out : state[to].from[from])[part] = of;
                    if (number === step) fresh.push({from, to, part, row, of});
                }
                if (number === step && !elements) fresh.push({from, to});
            }
            for (const {rank, elements, of} of writes)
                for (const part of this.#parts(elements)) state[rank].out[part] = of;
        }
        this.says.textContent = this.frames[step].says;
        this.cards.replaceChildren(...all.map(rank => this.#card(rank, state[rank], sent[rank])));
        this.fresh = fresh;
        this.#draw();
        this.motions = matchMedia("(prefers-reduced-motion: reduce)").matches ? [] :
            fresh.map(move => this.#fly(move));
    }

    /** The elements between which a move goes: tiles, or of a flag, the heads of the cards. */
    #ends({from, to, part, row, of}) {
        const [source, target] = [from, to].map(rank => this.cards.children[rank]);
        return part === undefined ? [source.querySelector(".head"), target.querySelector(".head")] :
            [source.querySelector(of.length > 1 ? ".out" : ".in").children[part + 1],
                target.querySelector(`.${row}`).children[part + 1]];
    }

    /** An arrow for all that goes from one rank to another in this step. */
    #draw() {
        const {width, height, x, y} = this.cards.getBoundingClientRect();
        const grouped = new Map();
        for (const move of this.fresh ?? []) {
            const key = `${move.from} ${move.to} ${move.row}`;
            grouped.set(key, [...grouped.get(key) ?? [], this.#ends(move)]);
        }
        const middle = boxes => boxes.map(box => box.getBoundingClientRect()).reduce(
            (sum, box) => [sum[0] + (box.x + box.width / 2 - x) / boxes.length,
                sum[1] + (box.y + box.height / 2 - y) / boxes.length], [0, 0]);
        this.arrows.setAttribute("viewBox", `0 0 ${width} ${height}`);
        this.arrows.replaceChildren(...[...grouped].flatMap(([key, ends]) => {
            const [from, , row] = key.split(" ");
            const [[x0, y0], [x1, y1]] = [0, 1].map(end => middle(ends.map(pair => pair[end])));
            const length = Math.hypot(x1 - x0, y1 - y0) || 1;
            const [dx, dy] = [(x1 - x0) / length, (y1 - y0) / length];
            const [cx, cy] = [(x0 + x1) / 2 - dy * length * .12, (y0 + y1) / 2 + dx * length * .12];
            const turn = Math.hypot(x1 - cx, y1 - cy), [tx, ty] = [(x1 - cx) / turn, (y1 - cy) / turn];
            const head = `M${x1} ${y1}l${-9 * tx - 4 * ty} ${-9 * ty + 4 * tx}l${8 * ty} ${-8 * tx}z`;
            return [["line", `M${x0} ${y0}Q${cx} ${cy} ${x1} ${y1}`], ["head", head]].map(([part, d]) => {
                const path = document.createElementNS(SVG, "path");
                path.setAttribute("class",
                    `r${from % 4} ${part}${row === "undefined" ? " flag" : ""}`);
                path.setAttribute("d", d);
                return path;
            });
        }));
    }

    #tile(of, label) {
        const width = 100 / (of?.length ?? 1);
        const stripes = of?.map((rank, n) => `var(--r${rank}) ${n * width}% ${(n + 1) * width}%`);
        return make("span", {class: of ? "tile" : "tile none", title: label, role: "img",
            "aria-label": of ? label : "empty",
            style: of ? `background: linear-gradient(to right, ${stripes})` : ""});
    }

    #card(rank, {in: input, out, from}, sent) {
        const row = (name, key, tiles) => make("div", {class: `tiles ${key}`},
            make("span", {text: name}), ...tiles.map((of, part) => this.#tile(of, of ?
                `part ${part} of ${of.length > 1 ? "the sum" : `rank ${of[0]}`}` : `part ${part}`)));
        return make("div", {class: `card r${rank}`},
            make("div", {class: "head"}, make("b", {text: `rank ${rank}`}),
                make("span", {text: `sent ${sent} bytes`})),
            row("input", "in", input),
            ...from.map((tiles, peer) => [peer, tiles]).filter(([peer]) => peer !== rank)
                .map(([peer, tiles]) => row(`from ${peer}`, `from${peer}`, tiles)),
            row("output", "out", out));
    }

    /** Moves a tile, or a flag, from a rank's card to where it now is. */
    #fly(move) {
        const [begin, end] = this.#ends(move);
        const [a, b] = [begin, end].map(element => element.getBoundingClientRect());
        const moving = end.appendChild(move.row ? end.cloneNode() : make("i", {class: "flag"}));
        moving.classList.add("flying");
        moving.setAttribute("aria-hidden", "true");
        const motion = moving.animate([{transform: `translate(${a.x - b.x}px, ${a.y - b.y}px)`},
            {transform: "none"}], {duration: .7 * this.pace, easing: "ease-in-out"});
        motion.onfinish = () => moving.remove();
        return motion;
    }
}

addEventListener("DOMContentLoaded", () => {
    for (const root of document.querySelectorAll(".player[data-allreduce]")) new AllReduce(root);
});
