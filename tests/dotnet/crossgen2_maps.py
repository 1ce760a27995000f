# SPDX-License-Identifier: MIT
"""Our r2rmaps against those that crossgen2 itself writes while it compiles.

crossgen2 of .NET 11, 10 and 9 compiles NuGet packages in many ways, each with
--perfmap, that of 11 also a program whose methods await; `generate --format r2rmap` makes the maps of the finished images, and
the two must be the same bytes: header rows, rvas, sizes, names. Only on ARM64
crossgen2 counts the constants behind a method to its size; there
rva and name must be equal and our size not larger. Cold parts, which crossgen2
writes no rows for, are looked up one by one.

Packs are fetched once with the SDK's own restore and kept outside the checkout
(LIBSYM_DEV_CACHE). Usage: crossgen2_maps.py --build DIR [--quick] [WORD|X.dll]...
A WORD picks the builds whose title contains it, an X.dll is compiled instead
of the packages.
"""
import argparse
import glob
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile

from harness import CI, ROOT, Fail, Skip, build_environment, build_project, built, expect, first_line, one_at_a_time
from r2r_image import Image

CACHE = os.environ.get("LIBSYM_DEV_CACHE") or os.path.expanduser("~/.cache/libsym-dev")
PACKS = os.path.join(CACHE, "packs")
VERSIONS = {"10": "10.0.12", "9": "9.0.22", "11": "11.0.0"}
PACKAGES = [("Newtonsoft.Json", "13.0.3", "lib/net6.0/Newtonsoft.Json.dll"),
            ("Dapper", "2.1.66", "lib/net8.0/Dapper.dll"),
            ("Humanizer.Core", "2.14.1", "lib/net6.0/Humanizer.dll")]
LONGEST_SECONDS = 3600
# The machine on which crossgen2 counts constants to a method; the others' sizes are equal.
# (Its packages have no compiler for riscv64, loongarch64 and x86 Linux.)
CONSTANTS = ("arm64",)


class Build:
    """One way to compile: options, the machine, and whether the packages are compiled together."""

    def __init__(self, title, options=(), machine="x64", system="linux", together=False, framework=(), quick=False,
                 version_9=False, map_format=1):
        self.title = title
        self.options = tuple(options)
        self.machine = machine
        self.system = system
        self.together = together
        self.framework = framework
        """Assemblies of the framework that are compiled too."""
        self.quick = quick
        self.version_9 = version_9
        self.map_format = map_format


CROSS = ("--opt-cross-module:*",)
BUBBLE = ("--inputbubble",)
# A bubble of images that are compiled one by one: OTHERS stands for the other inputs, FRAMEWORK for all of that.
REFERRED = (*BUBBLE, "--inputbubbleref:OTHERS")
BUILDS = [
    Build("plain", quick=True, version_9=True),
    Build("random layout", ("--method-layout:Random",), quick=True),
    Build("plain, format 0", map_format=0),
    Build("-Od", ("--Od",), version_9=True),
    Build("-Os", ("--Os",)),
    Build("cross-module", CROSS, quick=True, version_9=True),
    Build("cross-module, generics of others", (*CROSS, "--non-local-generics-module:*"), version_9=True),
    Build("input bubble", REFERRED, quick=True, version_9=True),
    Build("input bubble with the framework", (*REFERRED, "--inputbubbleref:FRAMEWORK"), version_9=True),
    Build("composite", ("--composite",), together=True, quick=True, version_9=True),
    Build("composite, input bubble", ("--composite", *BUBBLE), together=True, version_9=True),
    Build("composite with framework", ("--composite", *BUBBLE), together=True, version_9=True,
          framework=("System.Private.CoreLib", "System.Linq", "System.Collections")),
    Build("hot-cold", ("--hot-cold-splitting",), quick=True),
    Build("hot-cold composite", ("--hot-cold-splitting", "--composite"), together=True),
    Build("arm64", machine="arm64", quick=True, version_9=True),
    Build("arm64 composite", ("--composite",), machine="arm64", together=True),
    Build("arm64 osx", machine="arm64", system="osx"),
    Build("arm64 windows", machine="arm64", system="windows"),
    Build("arm", machine="arm", quick=True, version_9=True),
    Build("armel", machine="armel"),
    Build("x86", machine="x86", system="windows", quick=True, version_9=True),
    Build("x64 windows", machine="x64", system="windows"),
]


# ---- packs --------------------------------------------------------------------

def pack(name, version):
    return os.path.join(PACKS, name.lower(), version)


def fetch(wanted):
    """Brings NuGet packages into the cache; None, or why they could not be had."""
    missing = [(name, version) for name, version in wanted if not os.path.isdir(pack(name, version))]
    if not missing:
        return None
    if not shutil.which("dotnet"):
        return "no .NET SDK to fetch packages with"
    rows = "\n".join(f'<PackageDownload Include="{name}" Version="[{version}]" />' for name, version in missing)
    with tempfile.TemporaryDirectory(prefix="libsym-fetch-") as scratch:
        project = os.path.join(scratch, "fetch.csproj")
        with open(project, "w", encoding="ascii") as file:
            file.write(f"""<Project Sdk="Microsoft.NET.Sdk"><PropertyGroup><TargetFramework>netstandard2.0</TargetFramework>
<DisableImplicitFrameworkReferences>true</DisableImplicitFrameworkReferences>
<RestorePackagesPath>{PACKS}</RestorePackagesPath></PropertyGroup><ItemGroup>{rows}</ItemGroup></Project>""")
        done = subprocess.run(["dotnet", "restore", project], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              env=build_environment())
    if done.returncode:
        errors = [line.strip() for line in done.stdout.splitlines() if "error" in line]
        return f"packages could not be had: {first_line(chr(10).join(errors) or done.stderr)}"
    return None


class Compiler:
    """crossgen2 of one version, with the framework that it compiles against."""

    def __init__(self, major):
        version = VERSIONS[major]
        self.title = f"crossgen2 {version}"
        why = fetch([("Microsoft.NETCore.App.Crossgen2.linux-x64", version),
                     ("Microsoft.NETCore.App.Runtime.linux-x64", version)])
        if why:
            raise Skip(why)
        tools = os.path.join(pack("Microsoft.NETCore.App.Crossgen2.linux-x64", version), "tools")
        self.program = [os.path.join(tools, "crossgen2")]
        if os.path.exists(self.program[0] + ".dll") and not os.path.exists(self.program[0]):
            self.program = ["dotnet", self.program[0] + ".dll"]
        else:
            os.chmod(self.program[0], 0o755)
        runtime = os.path.join(pack("Microsoft.NETCore.App.Runtime.linux-x64", version), "runtimes", "linux-x64")
        self.framework = [os.path.join(runtime, "lib", f"net{major}.0"), os.path.join(runtime, "native")]

    def framework_file(self, name):
        for directory in self.framework:
            path = os.path.join(directory, name + ".dll")
            if os.path.exists(path):
                return path
        raise Fail(f"the framework has no {name}")

    def run(self, build, inputs, out, references):
        """Compiles `inputs` into `out`, the map beside each image."""
        options = []
        for option in build.options:
            name, _, value = option.partition(":")
            if value == "FRAMEWORK":
                options += [f"{name}:{path}/*.dll" for path in self.framework]
            elif value == "OTHERS":
                options += [f"{name}:{path}" for path in references]
            else:
                options.append(option)
        command = ["nice", *self.program, *inputs, "-o", out, "--targetos", build.system, "--targetarch", build.machine,
                   "--perfmap", "--perfmap-format-version", str(build.map_format),
                   *(f"-r:{path}/*.dll" for path in self.framework), *(f"-r:{path}" for path in references), *options]
        if "--Od" not in options and "--Os" not in options:
            command.append("-O")
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LONGEST_SECONDS)
        expect(done.returncode == 0, f"{self.title}: {first_line(done.stderr or done.stdout)}")


# ---- comparison -----------------------------------------------------------------

def read_rows(path):
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return [line.rstrip("\n").split(" ", 2) for line in file]


class Figures:
    """Counts of the comparison, and the first difference of each map."""

    def __init__(self):
        self.maps = self.rows = self.equal = self.smaller = self.cold = 0
        self.bad = []

    def compare(self, theirs_path, ours_path, has_constants):
        self.maps += 1
        theirs = read_rows(theirs_path)
        ours = read_rows(ours_path) if os.path.exists(ours_path) else []
        self.rows += len(theirs)
        name = os.path.basename(theirs_path)
        if len(theirs) != len(ours):
            self.bad.append(f"{name}: {len(theirs)} rows, ours has {len(ours)}")
        for their, our in zip(theirs, ours):
            if their == our:
                self.equal += 1
            elif has_constants and (their[0], their[2]) == (our[0], our[2]) and int(our[1], 16) < int(their[1], 16):
                self.smaller += 1
            else:
                self.bad.append(f"{name}: '{' '.join(their)}', ours '{' '.join(our)}'")
                break

    def text(self):
        smaller = f", {self.smaller} smaller by constants" if self.smaller else ""
        cold = f", {self.cold} cold parts named" if self.cold else ""
        return f"{self.maps} maps, {self.rows} rows, {self.equal} equal{smaller}{cold}"


def check_cold_parts(mapgen, image_path, figures):
    pairs = list(Image(image_path).cold_parts())
    if not pairs:
        return
    questions = [f"{image_path}+{rva:#x}" for pair in pairs for rva in pair]
    done = subprocess.run([mapgen, "resolve", "--rva", *questions], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    expect(len(lines) == len(questions), f"resolve answered {len(lines)} of {len(questions)}: {first_line(done.stderr)}")
    names = [line.split(" ", 1)[1] for line in lines]
    for i, (cold, _) in enumerate(pairs):
        if names[2 * i] != names[2 * i + 1] or names[2 * i].startswith("["):
            figures.bad.append(f"{os.path.basename(image_path)}: cold part {cold:#x} is {names[2 * i]}, not {names[2 * i + 1]}")
            return
    figures.cold += len(pairs)


# ---- one build --------------------------------------------------------------------

def compile_all(compiler, build, inputs, out):
    if not build.together:
        for path in inputs:
            others = [other for other in inputs if other != path]
            compiler.run(build, [path], os.path.join(out, os.path.basename(path)), others)
        return
    inputs = inputs + [compiler.framework_file(name) for name in build.framework]
    target = os.path.join(out, "together.r2r.dll") if "--composite" in build.options else out
    compiler.run(build, inputs, target, [])


def compiled(compiler, build, inputs):
    """Directory with images and maps of crossgen2. It is outside the checkout: neither depends on what is tested."""
    key = hashlib.sha256(repr((compiler.title, vars(build), inputs)).encode()).hexdigest()[:16]
    out = os.path.join(CACHE, "compiled", key, "out")
    with one_at_a_time(os.path.dirname(out)):
        if not os.path.isdir(out):
            shutil.rmtree(out + ".new", ignore_errors=True)
            os.mkdir(out + ".new")
            compile_all(compiler, build, inputs, out + ".new")
            os.rename(out + ".new", out)
    return out


def check_build(context, compiler, build, inputs):
    """Compiles, makes our maps, compares; the line with the figures."""
    mapgen = os.path.join(ROOT, context.build, "dotnet-mapgen")
    figures = Figures()
    with tempfile.TemporaryDirectory(dir=context.scratch) as scratch:
        ours = os.path.join(scratch, "ours")
        if build.quick:
            out = compiled(compiler, build, inputs)
        else:
            out = os.path.join(scratch, "out")
            os.mkdir(out)
            compile_all(compiler, build, inputs, out)
        maps = sorted(glob.glob(os.path.join(out, "**", "*.map" if build.map_format == 0 else "*.r2rmap"), recursive=True))
        expect(maps, "crossgen2 wrote no map")
        platform = [f"--platform={path}" for path in compiler.framework]
        done = subprocess.run([mapgen, "generate", "--format=r2rmap", "-o", ours, *platform, out],
                              capture_output=True, text=True)
        expect(done.returncode == 0, f"generate: {first_line(done.stderr or done.stdout)}")
        made = sorted(os.listdir(ours))
        for path in maps:
            name = os.path.basename(path)
            if build.map_format == 0:
                name = name.split(".ni.{")[0] + ".ni.r2rmap"
            figures.compare(path, os.path.join(ours, name), build.machine in CONSTANTS)
        expect(len(made) == len(maps), f"{len(maps)} maps of crossgen2, we made {made}")
        if "--hot-cold-splitting" in build.options:
            for image in sorted(glob.glob(os.path.join(out, "*.dll"))):
                if os.path.basename(image).startswith("together.") or not build.together:
                    check_cold_parts(mapgen, image, figures)
            expect(figures.cold or figures.bad, "no image has cold parts")
    expect(not figures.bad, f"{len(figures.bad)} maps differ, first {figures.bad[0]}" if figures.bad else "")
    return f"{compiler.title}, {build.title}: {figures.text()}"


def package_files():
    why = fetch([(name, version) for name, version, _ in PACKAGES])
    if why:
        raise Skip(why)
    return [os.path.join(pack(name, version), path) for name, version, path in PACKAGES]


def awaiting_program():
    artifacts = built("awaiting")
    why = build_project("fixtures/src/awaiting", artifacts)
    if why:
        raise Skip(why)
    return os.path.join(artifacts, "bin", "awaiting", "release", "awaiting.dll")


class Context:
    def __init__(self, build, scratch):
        self.build = build
        self.scratch = scratch


def check_all(context, quick, words=(), inputs=(), say=True):
    """Lines of figures, and failures."""
    lines, failures = [], []
    given = [os.path.abspath(path) for path in inputs]
    for major in VERSIONS:
        if quick and major == "9":
            continue
        compiler = Compiler(major)
        inputs = given or package_files() + ([awaiting_program()] if major == "11" else [])
        for build in BUILDS:
            title = f"{compiler.title}, {build.title}"
            if (quick and not build.quick) or (major == "9" and not build.version_9):
                continue
            if words and not any(word in title for word in words):
                continue
            try:
                line = check_build(context, compiler, build, inputs)
                lines.append(line)
            except (Fail, subprocess.TimeoutExpired) as why:
                line = f"FAILED {title}: {why}"
                failures.append(line)
            if say:
                print("    " + line, flush=True)
    return lines, failures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("words", nargs="*")
    arguments = parser.parse_args()
    inputs = [word for word in arguments.words if word.endswith(".dll")]
    words = [word for word in arguments.words if word not in inputs]
    name = "r2rmaps equal those of crossgen2"
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="libsym-crossgen2-") as scratch:
        try:
            lines, failures = check_all(Context(arguments.build, scratch), arguments.quick, words, inputs)
        except Skip as why:
            print(f"FAILED {name}: {why}" if CI else f"skipped {name}: {why}")
            return 1 if CI else 0
    print(f"FAILED {name}: {len(failures)} of {len(lines) + len(failures)} builds" if failures
          else f"ok {name} ({len(lines)} builds)")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
