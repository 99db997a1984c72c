// The questions of a page: judges answers as tools/course/questions.py does, and keeps the right
// ones in this browser, for `./lab import`.
(() => {
    const root = document.querySelector(".predict");
    const sentences = JSON.parse(root.dataset.sentences);
    const KEY = "symm answers";
    let kept = {};  // the right answers of all pages, by the numbers of their exercises
    try {
        kept = JSON.parse(localStorage.getItem(KEY)) ?? {};
    } catch {}  // no storage, or damaged

    function crc32(text) {
        let crc = -1;
        for (const character of text) {
            crc ^= character.charCodeAt(0);
            for (let bit = 0; bit < 8; ++bit) crc = (crc >>> 1) ^ (0xedb88320 & -(crc & 1));
        }
        return (~crc >>> 0).toString(16).padStart(8, "0");
    }

    const decoded = text => new TextDecoder().decode(
        Uint8Array.from(atob(text), character => character.charCodeAt(0)));
    const partsOf = answer => [...new Set(answer.trim().split(/[\s,]+/))];

    /** Whether the answer is right, and what is said about it. */
    function judge({id, right, told, several}, given) {
        const parts = partsOf(given), wanted = right.split(" ");
        const part = parts.find(part => !/^[0-9]+$/.test(part));
        if (part !== undefined)
            return [false, sentences.NO_NUMBER.replace("{part}", () => part)
                .replace("{several}", several)];
        const named = parts.map(part => crc32(`${id} ${part}`)).sort(), seal = named.join(" ");
        if (seal === right) return [true, `Right: ${given}. ${decoded(told[seal])}`];
        if (told[seal]) return [false, decoded(told[seal])];
        const belong = named.filter(part => wanted.includes(part)).length;
        return [false, wanted.length === 1 ? sentences.NOT_IT.replace("{given}", () => given)
            : belong === named.length ? sentences.MISSING
            : belong === wanted.length ? sentences.TOO_MANY : sentences.BOTH];
    }

    /** A link to an execution that the answer excludes, or what it has that none shows. */
    function proof({id, right, explored}, given) {
        if (!explored || partsOf(given).some(part => !/^\d+$/.test(part))) return [];
        const parts = partsOf(given), wanted = right.split(" ");
        const belongs = value => wanted.includes(crc32(`${id} ${value}`));
        const missing = [...Array(64).keys()].find(n => !parts.includes(`${n}`) && belongs(n));
        if (missing === undefined)
            return [`No execution has the answer ${parts.find(part => !belongs(part))}: all were run.`];
        return ["See ", Object.assign(document.createElement("a"), {
            href: `docs_EXPLORE.html#player-values=${id}/${missing}`,
            textContent: `an execution in which the answer is ${missing}`}), "."];
    }

    const line = root.querySelector(".import"), command = line.querySelector("code");
    function offer() {
        // Other pages may use the same storage, and this text is for a shell.
        const answers = Object.entries(kept)
            .filter(([id, answer]) => /^\d+\.\d+$/.test(id) && /^[\d,]+$/.test(answer))
            .sort(([a], [b]) => a.localeCompare(b, "en", {numeric: true}));
        line.hidden = !answers.length;
        command.textContent = `./lab import ${answers.map(pair => pair.join("=")).join(" ")}`;
    }
    line.querySelector("button").onclick = ({target}) => {
        getSelection().selectAllChildren(command);
        // Unlike navigator.clipboard, this also works over http.
        target.textContent = document.execCommand("copy") ? "Copied" : "Press Ctrl+C";
    };

    for (const form of root.querySelectorAll("form")) {
        const question = JSON.parse(form.dataset.question), input = form.querySelector("input");
        const verdict = form.nextElementSibling;
        const answer = given => {
            const [isRight, says] = judge(question, given.trim());
            verdict.replaceChildren(...says.split("`").map((text, at) => at % 2
                ? Object.assign(document.createElement("code"), {textContent: text}) : text));
            verdict.classList.toggle("right", isRight);
            verdict.nextElementSibling.replaceChildren(...isRight ? [] : proof(question, given));
            return isRight;
        };
        form.hidden = false;
        form.onsubmit = event => {
            event.preventDefault();
            if (!answer(input.value)) return;
            kept[question.id] = partsOf(input.value).join(",");
            try {
                localStorage.setItem(KEY, JSON.stringify(kept));
            } catch {}  // the line below has it all the same
            offer();
        };
        if (typeof kept[question.id] === "string") answer(input.value = kept[question.id]);
    }
    offer();
})();
