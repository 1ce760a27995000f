# SPDX-License-Identifier: MIT
"""profile-bpfcc of a web application with default settings, side by side: as it is, with a map that `watch` keeps complete, with libsym inside."""
import math
import os
import signal
import subprocess

from bcc_tools import Shares, folded, report_of, run_tool
from harness import Memory, Sample, expect
from live_nothing_set import Load, clean_environment, free_port, web_runtime
from sampling import sampling
from waiting import wait_for_turns, wait_until_warm

EXCLUSIVE = True  # BPF programs and perf top see the whole machine

SECONDS = 2
MANAGED_GOAL, NATIVE_GOAL = 0.995, 0.99


class Watch:
    """`dotnet-mapgen watch` of a process, until the end of the `with`."""

    def __init__(self, context, pid):
        self.process = subprocess.Popen([context.mapgen.program, "watch", str(pid), "--interval=0.5"],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                        text=True, env=context.mapgen.environment)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.said = self.process.communicate(timeout=60)[1]


def started(context):
    """The application with nothing set in its environment, under load."""
    port = free_port()
    return Sample(web_runtime(context), clean_environment(), argument=port), Load(port, rest=8)


def profile(context, pid, ours=False):
    rate, seconds = sampling(1999, SECONDS)
    done = run_tool(context, ["profile-bpfcc", "-p", pid, "-U", "-f", "-F", rate, math.ceil(seconds)], ours=ours, addresses=True)
    expect(ours == (report_of(done, pid) is not None), "the wrong library answered")
    shares = Shares(folded(done), Memory(pid))
    shares.memory = Memory(pid)
    return shares


def row(context, way, shares):
    context.figure(f"profile-bpfcc, web, {way:22} managed {100 * shares.share('jit', 'r2r'):6.2f} % of {shares.total('jit', 'r2r'):5}, "
                   f"native {100 * shares.share('native'):6.2f} % of {shares.total('native'):5}, "
                   f"all {100 * shares.share('jit', 'r2r', 'native'):6.2f} %, {shares.total('no code', 'unmapped')} in no code")


def nameless(shares, kind):
    """Where frames of a kind without a name lie, as text."""
    places = {}
    for text, count in shares.unnamed.items():
        if shares.memory.kind_of(int(text, 16)) == kind:
            path = os.path.basename(shares.memory.path_of(int(text, 16)) or "anonymous")
            places[path] = places.get(path, 0) + count
    return ", ".join(f"{path} {count}" for path, count in sorted(places.items(), key=lambda place: -place[1])[:4]) or "none"


def test_profile_bpfcc_of_a_web_application_with_default_settings_side_by_side(context):
    table = {}
    sample, load = started(context)
    with sample, load:
        wait_until_warm(sample.process, 1.5)
        table["as it is"] = profile(context, sample.pid)
        context.mapgen.must("merge", sample.pid)
        with Watch(context, sample.pid) as watch:
            wait_for_turns(watch.process, 4)
            table["merged, and watched"] = profile(context, sample.pid)
        table["ours"] = profile(context, sample.pid, ours=True)
        expect(load.answers > 100, f"{load.answers} answers, {load.failures} failures")
    for way, shares in table.items():
        row(context, way, shares)
    context.figure(f"native frames without a name, ours: {nameless(table['ours'], 'native')}; as it is: {nameless(table['as it is'], 'native')}")
    # A tool that reads a map itself does not know that the address behind a call that does not come back is the caller's: under 1 %.
    for way, native_goal in (("merged, and watched", NATIVE_GOAL - 0.01), ("ours", NATIVE_GOAL)):
        managed, native = table[way].share("jit", "r2r"), table[way].share("native")
        expect(managed >= MANAGED_GOAL, f"{way}: {100 * managed:.2f} % of managed frames, as {sorted(table[way].unnamed.items())[:3]}")
        expect(native >= native_goal, f"{way}: {100 * native:.2f} % of native frames; without a name: "
                                      f"{nameless(table[way], 'native')}; watch said {watch.said!r}")
    expect(table["as it is"].share("jit", "r2r") < 0.5, "libbcc alone names managed code: this measures nothing")
