"""Opens a file at its line, in the editor that the learner uses."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from exercises import ROOT

#: Programs' names, and their arguments. Those of the desktop have windows of their own: `start`
#: does not wait until these are closed.
TERMINAL = {
    r"n?vim?|nano|pico|emacs|micro|kak|joe|jed|ne|mg|mcedit": "+{line} {file}",
    r"hx|helix": "{file}:{line}"}
DESKTOP = {
    r"code(-insiders)?|codium|vscodium|cursor|windsurf|positron": "--goto {file}:{line}",
    r"zed|zeditor|zedit|subl|sublime_text": "{file}:{line}",
    r"kate|kwrite|mate": "-l {line} {file}",
    r"clion|idea|pycharm|rustrover|goland|webstorm": "--line {line} {file}",
    r"gvim|gedit|gnome-text-editor|pluma|xed|mousepad|emacsclient": "+{line} {file}"}
WAITS = {"-w", "--wait"}  # until the file is closed


def command_for(editor: str, file: str, line: str) -> tuple:
    """The words that open the file, and whether they open a window of the desktop. An unknown
    editor gets the file alone: it might take a line for a file's name."""
    program, *options = shlex.split(editor)
    name = re.sub(r"-?[\d.]+$|\.(exe|sh)$", "", Path(program).name)  # emacs-29.1, clion.sh
    in_terminal = bool({"-nw", "-t", "--tty"} & set(options))
    for table in (TERMINAL, DESKTOP):
        for names, arguments in table.items():
            if re.fullmatch(names, name):
                on_desktop = table is DESKTOP and not in_terminal
                words = [word for word in options if word not in WAITS or not on_desktop]
                where = [word.format(file=file, line=line) for word in arguments.split()]
                return [program, *words, *where], on_desktop
    return [program, *options, file], False


def open_at(place: str):
    """Opens a place (FILE:LINE) in the editor whose terminal this is, or in $VISUAL or $EDITOR."""
    if not sys.stdout.isatty():
        return
    in_code = os.environ.get("TERM_PROGRAM") == "vscode" and shutil.which("code")
    editor = "code" if in_code else os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    try:
        if not editor.strip():
            return
        command, on_desktop = command_for(editor, *place.rsplit(":", 1))
        if on_desktop:
            subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             start_new_session=True)
        else:
            subprocess.run(command, cwd=ROOT, check=False)
    except (OSError, ValueError) as error:
        print(f"(could not start {editor}: {error})")
