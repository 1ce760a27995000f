# SPDX-License-Identifier: MIT
"""Names as in C#, of every method of some assemblies, against what metadata and IL say (oracle/CompilerNames.cs)."""
import os
import subprocess

from harness import ROOT, expect

# SYM_CSHARP_NO_TYPE_ARGUMENTS | SYM_CSHARP_NO_PARAMETERS: these are tested by unit tests.
FLAGS = "6"
UNDERSTOOD_SHARE = 0.994
ACCESSORS = ("get_", "set_", "add_", "remove_")


def rows_of(context, files):
    """(is made by the compiler, full name, what is expected) of each method; a file that is there twice counts once."""
    done = subprocess.run(["dotnet", context.oracle(), "names", *files], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    expect(done.returncode == 0, f"the reader of metadata failed: {done.stderr.strip()[:300]}")
    return [line.split("\t") for line in sorted(set(done.stdout.split("\n"))) if line]


def as_in_csharp(context, names):
    program = os.path.join(ROOT, context.build, "examples", "csharp_names")
    done = subprocess.run([program, FLAGS], input="".join(name + "\n" for name in names), capture_output=True, text=True)
    expect(done.returncode == 0, f"csharp_names failed: {done.stderr[:200]}")
    return done.stdout.split("\n")[:-1]


def is_understood(full, name):
    """A part that only a compiler can have written has a '<'; an operator may have one too."""
    return name != full and ("<" not in name or ".operator " in name)


def is_right(expected, name):
    # In the name of a lambda an init accessor is called as the set accessor that it is.
    wanted = {expected[1:], expected[1:].replace(".init", ".set")}
    if expected[0] == "=":
        return name in wanted
    return any(name == "finally in " + text.strip() or name.endswith(" of" + text) for text in wanted)


def check(context, files, most_wrong):
    """Compares; `most_wrong`: methods that bear the name of an accessor and are none, which no text distinguishes."""
    rows = rows_of(context, files)
    names = as_in_csharp(context, [row[1] for row in rows])
    expect(len(names) == len(rows), f"{len(names)} names for {len(rows)} methods")
    made = understood = known = 0
    wrong, wrong_kinds = [], []
    for (is_made, full, expected), name in zip(rows, names):
        good = is_understood(full, name)
        if is_made == "1":
            made += 1
            understood += good
        if expected == "?" or not good:
            continue
        known += 1
        if not is_right(expected, name):
            (wrong if any(word in full for word in ACCESSORS) else wrong_kinds).append(f"{full}: {name}, expected {expected}")
    context.figure(f"{len(rows)} methods; {made} made by the compiler, {understood} of them understood ({understood / made:.2%}); "
                   f"{known} compared, {len(wrong) + len(wrong_kinds)} differ")
    expect(not wrong_kinds, f"{len(wrong_kinds)} wrong names: {wrong_kinds[:3]}")
    expect(len(wrong) <= most_wrong, f"{len(wrong)} methods that are no accessors have names of accessors: {wrong[:3]}")
    return made, understood
