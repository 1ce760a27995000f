#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Both commands of README in a Debian 12 that has nothing: no compiler, no .NET, no npm, no git.

mmdebstrap makes the root, with the package sources and the proxy of this machine. A process enters it with pivot_root() in a
mount namespace of its own, with its own /proc, /sys and /dev. A clone of the commit that is checked out lies in /src.
Needs root and some 8 GB. Usage: bare_root.py [--root DIR] [--seconds N] [TARGET...]
"""
import argparse
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SUITE = "bookworm"
TARGETS = ("demo", "check")
# Nothing else of this machine's environment is there.
PASSED_ON = re.compile(r"(?i)(http|https|ftp|no)_proxy$")
ENTER = r"""
set -e
cd "$1"
mount --bind . .
cd "$1"
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup 2> /dev/null || true
mount -t tmpfs -o mode=755 tmpfs dev
for device in null:3 zero:5 full:7 random:8 urandom:9; do
	mknod -m 666 "dev/${device%:*}" c 1 "${device#*:}"
done
mknod -m 666 dev/tty c 5 0
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts
mount -t tmpfs -o mode=1777 tmpfs dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
for stream in stdin:0 stdout:1 stderr:2; do
	ln -s "/proc/self/fd/${stream#*:}" "dev/${stream%:*}"
done
pivot_root . .
umount -l .
cd /src
exec ./bootstrap "$2"
"""


def sources():
    """Files with this machine's sources of Debian; none: mmdebstrap knows some."""
    found = []
    for path in ["/etc/apt/sources.list", *sorted(glob.glob("/etc/apt/sources.list.d/*.sources"))]:
        with open(path, encoding="utf-8", errors="replace") if os.path.exists(path) else open(os.devnull, encoding="utf-8") as file:
            if re.search(rf"^[^#]*\b{SUITE}\b", file.read(), re.M):
                found.append(path)
    return found


def apt_options(directory):
    """A file with how this machine reaches its sources."""
    path = os.path.join(directory, "apt-options")
    dump = subprocess.run(["apt-config", "dump"], check=True, capture_output=True, text=True).stdout
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in dump.splitlines() if re.match(r"Acquire::(http|https|Check|Max|Retries)\b[^ ]* \"[^\"]", line))
    return path


def make_root(root, scratch):
    subprocess.run(["mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", f"--aptopt={apt_options(scratch)}", SUITE, root, *sources()],
                   check=True, stdin=subprocess.DEVNULL)
    for name in ("apt.conf.d", "auth.conf.d"):
        shutil.copytree(os.path.join("/etc/apt", name), os.path.join(root, "etc/apt", name), dirs_exist_ok=True)
    for name in ("resolv.conf", "hosts"):
        shutil.copy(os.path.join("/etc", name), os.path.join(root, "etc", name))


def clone(root):
    subprocess.run(["git", "clone", "-q", "--no-hardlinks", ROOT, os.path.join(root, "src")], check=True)


def namespace_of(pid):
    try:
        return os.stat(f"/proc/{pid}/ns/mnt").st_ino
    except OSError:
        return None


def end_all(namespace):
    """Ends processes that the command has left behind in its mount namespace."""
    for name in os.listdir("/proc"):
        if name.isdigit() and namespace and namespace_of(name) == namespace:
            os.kill(int(name), signal.SIGKILL)


def run(root, target, seconds):
    """(exit code, output); None for what did not end."""
    environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root",
                   **{name: value for name, value in os.environ.items() if PASSED_ON.match(name)}}
    log = os.path.join(root, f"{target}.log")
    with open(log, "w", encoding="utf-8") as file, \
            subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sh", "-c", ENTER, "sh", root, target], env=environment,
                             stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT) as process:
        code = None
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            pass
        finally:
            namespace = namespace_of(process.pid) if code is None else None
            end_all(namespace if namespace != namespace_of("self") else None)
            process.kill()
    with open(log, encoding="utf-8", errors="replace") as file:
        return code, file.read()


def check(root, target, seconds):
    code, output = run(root, target, seconds)
    name = f"./bootstrap {target} in a bare root"
    lines = output.splitlines()
    for line in [line for line in lines if line.startswith(("FAILED", "skipped"))] if target == "check" else []:
        print("    " + line)
    for line in lines[-3 if code == 0 else -30:]:
        print("    " + line)
    if code == 0:
        print(f"ok {name}", flush=True)
    else:
        print(f"FAILED {name}: " + ("exit code %d" % code if code is not None else f"no end after {seconds} s"), flush=True)
    return code == 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", help="is made where it does not exist, and stays")
    parser.add_argument("--seconds", type=int, default=7200)
    parser.add_argument("targets", nargs="*", default=TARGETS)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    for program in ("mmdebstrap", "unshare", "git"):
        if os.geteuid() or not shutil.which(program):
            print("skipped ./bootstrap in a bare root: " + ("needs root" if os.geteuid() else f"{program} is not installed"))
            return 0
    with tempfile.TemporaryDirectory(prefix="libsym-bare-", dir="/var/tmp") as scratch:
        os.chmod(scratch, 0o755)
        root = os.path.abspath(options.root or os.path.join(scratch, "root"))
        if not os.path.exists(root):
            make_root(root, scratch)
        if not os.path.exists(os.path.join(root, "src")):
            clone(root)
        passed = [check(root, target, options.seconds) for target in options.targets]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
