"""What a lecturer may want to look at: answers that look alike, and words that few answers need."""

import itertools
import re

import exercises
from exercises import Exercise

# Two answers look alike if they share this part of their sequences of WINDOW tokens. Shorter
# answers have no room to differ.
ALIKE = 0.8
WINDOW = 5
TOKENS = 60
MOST_TOKENS = 5000

COMMENT = r"//[^\n]*|/\*.*?(?:\*/|\Z)"
LITERAL = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
TOKEN = re.compile(rf"{COMMENT}|{LITERAL}|\w+|[^\w\s]", re.S)
WORDS = {
    "exit": r"\b(\w*[eE]xit|abort|terminate|raise|kill|longjmp)\b",
    "processes": r"\b(v?fork|clone3?|execv?[lpe]*e?|posix_spawnp?|system|popen|setsid|syscall)\b",
    "attributes": r"\[\[|__attribute__|__declspec",
    "assembly": r"\b(asm|__asm|__asm__)\b",
    "preprocessor": r"^\s*(#|%:|\?\?=)|\b_Pragma\b",
}


def tokens(text: str) -> list:
    """The tokens of C++ code, without comments."""
    found = (match[0] for match in TOKEN.finditer(text))
    return [token for token in itertools.islice(found, MOST_TOKENS)
            if not token.startswith(("//", "/*"))]


def without_comments(text: str) -> str:
    return re.sub(rf"({LITERAL})|{COMMENT}", lambda match: match[1] or " ", text, flags=re.S)


def contained_words(answer: str, solution: str) -> list:
    """The kinds of words that the answer has, and the author's does not."""
    answer, solution = without_comments(answer), without_comments(solution)
    return [kind for kind, words in WORDS.items()
            if re.search(words, answer, re.M) and not re.search(words, solution, re.M)]


def shape(exercise: Exercise, answer: str, text: str) -> frozenset:
    """The sequences of tokens of an answer that was written, or none: all answers to a fault are
    like its stub. A name that the rest of the file does not have, as a local variable's, counts as
    any other such name."""
    before, _, after = exercises.split(exercise, text)
    known = set(re.findall(r"\w+", before + after))
    found = [token if not re.match(r"[A-Za-z_]", token) or token in known else "name"
             for token in tokens(answer)]
    if len(found) < TOKENS or exercise.kind != "write":
        return frozenset()
    return frozenset(tuple(found[i:i + WINDOW]) for i in range(len(found) - WINDOW + 1))


def are_alike(one: frozenset, other: frozenset) -> bool:
    return bool(one) and len(one & other) >= ALIKE * len(one | other)


def pairs(shapes: dict) -> list:
    """The pairs of names whose shapes are alike."""
    return [(one, other) for one, other in itertools.combinations(shapes, 2)
            if are_alike(shapes[one], shapes[other])]
