#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints the files of libsym that one precompiled address passes: the first of its method, and a second one of the same method.

Builds libsym without optimization and runs a look-up in a live .NET process under callgrind. ARCHITECTURE.md explains each file.
Usage: count_passed.py
"""
import collections
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "dotnet"))
from harness import Memory, Sample, need, read_map, sdk_runtime  # noqa: E402

PROGRAM = """
#include <stdlib.h>
#include "libsym/libsym.h"
int main(int count, char **words)
{
	struct sym_snapshot *snapshot;
	struct sym_resolver *resolver;
	struct sym_result *result;

	if (sym_snapshot_open(atoi(words[1]), NULL, &snapshot) || sym_resolver_create(snapshot, &resolver) || sym_result_create(&result))
		return 1;
	for (int i = 2; i < count; i++) {
		uint64_t address = strtoull(words[i], NULL, 16);

		if (sym_resolver_resolve(resolver, &address, 1, result) || !sym_result_at(result, 0)->name)
			return 2;
	}
	return 0;
}
"""
LIBRARIES = ("-ldw", "-lelf", "-lxxhash", "-lmd", "-llzma", "-lz", "-lzstd", "-liberty", "-lpthread")


def instructions(path):
    """{file of libsym: instructions} of one dump of callgrind."""
    names, found = {}, collections.Counter()
    current, is_call = None, False
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            match = re.match(r"(fl|fi|fe|cfi|cfl)=\((\d+)\)(?: (.*))?$", line)
            if match:
                if match[3]:
                    names[match[2]] = match[3]
                if match[1] in ("fl", "fi", "fe"):
                    current = names.get(match[2], "")
            elif line.startswith("calls="):
                is_call = True
            elif re.match(r"[+*\d-]", line):
                if not is_call and "libsym/" in current:
                    found[current[current.rindex("libsym/"):]] += int(line.split()[1])
                is_call = False
    return found


def main():
    need("valgrind")
    runtime, why = sdk_runtime()
    if why:
        sys.exit(why)
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="libsym-passed-") as scratch, Sample(runtime) as sample:
        program, dump, maps = (os.path.join(scratch, name) for name in ("program", "dump", "all.map"))
        library = os.path.join(scratch, "libsym.a")
        subprocess.run(["make", "-s", "-C", ROOT, f"BUILD={scratch}", "CFLAGS=-O0 -g -w", library], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["cc", "-xc", "-", "-O0", "-g", f"-I{ROOT}", "-o", program, "-xnone", library, *LIBRARIES], input=PROGRAM, text=True, check=True)
        sample.stand_still()
        subprocess.run([os.path.join(ROOT, "build", "dotnet-mapgen"), "merge", str(sample.pid), "--jit=none", "-o", maps], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        memory = Memory(sample.pid)
        starts = [start for start, size, name in read_map(maps)
                  if name.endswith("[PreJIT]") and size > 4 and memory.path_of(start).endswith("/System.Private.CoreLib.dll")]
        first, second = starts[100], starts[5000]  # the first one opens everything
        subprocess.run(["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={dump}", "--toggle-collect=sym_resolver_resolve",
                        "--dump-after=sym_resolver_resolve", program, str(sample.pid), *(f"{each:x}" for each in (first, second, second + 4))],
                       check=True, stderr=subprocess.DEVNULL)
        for number, text in ((2, "an address of a method without a name yet"), (3, "another address of the same method")):
            found = {name: count for name, count in instructions(f"{dump}.{number}").items() if name.endswith(".c")}
            print(f"{text}: {len(found)} files, {sum(found.values())} instructions")
            for name, count in sorted(found.items(), key=lambda row: -row[1]):
                print(f"    {count:6} {name}")


main()
