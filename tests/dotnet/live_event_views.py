# SPDX-License-Identifier: MIT
"""report on streams of runtimes: a program that makes events counts them for itself, and TraceEvent reads the same file.

The stream comes from Microsoft's own client, not from ours.
"""
import contextlib
import json
import os
import re
import shutil
import subprocess

import shapes
from harness import Skip, build_environment, build_project, built, expect, npm_program, remove_leftovers

RUNTIME = "Microsoft-Windows-DotNETRuntime"
# GC with allocation ticks, JIT, contention, exceptions, thread pool, wait handles.
KEYWORDS = 0x4000001D011
SAMPLED_ALLOCATIONS = 0x80000000000
ROUNDS, ORDERS, GENERATED = 20, 100, 40
SECONDS = 100


def dotnet_of(version):
    if version == "10.0":
        return shutil.which("dotnet")
    if version == "3.1":
        dotnet, why = npm_program("dotnet-3.1-linux-x64")
    else:
        root, why = shapes._lay_out(version)
        dotnet = root and os.path.join(root, "dotnet")
    if why:
        raise Skip(why)
    return dotnet


def eventful(version):
    artifacts = built("eventful")
    why = build_project("tests/dotnet/eventful", artifacts)
    if why:
        raise Skip(f"the program does not build: {why}")
    return [dotnet_of(version), os.path.join(artifacts, "bin", "eventful", "release", "eventful.dll")]


@contextlib.contextmanager
def running(command, **words):
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **words)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()
        remove_leftovers(process.pid)


def record(context, version, keywords, counters=True):
    """(path of the stream, what the program has counted)."""
    path = os.path.join(context.scratch, f"{version}-{keywords:x}.nettrace")
    environment = dict(build_environment(), DOTNET_ROLL_FORWARD="LatestMajor")
    environment.pop("DOTNET_ROOT", None)
    # Without the flow of activities in tasks no EventSource has any.
    providers = [f"{RUNTIME}:{keywords:X}:5", "Contoso-Orders:FFFFFFFFFFFF:5", "System.Threading.Tasks.TplEventSource:80:4"]
    if counters:
        providers[1] += ":EventCounterIntervalSec=1"
    with running(eventful(version), env=environment) as program:
        expect(program.stdout.readline() == "ready\n", "the program has not started")
        with running(["dotnet", context.oracle(), "record", str(program.pid), path, *providers]) as session:
            expect(session.stdout.readline() == "started\n", "the session has not started")
            program.stdin.write("go\n")
            program.stdin.flush()
            own = json.loads(program.stdout.readline())
            session.communicate("stop\n", timeout=SECONDS)
            expect(session.returncode == 0, "the session has failed")
    return path, own


def read(context, path, view, *words):
    return json.loads(context.mapgen.must("report", view, "-i", path, "--format=json", "--top=0", *words).stdout)


def same(ours, theirs, what):
    expect(ours == theirs, f"{what}: {ours}, and not {theirs}")


def check_collections(context, path, own, oracle):
    ours = read(context, path, "gc")
    gen0, gen1, gen2 = ours["by_generation"]
    same([gen0, gen1, gen2 + ours["without_events"]], own["collections"], "collections by generation, as the program counts")
    same(ours["without_events"], 1, "collections without events")
    same([(row["number"], row["generation"]) for row in ours["collections"]],
         [(row["number"], row["generation"]) for row in oracle["collections"]], "collections")
    for row, other in zip(ours["collections"], oracle["collections"]):
        expect(abs(row["pause_ms"] - other["pause_ms"]) < 0.001, f"pause of {row['number']}: {row['pause_ms']}, and not {other['pause_ms']}")
        same(row["promoted_bytes"], round(other["promoted"]), f"what survived {row['number']}")
        same(row["after_bytes"], round(other["after"]), f"heap after {row['number']}")
        same(row["before_bytes"], round(other["before"]), f"heap before {row['number']}")
    expect(any("Program.Collect" == row["started_by"] for row in ours["collections"]), f"nothing was started by Program.Collect: {ours}")


def check_allocations(context, path, own, oracle, is_sampled):
    ours = read(context, path, "alloc")
    rows = {row["type"]: row for row in ours["types"]}
    theirs = oracle["sampled" if is_sampled else "allocations"]
    same({name: row["count"] for name, row in rows.items()}, {name: row["count"] for name, row in theirs.items()}, "samples by type")
    if not is_sampled:
        same({name: row["bytes"] for name, row in rows.items()}, {name: round(row["weight"]) for name, row in theirs.items()}, "bytes by type")
    for name, count in own["bytes"].items():
        # Two errors are four standard deviations.
        error = abs(rows[name]["bytes"] - count) / count * 100
        expect(error <= 2 * rows[name]["error_percent"], f"{name}: {rows[name]['bytes']} bytes, and not {count}")
    expect(rows["Contoso.Eventful.Node"]["from"].startswith("Program.AllocateNodes"), f"Node is from {rows['Contoso.Eventful.Node']['from']}")


def check_exceptions(context, path, own, oracle):
    ours = {row["type"]: row["count"] for row in read(context, path, "exceptions")["types"]}
    same(ours, {name: row["count"] for name, row in oracle["exceptions"].items()}, "exceptions")
    for name, count in own["exceptions"].items():
        same(ours[name], count, name)
    text = context.mapgen.must("report", "exceptions", "-i", path).stdout
    expect('"closed??[31m"' in text, f"a message of several lines: {text}")


def check_locks(context, path, own, oracle):
    ours = read(context, path, "contention")
    same(sum(row["waits"] for row in ours["locks"]), oracle["contention"]["count"], "waits for locks")
    expect(abs(ours["waited_ms"] - oracle["contention"]["weight"]) < 0.1, f"{ours['waited_ms']} ms, and not {oracle['contention']}")
    waits = sum(row["waits"] for row in ours["locks"] if "Contend" in row["from"])
    same(waits, ROUNDS, "waits for the lock of the program")
    # From .NET 9 on.
    if oracle["waits"]["count"]:
        same(read(context, path, "waits")["count"], oracle["waits"]["count"], "waits for handles")


def check_columns(context, path, view, title, last):
    """The last column, whose texts match, begins where its title begins."""
    lines = context.mapgen.must("report", view, "-i", path).stdout.splitlines()
    head = next(line for line in lines if line.endswith(title))
    begins = {len(line) - len(found[0]) for line in lines for found in [re.search(last, line)] if found}
    same(begins, {head.index(title)}, f"columns of {view}: {lines}")


def check_rows_of_stacks(context, path, own):
    """With --by a view of events has functions, as a view of samples has."""
    view = read(context, path, "exceptions", "--by=function")["views"][0]
    rows = {row["name"]: row["total_samples"] for row in view["rows"]}
    same((rows.get("Program.ThrowOrder"), rows.get("Program.ThrowState")), (200, 50), "exceptions by function")
    same((view["unit"], read(context, path, "alloc", "--by=image")["views"][0]["unit"]), ("events", "bytes"), "units")
    done = context.mapgen.run("report", "gc", "-i", path, "--thread=x")
    same((done.returncode, done.stdout), (2, ""), "--thread of a view without threads")


def check_window(context, path):
    view = read(context, path, "events", "--from=0.1", "--to=0.3")
    same(view["count"], sum(row["count"] for row in view["kinds"]), "events of a part of the time")


def check_methods(context, path, oracle):
    ours = read(context, path, "jit")
    same(ours["count"], len(oracle["methods"]), "compilations")
    time_ms = sum(row["milliseconds"] for row in oracle["methods"])
    expect(abs(ours["time_ms"] - time_ms) < 0.1, f"{ours['time_ms']} ms of compilation, and not {time_ms}")
    same(sum(row["count"] for row in ours["methods"] if "::Generated" in row["method"]), GENERATED, "methods that were made at run time")


def check_events(context, path, own, oracle):
    ours = read(context, path, "events")
    same(sum(row["count"] for row in ours["kinds"]), sum(row["count"] for row in oracle["kinds"].values()), "events")
    same(ours["event_losses"]["dropped"], oracle["lost"], "losses")
    lines = read(context, path, "events", "--event=^Contoso-Orders/Placed$")["events"]
    same(len(lines), own["orders"], "orders")
    for line, order in zip(lines, oracle["orders"]):
        same(line["fields"], 'id={id} customer="{customer}" price={price} express={0} tag={tag}'.format(order["express"].lower(), **order), "fields")
        expect((line["activity"] or "").startswith("//"), f"activity {line['activity']}")
        expect("Program.Order" in line["stack"], f"stack {line['stack']}")
    activity = {row["activity"]: row["count"] for row in ours["activities"]}
    same(activity.get("Contoso-Orders/Handle"), ORDERS, "activities")


def check(context, version, keywords=KEYWORDS, counters=True):
    path, own = record(context, version, keywords, counters)
    done = subprocess.run(["dotnet", context.oracle(), "events", path], capture_output=True, text=True, timeout=SECONDS)
    expect(done.returncode == 0, f"TraceEvent: {done.stderr.strip()}")
    oracle = json.loads(done.stdout)
    check_collections(context, path, own, oracle)
    check_allocations(context, path, own, oracle, bool(keywords & SAMPLED_ALLOCATIONS))
    check_exceptions(context, path, own, oracle)
    check_locks(context, path, own, oracle)
    check_methods(context, path, oracle)
    check_events(context, path, own, oracle)
    check_rows_of_stacks(context, path, own)
    check_window(context, path)
    check_columns(context, path, "jit", "METHOD", r"\S+::\S+$")
    check_columns(context, path, "events", "PROVIDER", r"\b(Microsoft-Windows|Contoso|System\.)\S+$")
    text = context.mapgen.must("report", "-i", path).stdout
    for title in ("GC: ", "Allocations: ", "Exceptions: ", "Lock waits: ", "Compilations: ", "Events: "):
        expect(f"\n{title}" in "\n" + text, f"the summary has no line {title}: {text}")
    return path


def test_report_counts_as_program_and_traceevent_8(context):
    check(context, "8.0")


def test_report_counts_as_program_and_traceevent_10(context):
    path = check(context, "10.0", KEYWORDS | SAMPLED_ALLOCATIONS)
    page = os.path.join(context.scratch, "page.html")
    said = context.mapgen.must("flame", "-i", path, "--view=alloc", "-o", page).stdout
    expect("lost" not in said, f"records of the kernel are counted for events of the runtime: {said}")
    with open(page, encoding="utf-8") as file:
        text = file.read()
    for tab in ("allocations", "exceptions", "locks", "GC", "JIT"):
        expect(f'"title":"{tab}"' in text, f"the page has no tab {tab}")
