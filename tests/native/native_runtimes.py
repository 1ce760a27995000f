# SPDX-License-Identifier: MIT
"""record of runtimes whose jitted code has no unwind data that can be read: V8, the JVM and Go by frame pointers, marked as guesses.

The oracle is the program: where its thread began, and which functions of the runtime it runs below.
"""
import os
import subprocess
import zipfile

from native_tools import CACHE, Fail, Skip

JAVASCRIPT = """
function less(n) { let s = 0; for (let i = 0; i < n; i++) s += Math.sqrt(i); return s; }
function middle(n) { let s = 0; for (let i = 0; i < 10; i++) s += less(n) + 1; return s; }
console.log("ready");
for (;;) middle(100000);
"""
JAVA = """
public class Burn {
	static volatile double sum;
	static double less(int n) { double s = 0; for (int i = 0; i < n; i++) s += Math.sqrt(i + sum); return s; }
	static double middle(int n) { double s = 0; for (int i = 0; i < 10; i++) s += less(n) + 1; return s; }
	public static void main(String[] words) { System.out.println("ready"); for (;;) sum = middle(100000) % 7; }
}
"""
GO = """
package main

import ("fmt"; "math")

var sum float64

//go:noinline
func less(n int) float64 { s := 0.0; for i := 0; i < n; i++ { s += math.Sqrt(float64(i)) }; return s }

//go:noinline
func middle(n int) float64 { s := 0.0; for i := 0; i < 10; i++ { s += less(n) + 1 }; return s }

func main() { fmt.Println("ready"); for { sum += middle(100000) } }
"""


def record(tools, command, directory):
    """Folded stacks with their counts, and the lines of names/stacks, of a program that has said "ready"."""
    path = tools.path("runtime.trace.zip")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=directory)
    try:
        if process.stdout.readline().strip() != b"ready":
            raise Skip(f"{command[0]} does not run")
        done = subprocess.run([tools.program, "record", str(process.pid), "-F", "499", "-d", "2", "--no-kernel", "-o", path], capture_output=True, text=True,
                              check=False, timeout=60)
    finally:
        process.kill()
        process.communicate()
    if "perf_event_open" in done.stderr:
        raise Skip(done.stderr.strip())
    if done.returncode:
        raise Fail(done.stderr)
    folded = {}
    for line in tools.run(tools.program, "report", "cpu", "--format=folded", "-i", path).splitlines():
        stack, count = line.rsplit(" ", 1)
        folded[tuple(stack.split(";")[2:])] = int(count)
    with zipfile.ZipFile(path) as archive:
        notes = [line.split("\t") for line in archive.read("names/stacks").decode().splitlines()]
    return folded, notes


def expect_whole(tools, what, folded, notes, wanted):
    """All but two stacks in a hundred begin where the thread did, and have the wanted functions in this order."""
    total = sum(folded.values())
    good = sum(count for stack, count in folded.items() if is_below(stack, wanted))
    marked = sum(len(note) > 4 for note in notes)
    tools.figure(f"{what}: {good} of {total} stacks go from the start of the thread into the program, {marked} with frames that are marked")
    if total < 3 or good < 0.98 * total - 1:
        raise Fail(f"{what}: {good} of {total} stacks have {wanted}, others: {[stack for stack in folded if not is_below(stack, wanted)][:2]}")
    # Work that the runtime does for itself has none.
    if marked < total / 2:
        raise Fail(f"{what}: frames are marked in {marked} of {total} stacks")


def is_below(stack, wanted):
    rest = iter(stack)
    return all(any(name == function for function in rest) for name in wanted)


def test_record_unwinds_through_v8(tools):
    tools.need("node")
    script = tools.write("burn.js", JAVASCRIPT)
    folded, notes = record(tools, ["node", script], None)
    main = {stack: count for stack, count in folded.items() if "node::Start" in stack or "Builtins_JSEntry" in stack}
    expect_whole(tools, "V8", main, notes, ("_start", "Builtins_JSEntry", "Builtins_JSEntryTrampoline"))


def test_record_unwinds_through_the_jvm(tools):
    tools.need("java", "javac")
    directory = os.path.dirname(tools.write("Burn.java", JAVA))
    tools.run("javac", "Burn.java", cwd=directory)
    folded, notes = record(tools, ["java", "-XX:+PreserveFramePointer", "-cp", directory, "Burn"], directory)
    main = {stack: count for stack, count in folded.items() if "JavaMain" in stack}
    expect_whole(tools, "JVM", main, notes, ("clone3", "start_thread", "JavaMain"))


def test_record_unwinds_go(tools):
    """A function of Go that calls nothing has no frame of its own: its caller, main.middle, is passed over, and the frame behind is marked."""
    tools.need("go")
    source, program = tools.write("runtime-go/main.go", GO), tools.path("burn-go")
    environment = dict(os.environ, CGO_ENABLED="0", GOCACHE=os.path.join(CACHE, "go"), GOPROXY="off", GOTOOLCHAIN="local", HOME=tools.scratch)
    tools.run("go", "build", "-p", "2", "-o", program, source, env=environment)
    folded, notes = record(tools, [program], None)
    main = {stack: count for stack, count in folded.items() if "main.less" in stack}
    expect_whole(tools, "Go", main, notes, ("runtime.main", "main.main", "main.less"))
