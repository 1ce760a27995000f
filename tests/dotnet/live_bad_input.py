# SPDX-License-Identifier: MIT
"""Bad input on real processes and files: one clear line, the right exit code, the rest still works."""
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess

from harness import Runtime, Sample, Skip, expect, read_map, without_tier

MAP_OFF = {"DOTNET_PerfMapEnabled": "0"}
NO_SUCH_PID = 2**22 + 1  # beyond the largest pid_max


def one_clear_line(done, code, *words):
    lines = done.stderr.strip().splitlines()
    expect(done.returncode == code, f"exit code {done.returncode}, not {code}: {lines[:2]}")
    expect(len(lines) == 1, f"{len(lines)} lines on stderr: {lines[:3]}")
    for word in words:
        expect(word.lower() in lines[0].lower(), f"{word!r} is not in {lines[0]!r}")


def framework_directory(context):
    done = subprocess.run([context.sdk().dotnet, "--list-runtimes"], capture_output=True, text=True)
    for line in done.stdout.splitlines():
        name, version, directory = line.split(" ", 2)
        if name == "Microsoft.NETCore.App":
            found = os.path.join(directory.strip("[]"), version)
    return found


def test_broken_assemblies_cost_only_themselves(context):
    source = framework_directory(context)
    directory = context.directory("broken")
    good = ["System.Linq.dll", "System.Collections.dll", "System.Private.CoreLib.dll"]
    for name in good:
        shutil.copy(os.path.join(source, name), directory)
    with open(os.path.join(source, "System.Text.Json.dll"), "rb") as file:
        image = bytearray(file.read())
    broken = {"empty.dll": b"", "cut.dll": image[: len(image) // 3], "header.dll": image[:200], "text.dll": b"not a PE\n" * 500}
    for name, data in broken.items():
        with open(os.path.join(directory, name), "wb") as file:
            file.write(data)
    with open(os.path.join(directory, "enormous.dll"), "wb") as file:
        file.write(image)
        file.truncate(40 << 30)
    output = context.directory("broken-maps")
    done = context.mapgen.run("generate", directory, "-o", output)
    expect(done.returncode == 3, f"exit code {done.returncode}: {done.stderr[:300]}")
    for name in (*broken, "enormous.dll"):
        expect(sum(name in line for line in (done.stdout + done.stderr).splitlines()) >= 1, f"{name} is not listed")
    made = os.listdir(output)
    for name in good:
        expect(any(map_name.startswith(name[:-4] + ".ni.{") for map_name in made), f"no map of {name}: {made}")
    context.figure((done.stdout.strip() or done.stderr.strip()).splitlines()[-1])


def test_flipped_bits_never_kill_generate(context):
    with open(os.path.join(framework_directory(context), "System.Collections.dll"), "rb") as file:
        image = file.read()
    directory = context.directory("flipped")
    chance = random.Random(20261121)
    for number in range(60):
        flipped = bytearray(image)
        for _ in range(1 << (number % 8)):
            # Headers and tables decide most: half of the flips hit the first 4 KiB.
            at = chance.randrange(4096 if chance.random() < 0.5 else len(flipped))
            flipped[at] ^= 1 << chance.randrange(8)
        with open(os.path.join(directory, f"flipped{number}.dll"), "wb") as file:
            file.write(flipped)
    done = context.mapgen.run("generate", directory, "-o", context.directory("flipped-maps"))
    expect(done.returncode in (0, 1, 3), f"exit code {done.returncode}")
    context.figure((done.stdout.strip() or done.stderr.strip()).splitlines()[-1])


def test_pid_that_is_gone(context):
    for command in ("list", "generate", "merge", "resolve"):
        arguments = ["0x1000"] if command == "resolve" else []
        one_clear_line(context.mapgen.run(command, NO_SUCH_PID, *arguments), 1)


def test_process_without_a_runtime(context):
    process = subprocess.Popen(["sleep", "60"])
    try:
        for command in ("generate", "merge"):
            one_clear_line(context.mapgen.run(command, process.pid), 1, ".NET")
        expect(not os.path.exists(f"/tmp/perf-{process.pid}.map"), "a map was written")
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def test_process_of_another_user(context):
    if os.geteuid() != 0:
        raise Skip("needs root to start dotnet-mapgen as another user")
    reachable = os.path.join(context.directory("public"), "dotnet-mapgen")
    shutil.copy(context.mapgen.program, reachable)
    with Sample(context.sdk(), MAP_OFF, resting=True) as sample:
        done = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", reachable, "merge",
                               str(sample.pid)], capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd="/",
                              env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"})
        one_clear_line(done, 1)
        expect(f"process {sample.pid} belongs to user root: try sudo" in done.stderr, done.stderr)
        expect(not os.path.exists(sample.map_path), "a map was written")


def test_process_that_ends_half_way(context):
    for moment in (0.0, 0.005, 0.02, 0.05):
        with Sample(context.sdk(), MAP_OFF, resting=True) as sample:
            process = subprocess.Popen([context.mapgen.program, "merge", str(sample.pid)], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                       env=context.mapgen.environment)
            try:
                process.wait(moment)
            except subprocess.TimeoutExpired:
                pass
            sample.process.send_signal(signal.SIGKILL)
            sample.process.wait()
            _, errors = process.communicate(timeout=60)
            expect(process.returncode in (0, 1, 3), f"exit code {process.returncode}: {errors[:200]}")
            expect(process.returncode == 0 or errors.strip(), "failed without a word")
            if os.path.exists(sample.map_path):
                read_map(sample.map_path)


def test_wrong_usage(context):
    for arguments in ([], ["frobnicate"], ["merge"], ["merge", "--mode=sideways", "1"], ["resolve"], ["generate"],
                      ["merge", "twelve"], ["list", "--no-such-option"]):
        done = context.mapgen.run(*arguments)
        expect(done.returncode == 2, f"{arguments}: exit code {done.returncode}")
        expect(done.stderr.strip(), f"{arguments}: nothing is said")


def refused_reason(context, pid):
    done = context.mapgen.must("list", "--json")
    row = next(row for row in json.loads(done.stdout) if row["pid"] == pid)
    expect(not row["perf_map"], f"the map at {row['perf_map']} is used")
    return row["refused_reason"]


def planted_map(context, sample, plant):
    """A bogus map where the process would write: it must not be used, and not be written through."""
    target = os.path.join(context.scratch, f"planted-{sample.pid}")
    text = f"{0x1000:x} ffffffff bogus::name\n"
    with open(target, "w", encoding="ascii") as file:
        file.write(text)
    # One of a process that had the number before may lie there.
    with contextlib.suppress(FileNotFoundError):
        os.unlink(sample.map_path)
    plant(target, sample.map_path)
    reason = refused_reason(context, sample.pid)
    expect(reason, "no reason is given")
    answer = context.mapgen.resolve(sample.pid, [0x2000])[0x2000]
    expect(answer["name"] is None, f"the bogus name is used: {answer}")
    done = context.mapgen.run("merge", sample.pid, timeout=60)
    with open(target, encoding="ascii") as file:
        expect(file.read() == text, "the planted file was written to")
    if done.returncode == 0 and os.path.isfile(sample.map_path) and not os.path.islink(sample.map_path):
        expect(all("bogus" not in row[2] for row in read_map(sample.map_path)), "the bogus name was merged")
    os.unlink(target)
    return reason


def test_perf_map_that_is_a_symlink_is_not_used(context):
    with Sample(context.sdk(), MAP_OFF, resting=True) as sample:
        context.figure(planted_map(context, sample, os.symlink))


def test_perf_map_that_is_a_fifo_is_not_used(context):
    with Sample(context.sdk(), MAP_OFF, resting=True) as sample:
        context.figure(planted_map(context, sample, lambda _, path: os.mkfifo(path)))


def test_perf_map_of_a_stranger_is_not_used(context):
    if os.geteuid() != 0:
        raise Skip("needs root to give a file to another user")

    def plant(target, path):
        shutil.copy(target, path)
        os.chown(path, 12345, 12345)

    with Sample(context.sdk(), MAP_OFF, resting=True) as sample:
        context.figure(planted_map(context, sample, plant))


def test_perf_map_older_than_the_process_is_not_used(context):
    def plant(target, path):
        shutil.copy(target, path)
        os.utime(path, (1000000000, 1000000000))

    with Sample(context.sdk(), MAP_OFF, resting=True) as sample:
        context.figure(planted_map(context, sample, plant))


def some_jitted_code(pid):
    """Where executable memory of no file begins: lines that lie in no code are left out."""
    with open(f"/proc/{pid}/maps", encoding="ascii", errors="replace") as file:
        found = [line for line in file if "x" in line.split()[1] and "doublemapper" in line]
    expect(found, "no jitted code is mapped")
    return int(found[0].split("-")[0], 16)


def test_garbage_in_a_perf_map_costs_its_lines_only(context):
    with Sample(context.sdk(), MAP_OFF, resting=True) as sample:
        code = some_jitted_code(sample.pid)
        data = bytes(random.Random(7).randrange(256) for _ in range(50000)).replace(b"\n", b" ")
        with open(sample.map_path, "wb") as file:
            file.write(b"%x 40 good::one\n" % code + data + b"\nzz 10 bad\n%x 40 good::two\n30000 99 torn" % (code + 0x40))
        output = os.path.join(context.scratch, "garbage.map")
        context.mapgen.must("merge", sample.pid, "--jit=perfmap", "-o", output)
        names = {name for start, _, name in read_map(output) if code <= start < code + 0x80}
        expect(names >= {"good::one", "good::two"}, f"the good lines are lost: {names}")
        expect("torn" not in names, "the torn line is used")


def precompiled_sample(context):
    """The sample with precompiled code of its own, copied so that it may be replaced."""
    runtime = context.sdk()
    fixture = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "fixtures",
                           "recorded", "opt", "sample", "sample.dll")
    if runtime.framework != "net10.0" or not os.path.exists(fixture):
        raise Skip("the precompiled sample is for net10.0")
    directory = os.path.join(context.directory("replaced"), "app")
    shutil.copytree(os.path.dirname(runtime.sample), directory, dirs_exist_ok=True)
    shutil.copy(fixture, os.path.join(directory, "sample.dll"))
    return Runtime(runtime.dotnet, os.path.join(directory, "sample.dll"), runtime.framework, runtime.description)


def test_assembly_replaced_on_disk_is_not_used(context):
    """The loaded bytes may still be had through the process; those of the new file are never taken for them."""
    runtime = precompiled_sample(context)
    output = os.path.join(context.scratch, "replaced.map")

    def own_rows():
        return [row for row in read_map(output) if "[sample] " in row[2] and row[2].endswith("[PreJIT]")]

    with Sample(runtime, MAP_OFF, resting=True) as sample:
        context.mapgen.must("merge", sample.pid, "-o", output)
        before = own_rows()
        expect(len(before) > 20, f"only {len(before)} methods of the sample itself")
        shutil.copy(os.path.join(framework_directory(context), "System.Linq.dll"), runtime.sample + ".new")
        os.rename(runtime.sample + ".new", runtime.sample)
        done = context.mapgen.run("merge", sample.pid, "-o", output)
        after = own_rows()
        answer = context.mapgen.resolve(sample.pid, [before[0][0]])[before[0][0]]
        if after:
            expect(done.returncode == 0, f"exit code {done.returncode}")
            expect(after == before, "other names than those of the loaded file")
            expect(answer["name"] == without_tier(before[0][2]), f"resolve answers {answer}")
        else:
            expect(done.returncode == 3 and "sample.dll" in done.stdout + done.stderr, "the image is not listed")
            expect(answer["name"] is None, f"resolve answers {answer}")
        expect(len(read_map(output)) > 1000, "the other images lost their maps")
        context.figure(f"exit code {done.returncode}, {len(after)} methods of the loaded file")
