# SPDX-License-Identifier: MIT
"""profile-bpfcc on three workloads, side by side: as it is, with a merged map, with libsym inside.

Each cell is a process of its own, started without any variable, profiled once it is warm. Printed: the share of user
frames with a name (or, for native code, the bounds of a function), by the memory they lie in.
"""
import argparse
import glob
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "dotnet"))
from bcc_tools import NO_VARIABLE, Shares, folded, run_tool, workload_runtime  # noqa: E402
from harness import Mapgen, Memory, Sample, Skip, remove_leftovers  # noqa: E402

WARM_SECONDS = 6
METHODS = 250000


class Compiler:
    """The C# compiler of the SDK at work on one large file."""

    def __init__(self, scratch):
        compiler = sorted(glob.glob("/usr/*/dotnet/sdk/*/Roslyn/bincore/csc.dll"))
        library = sorted(glob.glob("/usr/*/dotnet/shared/Microsoft.NETCore.App/10.*/System.Private.CoreLib.dll"))
        if not compiler or not library:
            raise Skip("no C# compiler")
        source = os.path.join(scratch, "large.cs")
        with open(source, "w", encoding="utf-8") as file:
            for number in range(METHODS // 10):
                methods = " ".join(f"public static long M{i}(long a) {{ long s = 0; for (long j = 0; j < a; j++) s += j * {i} + M{(i + 1) % 10}(j); return s; }}"
                                   for i in range(10))
                file.write(f"static class C{number} {{ {methods} }}\n")
        self.process = subprocess.Popen(
            ["dotnet", compiler[-1], "-nologo", "-noconfig", "-nostdlib", "-t:library", "-r:" + library[-1],
             "-out:" + os.path.join(scratch, "large.dll"), source],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={name: value for name, value in os.environ.items() if not name.startswith("DOTNET_")} | NO_VARIABLE)
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        remove_leftovers(self.pid)


class Context:
    def __init__(self, build, scratch):
        self.mapgen = Mapgen(build, scratch)


def start(kind, scratch):
    if kind == "compiler":
        return Compiler(scratch)
    runtime, why = workload_runtime(kind)
    if why:
        raise Skip(why)
    return Sample(runtime, NO_VARIABLE)


def measure(context, kind, way, scratch):
    with start(kind, scratch) as process:
        time.sleep(WARM_SECONDS)
        if way == "merged":
            context.mapgen.must("merge", process.pid)
        done = run_tool(context, ["profile-bpfcc", "-p", process.pid, "-U", "-f", "-F", 99, 5], ours=way == "libsym",
                        addresses=True)
        return Shares(folded(done), Memory(process.pid))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("kinds", nargs="*", default=["linq", "web", "compiler"])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="libsym-bench-") as scratch:
        context = Context(arguments.build, scratch)
        for kind in arguments.kinds:
            for way in ("as it is", "merged", "libsym"):
                try:
                    shares = measure(context, kind, way, scratch)
                except (Skip, OSError) as why:
                    print(f"bcc_profile_{kind}: skipped: {why}", flush=True)
                    break
                managed, native = 100 * shares.share("jit", "r2r"), 100 * shares.share("native")
                everything = 100 * shares.share("jit", "r2r", "native")
                verdict = "" if way != "libsym" else \
                    "goal=99.5%,99% " + ("ok" if managed >= 99.5 and native >= 99 else "short")
                print(f"bcc_profile_{kind} {way:8} managed={managed:.2f}% of {shares.total('jit', 'r2r')} "
                      f"native={native:.2f}% of {shares.total('native')} all={everything:.2f}% {verdict}".rstrip(), flush=True)


if __name__ == "__main__":
    main()
