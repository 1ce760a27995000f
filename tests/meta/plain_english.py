#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Habits of translated English in comments, message strings and manual pages (CONTRIBUTING.md, "Plain English").

usage: plain_english.py LIST < FILES
LIST has one folder or file per line. Reads those of FILES (one path per line) that are in LIST. Prints FILE:LINE: habit: text.
"""
import re
import sys

# (habit, pattern); patterns are applied to the text of one comment, string or manual page paragraph.
HABITS = [
    ("a sentence begins with Of", r"(?:^|[.:;?!)] )Of (?!course\b)"),
    ("nobody, somebody, whoever, anew, meanwhile, in vain", r"(?i)\b(?:nobody|somebody|whoever|anew|meanwhile|in vain)\b"),
    ("software that tells", r"(?i)\btold\b|\btells? (?:us|of|that|whether|what|which|where|how)\b"),
    ("software that promises, refuses to know or minds", r"(?i)\b(?:promises?|promised|refuses? to (?:know|say)|minds)\b"),
    ("a comment that needs the one above it", r"^(?:The same(?:[.,;:]| (?:of|for|by|with|as|in|from)\b)|Likewise\b|As above\b|And (?:how|what|the)\b)"),
    ("a comment begins with What or Who", r"^(?:What|Who|Whoever)\b(?![^.?]*\?)"),
    ("not to be had", r"(?i)\b(?:not|is|are) to be had\b"),
]
# Each line has one habit; the check fails if it does not find it.
PLANTED = [
    "/* Of a process all is read. */",
    "/* Reads all. Of the rest nothing. */",
    "/* NULL: nobody has asked yet. */",
    "/* The runtime tells us. */",
    "/* NULL: it was not told. */",
    "/* What the header promises. */",
    "/* The same for a file. */",
    "/* Likewise, of all. */",
    "/* What a slot holds. */",
    'error("whoever comes later");',
    'error("the metadata is not to be had");',
]
CODE = re.compile(r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'""", re.S)
PYTHON = re.compile(r'"""(.*?)"""|(?m:^[ \t]*#([^\n]*)$)', re.S)


def plain(comment):
    """The text of a C comment in one line."""
    return " ".join(re.sub(r"^\s*/?\*+/?", "", line).replace("*/", "").strip() for line in comment.split("\n")).strip()


def texts_of_c(content):
    """(line, text) of comments and of strings with several words."""
    for match in CODE.finditer(content):
        piece = match.group()
        line = content.count("\n", 0, match.start()) + 1
        if piece.startswith("/*"):
            yield line, plain(piece)
        elif piece.startswith("//"):
            yield line, piece[2:].strip()
        elif piece.startswith('"') and " " in piece:
            yield line, piece[1:-1]


def texts_of_python(content):
    for match in PYTHON.finditer(content):
        yield content.count("\n", 0, match.start()) + 1, " ".join((match.group(1) or match.group(2) or "").split())


def texts_of_manual(content):
    for number, line in enumerate(content.split("\n"), 1):
        if line and not line.startswith(('.\\"', "'", ".Ss")):
            yield number, re.sub(r"^\.[A-Za-z]+ ?", "", line)


def texts(path, content):
    if path.endswith((".c", ".h")):
        return texts_of_c(content)
    if path.endswith(".py"):
        return texts_of_python(content)
    if re.search(r"\.[1-9]$", path):
        return texts_of_manual(content)
    return []


def habits(text):
    return [name for name, pattern in HABITS if re.search(pattern, text)]


def main():
    for sentence in PLANTED:
        if not any(habits(text) for _, text in texts_of_c(sentence)):
            print(f"plain_english.py does not find the planted habit in {sentence}")
    with open(sys.argv[1], encoding="utf-8") as file:
        folders = [line.strip() for line in file if line.strip() and not line.startswith("#")]
    files = sys.stdin.read().splitlines()
    for folder in folders:
        if not any(path == folder or path.startswith(folder + "/") for path in files):
            print(f"{sys.argv[1]}: {folder}: no such file or folder")
    for path in files:
        if not any(path == folder or path.startswith(folder + "/") for folder in folders):
            continue
        with open(path, encoding="utf-8", errors="replace") as file:
            content = file.read()
        for line, text in texts(path, content):
            for habit in habits(text):
                print(f"{path}:{line}: {habit}: {text[:120]}")


main()
