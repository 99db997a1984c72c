#!/usr/bin/env python3
"""06_allreduce --show: draws who sends which elements where in one AllReduce, trip by trip, from
what 06_allreduce_record has recorded (README.md)."""

import argparse
import collections
import json
import struct
import subprocess
import sys


class Thread:
    def __init__(self, now: int):
        self.now = now  # the last trip whose data it has seen
        self.sent = 0  # the last trip of data that it has sent: a release waits for it
        self.asked = 0  # the trip of what it has loaded from peers and not used yet
        self.known = collections.defaultdict(set)  # its numbers, and where it has loaded them

    def use_loads(self):
        self.now = max(self.now, self.asked)


def numbers_in(words: list) -> list:
    """The inputs, or sums of inputs, among the words: for each, its ranks and its element. Rank r's
    element i is 2^r + 256 i, so a sum's last eight bits show its ranks, and their number divides
    the rest."""
    numbers = []
    for value in (struct.unpack("f", struct.pack("I", word))[0] for word in words):
        ranks = tuple(r for r in range(8) if 1 <= value < 1 << 24 and int(value) >> r & 1)
        if ranks and value == int(value) and int(value) // 256 % len(ranks) == 0:
            numbers.append((ranks, int(value) // 256 // len(ranks)))
    return numbers


class Call:
    """What has happened, in the order of the trips. A move is an access of a peer's memory."""

    def __init__(self, places: list, entries: list):
        self.places = places
        self.moves, self.sums, self.writes = {}, {}, {}
        self.threads = {}
        self.trip_of = collections.Counter()  # (place, word): of its last store
        self.ended = collections.Counter()  # by rank: what its kernels that have ended had seen
        self.syncs = collections.defaultdict(lambda: [0, 0])
        self.queued = []  # copies: rank, source, trip
        for what, rank, number, at, offset, words in entries:
            getattr(self, what)(rank, number, at, offset, words)

    def begin(self, rank, thread, earlier, *_):
        """It follows all that its rank has queued before."""
        self.threads[thread] = Thread(max(
            [self.ended[rank]] + [trip for by, _, trip in self.queued[:earlier] if by == rank]))

    def end(self, rank, thread, *_):
        self.ended[rank] = max(self.ended[rank], self.threads[thread].now)

    def arrive(self, _, thread, *sync_and_words):
        thread, sync = self.threads[thread], self.syncs[sync_and_words[:2]]
        thread.use_loads()
        sync[:] = max(sync[0], thread.now), max(sync[1], thread.sent)

    def leave(self, _, thread, *sync_and_words):
        thread, sync = self.threads[thread], self.syncs[sync_and_words[:2]]
        thread.now, thread.sent = max(sync[0], thread.now), max(sync[1], thread.sent)

    def load(self, rank, thread, at, offset, words):
        thread = self.threads[thread]
        place, owner, _ = self.places[at]
        numbers = self.numbers_at(at, words)
        if owner == rank:
            thread.now = max([thread.now] + [self.trip_of[at, offset // 4 + i]
                                             for i in range(len(words))])
        else:  # loads that follow each other are on their way at the same time
            thread.asked = thread.now + 2
            self.move(thread.asked, "load", rank, owner, rank, at, words)
        for number in numbers:
            thread.known[number].add(place)

    def store(self, rank, thread, at, offset, words, release=False):
        thread = self.threads[thread]
        place, owner, _ = self.places[at]
        thread.use_loads()
        trip = thread.now
        if owner != rank:
            trip = max(thread.now, thread.sent if release else 0) + 1
            thread.sent = thread.sent if release else max(thread.sent, trip)
            self.move(trip, "store", rank, rank, owner, at, words)
        self.arrived(trip, at, offset, words)
        for ranks, element in self.numbers_at(at, words):
            if place == "out" and owner == rank:
                self.writes.setdefault((trip, rank, ranks), set()).add(element)
            if len(ranks) > 1 and (ranks, element) not in thread.known:  # neither loaded nor stored
                elements, places = self.sums.setdefault((thread.now, rank, ranks), (set(), set()))
                elements.add(element)
                for (_, other), known in thread.known.items():
                    places |= known if other == element else set()
            thread.known[ranks, element] |= set()

    def release(self, *entry):
        self.store(*entry, release=True)

    def queue(self, rank, _, at, offset, __):
        self.queued.append((rank, (at, offset), 0))

    def copy(self, _, number, at, offset, words):
        rank, (source, first), _ = self.queued[number]
        trip = 1 + max(self.trip_of[source, first // 4 + i] for i in range(len(words)))
        self.queued[number] = rank, (source, first), trip
        self.move(trip, "copy", rank, rank, self.places[at][1], at, words)
        self.arrived(trip, at, offset, words)

    def arrived(self, trip, at, offset, words):
        for i in range(len(words)):
            self.trip_of[at, offset // 4 + i] = trip

    def numbers_at(self, at, words):
        place, _, sender = self.places[at]
        return numbers_in(words) if sender >= 0 or place in ("in", "out") else []

    def move(self, trip, how, by, source, target, at, words):
        place, _, sender = self.places[at]
        numbers = self.numbers_at(at, words)
        key = (trip, how, place, source, target, by, sender, numbers[0][0] if numbers else ())
        moved = self.moves.setdefault(key, [0, set()])
        moved[0] += 4 * len(words)
        moved[1].update(element for _, element in numbers)

    def is_complete(self, ranks: int, elements: int) -> bool:
        """Whether each rank's output has got all sums over all ranks."""
        got = {(rank, of, element) for (_, rank, of), which in self.writes.items()
               for element in which}
        got |= {(to, of, element) for (_, how, place, _, to, _, _, of), (_, which)
                in self.moves.items() if place == "out" and how == "store" for element in which}
        return got == {(rank, tuple(range(ranks)), element)
                       for rank in range(ranks) for element in range(elements)}

    def trips(self) -> int:
        return max(key[0] for key in self.moves)

    def links(self) -> dict:
        links = collections.Counter()
        for (_, _, _, source, target, *_), (size, _) in self.moves.items():
            links[source, target] += size
        return links


def ranges_of(elements: set) -> list:
    ranges = []
    for element in sorted(elements):
        if not ranges or ranges[-1][1] != element - 1:
            ranges.append([element, element])
        ranges[-1][1] = element
    return ranges


def as_json(call: Call, title: dict) -> dict:
    def elements(of, which):
        return {"elements": ranges_of(which), "of": list(of)} if of else {}

    return {
        **title, "trips": call.trips(),
        "links": [{"from": a, "to": b, "bytes": n} for (a, b), n in sorted(call.links().items())],
        "moves": [{"trip": trip, "how": how, "by": by, "from": source, "to": target, "bytes": size,
                   "place": place + (f" from rank {sender}" if sender >= 0 else ""),
                   "what": "data" if of else "flag", **elements(of, which)}
                  for (trip, how, place, source, target, by, sender, of), (size, which)
                  in sorted(call.moves.items())],
        "sums": [{"after": after, "rank": rank, **elements(of, which), "from": sorted(places)}
                 for (after, rank, of), (which, places) in sorted(call.sums.items())],
        "writes": [{"after": after, "rank": rank, **elements(of, which)}
                   for (after, rank, of), which in sorted(call.writes.items())]}


def row(name: str, cells: list) -> str:
    return f"    {name:<8}" + "".join(f"{cell:>10}" for cell in cells)


def elements_row(name: str, cells: list) -> str:
    return row(name, [",".join(f"{first}-{last}" if first < last else f"{first}"
                               for first, last in ranges_of(cell)) or "." for cell in cells])


def draw(call: Call, ranks: int):
    """Prints the moves of each trip, those of the same kind together, and what follows it."""
    tables = collections.defaultdict(lambda: collections.defaultdict(set))
    for (trip, how, place, source, target, _, _, of), (_, elements) in sorted(call.moves.items()):
        kind = "" if not of else "inputs, " if len(of) == 1 else "sums, "
        tables[trip, how, place, kind][source, target] |= elements
    words = {"store": "stored into the receiver's", "load": "loaded from the sender's",
             "copy": "copied by the copy engine into the receiver's"}
    for trip in range(1, call.trips() + 1):
        for (_, how, place, kind), cells in [t for t in tables.items() if t[0][0] == trip]:
            trips = f"trips {trip - 1} (requests) and {trip}" if how == "load" else f"trip {trip}"
            print(f"\n{trips}: {kind}{words[how]} {place}")
            if not kind:
                print("    each rank to each other" if len(cells) == ranks * (ranks - 1) else
                      "    rank " + ", ".join(f"{a} to {b}" for a, b in sorted(cells)))
                continue
            print(row("", [f"to rank {rank}" for rank in range(ranks)]))
            for source in range(ranks):
                print(elements_row(f"rank {source}", [cells[source, to] for to in range(ranks)]))
        sums = {key[1]: done for key, done in call.sums.items() if key[0] == trip}
        if sums:
            print(elements_row("adds up", [sums.get(r, [()])[0] for r in range(ranks)]))
            print(f"{'':12}from", ", ".join(sorted(set().union(*(p for _, p in sums.values())))))
        writes = {key[1]: done for key, done in call.writes.items() if key[0] == trip}
        if writes:
            print(elements_row("into out", [writes.get(r, ()) for r in range(ranks)]))
    print(f"\nTrips, one after another: {call.trips()}. "
          f"Bytes over the busiest link: {max(call.links().values())}.")


def main() -> int:
    parser = argparse.ArgumentParser(prog="06_allreduce --show", allow_abbrev=False)
    parser.add_argument("program", help="06_allreduce_record")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--bytes", default="64")
    parser.add_argument("--algo", default="oneshot")
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    try:
        ended = subprocess.run([args.program, f"--ranks={args.ranks}", f"--bytes={args.bytes}",
                                f"--algo={args.algo}"], stdout=subprocess.PIPE, check=False)
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if ended.returncode < 0:
        print(f"error: signal {-ended.returncode} ended {args.program}", file=sys.stderr)
    if ended.returncode != 0:
        return max(ended.returncode, 1)
    recording = json.loads(ended.stdout)
    call = Call(recording["places"], recording["entries"])
    title = {"algorithm": args.algo, "ranks": args.ranks, "elements": recording["elements"],
             "element_bytes": 4}
    if not call.is_complete(args.ranks, title["elements"]):
        print("error: the output is not the sum of all ranks' inputs", file=sys.stderr)
        return 1
    print(f"{args.algo}: AllReduce of {title['elements']} floats on {args.ranks} ranks, as it ran "
          "on emulated GPUs")
    draw(call, args.ranks)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(as_json(call, title), file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
