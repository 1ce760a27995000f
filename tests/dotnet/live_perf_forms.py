# SPDX-License-Identifier: MIT
"""perf-fix on everything that perf record writes, and what else of perf reads the result.

Pipes, compressed data, directories, several processes, processes that are gone; perf
archive, inject, annotate. Each is recorded on a real process and read by stock perf.
"""
import fcntl
import glob
import json
import os
import shutil
import stat
import subprocess
import tarfile

from harness import Sample, expect, first_line, remove_leftovers
from live_perf_fix import buildid_dir, fix, forget_largest, hex_rows, record, records, run_perf
from perf_samples import perf, waiting
from waiting import wait_until



def managed_symbols(path, *options):
    """Names that perf report shows of managed code, and how many rows of it are numbers."""
    text = run_perf(path, "report", "-i", path, "--stdio", "-g", "none", "--children", "--sort", "sym", *options)
    return {line.split("] ", 1)[1].strip() for line in text.splitlines() if "[System.Private.CoreLib]" in line and "] " in line}


def recorded(context, name, options=(), environment=None, seconds=0.8):
    """A recording of a sample that stands still from then on; (sample, path)."""
    path = os.path.join(context.directory(name), "perf.data")
    sample = Sample(context.sdk(), environment)
    try:
        record(sample.pid, path, seconds, options)
        sample.stand_still()
    except BaseException:
        sample.end()
        raise
    return sample, path


def copy_of_recording(context, name):
    """A copy of the one recording that serves several tests. Its process stands still until the tests end."""
    def make():
        sample, path = recorded(context, "shared")
        remove_leftovers(sample.pid)
        return (sample, path), None
    _, recording = context.once("recording", make)
    path = os.path.join(context.directory(name), "perf.data")
    shutil.copy(recording, path)
    return path


def check_named(fixed):
    expect(len(managed_symbols(fixed)) > 5, "perf report shows hardly a managed name")
    left = hex_rows(fixed)
    expect(not left, f"{len(left)} hex rows: {left[:2]}")


def test_a_pipe_from_perf_record_to_perf_report(context):
    directory = context.directory("pipe")
    path = os.path.join(directory, "piped")
    with Sample(context.sdk()) as sample:
        with open(path, "wb") as output:
            writer = subprocess.Popen([*perf(path), "record", "-q", "-e", "cpu-clock", "-F", "499", "-g", "-p", str(sample.pid),
                                       "-o", "-", "--", *waiting(sample.pid, 0.8)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            fixer = subprocess.run([context.mapgen.program, "perf-fix", "--buildid-dir", buildid_dir(path), "-"],
                                   stdin=writer.stdout, stdout=output, stderr=subprocess.PIPE, text=True)
            writer.stdout.close()
            writer.wait()
        expect(fixer.returncode == 0, f"perf-fix: {first_line(fixer.stderr)}")
        with open(path, "rb") as fixed:
            done = subprocess.run([*perf(path), "report", "-i", "-", "--stdio", "-g", "none", "--sort", "dso,sym"],
                                  stdin=fixed, capture_output=True, text=True, errors="replace")
    rows = [line for line in done.stdout.splitlines() if "%" in line and (".dll" in line or "doublemapper" in line)]
    expect(len(rows) > 5, f"only {len(rows)} managed rows: {first_line(done.stderr)}")
    bare = [row for row in rows if " 0x0" in row]
    context.figure(f"perf record -o - | perf-fix - | perf report -i -: {len(rows)} managed rows, {len(bare)} of them numbers")
    expect(not bare, f"numbers: {bare[:2]}")


def test_standard_output_has_the_data_and_nothing_else(context):
    path = os.path.join(context.directory("piped-output"), "piped")
    with Sample(context.sdk()) as sample:
        with open(path, "wb") as output:
            subprocess.run([*perf(path), "record", "-q", "-e", "cpu-clock", "-F", "499", "-p", str(sample.pid), "-o", "-", "--", *waiting(sample.pid, 0.2)],
                           stdout=output, stderr=subprocess.DEVNULL, check=True)
        sample.stand_still()
        for via in "build-id", "perfmap":
            with open(path, "rb") as data:
                fixer = subprocess.run([context.mapgen.program, "perf-fix", "--buildid-dir", buildid_dir(path), f"--via={via}", "--json", "-"],
                                       stdin=data, capture_output=True)
            expect(fixer.returncode == 0, f"{via}: {first_line(fixer.stderr.decode())}")
            expect(len(fixer.stdout) == os.path.getsize(path), f"{via}: {len(fixer.stdout)} bytes of {os.path.getsize(path)}")
            report = json.JSONDecoder().raw_decode(fixer.stderr.decode())[0]
            expect(report["output"] == "-" and report["processes"], f"{via}: {report}")


def test_a_process_that_is_not_in_the_data_costs_no_earlier_result(context):
    path = copy_of_recording(context, "other-process")
    fixed, _ = fix(context, path)
    with open(fixed, "rb") as file:
        before = file.read()
    done = context.mapgen.must("perf-fix", "--buildid-dir", buildid_dir(path), "--pid=1", "-o", fixed, path, codes=(1,))
    expect("nothing was written" in done.stderr, done.stderr)
    with open(fixed, "rb") as file:
        expect(file.read() == before, "the earlier result is gone")


COMPRESSED = 81  # PERF_RECORD_COMPRESSED


def test_compressed_data_becomes_plain_and_named(context):
    sample, path = recorded(context, "compressed", ("-z",))
    with sample:
        fixed, done = fix(context, path)
        expect("was compressed" in done.stdout, f"it does not say so: {done.stdout}")
        check_named(fixed)
        count = len(run_perf(path, "script", "-i", path, "-F", "ip").splitlines())
        expect(len(run_perf(fixed, "script", "-i", fixed, "-F", "ip").splitlines()) == count, "samples were lost")
        header = run_perf(fixed, "report", "-i", fixed, "--header-only")
        expect("# compressed" not in header, "the header still speaks of compression")
        expect("# cmdline" in header and "# hostname" in header, "the header has lost its features")
        context.figure(f"{os.path.getsize(path)} bytes compressed, {os.path.getsize(fixed)} plain")
        with open(path, "r+b") as file:
            damaged = bytearray(file.read())
            size, begin = max((len(record), at) for at, kind, record in records(path) if kind == COMPRESSED)
            damaged[begin + size // 2:begin + size] = bytes(size - size // 2)
            file.seek(0)
            file.write(damaged)
        done = context.mapgen.must("perf-fix", "--buildid-dir", buildid_dir(path), "--in-place", path, codes=(1,))
        expect("nothing was changed" in done.stderr, f"damaged data: {done.stderr}")
        with open(path, "rb") as file:
            expect(file.read() == bytes(damaged), "damaged data was replaced by what can be read of it")


def test_a_directory_of_parts(context):
    sample, path = recorded(context, "parts", ("--threads=core",))
    with sample:
        expect(os.path.isdir(path), "perf record --threads made no directory")
        fixed, _ = fix(context, path)
        check_named(fixed)
        expect(os.path.exists(os.path.join(fixed, "undo")), "no undo record")
        named = managed_symbols(fixed)
        shutil.rmtree(fixed)
        # One part has the mappings from the start of perf, the others have later ones.
        forget_largest(os.path.join(path, "data"), b"/System.Private.CoreLib.dll")
        forget_largest(os.path.join(path, "data"), b"/memfd:doublemapper")
        fixed, _ = fix(context, path)
        check_named(fixed)
        missing = named - managed_symbols(fixed)
        expect(not missing, f"without the record of their code {len(missing)} names are missing: {sorted(missing)[:2]}")


def test_perf_archive_carries_the_stand_ins(context):
    sample, path = recorded(context, "archive")
    with sample:
        fixed, _ = fix(context, path)
        wanted = managed_symbols(fixed)
    # The files matter here, not how small the archive is: the bzip2 that perf archive runs only copies.
    copying = os.path.join(context.directory("archive-programs"), "bzip2")
    with open(copying, "w", encoding="ascii") as file:
        file.write("#!/bin/sh\nexec cat\n")
    os.chmod(copying, 0o755)
    subprocess.run([*perf(fixed), "archive", fixed], capture_output=True, text=True, cwd=context.scratch,
                   env=dict(os.environ, PERF_BUILDID_DIR=buildid_dir(fixed), PATH=f"{os.path.dirname(copying)}:{os.environ['PATH']}"))
    archive = fixed + ".tar.bz2"
    expect(os.path.exists(archive), "perf archive wrote nothing")
    elsewhere = os.path.join(context.directory("archive-elsewhere"), "perf.data")
    shutil.copy(fixed, elsewhere)
    with tarfile.open(archive) as packed:
        packed.extractall(buildid_dir(elsewhere))
    found = managed_symbols(elsewhere)
    context.figure(f"managed names in perf report: {len(wanted)} here, {len(found & wanted)} of them out of perf archive")
    expect(len(found & wanted) * 100 >= 90 * len(wanted), "perf archive left stand-ins behind")


def test_perf_inject_keeps_what_was_fixed(context):
    path = copy_of_recording(context, "inject")
    fixed, _ = fix(context, path)
    injected = fixed + ".injected"
    os.symlink(buildid_dir(path), buildid_dir(injected))
    run_perf(fixed, "inject", "-b", "-i", fixed, "-o", injected)
    check_named(injected)


def test_perf_annotate_lists_managed_symbols(context):
    sample, path = recorded(context, "annotate", seconds=0.3)
    with sample:
        fixed, _ = fix(context, path)
        # Jitted code only: it takes seconds to disassemble what the runtime and its compiler run.
        done = subprocess.run([*perf(fixed), "annotate", "-i", fixed, "--stdio2", "-d", "memfd:doublemapper (deleted)"], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, errors="replace")
    listed = [line for line in (done.stdout + done.stderr).splitlines() if "[System.Private.CoreLib]" in line or "Sample." in line]
    context.figure(f"perf annotate names managed symbols in {len(listed)} lines")
    expect(listed, f"no managed symbol: {first_line(done.stdout + done.stderr)}")


def test_anonymous_mode_serves_perf_maps(context):
    sample, path = recorded(context, "anonymous")
    with sample:
        fixed, done = fix(context, path, "--via=perfmap")
        expect(os.path.exists(sample.map_path), "there is no perf map")
        names = managed_symbols(fixed)
        expect(len(names) > 5, "perf report shows hardly a managed name")
        bare = [line for line in run_perf(fixed, "report", "-i", fixed, "--stdio", "-g", "none", "--sort", "dso,sym").splitlines()
                if ("JIT" in line or ".dll" in line or "doublemapper" in line) and " 0x0" in line]
        context.figure(f"--via=perfmap: {len(names)} managed names, {len(bare)} rows of [JIT] without one")


def managed_rows(path):
    """Rows of perf report in managed code: (names, numbers) of assemblies, and of jitted code."""
    text = run_perf(path, "report", "-i", path, "--stdio", "-g", "none", "--children", "--sort", "dso,sym")
    counts = {"dll": [0, 0], "jit": [0, 0]}
    for line in text.splitlines():
        kind = "dll" if ".dll" in line else "jit" if "doublemapper" in line or "[JIT]" in line else None
        if kind and "%" in line:
            counts[kind][" 0x0" in line] += 1
    return counts


def test_a_merged_map_serves_stock_perf_only_as_the_readme_says(context):
    for protected, environment in (("on", {}), ("off", {"DOTNET_EnableWriteXorExecute": "0"})):
        sample, path = recorded(context, f"merged-{protected}", environment=environment)
        with sample:
            sample.go_on()
            context.mapgen.must("merge", sample.pid)
            sample.stand_still()
            counts = managed_rows(path)
        context.figure(f"merged map, W^X {protected}: rows of assemblies named {counts['dll'][0]}, numbers {counts['dll'][1]}; "
                       f"of jitted code named {counts['jit'][0]}, numbers {counts['jit'][1]}")
        expect(not counts["dll"][0] and counts["dll"][1], "stock perf reads a perf map for assemblies: change the README")
        expect(bool(counts["jit"][0]) == (protected == "off"), "the README says otherwise of jitted code")


def test_several_processes_in_one_file(context):
    path = os.path.join(context.directory("several"), "perf.data")
    with Sample(context.sdk()) as one, Sample(context.sdk(), {"DOTNET_EnableWriteXorExecute": "0"}) as other:
        record(f"{one.pid},{other.pid}", path)
        one.stand_still()
        other.stand_still()
        fixed, done = fix(context, path)
        expect(f"process {one.pid}" in done.stdout and f"process {other.pid}" in done.stdout, f"not both: {done.stdout}")
        check_named(fixed)


def test_a_native_program_that_is_called_exe_is_left_to_perf(context):
    """As bun.exe is: alive or gone, no .NET process, and its file no assembly."""
    directory = context.directory("native-exe")
    program, path = os.path.join(directory, "loop.exe"), os.path.join(directory, "perf.data")
    subprocess.run(["gcc", "-x", "c", "-o", program, "-"], input="int main(void) { for (volatile long i = 0;; i++); }",
                   text=True, check=True)
    process = subprocess.Popen([program], stdin=subprocess.DEVNULL)
    try:
        record(process.pid, path, 0.2)
        _, alive = fix(context, path)
    finally:
        process.kill()
        process.wait()
    _, gone = fix(context, path)
    for done in (alive, gone):
        expect("there is no .NET process" in done.stderr and "0 mappings of 0 processes" in done.stdout, done.stdout + done.stderr)


def test_a_process_that_is_gone_has_precompiled_names_only(context):
    sample, path = recorded(context, "gone", seconds=1.5)
    sample.end()
    fixed, done = fix(context, path, codes=(3,))
    expect("jitted code: no names" in done.stdout and "gone" in done.stdout, f"it does not say so: {done.stdout}")
    in_code = run_perf(path, "script", "-i", path, "-G", "-F", "ip,dso").count("memfd:doublemapper")
    expect(in_code > 100, f"only {in_code} samples lie in jitted code")
    expect(f" {in_code} samples lie in memory with jitted code whose names are gone" in done.stdout,
           f"{in_code} samples are without names: {done.stdout}")
    text = run_perf(fixed, "report", "-i", fixed, "--stdio", "-g", "none", "--children", "--sort", "dso,sym")
    bare = [line for line in text.splitlines() if ".dll" in line and " 0x0" in line]
    expect(not bare, f"precompiled code without names: {bare[:2]}")


def test_a_saved_map_names_a_process_that_is_gone(context):
    sample, path = recorded(context, "saved")
    saved = context.directory("saved-maps")
    context.mapgen.must("merge", sample.pid, "-o", os.path.join(saved, f"perf-{sample.pid}.map"))
    sample.end()
    fixed, done = fix(context, path, "--perf-maps", saved)
    expect("from the saved map" in done.stdout, f"it does not say so: {done.stdout}")
    check_named(fixed)
    foreign = os.path.join(saved, f"perf-{sample.pid}.map")
    with open(foreign, "w", encoding="ascii") as file:
        file.writelines(f"{0x1000 + 16 * n:x} 10 wrong{n}\n" for n in range(50))
    fixed, done = fix(context, path, "--perf-maps", saved, codes=(3,))
    expect("it is of another process" in done.stderr, f"a map of another process is not refused: {done.stderr}")


def test_in_place_and_back(context):
    sample, path = recorded(context, "in-place")
    with sample:
        with open(path, "rb") as file:
            before = file.read()
        context.mapgen.must("perf-fix", "--buildid-dir", buildid_dir(path), "--in-place", path)
        check_named(path)
        sample.go_on()
        # A process that has jitted more since then gets a newer stand-in; one that stands still does not.
        context.mapgen.must("perf-fix", "--buildid-dir", buildid_dir(path), "--in-place", path)
        check_named(path)
        context.mapgen.must("perf-fix", "--buildid-dir", buildid_dir(path), "-o", path, path)
        sample.stand_still()
        context.mapgen.must("perf-fix", "--buildid-dir", buildid_dir(path), "--in-place", path)
        done = context.mapgen.must("perf-fix", "--buildid-dir", buildid_dir(path), "--in-place", path)
        expect("0 mappings" in done.stdout, f"fixed again without a change: {done.stdout}")
        context.mapgen.must("perf-fix", "--undo", path)
        with open(path, "rb") as file:
            expect(file.read() == before, "--undo does not give the same bytes")
        expect(not glob.glob(path + ".undo"), "the undo record is still there")


def test_data_recorded_over_what_was_fixed_goes_back_to_itself(context):
    sample, path = recorded(context, "recorded-over")
    with sample:
        context.mapgen.must("perf-fix", "--buildid-dir", buildid_dir(path), "--in-place", path)
    again, other = recorded(context, "recorded-later")
    with again:
        shutil.copyfile(other, path)
        context.mapgen.must("perf-fix", "--buildid-dir", buildid_dir(path), "--in-place", path)
        check_named(path)
        context.mapgen.must("perf-fix", "--undo", path)
        with open(path, "rb") as file, open(other, "rb") as recording:
            expect(file.read() == recording.read(), "--undo does not give the same bytes")


def test_a_link_is_followed_and_what_is_no_file_is_left(context):
    path = copy_of_recording(context, "links")
    link, fifo = path + ".link", path + ".fifo"
    os.symlink(path, link)
    os.mkfifo(fifo)
    done = context.mapgen.must("perf-fix", "--buildid-dir", buildid_dir(path), "-o", fifo, path, codes=(1,))
    expect("not a regular file" in done.stderr and stat.S_ISFIFO(os.lstat(fifo).st_mode), f"a FIFO was replaced: {done.stderr}")
    with open(path, "rb") as file:
        before = file.read()
    context.mapgen.must("perf-fix", "--buildid-dir", buildid_dir(path), "--in-place", link)
    check_named(path)
    expect(os.path.islink(link), "the link was replaced")
    expect(os.stat(path + ".undo").st_mode & 0o777 == os.stat(path).st_mode & 0o666, "others may read the undo record than the data")
    with open(path, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        done = context.mapgen.must("perf-fix", "--buildid-dir", buildid_dir(path), "--in-place", path, codes=(1,))
    expect("another perf-fix" in done.stderr, f"two at once: {done.stderr}")
    context.mapgen.must("perf-fix", "--undo", path)
    with open(path, "rb") as file:
        expect(file.read() == before, "--undo does not give the same bytes")


def test_nothing_is_left_of_a_fix_that_was_killed(context):
    path = copy_of_recording(context, "killed")
    with open(path, "rb") as file:
        data = file.read()
        directory = context.directory("killed-output")
        fixing = subprocess.Popen([context.mapgen.program, "perf-fix", "--buildid-dir", buildid_dir(path), "-o",
                                   os.path.join(directory, "out"), "-"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, env=context.mapgen.environment)
        fixing.stdin.write(data[:len(data) // 2])
        fixing.stdin.flush()
        wait_until(lambda: fixing.poll() is not None or
                   "(deleted)" in " ".join(os.readlink(link) for link in glob.glob(f"/proc/{fixing.pid}/fd/*")), "no file without a name")
        expect(fixing.poll() is None, "it ended by itself")
        fixing.kill()
        fixing.communicate()
        expect(not os.listdir(directory), f"left: {os.listdir(directory)}")


def test_a_cut_recording_loses_nothing(context):
    path = copy_of_recording(context, "cut")
    with open(path, "rb") as file:
        whole = file.read()
    for size in (0, 1, 15, 16, 103, 104, 200, len(whole) // 3, len(whole) // 2 + 3, len(whole) - 1):
        part = path + ".part"
        with open(part, "wb") as file:
            file.write(whole[:size])
        done = context.mapgen.run("perf-fix", "--buildid-dir", buildid_dir(path), "-o", part + ".fixed", part)
        expect(done.returncode in (0, 1, 3), f"{size} bytes: exit code {done.returncode}")
        if done.returncode == 1:
            expect(not os.path.exists(part + ".fixed"), "a failed run left an output")
            continue
        expect(os.path.getsize(part + ".fixed") == size, f"{size} bytes became {os.path.getsize(part + '.fixed')}")
        os.unlink(part + ".fixed")
