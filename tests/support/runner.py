# SPDX-License-Identifier: MIT
"""Runs the Python tests of tests/dotnet, tests/native and tests/symsrv.

A test is a function that takes the context of its suite. It passes when it returns. One line a test:

    ok NAME (SECONDS s)        FAILED NAME: why        skipped NAME: why

Figures of a test stand before its line, indented. A test raises Skip when something that it needs is missing
(`needs` does that for programs), and Missing when .NET is missing: with CI=true that is a failure.

With -j N up to N tests run side by side, each in one of N processes. A process has a context and scratch space of its
own, and gets the tests of one file as long as there are any, so that they can share what they have made. Tests
marked with `exclusive`, and all of a module with EXCLUSIVE = True, run alone after the others.

Where lanes run side by side (all-checks.sh sets SECOND_RUN), a few tests that fail run a second time, alone, after all
others. The last lines say which, and why: such a test needs mending.
"""
import argparse
import contextlib
import ctypes
import functools
import gc
import importlib
import multiprocessing
import multiprocessing.connection
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

CI = os.environ.get("CI") == "true"
SECOND_RUN = "SECOND_RUN" in os.environ
# A cache may answer with an object file of another directory, whose split DWARF is then not where it says.
os.environ["CCACHE_DISABLE"] = "1"
# A directory that later checkouts use, too. Names in it come from the content of the sources.
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "libsym-tests")
# Some tests publish applications first, which takes minutes on a slow machine.
LONGEST_SECONDS = 1800
# More failures than these are no chance.
MOST_SECOND_RUNS = 8


class Skip(Exception):
    """Raised by a test that cannot run here. The text names what is missing."""


class Missing(Skip):
    """Raised when .NET is missing. With CI=true the test fails."""


class Fail(AssertionError):
    """Raised by a test whose expectation does not hold."""


def find_program(name):
    return shutil.which(name, path=os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin")


def need(*programs):
    """Skips the test unless all these programs are installed."""
    for program in programs:
        if not find_program(program):
            raise Missing("no .NET SDK") if program == "dotnet" else Skip(f"{program} is not installed")


def needs(*programs):
    """Decorator: the test needs these programs."""
    def decorate(function):
        @functools.wraps(function)
        def checked(*arguments):
            need(*programs)
            return function(*arguments)
        return checked
    return decorate


def exclusive(function):
    """Decorator: the test runs alone, because others would change what it measures or share what it changes."""
    function.exclusive = True
    return function


def adopt_orphans():
    """Processes whose parent ends become children of this one."""
    PR_SET_CHILD_SUBREAPER = 36
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children():
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            if int(file.read().rpartition(")")[2].split()[1]) == os.getpid():
                found.append(int(pid))
    return found


def end_children():
    """Ends what tests have left behind, and what that leaves behind."""
    while (left := children()):
        for pid in left:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


class Test:
    def __init__(self, name, function, module):
        self.name = name
        self.function = function
        self.module = module
        self.exclusive = getattr(function, "exclusive", False) or getattr(sys.modules.get(function.__module__), "EXCLUSIVE", False)

    def is_wanted(self, words):
        own = self.function.__name__
        return not words or any(word in (self.module, own) or word in self.name or word in own for word in words)


def tests_of(module_names, prefix=""):
    """Tests of modules: their functions test_*, in the order of the file."""
    tests = []
    for module_name in module_names:
        module = importlib.import_module(module_name)
        found = [value for name, value in vars(module).items() if name.startswith("test_")]
        # A decorated function has the line of the function that it wraps.
        found.sort(key=lambda function: getattr(function, "__wrapped__", function).__code__.co_firstlineno)
        tests += [Test(prefix + function.__name__.removeprefix("test_").replace("_", " "), function, module_name)
                  for function in found]
    return tests


def take_too_long(*_):
    raise Fail(f"it did not end within {LONGEST_SECONDS} s")


def cpu_seconds():
    """CPU time of this process and of those of its children that have ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def outcome_of(name, function, context):
    """(state, line) of a test that is run here."""
    signal.signal(signal.SIGALRM, take_too_long)
    signal.alarm(LONGEST_SECONDS)
    begin, cpu_begin = time.monotonic(), cpu_seconds()
    try:
        function(context)
    except Skip as why:
        if CI and isinstance(why, Missing):
            return "failed", f"FAILED {name}: {why}"
        return "skipped", f"skipped {name}: {why}"
    except (AssertionError, subprocess.TimeoutExpired) as why:
        if os.environ.get("TRACE"):
            traceback.print_exc(file=sys.stdout)
        return "failed", f"FAILED {name}: {why}"
    except Exception as why:  # a defect of the test itself is a failure like any other
        traceback.print_exc(file=sys.stdout)
        return "failed", f"FAILED {name}: {type(why).__name__}: {why}"
    finally:
        signal.alarm(0)
    return "passed", f"ok {name} ({time.monotonic() - begin:.1f} s, CPU {cpu_seconds() - cpu_begin:.1f} s)"


def run(name, function, context):
    """Runs a test here and prints its line, unless it fails; (state, line)."""
    state, line = outcome_of(name, function, context)
    if state != "failed":
        print(line, flush=True)
    return state, line


class Worker:
    """A process that runs tests one after the other. What they print goes to a file."""

    def __init__(self, number, tests, make_context, scratch):
        self.output = os.path.join(scratch, f"output-{number}")
        self.directory = os.path.join(scratch, str(number))
        os.mkdir(self.directory)
        os.chmod(self.directory, 0o755)
        self.pipe, other = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=self._serve, args=(other, tests, make_context))
        self.process.start()
        other.close()
        self.module = None
        self.running = None

    def _serve(self, pipe, tests, make_context):
        # An ignored signal stays ignored in the programs that tests start.
        signal.signal(signal.SIGINT, lambda *_: None)
        output = os.open(self.output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(output, 1)
        os.dup2(output, 2)
        context = make_context(self.directory)
        # Tests make lists of 100,000 rows, and hardly a cycle.
        gc.set_threshold(1000000)
        while (index := pipe.recv()) is not None:
            pipe.send(run(tests[index].name, tests[index].function, context))

    def start(self, index, test):
        with open(self.output, "w", encoding="utf-8"):
            pass  # empty it: the process appends
        self.running, self.module = (index, test, time.monotonic()), test.module
        self.pipe.send(index)

    def finish(self):
        """(test, (state, line), seconds, what it printed)"""
        _, test, begin = self.running
        self.running = None
        try:
            outcome = self.pipe.recv()
        except EOFError:
            outcome = "failed", f"FAILED {test.name}: the process that ran it has died"
        with open(self.output, encoding="utf-8", errors="replace") as file:
            return test, outcome, time.monotonic() - begin, file.read()

    def close(self):
        with contextlib.suppress(OSError):
            self.pipe.send(None)
        self.process.join()


class Queue:
    """Tests that are still to be run, by module."""

    def __init__(self, tests):
        self.waiting = {}
        for index, test in enumerate(tests):
            if not test.exclusive:
                self.waiting.setdefault(test.module, []).append((index, test))
        self.begun = set()

    def take(self, module):
        """The next of this module, else of one that is not begun, else of the one with the most left; None at the end."""
        if not self.waiting.get(module):
            left = [name for name, tests in self.waiting.items() if tests]
            if not left:
                return None
            module = next((name for name in left if name not in self.begun), max(left, key=lambda name: len(self.waiting[name])))
        self.begun.add(module)
        return self.waiting[module].pop(0)


def run_side_by_side(tests, jobs, make_context, scratch, report):
    queue, numbers = Queue(tests), iter(range(len(tests) + jobs))
    workers = []
    for _ in range(min(jobs, sum(not test.exclusive for test in tests))):
        workers.append(Worker(next(numbers), tests, make_context, scratch))
    busy = []
    for worker in workers:
        if (taken := queue.take(None)):
            worker.start(*taken)
            busy.append(worker)
    while busy:
        ready = multiprocessing.connection.wait([worker.pipe for worker in busy])
        for worker in [worker for worker in busy if worker.pipe in ready]:
            busy.remove(worker)
            test, outcome, seconds, text = worker.finish()
            sys.stdout.write(text)
            report(test, outcome, seconds)
            taken = queue.take(worker.module)
            if not taken:
                worker.close()
                continue
            if not worker.process.is_alive():
                worker = Worker(next(numbers), tests, make_context, scratch)
            worker.start(*taken)
            busy.append(worker)


def run_here(tests, make_context, directory, report):
    os.mkdir(directory)
    os.chmod(directory, 0o755)
    context = make_context(directory)
    for test in tests:
        begin = time.monotonic()
        report(test, run(test.name, test.function, context), time.monotonic() - begin)


def is_refused(path):
    """Whether a socket has no listener, so that its process has ended."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(1)
        try:
            client.connect(path)
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return False


def remove_left_sockets(began):
    """Killed .NET processes leave a socket and two pipes each in /tmp. Removes those that came since `began` (seconds since 1970)."""
    for name in os.listdir("/tmp"):
        match = re.fullmatch(r"dotnet-diagnostic-(\d+-\d+)-socket", name)
        with contextlib.suppress(OSError):
            if match and os.lstat(f"/tmp/{name}").st_mtime >= began and is_refused(f"/tmp/{name}"):
                for left in (name, f"clr-debug-pipe-{match[1]}-in", f"clr-debug-pipe-{match[1]}-out"):
                    os.unlink(f"/tmp/{left}")


def run_all(suite, tests, options, make_context):
    """Runs tests as the options say; make_context(scratch directory) makes what a test is given. Returns the exit code."""
    # A shell has its background jobs ignore it, and the programs that tests start would too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    adopt_orphans()
    strange = [word for word in options.names if not any(test.is_wanted([word]) for test in tests)]
    if strange:
        print(f"{suite}: no test has {' or '.join(strange)} in its name", file=sys.stderr)
        return 2
    tests = [test for test in tests if test.is_wanted(options.names)]
    counts, began = {"passed": 0, "failed": 0, "skipped": 0}, time.time()
    times, first_failures = [], {}

    def report(test, outcome, seconds):
        state, line = outcome
        times.append((seconds, test.name))
        if state == "failed" and SECOND_RUN and test not in first_failures:
            first_failures[test] = line
            print(f"    {line.removeprefix('FAILED ')} (first run)", flush=True)
            return
        counts[state] += 1
        if state == "failed":
            print(line)
        sys.stdout.flush()

    # Not below /tmp: some tests mount a /tmp of their own over it.
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix=f"libsym-{suite}-") as scratch:
        os.chmod(scratch, 0o755)
        alone = tests
        if options.jobs > 1:
            alone = [test for test in tests if test.exclusive]
            run_side_by_side(tests, options.jobs, make_context, scratch, report)
        if alone:
            run_here(alone, make_context, os.path.join(scratch, "here"), report)
        if 0 < len(first_failures) <= MOST_SECOND_RUNS:
            run_here(list(first_failures), make_context, os.path.join(scratch, "again"), report)
        elif first_failures:
            for test, line in first_failures.items():
                report(test, ("failed", line), 0)
        end_children()
    remove_left_sockets(began)
    for seconds, name in sorted(times, reverse=True)[:options.slowest]:
        print(f"    {seconds:7.1f} s  {name}")
    print(f"{suite}: {counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped, "
          f"{sum(seconds for seconds, _ in times):.0f} s of tests")
    for line in first_failures.values():
        print(f"failed in its first run, {line.removeprefix('FAILED ')}")
    return 1 if counts["failed"] else 0


def arguments():
    """A parser with the options of every suite."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("-j", "--jobs", type=int, default=1, help="tests that run side by side")
    parser.add_argument("--slowest", type=int, default=0, metavar="N", help="list the N slowest tests at the end")
    parser.add_argument("names", nargs="*", help="a module, or part of a test's name; all unless given")
    return parser
