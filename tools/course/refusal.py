"""What no answer needs, but a way around the check does: it is refused before anything is built.
That the check counts every result (results.py) is what holds; this closes what counting cannot see,
such as an answer that redefines what its test calls."""

import re

TOKEN = re.compile(r"""
    (?P<comment> //[^\n]* | /\*.*?\*/ )
  | (?P<string> R"(?P<mark>[^()\s\\]{0,16})\(.*?\)(?P=mark)" | "(?:\\.|[^"\\\n])*" )
  | '(?:\\.|[^'\\\n])+'
  | (?P<open> /\* | R" | ["] )
  | (?P<number> \d(?:'?[\w.])* )
  | . """, re.DOTALL | re.VERBOSE)

# Each is searched in the code, without comments and strings. What the solution has is allowed.
WORDS = [re.compile(words, re.VERBOSE) for words in (
    # the end of the program, or a jump out of the test
    r"\b(?:_Exit|_exit|exit|quick_exit|at_quick_exit|atexit|on_exit|exit_group|"
    r"pthread_\w+|(?:sig)?(?:set|long)jmp|__builtin_(?:set|long)jmp|set_terminate)\b",
    # signals, other processes, and the system without its functions
    r"\b(?:sigaction|SIG[A-Z]+|v?fork|clone|execv\w*|posix_spawn\w*|ptrace|syscall|prctl)\b",
    # the program's environment, its other functions, and files
    r"\b(?:environ|\w*[gs]etenv|putenv|clearenv|program_invocation_\w+|dl(?:v?sym|open)|"
    r"process_vm_\w+|f(?:re)?open|[io]?fstream)\b",
    # accesses that ThreadSanitizer and the explorer do not see, and other requests to the compiler
    r"\b(?:asm|__asm\w*|__attribute\w*|__declspec|_Pragma|extern|_mm\d*_\w+|__m\d+\w*|"
    r"__builtin_(?:nontemporal|ia32)\w*|w?mem(?:p|c)cpy|wmem\w+|bcopy|swab|st[rp]\w*cpy|wcs\w+|"
    r"__(?:tsan|asan|ubsan|sanitizer|interceptor|cxa|libc|builtin_return)\w*|Annotate[A-Z]\w+)\b|"
    r"\[\[ \s* (?:using\s+)? (?:__)?(?:gnu|clang|_Clang)\b | \#\s*pragma\s+"
    r"(?:weak|redefine_extname|push_macro|pop_macro|(?:clang|GCC)\s+(?!unroll|loop))[^\n]*",
    # the tests, the explorer and the check themselves, and what they compare with, such as the
    # arguments that they have passed
    r"\b(?:const_cast|testing|explore|unguessable|course|main|RUN_ALL_TESTS|ADD_FAILURE|"
    r"(?:GTEST|TEST|EXPECT|ASSERT|INSTANTIATE)_\w+)\b | (?<!using\ )\bnamespace\b | "
    r"\btemplate\s*<\s*> |"
    r"\boperator\s*(?:new|delete|[=!<>]=|<=>|[<>](?!<|>|=)) ",
)]


def parts_of(text: str) -> tuple[str, str, str]:
    """The code without comments and strings; the strings, one after another; and what is left open:
    a comment or a string that does not end in the text."""
    code, strings = [], []
    for token in TOKEN.finditer(re.sub(r"\\[ \t]*\r?\n", "", text)):
        if token["open"]:
            return "".join(code), "".join(strings), token["open"]
        if token["string"]:
            strings.append(token[0].strip('"'))
        code.append(" " if token["comment"] else '""' if token["string"] else token[0])
    return "".join(code), "".join(strings), ""


def lowest(code: str) -> tuple[int, str]:
    """How many braces are closed that the code has not opened, and the code after the last one."""
    depth = least = 0
    after = code
    for i, character in enumerate(code):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth < least:
            least, after = depth, code[i + 1:]
    return -least, after


def reason(answer: str, solution: str) -> str:
    """Why the answer is refused, as a sentence; empty if it is not."""
    code, strings, left_open = parts_of(answer)
    known, known_strings, _ = parts_of(solution)
    if left_open:
        return (f"A {left_open} in your answer has no end, so it would swallow the lines after it. "
                "Where should it end?")
    directive = r"^[ \t]*(?:#|%:)(?![ \t]*pragma\b)[^\n]*"
    for line in re.findall(directive, code, re.MULTILINE):
        if line.strip() not in map(str.strip, re.findall(directive, known, re.MULTILINE)):
            return (f"Your answer has a line for the preprocessor: {line.strip()}. It would change "
                    "code that is not yours, so only #pragma is accepted. Write a constant or a "
                    "function instead.")
    for words in WORDS:
        found = words.search(code)
        if found and found[0] not in (word[0] for word in words.finditer(known)):
            return (f"Your answer contains `{found[0].strip()}`. This exercise does not need it, "
                    "and it could change what the check sees, so nothing was built. What do you "
                    "want to do with it?")
    if "/proc" in strings and "/proc" not in known_strings:
        return ("Your answer names a file in /proc. This exercise does not need it, and it could "
                "change what the check sees, so nothing was built.")
    (closed, after), (may_close, then) = lowest(code), lowest(known)
    if closed > may_close or closed > 0 and "{" in after and "{" not in then:
        return ("Your answer closes a brace that it has not opened, and so ends what it stands in. "
                "Which { is missing, or which } is too many?")
    return ""
