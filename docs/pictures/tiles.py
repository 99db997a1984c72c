"""The animated picture of lab 06's page: the parts of the ranks' inputs go from rank to rank, in
one shot and in two. record.py writes docs/pictures/allreduce_steps.svg from the recorded calls."""

from card import card, text

LEFT, COLUMN, TILE, LINE = 78, 100, 20, 20  # pixels: of a part of a buffer, of a row
WIDE = LEFT + 4 * COLUMN
SENTENCE = ("One shot: each rank sends its input to all others. Two shots: each rank adds up one "
            "part for all, then sends the sum to all others.")
SHOWN = {"sentinel": "One shot", "push": "Two shots"}
STYLE = """.end{text-anchor:end}.mid{text-anchor:middle}
.rank{fill:var(--rank);font-weight:600}
.of{fill:var(--rank)}
.none{fill:none;stroke:var(--line)}
.sum{fill:url(#sum)}
.part{stroke:var(--paper);stroke-width:2}"""
MOTION = """.first,.second,.done{animation:first 10s infinite ease-in-out}
.second{animation-name:second}.done{animation-name:done}
@keyframes first{0%,10%{transform:translate(var(--x),var(--y));opacity:0}
12%{transform:translate(var(--x),var(--y));opacity:1}30%,to{transform:none}}
@keyframes done{0%,32%{opacity:0}36%,to{opacity:1}}
@keyframes second{0%,40%{transform:translate(var(--x),var(--y));opacity:0}
42%{transform:translate(var(--x),var(--y));opacity:1}60%,to{transform:none}}
"""


def stripes(ranks: int) -> str:
    """The colors of a sum: in each part, those of all ranks."""
    stops = "".join(f'<stop offset="{at}" style="stop-color:var(--r{rank})"/>'
                    for rank in range(ranks) for at in (rank / ranks, (rank + 1) / ranks))
    return (f'<linearGradient id="sum" gradientUnits="userSpaceOnUse" spreadMethod="repeat" '
            f'x1="{LEFT}" x2="{LEFT + TILE}">{stops}</linearGradient>')


class Call:
    """The picture of one algorithm's call, whose rows begin at `top`."""

    def __init__(self, call: dict, top: float):
        self.ranks, self.part = call["ranks"], call["elements"] // call["ranks"]
        self.whole = [[0, call["elements"] - 1]]
        self.top, self.drawn = top, ""
        peers = self.ranks - 1
        self.rows = {"in": top + 24, "slots": top + 30 + LINE, "out": top + 36 + (1 + peers) * LINE}
        sent = sum(move["bytes"] for move in call["moves"] if move["from"] == 0)
        trips = f"{call['trips']} trip{'s' * (call['trips'] > 1)}"
        self.drawn += text(16, top + 12, SHOWN[call["algorithm"]], "bold") + text(
            WIDE - 14, top + 12, f"{trips}, {sent} bytes from each rank", "end")
        self.buffers()
        for move in call["moves"]:
            self.move(move)
        for total in call["sums"]:
            self.tile("sum done", total["rank"], "out", *total["elements"][0])
        self.parts()

    def place(self, rank: int, row: str, first: int, line: int = 0) -> tuple:
        return LEFT + rank * COLUMN + first // self.part * TILE, self.rows[row] + line * LINE

    def tile(self, kind: str, rank: int, row: str, first: int, last: int, line=0, start=None):
        x, y = self.place(rank, row, first, line)
        style = ""
        if start:
            style = f' style="--x:{start[0] - x}px;--y:{start[1] - y}px"'
        wide = (last - first + 1) // self.part * TILE
        self.drawn += f'<path class="{kind}" d="M{x} {y}h{wide}v16h-{wide}z"{style}/>\n'

    def buffers(self):
        for name, row in (("input", "in"), ("scratch", "slots"), ("output", "out")):
            self.drawn += text(LEFT - 10, self.rows[row] + 13, name, "end small")
        for rank in range(self.ranks):
            self.tile(f"of r{rank}", rank, "in", *self.whole[0])
            for line in range(self.ranks - 1):
                self.tile("none", rank, "slots", *self.whole[0], line)
            self.tile("none", rank, "out", *self.whole[0])

    def parts(self):
        """Lines between the parts of all buffers."""
        for rank in range(self.ranks):
            x = LEFT + rank * COLUMN
            lines = "".join(f"M{x + part * TILE} {self.top + 22}V{self.rows['out'] + 18}"
                            for part in range(1, self.ranks))
            self.drawn += f'<path class="part" d="{lines}"/>'

    def move(self, move: dict):
        """A trip of data, which ends where it lies afterwards."""
        source, target = move["from"], move["to"]
        first, last = move["elements"][0]
        if len(move["of"]) > 1:
            self.tile("sum second", target, "out", first, last,
                      start=self.place(source, "out", first))
        else:
            line = (source - target) % self.ranks - 1
            self.tile(f"of r{source} first", target, "slots", first, last, line,
                      self.place(source, "in", first))


def picture(recording: dict) -> str:
    calls = [call for call in recording["algorithms"] if call["algorithm"] in SHOWN]
    drawn = "".join(text(LEFT + rank * COLUMN + 2 * TILE, 14, f"rank {rank}", f"mid rank r{rank}")
                    for rank in range(calls[0]["ranks"]))
    top = 30
    for call in calls:
        shown = Call(call, top)
        drawn += shown.drawn
        top = shown.rows["out"] + 44
    return card(recording["title"], SENTENCE, WIDE, top - 24, STYLE, MOTION,
                f"<defs>{stripes(calls[0]['ranks'])}</defs>{drawn}")
