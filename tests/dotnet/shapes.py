# SPDX-License-Identifier: MIT
"""The sample application in every version and shape that .NET can be deployed in.

Publishes are kept outside the checkout (XDG_CACHE_HOME/libsym-tests), keyed by
the sources of the sample and by how they were published, because a composite
takes minutes. Knows how to make a shape; knows nothing of what is tested.
"""
import hashlib
import json
import os
import shutil
import signal
import subprocess
import tempfile

import crossgen2_maps
from harness import ROOT, Runtime, build_environment, npm_program, one_at_a_time, sdk_version

SAMPLE = os.path.join(ROOT, "fixtures", "src", "sample")
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "libsym-tests", "shapes")

PACKS = os.path.join(ROOT, "tests", "dotnet", "packs.targets")

SELF = ("-r", "linux-x64", "--self-contained", "-p:UseAppHost=true")
READY = (*SELF, "-p:PublishReadyToRun=true")
SINGLE = (*SELF, "-p:PublishSingleFile=true")
# Composites of some versions are not for single files, and the SDK asks for this word of consent.
COMPOSITE = (*READY, "-p:PublishReadyToRunComposite=true")
# The SDK asks for 9.0.20, which the registry does not have.
CROSSGEN_9 = ("-p:SampleCrossgenVersion=9.0.22",)
# The newest runtime pack of 3.1 that the registry still has, not the newest there was.
PACK_3 = ("-p:RuntimeFrameworkVersion=3.1.3", "-p:DisableTransitiveFrameworkReferenceDownloads=true")
TRIMMING = ("-p:PublishTrimmed=true", "-p:TrimMode=partial", "-p:JsonSerializerIsReflectionEnabledByDefault=true",
            "-p:SuppressTrimAnalysisWarnings=true")
# Without the JSON part, as for 2.0: the serializer looks for its code by reflection, where there is none.
AOT = ("-r", "linux-x64", "-p:PublishAot=true", "-p:DefineConstants=NETCOREAPP2_0")
FRAMEWORK = ("-r", "linux-x64", "--self-contained", "false", "-p:UseAppHost=true")


class Shape:
    """How one version is deployed, and how to publish that."""

    def __init__(self, version, name, options=None, framework=None, npm=None, laid_out=False):
        self.version = version
        self.name = name
        self.options = options
        self.framework = framework or f"net{version}"
        self.npm = npm
        """npm package whose `dotnet` runs the published assembly; None: the program of the publish itself."""
        self.laid_out = laid_out
        """Runs on a shared framework laid out from the runtime pack, where no SDK has installed one."""

    @property
    def major(self):
        return int(self.version.split(".")[0])

    @property
    def title(self):
        return f"{self.version} {self.name}"


def _modern(version, crossgen=()):
    return [
        Shape(version, "self-contained", SELF),
        Shape(version, "readytorun", (*READY, *crossgen)),
        Shape(version, "single-file", SINGLE),
        Shape(version, "single-file compressed", (*SINGLE, "-p:EnableCompressionInSingleFile=true")),
        Shape(version, "single-file extracting", (*SINGLE, "-p:IncludeAllContentForSelfExtract=true")),
        Shape(version, "composite", (*COMPOSITE, *crossgen)),
        Shape(version, "composite single-file", (*COMPOSITE, *crossgen, "-p:PublishSingleFile=true")),
        Shape(version, "composite single-file compressed",
              (*COMPOSITE, *crossgen, "-p:PublishSingleFile=true", "-p:EnableCompressionInSingleFile=true")),
        Shape(version, "trimmed", (*SELF, *TRIMMING)),
        Shape(version, "trimmed readytorun", (*READY, *crossgen, *TRIMMING)),
        Shape(version, "nativeaot", (*AOT, "-p:StripSymbols=false")),
        Shape(version, "nativeaot with .dbg", (*AOT, "-p:DebugType=portable")),
        Shape(version, "nativeaot stripped", AOT),
    ]


# The SDK of .NET 10 does not build for 11; what is built for 10 runs on it, and is compiled and bundled with it.
NEWEST = "11.0.0"
PACK_11 = (f"-p:RuntimeFrameworkVersion={NEWEST}", f"-p:SampleHostVersion={NEWEST}")
CROSSGEN_11 = (f"-p:SampleCrossgenVersion={NEWEST}",)


def _newest():
    """The shapes of _modern() that the SDK can make with packs of 11: it can neither trim with them nor compile ahead of time."""
    own = [Shape("11.0", shape.name, (*shape.options, *PACK_11), "net10.0")
           for shape in _modern("11.0", CROSSGEN_11) if "nativeaot" not in shape.name and "trimmed" not in shape.name]
    return [Shape("11.0", "framework-dependent", FRAMEWORK, "net10.0", laid_out=True), *own]


SHAPES = [
    *_newest(),
    Shape("10.0", "framework-dependent", ()),
    *_modern("10.0"),
    Shape("9.0", "framework-dependent", FRAMEWORK, laid_out=True),
    *_modern("9.0", CROSSGEN_9),
    Shape("8.0", "framework-dependent", FRAMEWORK, laid_out=True),
    *_modern("8.0"),
    Shape("3.1", "self-contained", (*SELF, *PACK_3), "netcoreapp3.1"),
    Shape("3.1", "readytorun", (*READY, *PACK_3), "netcoreapp3.1"),
    # In this version every single file unpacks itself.
    Shape("3.1", "single-file extracting", (*SINGLE, *PACK_3), "netcoreapp3.1"),
    Shape("3.1", "trimmed", (*SELF, *TRIMMING, *PACK_3), "netcoreapp3.1"),
    Shape("3.1", "framework-dependent", (), "netcoreapp3.1", "dotnet-3.1-linux-x64"),
    Shape("2.1", "framework-dependent", ("-p:RuntimeFrameworkVersion=2.0.3",), "netcoreapp2.0", "dotnet-2.1-linux-x64"),
]


class Published:
    """A published sample: the command that runs it."""

    def __init__(self, shape, directory, command):
        self.shape = shape
        self.directory = directory
        self.command = command


def _key(shape):
    """Equal for equal sources and equal ways to publish them."""
    digest = hashlib.sha256()
    for name in sorted(os.listdir(SAMPLE)):
        path = os.path.join(SAMPLE, name)
        if os.path.isfile(path):
            with open(path, "rb") as file:
                digest.update(name.encode() + b"\0" + file.read())
    digest.update(repr((shape.framework, shape.options, sdk_version())).encode())
    return f"{shape.version}-{shape.name.replace(' ', '-')}-{digest.hexdigest()[:12]}"


# MSBuild gives the process in which it trims half a minute to start, which a busy machine may not have.
NO_TASK_HOST = "MSB4216"
ATTEMPTS = 3
LONGEST_SECONDS = 1800


def _run_publish(shape, directory):
    """None, or the first error that the SDK names."""
    with one_at_a_time(directory + ".making"):
        if _has_program(directory):
            return None  # another check has made it meanwhile
        for _ in range(ATTEMPTS):
            why = _publish_once(shape, directory)
            if not why or NO_TASK_HOST not in why:
                break
    return why


def _run_bounded(command, log):
    """Exit code of a command, None when it takes too long; what it started ends with it."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=build_environment(),
                          start_new_session=True) as process:
        try:
            return process.wait(LONGEST_SECONDS)
        except subprocess.TimeoutExpired:
            return None
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def _publish_once(shape, directory):
    with tempfile.TemporaryDirectory(prefix="libsym-shape-", dir="/var/tmp") as scratch:
        out = os.path.join(scratch, "out")
        command = [
            "nice", "dotnet", "publish", os.path.join(SAMPLE, "sample.csproj"), "-c", "Release", "-v", "q",
            "-nodeReuse:false", "-maxCpuCount:1", "--artifacts-path", os.path.join(scratch, "artifacts"), "-o", out,
            f"-p:SampleFramework={shape.framework}", *shape.options]
        if any(option.startswith(("-p:SampleCrossgenVersion", "-p:SampleHostVersion")) for option in shape.options):
            command.append(f"-p:CustomAfterMicrosoftCommonTargets={PACKS}")
        # Into a file: a helper that MSBuild leaves behind would hold a pipe open for as long as it lives.
        with open(os.path.join(scratch, "log"), "w+", encoding="utf-8", errors="replace") as log:
            code = _run_bounded(command, log)
            log.seek(0)
            lines = log.read().splitlines()
        if code is None:
            return f"dotnet publish did not end within {LONGEST_SECONDS} s"
        if code:
            errors = [line.strip() for line in lines if "error" in line.lower()]
            return (errors or lines or ["no output"])[0].replace(SAMPLE + "/", "")
        if not _has_program(out):
            return "dotnet publish succeeded without publishing a program"
        os.makedirs(os.path.dirname(directory), exist_ok=True)
        shutil.rmtree(directory, ignore_errors=True)
        shutil.copytree(out, directory + ".new", symlinks=True, dirs_exist_ok=True)
        os.rename(directory + ".new", directory)
    return None


def _has_program(directory):
    return any(os.path.isfile(os.path.join(directory, name)) for name in ("sample", "sample.dll"))


def _packages():
    return os.environ.get("NUGET_PACKAGES") or os.path.join(build_environment()["HOME"], ".nuget", "packages")


def _lay_out(version):
    """A directory with the shared framework of a version, as an installation has it; (path, None) or (None, why)."""
    if version == "11.0":
        return newest_framework()
    own, why = publish(next(shape for shape in SHAPES if shape.title == f"{version} self-contained"))
    if own is None:
        return None, why
    with open(os.path.join(own.directory, "sample.runtimeconfig.json"), encoding="utf-8") as file:
        exact = json.load(file)["runtimeOptions"]["includedFrameworks"][0]["version"]
    root = os.path.join(os.path.dirname(CACHE), "frameworks", exact)
    if os.path.isdir(root):
        return root, None
    pack = os.path.join(_packages(), "microsoft.netcore.app.runtime.linux-x64", exact)
    if not os.path.isdir(pack):
        return None, f"the runtime pack {exact} is not below {_packages()}"
    return _lay_out_pack(pack, root, version, exact), None


def newest_framework():
    """A sample of the newest version, which no SDK here supports; with a `dotnet`."""
    root = os.path.join(os.path.dirname(CACHE), "frameworks", NEWEST)
    if os.path.isdir(root):
        return root, None
    name = "Microsoft.NETCore.App.Runtime.linux-x64"
    why = crossgen2_maps.fetch([(name, NEWEST)])
    return (None, why) if why else (_lay_out_pack(crossgen2_maps.pack(name, NEWEST), root, "11.0", NEWEST), None)


def newest_runtime(program):
    """.NET 11 for a program that is built for 10; (Runtime, None) or (None, why)."""
    root, why = newest_framework()
    if why:
        return None, why
    runtime = Runtime(os.path.join(root, "dotnet"), program, "net11.0", f".NET {NEWEST}")
    runtime.command = ["env", f"DOTNET_ROOT={root}", "DOTNET_ROLL_FORWARD=LatestMajor", runtime.dotnet, program]
    return runtime, None


def _lay_out_pack(pack, root, version, exact):
    with one_at_a_time(root + ".making"):
        if not os.path.isdir(root):
            _copy_pack(pack, root, version, exact)
    return root


def _copy_pack(pack, root, version, exact):
    pack = os.path.join(pack, "runtimes", "linux-x64")
    sources = [os.path.join(pack, "lib", f"net{version}"), os.path.join(pack, "native")]
    shutil.rmtree(root + ".new", ignore_errors=True)
    framework = os.path.join(root + ".new", "shared", "Microsoft.NETCore.App", exact)
    for source in sources:
        shutil.copytree(source, framework, dirs_exist_ok=True)
    resolver = os.path.join(root + ".new", "host", "fxr", exact)
    os.makedirs(resolver)
    shutil.move(os.path.join(framework, "libhostfxr.so"), resolver)
    shutil.copy(os.path.realpath(shutil.which("dotnet")), root + ".new")
    os.rename(root + ".new", root)


def publish(shape):
    """The sample in a shape, published unless it is cached; (Published, None) or (None, why)."""
    if not sdk_version():
        return None, "no .NET SDK"
    directory = os.path.join(CACHE, _key(shape))
    why = None if _has_program(directory) else _run_publish(shape, directory)
    if why:
        return None, why
    if shape.npm:
        program, why = npm_program(shape.npm)
        return (None, why) if why else (Published(shape, directory, [program, os.path.join(directory, "sample.dll")]), None)
    program = os.path.join(directory, "sample")
    if shape.laid_out:
        root, why = _lay_out(shape.version)
        return (None, why) if why else (
            Published(shape, directory, ["env", f"DOTNET_ROOT={root}", "DOTNET_ROLL_FORWARD=LatestMajor", program]), None)
    if os.path.exists(program):
        return Published(shape, directory, [program]), None
    return Published(shape, directory, ["dotnet", os.path.join(directory, "sample.dll")]), None
