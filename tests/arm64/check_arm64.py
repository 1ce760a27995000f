# SPDX-License-Identifier: MIT
"""libsym on ARM64: builds it with Debian's cross compiler, publishes .NET programs for ARM64, and runs the unit tests and
tests of tests/dotnet on an emulated machine with Debian's kernel. Takes some ten minutes; what was downloaded is kept in the user's cache.

Usage: check_arm64.py [--runtime VERSION] [--only WORD]; from `make check-arm`."""
import argparse
import glob
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "native"))
import native_record  # noqa: E402

BUILD = os.path.join(ROOT, "build", "arm64")
UNITS = "build/arm64/tests/unit", "build/arm64/tests/unit-symsrv"
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "libsym-tests", "arm64")
SOURCES = "/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list"

NEEDED = {"aarch64-linux-gnu-gcc": "gcc-aarch64-linux-gnu", "mmdebstrap": "mmdebstrap", "qemu-system-aarch64": "qemu-system-arm",
          "cpio": "cpio", "depmod": "kmod", "dotnet": "the .NET 10 SDK"}


def of_version(runtime):
    """ASP.NET's pack is not asked for: a registry may not have that of the same version."""
    return f"-p:RuntimeFrameworkVersion={runtime}", "-p:DisableTransitiveFrameworkReferenceDownloads=true"


# Packages that libsym is built with, and packages of the machine.
LIBRARIES = ("libcriterion-dev libc6-dev libgcc-12-dev libstdc++-12-dev libelf-dev libdw-dev libiberty-dev liblzma-dev zlib1g-dev libbz2-dev libxxhash-dev "
             "libmd-dev libzstd-dev libjansson-dev uthash-dev libcurl4-openssl-dev libmicrohttpd-dev libssl-dev").split()
SYSTEM = ("bash coreutils grep sed gawk procps util-linux mount findutils libc-bin libelf1 libdw1 libbz2-1.0 libxxhash0 libmd0 libjansson4 libcurl4 "
          "busybox-static linux-image-arm64 python3 linux-perf libstdc++6 kmod binutils libcriterion3 libmicrohttpd12").split()
MODULES = "fs/9p fs/netfs fs/fscache net/9p drivers/virtio".split()
PROGRAMS = {"sample": "fixtures/src/sample", "torture": "fixtures/src/torture", "oracle": "tests/dotnet/oracle", "stacks": "fixtures/src/stacks"}
COMPILER = "aarch64-linux-gnu-gcc"
# A runtime whose rundown has methods only. The SDK asks for a version that the registry does not have.
SAMPLE_9 = ("-p:SampleFramework=net9.0", *of_version("9.0.23"))
# 10 minutes here; a machine that hangs must end too.
LONGEST_SECONDS = 3600


def run(*command, **options):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode:
        sys.exit(f"FAILED arm64: {' '.join(command[:3])}...: " + "\n".join(done.stdout.splitlines()[-5:]))
    return done.stdout


def missing():
    """Missing parts, by the names under which a person would install them."""
    found = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    return sorted(package for name, package in NEEDED.items() if not shutil.which(name, path=found))


def unpack(name, packages):
    """A directory with these packages for ARM64, unpacked and not set up."""
    key = hashlib.sha256(" ".join(packages).encode()).hexdigest()[:12]
    path = os.path.join(CACHE, f"{name}-{key}")
    if not os.path.isdir(path):
        os.makedirs(CACHE, exist_ok=True)
        sources = next(file for file in SOURCES if os.path.exists(file))
        run("mmdebstrap", "--quiet", "--architectures=arm64", "--variant=extract", "--include=" + ",".join(packages), "bookworm",
            path + ".part", sources)
        os.rename(path + ".part", path)
    return path


def build(libraries):
    directory = os.path.join(libraries, "usr/lib/aarch64-linux-gnu/pkgconfig")
    environment = dict(os.environ, PKG_CONFIG_SYSROOT_DIR=libraries, PKG_CONFIG_LIBDIR=directory)
    run("make", "-C", ROOT, f"-j{os.cpu_count()}", "BUILD=build/arm64", "STATIC=", f"CC={COMPILER} --sysroot={libraries}", "AR=aarch64-linux-gnu-ar",
        "OBJCOPY=aarch64-linux-gnu-objcopy", f"LDFLAGS=-L{libraries}/usr/lib/gcc/aarch64-linux-gnu/12", "all", *UNITS, env=environment)


def build_native(libraries):
    """The program of tests/native whose stacks are recorded: without frame pointers."""
    directory = os.path.join(BUILD, "programs", "native")
    os.makedirs(directory, exist_ok=True)
    source = os.path.join(directory, "recorded.c")
    with open(source, "w", encoding="utf-8") as file:
        file.write(native_record.PROGRAM)
    run(COMPILER, f"--sysroot={libraries}", f"-L{libraries}/usr/lib/gcc/aarch64-linux-gnu/12", "-O2", "-fomit-frame-pointer", "-pthread",
        "-o", os.path.join(directory, "recorded"), source)


def publish(name, project, properties):
    out = os.path.join(BUILD, "programs", name)
    # Files of another version would stay there.
    shutil.rmtree(out, ignore_errors=True)
    run("dotnet", "publish", os.path.join(ROOT, project), "-c", "Release", "-r", "linux-arm64", "--self-contained", "-p:UseAppHost=true",
        *properties, "-o", out, "--artifacts-path", os.path.join(BUILD, "artifacts", "-".join([name, *properties[:1]]).replace(":", "")))


def publish_all(runtime):
    for name, project in PROGRAMS.items():
        publish(name, project, of_version(runtime) if runtime else ())
    publish("sample-9.0", PROGRAMS["sample"], SAMPLE_9)


def make_disk(system, root):
    """(kernel, file system of the machine as the kernel unpacks it into memory); `root` is for that file system, and not there yet."""
    run("cp", "-a", system, root)
    for name in ("boot", "lib/modules", "usr/share/doc", "usr/share/man", "usr/share/locale"):
        shutil.rmtree(os.path.join(root, name), ignore_errors=True)
    kernel = glob.glob(os.path.join(system, "boot", "vmlinuz-*"))[0]
    release = os.path.basename(kernel).removeprefix("vmlinuz-")
    modules = os.path.join("lib/modules", release)
    for name in MODULES:
        shutil.copytree(os.path.join(system, modules, "kernel", name), os.path.join(root, modules, "kernel", name), dirs_exist_ok=True)
    for path in glob.glob(os.path.join(system, modules, "modules.*")):
        shutil.copy(path, os.path.join(root, modules))
    run("depmod", "-b", root, release, env=dict(os.environ, PATH=os.environ["PATH"] + ":/usr/sbin:/sbin"))
    shutil.copy(os.path.join(ROOT, "tests/arm64/init"), os.path.join(root, "init"))
    os.chmod(os.path.join(root, "init"), 0o755)
    disk = os.path.join(BUILD, "root.cpio.gz")
    run("sh", "-c", f"cd '{root}' && find . | cpio -o -H newc --quiet | gzip -1 > '{disk}'")
    return kernel, disk


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", help="tests whose names have this word, without the unit tests; all unless given")
    parser.add_argument("--runtime", help="version of the runtime pack that the programs bring; that of the SDK unless given")
    arguments = parser.parse_args()
    lacking = missing()
    if lacking:
        sys.exit(f"FAILED arm64: not installed: {', '.join(lacking)}; ./bootstrap check-arm installs the Debian packages")
    libraries = unpack("libraries", LIBRARIES)
    build(libraries)
    build_native(libraries)
    publish_all(arguments.runtime)
    # Not below build, where make looks for *.d.
    with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        kernel, disk = make_disk(unpack("system", SYSTEM), os.path.join(scratch, "root"))
    machine = subprocess.Popen(
        ["qemu-system-aarch64", "-M", "virt", "-cpu", "max,pauth-impdef=on", "-accel", "tcg,thread=multi", "-smp", "2", "-m", "6G",
         "-nic", "none", "-kernel", kernel, "-initrd", disk, "-append", f"console=ttyAMA0 rdinit=/init quiet only={arguments.only}", "-display", "none", "-monitor", "none",
         "-serial", "stdio", "-no-reboot", "-virtfs", f"local,path={ROOT},mount_tag=checkout,security_model=none,readonly=on"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, errors="replace")
    status, begin = None, time.monotonic()
    timer = threading.Timer(LONGEST_SECONDS, machine.kill)
    timer.start()
    try:
        for line in machine.stdout:
            line = line.rstrip("\r\n")
            print(line, flush=True)
            if line.startswith("status "):
                status = line.split()[1]
        machine.wait(timeout=60)
    finally:
        timer.cancel()
        machine.kill()
    if status is None:
        print(f"FAILED arm64: the emulated machine ended after {time.monotonic() - begin:.0f} s without a result", flush=True)
    sys.exit(status != "0")


if __name__ == "__main__":
    main()
