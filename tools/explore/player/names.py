"""Names of memory and threads, and values, as people read them."""

import re
from itertools import groupby

SHOWN = 4  # values of a range; of more, the first and the last


def base(name: str) -> str:
    """The name of the memory, without the rank and the place in it."""
    return re.sub(r"^r\d+\.", "", re.split(r"[+\[]", name)[0])


def by_number(name: str) -> list:
    """Sorts names as numbers are: out[2] before out[10]. Members stay in their order."""
    parts = re.split(r"(\d+)", re.sub(r"\]\.\w+$", "]", name))
    return [int(part) if part.isdigit() else part for part in parts]


def number(text: str) -> str:
    """Just below zero as negative: a counter before its first use. Other large values as two words;
    halves of addresses in short."""
    text = re.sub(r"low half of &(r\d+\.)?([^ ]*)", r"&\2", text.replace("high half", "&high"))
    if not re.fullmatch("0x[0-9a-f]{9,16}", text):
        return text
    value = int(text, 16)
    words = [value & 0xffffffff, value >> 32]
    return str(value - (1 << 64)) if text.startswith("0xfffffffffffff") else \
        ", ".join(str(word) if word < 1_000_000 else hex(word) for word in words)


def word_of(name: str) -> str:
    """The name of the word of eight bytes that a cell is in."""
    return re.sub(r"\+[1-7]$", "", name)


def is_new(name: str, text: str, told: dict) -> bool:
    """Whether no wider cell before has told the element: `out[0]` may hold those of `out[1]`. Notes
    in `told` how far each array is told."""
    parts = re.fullmatch(r"(.*)\[(\d+)\]", name)
    if not parts:
        return True
    array, place = parts[1], int(parts[2])
    if place < told.get(array, 0):
        return False
    told[array] = place + text.count(", ") + 1
    return True


def values(cells: dict) -> str:
    """The values of cells, of which each has a name. Single bytes are told as the words that they
    make up."""
    numbers, told = [], {}
    cells = {name: text for name, text in cells.items() if is_new(name, text, told)}
    for _, part in groupby(cells, word_of):
        texts = [cells[name] for name in part]
        if len(texts) == 8 and all(re.fullmatch(r"\d{1,3}", text) for text in texts):
            texts = [str(int.from_bytes([*map(int, texts)], "little"))]
        numbers += [number(one) for text in texts for one in text.split(", ") if one]
    if len(numbers) > 1 and {*numbers} == {"0xffffffff"}:
        return "all ones"
    return ", ".join(numbers) if len(numbers) <= SHOWN else f"{numbers[0]} ... {numbers[-1]}"


def place_of(cells: dict) -> str:
    """The name of a range of cells, of which each has a name and a value: `in[4..7]`."""
    parts = [re.fullmatch(r"(?:r\d+\.)?(.+?)(?:\[(\d+)\])?(\.\w+)?(\+\d+)?", name).groups()
             for name in cells]
    name, _, member, offset = parts[0]
    if places := sorted({(int(place), int(place) + value.count(", "))
                         for (_, place, _, _), value in zip(parts, cells.values(), strict=True)
                         if place}):
        runs = [places[0]]
        for first, last in places[1:]:
            joins = first <= runs[-1][1] + 1  # a part may be accessed by itself, too
            runs[-1:] = [(runs[-1][0], max(last, runs[-1][1]))] if joins else [
                runs[-1], (first, last)]
        runs = [f"{first}" if first == last else f"{first}..{last}" for first, last in runs]
        name += f"[{', '.join(runs) if len(runs) < SHOWN else f'{runs[0]}, ..., {runs[-1]}'}]"
    if len(parts) > 1:
        return name
    half = " 2nd half" if offset else " 1st half"
    return name + (member or "") + (half if "(flag" in [*cells.values()][0] else offset or "")


def thread_of(step: dict) -> tuple:
    """A thread, to compare it with others."""
    return step["rank"], step["block"], step["thread"]


def names_of(row: dict) -> dict:
    """The names of threads, which say no more than tells a thread from others of its rank."""
    threads = {thread_of(step): "" for step in row["steps"]}
    for rank, block, thread in threads:
        others = [other for other in threads if other[0] == rank]
        name = f"rank {rank}"
        if any(other[1] != block for other in others):
            name = f"block {block} of {name}"
        if any(other[2] != thread for other in others):
            name = f"thread {thread} of {name}"
        threads[rank, block, thread] = name
    return threads


def reason(row: dict) -> str:
    """The failure, with names for threads and memory, and without what the picture shows."""
    names = {"r{}.b{}.t{}".format(*thread): name for thread, name in names_of(row).items()}
    if any(step["what"] == "waits" for step in row["steps"]):  # for what: these steps tell
        return row["why"].partition(":")[0]
    why = re.sub(r" \(step \d+\)| = 0x[0-9a-f]+( of step \d+)?", "", row["why"])
    why = re.sub(r"r\d+\.b\d+\.t\d+", lambda thread: names.get(thread[0], thread[0]), why)
    return re.sub(r"\br(\d+)\.(?=\w)", r"rank \1's ", why)
