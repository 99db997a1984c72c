"""The results that a program of the course tells while it runs, each after the learner's code has
returned (common/course/results.hpp). They come over a socket, which, unlike a file or a pipe,
cannot be opened again by its name. Each line begins with a key that only the program's own main()
has read. So an answer can end the program, which is seen, but not tell a result itself."""

import json
import secrets
import socket
from dataclasses import dataclass, field

MOST = 64 << 20  # bytes


@dataclass
class Told:
    """What a program has told."""

    announced: list = field(default_factory=list)  # names
    right: dict = field(default_factory=dict)  # by name
    described: list = field(default_factory=list)  # the explorer's rows
    fault: str = ""  # why none of it counts

    def wrong(self) -> list:
        return [name for name, right in self.right.items() if not right]

    def missing(self) -> list:
        return [name for name in self.announced if name not in self.right]

    def is_right(self) -> bool:
        """Whether there are results, all that were announced, and none is wrong or in doubt."""
        return bool(self.announced and not self.fault and not self.missing() and not self.wrong())

    def why_incomplete(self) -> str:
        """Why the results of a program that has ended without an error do not count."""
        after = (f"{len(self.right)} of {len(self.announced)} results were told" if self.announced
                 else "none has begun")
        return self.fault or (f"It ended before its tests did, though without an error: {after}. "
                              "What in your answer ends the program?")


class Results:
    """The check's end of the socket. `environment` and `descriptor` are for the program."""

    def __init__(self):
        self.ours, self.theirs = socket.socketpair()
        self.key = secrets.token_hex(16).encode()  # kKeyBytes
        self.ours.sendall(self.key)
        self.ours.setblocking(False)
        self.received = bytearray()
        self.descriptor = self.theirs.fileno()
        self.environment = {"SYMM_COURSE_RESULTS": str(self.descriptor)}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ours.close()
        self.theirs.close()

    def is_too_long(self) -> bool:
        """Takes what has come. The program waits while the socket is full, so call it often."""
        try:
            while len(self.received) <= MOST and (more := self.ours.recv(1 << 20)):
                self.received += more
        except (BlockingIOError, ConnectionResetError):
            pass
        return len(self.received) > MOST

    def told(self) -> Told:
        """What a program that has ended has told. A line without an end was not told."""
        self.is_too_long()
        told = Told()
        for line in bytes(self.received).split(b"\n")[:-1]:
            key, _, text = line.partition(b" ")
            if key != self.key:
                told.fault = ("Something other than the tests has written into their results, so "
                              "none of them counts. Does your answer write to a descriptor that it "
                              "has not opened?")
                return told
            kind, _, name = text.decode(errors="replace").partition(" ")
            if kind == "description":
                told.described.append(json.loads(name))
            elif kind == "announced" and name not in told.announced and not told.right:
                told.announced.append(name)
            elif kind in ("right", "wrong") and name in told.announced and name not in told.right:
                told.right[name] = kind == "right"
            else:
                told.fault = (f"The result of {name} was told twice, or not announced, so none of "
                              "them counts. Does your answer start a second process?")
                return told
        return told
