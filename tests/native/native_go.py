# SPDX-License-Identifier: MIT
"""Stripped Go programs against the same program with symbols, by `go tool nm` and `go tool addr2line`, and against what the
runtime says of itself while it runs. Go is not among what bootstrap installs: skipped, also by CI, where there is none.

Classes of names that differ by nature: symbol tables have a suffix that says which calling convention (.abi0, .abiinternal), the type
arguments of generic functions, and '.' for the middle dot of local types; the function table has none of these.
"""
import bisect
import json
import os
import random
import re
import shutil
import subprocess

from native_tools import CACHE, Fail, Skip

SEED = 7
COUNT = 10000
SOURCE = """package main

%s
import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"sort"
)

type shape struct{ name string }

//go:noinline
func frames() []uintptr {
	pcs := make([]uintptr, 64)
	return pcs[:runtime.Callers(1, pcs)]
}

func inlinedInner() []uintptr { return frames() }

func inlinedOuter() []uintptr { return inlinedInner() }

//go:noinline
func (s *shape) method(depth int) []uintptr {
	if depth > 0 {
		return s.method(depth - 1)
	}
	return inlinedOuter()
}

type row struct {
	PC   string
	Name string
	File string
	Line int
}

func main() {
	%s
	var pcs []uintptr
	words := []string{"b", "a"}
	sort.Slice(words, func(i, j int) bool {
		pcs = (&shape{"x"}).method(2)
		return words[i] < words[j]
	})
	for _, pc := range pcs {
		rows := []row{}
		list := runtime.CallersFrames([]uintptr{pc})
		for {
			frame, more := list.Next()
			rows = append(rows, row{fmt.Sprintf("%%x", pc-1), frame.Function, frame.File, frame.Line})
			if !more {
				break
			}
		}
		text, _ := json.Marshal(rows)
		fmt.Println(string(text))
	}
	fmt.Println("ready")
	bufio.NewReader(os.Stdin).ReadString('\\n')
}
"""
CGO = ('/*\nstatic int twice(int x) { return 2 * x; }\n*/\nimport "C"\n', "_ = C.twice(21)")
KINDS = (("exe", ("", ""), "0", ()), ("pie", ("", ""), "0", ("-buildmode=pie",)), ("cgo", CGO, "1", ()), ("cgo-pie", CGO, "1", ("-buildmode=pie",)))


def built(tools, name, head, cgo, flags):
    """(program with symbols, the same without)"""
    if not shutil.which("go"):
        raise Skip("go is not installed")
    directory = tools.path("go-" + name)
    tools.write(f"go-{name}/main.go", SOURCE % head)
    tools.write(f"go-{name}/go.mod", "module example.org/names\n\ngo 1.15\n")
    environment = dict(os.environ, CGO_ENABLED=cgo, GOCACHE=os.path.join(CACHE, "go"), GOFLAGS="-mod=mod", GOPROXY="off", GOTOOLCHAIN="local",
                       HOME=tools.scratch)
    whole, stripped = os.path.join(directory, "whole"), os.path.join(directory, "stripped")
    tools.run("go", "build", "-p", "2", *flags, "-o", whole, ".", cwd=directory, env=environment)
    tools.run("strip", "-s", "-o", stripped, whole)
    return whole, stripped


def kinds(tools):
    for name, head, cgo, flags in KINDS:
        if cgo == "0" or shutil.which("gcc"):
            yield (name, *built(tools, name, head, cgo, flags))


def plain(name):
    return re.sub(r"\[.*\]", "[...]", re.sub(r"\.abi(0|internal)$", "", name)).replace("\u00b7", ".")


def functions(tools, whole):
    """Rows (start, size, name) of what `go tool nm` calls code and has a size."""
    rows = []
    for line in tools.run("go", "tool", "nm", "-size", "-sort", "address", whole).splitlines():
        parts = line.split(None, 3)
        if len(parts) == 4 and parts[2] in "Tt" and int(parts[1]):
            rows.append((int(parts[0], 16), int(parts[1]), parts[3]))
    return rows


def go_range(tools, whole):
    places = {}
    for line in tools.run("go", "tool", "nm", whole).splitlines():
        parts = line.split(None, 2)
        if len(parts) == 3 and parts[2] in ("runtime.text", "runtime.etext"):
            places[parts[2]] = int(parts[0], 16)
    return places["runtime.text"], places["runtime.etext"]


def addr2line(tools, whole, vaddrs):
    out = subprocess.run(["go", "tool", "addr2line", whole], input="".join(f"0x{vaddr:x}\n" for vaddr in vaddrs), capture_output=True,
                         text=True, timeout=600).stdout.splitlines()
    return out[1::2]


def test_go_programs_without_symbols(tools):
    """Every function, first and last byte, and random addresses, in every kind of program."""
    for kind, whole, stripped in kinds(tools):
        low, high = go_range(tools, whole)
        rows = [row for row in functions(tools, whole) if low <= row[0] < high and not row[2].startswith("go:")]
        edges = [vaddr for start, size, _ in rows for vaddr in (start, start + size - 1)]
        chosen = random.Random(SEED)
        vaddrs = sorted(edges + [chosen.randrange(low, high) for _ in range(COUNT)])
        answers, lines = tools.resolve(stripped, vaddrs, "--lines"), addr2line(tools, whole, vaddrs)
        starts, counts = [row[0] for row in rows], dict.fromkeys(("names", "gaps", "lines", "exports"), 0)
        for vaddr, answer, line in zip(vaddrs, answers, lines):
            at = bisect.bisect_right(starts, vaddr) - 1
            start, size, name = rows[at] if at >= 0 else (0, 0, "")
            if vaddr - start >= size:
                counts["gaps"] += 1
                if answer["name"]:
                    raise Fail(f"{kind}: 0x{vaddr:x} is in no function: {answer}")
                continue
            if plain(answer["name"] or "") != plain(name) or answer["offset"] != vaddr - start or answer["size"] != size:
                raise Fail(f"{kind}: 0x{vaddr:x}: {name} of {size} bytes: {answer}")
            counts["names"] += 1
            if answer["source"] != "gopclntab":
                counts["exports"] += 1
            elif not line.startswith("?"):  # it knows no lines of programs that ld has relocated
                counts["lines"] += 1
                if line != f"{answer['file']}:{answer['line']}":
                    raise Fail(f"{kind}: 0x{vaddr:x}: {line}: {answer}")
        tools.figure(f"{kind}: {len(rows)} functions; {counts}")


def test_go_processes_say_the_same_of_themselves(tools):
    """Frames of a stack, with what was inlined, as the runtime of the stripped program tells them."""
    for kind, _, stripped in kinds(tools):
        with subprocess.Popen([stripped], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            frames = []
            for line in process.stdout:
                if line == "ready\n":
                    break
                frames.append(json.loads(line))
            try:
                answers = json.loads(tools.run(tools.program, "resolve", "--json", "--lines", "--inlines", process.pid,
                                               *("0x" + rows[0]["PC"] for rows in frames)))
            finally:
                process.stdin.close()
        # A chain of ours is what the runtime has from its innermost function on, each under an address of its own or not.
        all_rows = [(row["Name"], row["File"], row["Line"]) for rows in frames for row in rows]
        inlined = at = 0
        for rows, answer in zip(frames, answers):
            ours, file, line = [], answer["file"], answer["line"]
            for call in answer.get("inlined") or []:
                ours.append((call["name"], file, line))
                file, line = call["call_file"], call["call_line"]
            ours.append((answer["name"], file, line))
            inlined += len(ours) - 1
            if ours != all_rows[at:at + len(ours)]:
                raise Fail(f"{kind}: {all_rows[at:at + len(ours)]} is wanted, not {ours}")
            at += len(rows)
        if len(frames) < 8 or inlined < 2:
            raise Fail(f"{kind}: only {len(frames)} frames, {inlined} of them inlined")
        tools.figure(f"{kind}: {len(frames)} frames, {inlined} functions inlined")
