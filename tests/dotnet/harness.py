# SPDX-License-Identifier: MIT
"""Shared by live tests and the demo: a report, a .NET runtime, a sample process.

Every process that is started here is ended here, by its id, and the files that
a .NET process leaves in /tmp go with it. Knows how to get a runtime and a
built sample; knows nothing of what is tested.
"""
import bisect
import contextlib
import fcntl
import functools
import glob
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
from r2r_image import Code  # noqa: E402
from runner import CACHE, CI, Fail, Missing, Skip, need  # noqa: E402,F401
from waiting import is_in_time  # noqa: E402


def expect(condition, why):
    if not condition:
        raise Fail(why)


def first_line(text):
    lines = text.strip().splitlines()
    return lines[0] if lines else "no output"


# ---- runtimes ---------------------------------------------------------------

class Runtime:
    """A way to run the sample: the program `dotnet` of it and the sample's dll."""

    def __init__(self, dotnet, sample, framework, description):
        self.dotnet = dotnet
        self.sample = sample
        self.framework = framework
        self.description = description
        self.command = [dotnet, sample]


def build_environment():
    environment = dict(os.environ, DOTNET_CLI_TELEMETRY_OPTOUT="1", DOTNET_NOLOGO="1",
                       DOTNET_CLI_USE_MSBUILD_SERVER="0", MSBUILDDISABLENODEREUSE="1")
    environment.setdefault("HOME", tempfile.gettempdir())
    return environment


@contextlib.contextmanager
def one_at_a_time(directory):
    """While another check makes the same directory, waits for it."""
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, ".lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _sources():
    """Paths, from the checkout's top, of the files of all C# projects."""
    for top in ("fixtures/src", "tests/dotnet"):
        for directory, directories, names in sorted(os.walk(os.path.join(ROOT, top))):
            directories[:] = sorted(name for name in directories if name not in ("bin", "obj"))
            for name in sorted(names):
                if name.endswith((".cs", ".csproj", ".fs", ".fsproj", ".props", ".targets", ".il")):
                    yield os.path.relpath(os.path.join(directory, name), ROOT)


@functools.cache
def _sources_digest():
    """Equal for equal sources of all C# projects and an equal SDK."""
    digest = hashlib.sha256((sdk_version() or "").encode())
    for path in _sources():
        with open(os.path.join(ROOT, path), "rb") as file:
            digest.update(path.encode() + b"\0" + file.read())
    return digest.hexdigest()[:12]


def built(name):
    """Directory for what is built of the C# projects. It is outside the checkout, so that the next checkout finds it too."""
    return os.path.join(CACHE, "built", _sources_digest(), name)


@functools.cache
def copy_of_sources():
    """Directory with a copy of the sources. It lives as long as what is built of it: a PDB names the files that were compiled."""
    copy = built("sources")
    with one_at_a_time(copy):
        for path in _sources():
            target = os.path.join(copy, path)
            if not os.path.exists(target):
                os.makedirs(os.path.dirname(target), exist_ok=True)
                shutil.copyfile(os.path.join(ROOT, path), target + ".new")
                os.rename(target + ".new", target)
    return copy


def build_project(project, artifacts, *properties):
    """Builds a C# project into a directory of built(), unless it is there; None, or why not."""
    need("dotnet")
    # A file for each set of properties: some tests build one project in several ways into one directory.
    key = hashlib.sha256(repr((project, properties)).encode()).hexdigest()[:12]
    done_before = os.path.join(artifacts, f".built-{key}")
    with one_at_a_time(artifacts):
        if os.path.exists(done_before):
            return None
        done = subprocess.run(
            ["dotnet", "build", os.path.join(copy_of_sources(), project), "-c", "Release", "-v", "q", "-nodeReuse:false",
             "--artifacts-path", artifacts, *properties],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, env=build_environment())
    if done.returncode:
        errors = [line for line in done.stdout.splitlines() if "error" in line.lower()]
        return first_line("\n".join(errors) or done.stdout + done.stderr)
    with open(done_before, "w", encoding="utf-8"):
        return None


@functools.cache
def sdk_version():
    """Version of the .NET SDK on PATH as text, or None."""
    try:
        done = subprocess.run(["dotnet", "--version"], capture_output=True, text=True, cwd="/")
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def sdk_runtime():
    """Runtime of the SDK on PATH with the sample built from source; (Runtime, None) or (None, why)."""
    version = sdk_version()
    if not version:
        return None, "no .NET SDK"
    framework = f"net{version.split('.')[0]}.0"
    artifacts = built(framework)
    why = build_project("fixtures/src/sample", artifacts, f"-p:SampleFramework={framework}")
    if why:
        return None, f"the SDK {version} did not build the sample: {why}"
    sample = os.path.join(artifacts, "bin", "sample", "release", "sample.dll")
    return Runtime(shutil.which("dotnet"), sample, framework, f"the .NET SDK {version}, sample built from source"), None


NPM_PACKAGE = "dotnet-3.1-linux-x64"


def npm_package(package):
    """Directory of an npm package; (path, None) or (None, why). Each package has a directory of its own: npm takes away what it did
    not install last."""
    directory = os.path.join(CACHE, "npm", package)
    path = os.path.join(directory, "node_modules", package)
    if not shutil.which("npm") and not os.path.exists(path):
        return None, "no npm"
    with one_at_a_time(directory):
        if not os.path.exists(path):
            done = subprocess.run(["npm", "install", "--prefix", directory, "--no-audit", "--no-fund", "--ignore-scripts",
                                   "--no-package-lock", "--no-save", package], stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True)
            if done.returncode or not os.path.exists(path):
                return None, f"npm could not install {package}: {first_line(done.stderr)}"
    return path, None


def npm_program(package):
    """The `dotnet` of an npm package; (path, None) or (None, why)."""
    path, why = npm_package(package)
    if not path:
        return None, why
    program = os.path.join(path, "dotnet")
    os.chmod(program, 0o755)
    return program, None


def npm_runtime():
    """.NET Core 3.1 out of the npm package, with the prebuilt sample; (Runtime, None) or (None, why)."""
    dotnet, why = npm_program(NPM_PACKAGE)
    if not dotnet:
        return None, why
    sample = os.path.join(ROOT, "fixtures", "prebuilt", "sample.dll")
    if not os.path.exists(sample):
        return None, "fixtures/prebuilt/sample.dll is missing"
    return Runtime(dotnet, sample, "netcoreapp3.1", f".NET Core 3.1 from the npm package {NPM_PACKAGE}"), None


# ---- the sample process -----------------------------------------------------

def stop(process):
    """From here on nothing in it changes: a signal is sent before it is obeyed."""
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)


class Sample:
    """A running sample process. Use it in a `with` statement, whose end ends it."""

    LONGEST_SECONDS = 900
    # How many times as long as it works it rests where all that is tested is that it is there.
    REST_TIMES = 100

    def __init__(self, runtime, environment=None, prefix=(), argument=LONGEST_SECONDS, resting=False):
        self.output = ""
        variables = {name: value for name, value in os.environ.items()
                     if not name.startswith(("DOTNET_PerfMap", "DOTNET_Tiered", "COMPlus_"))}
        variables.update(environment or {})
        self.process = subprocess.Popen(
            [*prefix, *runtime.command, str(argument), *([str(self.REST_TIMES)] if resting else [])],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=variables)
        self.pid = self.process.pid
        line = self.process.stdout.readline()
        if line.strip() != "ready":
            self.end()
            raise Fail(f"the sample did not start: {line.strip() or 'no output'}")
        # Runtimes before .NET 6 tell the system no names of threads; behind a prefix the process may be another.
        if not prefix and isinstance(runtime, Runtime) and runtime.framework.startswith("net1") and \
                os.path.basename(runtime.sample) == "sample.dll":
            self.wait_for_worker()

    def wait_for_worker(self):
        """perf record follows the threads that it finds, and what they start later, but none that begins in between."""
        is_in_time(lambda: "worker" in self.thread_names() or not self.alive(), 5, 0.005)

    def thread_names(self):
        names = set()
        for path in glob.glob(f"/proc/{self.pid}/task/*/comm"):
            with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
                names.add(file.read().strip())
        return names

    @property
    def map_path(self):
        return f"/tmp/perf-{self.pid}.map"

    def alive(self):
        return self.process.poll() is None

    def stand_still(self):
        stop(self.process)

    def go_on(self):
        """Ends stand_still()."""
        self.process.send_signal(signal.SIGCONT)

    def end(self):
        if self.alive():
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()
        remove_leftovers(self.pid)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


def remove_leftovers(pid):
    """Removes what a .NET process leaves in /tmp."""
    for pattern in (f"perf-{pid}.map*", f"jit-{pid}.dump", f"perfinfo-{pid}.map", f"dotnet-diagnostic-{pid}-*",
                    f"clr-debug-pipe-{pid}-*"):
        for path in glob.glob("/tmp/" + pattern):
            os.unlink(path)


class Memory:
    """The mappings of a process at one moment, by kind of code."""

    def __init__(self, pid, root=""):
        self.starts, self.rows, self.offsets, self.images = [], [], [], {}
        with open(f"{root}/proc/{pid}/maps", encoding="utf-8", errors="replace") as lines:
            for line in lines:
                fields = line.rstrip("\n").split(None, 5)
                start, end = (int(part, 16) for part in fields[0].split("-"))
                self.starts.append(start)
                self.offsets.append(int(fields[2], 16))
                self.rows.append((start, end, fields[1], fields[5] if len(fields) > 5 else ""))

    def index_of(self, address):
        at = bisect.bisect_right(self.starts, address) - 1
        return None if at < 0 or address >= self.rows[at][1] else at

    def row_of(self, address):
        """(start, end, protection, path) of what is mapped there; None for nothing."""
        at = self.index_of(address)
        return None if at is None else self.rows[at]

    def path_of(self, address):
        """The path that is mapped there: '' for anonymous memory, None for nothing."""
        row = self.row_of(address)
        return row and row[3]

    def kind_of(self, address):
        """'r2r', 'jit', 'native', 'unmapped'; 'no code' for what may not be executed and for the IL in images: perf and BPF
        follow frame pointers, which native code that was built without them uses for data; others guess callers."""
        at = self.index_of(address)
        if at is None:
            return "unmapped"
        row = self.rows[at]
        if "x" not in row[2]:
            return "no code"
        path = row[3]
        if path.lower().endswith((".dll", ".exe")):
            code = self.images.get(path) or self.images.setdefault(path, Code(path))
            return "r2r" if code.may_be_at(self.offsets[at] + address - row[0]) else "no code"
        if not path or path.startswith(("/memfd:doublemapper", "[anon", "/dev/zero")):
            return "jit"
        return "native"


# ---- dotnet-mapgen ----------------------------------------------------------

class Mapgen:
    """Runs the program under test; keeps its cache away from the user's."""

    def __init__(self, build, scratch):
        self.program = os.path.join(ROOT, build, "dotnet-mapgen")
        self.environment = dict(os.environ, XDG_CACHE_HOME=os.path.join(scratch, "cache"), LC_ALL="C.UTF-8")
        self.seconds = 0.0

    def run(self, *arguments, stdin=None, timeout=120):
        """CompletedProcess; never raises for an exit code."""
        begin = time.monotonic()
        done = subprocess.run([self.program, *map(str, arguments)], input=stdin, capture_output=True, text=True,
                              errors="surrogateescape", env=self.environment, timeout=timeout,
                              **({} if stdin is not None else {"stdin": subprocess.DEVNULL}))
        self.seconds = time.monotonic() - begin
        expect(done.returncode >= 0, f"{arguments} died of signal {-done.returncode}")
        return done

    def must(self, *arguments, codes=(0,), **options):
        done = self.run(*arguments, **options)
        expect(done.returncode in codes, f"{' '.join(map(str, arguments))}: exit code {done.returncode}: {first_line(done.stderr or done.stdout)}")
        return done

    def resolve(self, pid, addresses, *options):
        """{address: answer} for a process; an answer is a dict as --json prints it."""
        text = "".join(f"{address:#x}\n" for address in addresses)
        done = self.run("resolve", pid, "--json", *options, stdin=text)
        expect(done.returncode in (0, 3), f"resolve: exit code {done.returncode}: {first_line(done.stderr)}")
        answers = json.loads(done.stdout)
        expect(len(answers) == len(addresses), f"{len(answers)} answers for {len(addresses)} addresses")
        return dict(zip(addresses, answers))


def read_map(path):
    """Rows (start, size, name) of a perf map, in the order of the file."""
    rows = []
    with open(path, encoding="utf-8", errors="surrogateescape", newline="\n") as lines:
        for line in lines:
            if not line.endswith("\n"):
                break  # its writer is in the middle of it
            start, size, name = line[:-1].split(" ", 2)
            rows.append((int(start, 16), int(size, 16), name))
    return rows


def without_tier(name):
    """A map's name without the optimisation tier at its end."""
    return name[: name.rindex("[")] if name.endswith("]") and ")" in name and name.rindex("[") > name.rindex(")") else name


def say(text=""):
    print(text, flush=True)


def fatal(text):
    print(text, file=sys.stderr)
    sys.exit(1)
