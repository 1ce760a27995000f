# SPDX-License-Identifier: MIT
"""Pages of dotnet-mapgen flame in a real browser, and speedscope with our file; the oracles are the text that they are made of, and report's totals."""
import base64
import json
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree

from native_tools import Fail, Skip

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "dotnet"))
from harness import npm_package  # noqa: E402

SUPPORT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support")
FOLDED = """app;main;work;parse 60
app;main;work;parse;read 20
app;main;work;write 10
app;main;idle 9
app;start;parse 1
"""
EVIL = "</script><script>window.evil=1</script>"


def drive(tools, script, *words):
    """The state of a page in a browser, as a script of tests/support reads it."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if not browser:
        raise Skip("chromium is not installed")
    tools.need("node")
    playwright, why = npm_package("playwright-core")
    if not playwright:
        raise Skip(why)
    return json.loads(tools.run("node", os.path.join(SUPPORT, script), playwright, browser, *words, timeout=120))


def browse(tools, page, searched, picture=""):
    seen = drive(tools, "flame_page.js", page, searched, picture)
    if seen["errors"] or seen["dialogs"] or any(not url.startswith(("file://", "about:")) for url in seen["requests"]):
        raise Fail(f"the page: {seen['errors']}, {seen['dialogs']} dialogs, requests {seen['requests']}")
    return seen


def expect_equal(seen, wanted, what):
    if seen != wanted:
        raise Fail(f"{what}: {seen!r}, not {wanted!r}")


def test_flame_page_is_used_by_mouse_and_keyboard(tools):
    text, page = tools.write("app.folded", FOLDED), tools.path("app.html")
    tools.run(tools.program, "flame", "-i", text, "-o", page)
    seen = browse(tools, page, "parse", tools.path("app.png"))
    expect_equal(seen["total"], 100, "samples")
    expect_equal(seen["zoomed"], "#node=1", "a click")
    expect_equal(seen["back"], "", "Esc")
    # From main, which was clicked, two arrows down.
    expect_equal(seen["status"], "parse  80 samples, 80.0 % of all, 88.9 % of its caller; self 60.0 %", "two arrows and Enter")
    expect_equal(seen["callees"][0], "callees", "c")
    expect_equal(seen["callers"][0], "callers", "c again")
    expect_equal(seen["callers"][1], seen["callees"][1], "the weight of a function among callers and callees")
    expect_equal(seen["inverted"], ["inverted", 100], "i")
    expect_equal(seen["matched"].split(",")[0], "81.0 % matched", "the share of what matches")
    expect_equal(seen["first"], "81.0 % matched, 1 of 2", "the first match")
    if not seen["found"].startswith("parse  80 samples, 80.0 % of all"):
        raise Fail(f"the first match is not the largest: {seen['found']}")
    expect_equal(seen["row"].split("\t")[0:2], ["61.0 %", "81.0 %"], "self and total of the first row")
    expect_equal(seen["again"][1:], [seen["again"][0], "81.0 % matched, 0 of 2"], "the same link in a new page")
    if not seen["isDark"] or seen["overflow"] > 0 or os.path.getsize(tools.path("app.png")) < 5000:
        raise Fail(f"dark {seen['isDark']}, {seen['overflow']} pixels too wide at 400")


def test_flame_page_runs_nothing_of_a_name(tools):
    names = [EVIL, "\"'`${evil=1}", "<img src=x onerror=evil=1>", "n" * 60000, "a\u202eb\u009bc"]
    text, page, picture = tools.write("evil.folded", "".join(f"app;{name} {i + 1}\n" for i, name in enumerate(names))), tools.path("evil.html"), tools.path("evil.svg")
    for output in (page, picture):
        tools.run(tools.program, "flame", "-i", text, "-o", output)
    root = xml.etree.ElementTree.parse(picture).getroot()
    if any(element.tag.rpartition("}")[2] not in ("svg", "g", "title", "rect", "text") for element in root.iter()):
        raise Fail("the picture has other elements than boxes and text")
    seen = browse(tools, page, "evil")
    if seen["evil"] or seen["total"] != 15 or not any("script" in name for name in seen["names"]):
        raise Fail(f"{seen}")


def test_flame_page_has_the_totals_of_report(tools):
    tools.need("perf", "gcc")
    source = tools.write("burn.c", "static int f(int n) { volatile int x = n; while (x < 100000000) x++; return x; }\nint main(void) { return f(1) + f(2) == 3; }\n")
    tools.run("gcc", "-O1", "-o", tools.path("burn"), source)
    data, page = tools.path("burn.data"), tools.path("burn.html")
    done = subprocess.run(["perf", "record", "-q", "-e", "cpu-clock", "-g", "-o", data, tools.path("burn")], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1) or not os.path.exists(data):
        raise Skip(f"perf cannot record: {done.stderr.strip()}")
    folded = tools.run(tools.program, "report", "cpu", "-i", data, "--format=folded")
    total = sum(int(line.rpartition(" ")[2]) for line in folded.splitlines())
    tools.run(tools.program, "flame", "-i", data, "-o", page)
    seen = browse(tools, page, "main")
    if not total or seen["total"] != total:
        raise Fail(f"the page has {seen['total']} samples, report {total}")


def test_speedscope_opens_our_file(tools):
    """speedscope itself, from npm; its table has the total and the own samples of each function."""
    package, why = npm_package("speedscope")
    if not package:
        raise Skip(why)
    text, path = tools.write("app.folded", FOLDED), tools.path("app.speedscope.json")
    tools.run(tools.program, "report", "cpu", "-i", text, "--format=speedscope", "-o", path)
    with open(path, "rb") as file:
        script = tools.write("load.js", f'speedscope.loadFileFromBase64("app.speedscope.json", "{base64.b64encode(file.read()).decode()}")')
    seen = drive(tools, "speedscope_page.js", f"file://{package}/dist/release/index.html#localProfilePath={script}", "speedscope", "")
    rows = {name: (total, own) for total, own, name in seen["rows"]}
    wanted = {"main": ("99 (99%)", "0 (<0.01%)"), "work": ("90 (90%)", "0 (<0.01%)"), "parse": ("81 (81%)", "61 (61%)"), "read": ("20 (20%)", "20 (20%)"),
              "write": ("10 (10%)", "10 (10%)"), "idle": ("9 (9.0%)", "9 (9.0%)"), "start": ("1 (1.0%)", "0 (<0.01%)")}
    expect_equal({name: rows.get(name) for name in wanted}, wanted, "speedscope's table")
    expect_equal(seen["errors"], [], "errors of speedscope")


def test_flame_says_where_threads_wait(tools):
    """The innermost function of the program, not the scheduler of the kernel, in which every wait ends."""
    tools.need("gcc")
    tools.run("gcc", "-O1", "-o", tools.path("waits"), tools.write("waits.c", "#include <unistd.h>\n__attribute__((noinline)) void wait_here(void) { usleep(2000); }\nint main(void) { for (;;) wait_here(); }\n"))
    process = subprocess.Popen([tools.path("waits")])
    try:
        done = subprocess.run([tools.program, "flame", "--view=off-cpu", "-d", "1", "-o", tools.path("waits.html"), str(process.pid)], capture_output=True, text=True, check=False)
    finally:
        process.kill()
        process.wait()
    if "perf_event_open" in done.stderr or "CAP_PERFMON" in done.stdout:
        raise Skip(f"no events: {done.stderr.strip()}")
    top = next((line for line in done.stdout.splitlines() if line.startswith("  top: ")), "")
    # A busy machine loses stacks of some waits.
    if done.returncode or "schedule" in top or "nanosleep" not in top.split(",")[0]:
        raise Fail(f"{done}")


def test_flame_says_why_it_writes_nothing(tools):
    empty, text = tools.write("empty.folded", ""), tools.write("app.folded", FOLDED)
    for words, code in ((("-i", text, "-o", "x.pdf"), 2), ((), 2), (("-i", text, "1"), 2), (("-i", tools.path("none")), 1), (("-i", empty, "-o", tools.path("e.html")), 1),
                        (("-i", text, "-o", "/dev/full/x.html"), 1)):
        done = subprocess.run([tools.program, "flame", *words], capture_output=True, text=True, check=False, cwd=tools.scratch)
        if done.returncode != code or len(done.stderr.splitlines()) != 1:
            raise Fail(f"{words}: {done}")
