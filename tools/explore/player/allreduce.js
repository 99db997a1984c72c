// Shows how the numbers of an AllReduce go from rank to rank, trip by trip, as recorded by
// `06_allreduce --show --json`. Uses player.js. The picture that the element
// `<div class="player" data-allreduce>` contains stays below.
"use strict";

class AllReduce extends Stepper {
    constructor(root) {
        const {title, algorithms} = symmRecordings.allreduce, bars = root.querySelector(".bars");
        const choice = make("select", {"aria-label": "Algorithm", onchange: () => this.build()},
            ...algorithms.map(({title}, value) => make("option", {value, text: title})));
        super(root, title, choice);
        Object.assign(this, {algorithms, choice});
        this.says = make("div", {class: "says"});
        this.cards = make("div", {class: "cards"});
        root.append(make("div", {class: "whole"}, make("div", {class: "all"}, this.says, this.cards),
            bars));
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
        this.stop();
        this.go(0);
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
        if (!matchMedia("(prefers-reduced-motion: reduce)").matches)
            fresh.forEach(move => this.#fly(move));
    }

    #tile(of, label) {
        const width = 100 / (of?.length ?? 1);
        const stripes = of?.map((rank, n) => `var(--r${rank}) ${n * width}% ${(n + 1) * width}%`);
        return make("span", {class: of ? "tile" : "tile none", title: label,
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
    #fly({from, to, part, row, of}) {
        const [source, target] = [from, to].map(rank => this.cards.children[rank]);
        const begin = part === undefined ? source.querySelector(".head") :
            source.querySelector(of.length > 1 ? ".out" : ".in").children[part + 1];
        const end = part === undefined ? target.querySelector(".head") :
            target.querySelector(`.${row}`).children[part + 1];
        const [a, b] = [begin, end].map(element => element.getBoundingClientRect());
        const shape = part === undefined ? make("i", {class: "flag"}) : end.cloneNode();
        const moving = end.appendChild(shape);
        moving.classList.add("flying");
        moving.animate([{transform: `translate(${a.x - b.x}px, ${a.y - b.y}px)`},
            {transform: "none"}], {duration: 700, easing: "ease-in-out"})
            .onfinish = () => moving.remove();
    }
}

addEventListener("DOMContentLoaded", () => {
    for (const root of document.querySelectorAll(".player[data-allreduce]")) new AllReduce(root);
});
