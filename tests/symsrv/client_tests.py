# SPDX-License-Identifier: MIT
"""debuginfod, its client, gdb and elfutils, unmodified."""
import contextlib
import os
import signal
import subprocess
import tempfile
import time

import symsrv_harness as h
from symsrv_harness import RUN, Skipped, check, equal, good_upstream, need, symsrv, test, upstream
from waiting import is_in_time


# ---- real clients and servers ----

def compile_program(directory):
    need("gcc", "objcopy", "readelf")
    source = os.path.join(directory, "sample.c")
    program = os.path.join(directory, "sample")
    with open(source, "w") as file:
        file.write("int answer_of_the_sample(int x) { return x + 41; }\nint main(void) { return answer_of_the_sample(1) - 42; }\n")
    subprocess.run(["gcc", "-g", "-O0", "-Wl,--build-id", "-o", program, source], check=True)
    debug = os.path.join(directory, "sample.debug")
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["strip", program], check=True)
    notes = subprocess.run(["readelf", "-n", program], capture_output=True, text=True, check=True).stdout
    return program, debug, notes.split("Build ID:")[1].split()[0]


def client_environment(url):
    return dict(os.environ, DEBUGINFOD_URLS=url, DEBUGINFOD_CACHE_PATH=tempfile.mkdtemp(dir=RUN.scratch), HOME=RUN.scratch)


@test
def debuginfod_find_gdb_and_addr2line_work_unmodified():
    need("debuginfod-find", "gdb", "eu-addr2line")
    directory = tempfile.mkdtemp(dir=RUN.scratch)
    program, debug, identity = compile_program(directory)
    with upstream(h.serve_files({h.debug_paths(identity)[1]: open(debug, "rb").read()})) as server:
        with symsrv("--upstream", "ssqp=" + server.url) as front:
            environment = client_environment(front.url)
            found = subprocess.run(["debuginfod-find", "debuginfo", identity], env=environment, capture_output=True, text=True)
            equal(open(found.stdout.strip(), "rb").read(), open(debug, "rb").read(), "debuginfod-find")
            section = subprocess.run(["debuginfod-find", "section", identity, ".debug_info"], env=environment,
                                     capture_output=True, text=True)
            equal(section.returncode, 0, section.stderr)
            shown = subprocess.run(["gdb", "-nx", "-batch", "-ex", "set debuginfod enabled on", "-ex", "file " + program, "-ex",
                                    "info line answer_of_the_sample"], env=client_environment(front.url),
                                   capture_output=True, text=True)
            check("sample.c" in shown.stdout, "gdb: " + shown.stdout + shown.stderr)
            address = subprocess.run(["nm", debug], capture_output=True, text=True, check=True).stdout
            address = [line.split()[0] for line in address.splitlines() if line.endswith(" answer_of_the_sample")][0]
            line = subprocess.run(["eu-addr2line", "-f", "-e", program, "0x" + address], env=client_environment(front.url),
                                  capture_output=True, text=True)
            check("answer_of_the_sample" in line.stdout, "eu-addr2line: " + line.stdout + line.stderr)


@contextlib.contextmanager
def real_debuginfod(*arguments, environment=None):
    need("debuginfod")
    port = h.free_port()
    database = os.path.join(RUN.scratch, "debuginfod-%d.sqlite" % port)
    process = subprocess.Popen(["debuginfod", "-p", str(port), "-d", database, "-t", "0", *arguments], env=environment,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        server = symsrv(port=port)

        def is_ready():
            with contextlib.suppress(OSError):
                return b"ready 1" in server.get("/metrics")[2]
            return False
        is_in_time(is_ready, h.WAIT_S)
        yield server
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(h.WAIT_S)


@test
def a_real_debuginfod_is_upstream_client_and_half_of_a_ring():
    need("debuginfod", "debuginfod-find")
    directory = tempfile.mkdtemp(dir=RUN.scratch)
    program, debug, identity = compile_program(directory)
    with real_debuginfod("-F", directory) as real:
        with symsrv("--upstream", "real@debuginfod=" + real.url, "--trust", "real") as front:
            def is_found():
                front.process.send_signal(signal.SIGHUP)
                return front.debuginfo(identity)[0] == 200
            is_in_time(is_found, h.WAIT_S, 0.1)
            equal(front.debuginfo(identity)[2], open(debug, "rb").read(), "debuginfo")
            equal(front.get("/buildid/%s/executable" % identity)[2], open(program, "rb").read(), "executable")
            source = front.get("/buildid/%s/source%s/sample.c" % (identity, os.path.realpath(directory)))
            equal(source[2], open(os.path.join(directory, "sample.c"), "rb").read(), "source")
    other = h.build_id(950)
    with good_upstream(other) as server, symsrv("--upstream", "ssqp=" + server.url) as back:
        with real_debuginfod(environment=client_environment(back.url)) as real:
            equal(real.debuginfo(other)[2], h.make_elf(other), "a real debuginfod asks symsrv")
    port = h.free_port()
    with real_debuginfod(environment=client_environment("http://127.0.0.1:%d" % port)) as real:
        with symsrv("--upstream", "debuginfod=" + real.url, port=port) as ring:
            started = time.monotonic()
            equal(ring.debuginfo(h.build_id(951))[0], 404, "a ring with a real debuginfod")
            check(time.monotonic() - started < 15, "it went round and round")


@test
def distribution_debug_files_are_content_like_any_other():
    directory = "/usr/lib/debug/.build-id"
    if not os.path.isdir(directory):
        raise Skipped("no debug files in " + directory)
    samples = []
    for prefix in sorted(os.listdir(directory))[:60]:
        for name in os.listdir(os.path.join(directory, prefix)):
            if name.endswith(".debug"):
                samples.append((prefix + name[:-6], os.path.join(directory, prefix, name)))
    with symsrv("--index", directory) as first, symsrv("--upstream", "symsrv=" + first.url) as second:
        for identity, path in samples:
            equal(second.debuginfo(identity)[2], open(path, "rb").read(), path)


CLIENT = r"""
#include <elfutils/debuginfod.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static long last_total, calls;
static int on_progress(debuginfod_client *c, long done, long total) { (void)c; (void)done; calls++; last_total = total; return 0; }
static char *path;
static void tell(const char *what, int fd)
{
	printf("%s %d %lld %s\n", what, fd < 0 ? fd : 0, fd < 0 ? 0LL : (long long)lseek(fd, 0, SEEK_END), path ? path : "-");
	free(path);
	path = NULL;
	if (fd >= 0)
		close(fd);
}
int main(int argc, char **argv)
{
	debuginfod_client *client = debuginfod_begin();
	const unsigned char *id = (const unsigned char *)argv[1];
	if (!client || argc < 3) return 1;
	debuginfod_set_progressfn(client, on_progress);
	tell("debuginfo", debuginfod_find_debuginfo(client, id, 0, &path));
	printf("total %ld\n", last_total);
	tell("executable", debuginfod_find_executable(client, id, 0, &path));
	tell("source", debuginfod_find_source(client, id, 0, argv[2], &path));
	tell("section", debuginfod_find_section(client, id, 0, ".debug_info", &path));
	tell("unknown", debuginfod_find_debuginfo(client, (const unsigned char *)"0123456789", 0, &path));
	debuginfod_end(client);
	return 0;
}
"""


@test
def a_c_program_over_libdebuginfod_gets_every_artifact():
    need("gcc")
    directory = tempfile.mkdtemp(dir=RUN.scratch)
    program, debug, identity = compile_program(directory)
    client = os.path.join(directory, "client")
    built = subprocess.run(["gcc", "-o", client, "-x", "c", "-", "-ldebuginfod"], input=CLIENT.encode(), capture_output=True)
    if built.returncode:
        raise Skipped("libdebuginfod-dev is not installed")
    source = os.path.join(os.path.realpath(directory), "sample.c")
    base = "/buildid/%s/" % identity
    files = {base + "executable": open(program, "rb").read(), base + "debuginfo": open(debug, "rb").read(),
             base + "source" + source: open(source, "rb").read()}
    with upstream(h.serve_files(files)) as server:
        with symsrv("--upstream", "up@debuginfod=" + server.url, "--trust", "up") as front:
            done = subprocess.run([client, identity, source], env=client_environment(front.url), capture_output=True, text=True)
            rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}
            for what in ("debuginfo", "executable", "source"):
                path = base + (what + source if what == "source" else what)
                equal(rows[what][:2], ["0", str(len(files[path]))], what)
                equal(open(rows[what][2], "rb").read(), files[path], what)
            equal(rows["section"][0], "0", done.stdout)
            equal(rows["unknown"][0], "-2", "ENOENT")
            check(int(rows["total"][0]) in (0, len(files[base + "debuginfo"])), "progress: " + done.stdout)


NGINX = """
worker_processes 1; daemon off; pid {0}/pid; error_log {0}/error.log; events {{ }}
http {{ access_log off; client_body_temp_path {0}/a; proxy_temp_path {0}/b; fastcgi_temp_path {0}/c; uwsgi_temp_path {0}/d;
  scgi_temp_path {0}/e; proxy_cache_path {0}/cache keys_zone=zone:1m;
  server {{ listen 127.0.0.1:{1}; location / {{ proxy_pass http://127.0.0.1:{2}; proxy_cache zone; proxy_cache_valid 200 1h;
    proxy_http_version 1.1; proxy_cache_revalidate on; add_header X-Cache $upstream_cache_status; }} }}
  server {{ listen 127.0.0.1:{3}; root {4}; }} }}
"""


@contextlib.contextmanager
def nginx(behind, root="/nonexistent"):
    """A caching proxy before symsrv, and a server of the files below `root`: the two ports."""
    need("nginx")
    directory = tempfile.mkdtemp(dir=RUN.scratch)
    os.chmod(RUN.scratch, 0o755)
    os.chmod(directory, 0o777)
    proxy, static = h.free_port(), h.free_port()
    with open(os.path.join(directory, "conf"), "w") as file:
        file.write(NGINX.format(directory, proxy, behind, static, root))
    process = subprocess.Popen([h.find_tool("nginx"), "-c", os.path.join(directory, "conf")], stderr=subprocess.DEVNULL)
    try:
        def answers():
            with contextlib.suppress(OSError):
                return symsrv(port=proxy).get("/healthz", timeout=1)
            return None
        is_in_time(answers, h.WAIT_S)
        yield symsrv(port=proxy), symsrv(port=static)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(h.WAIT_S)


@test
def nginx_in_front_caches_and_cuts_ranges():
    identity = h.build_id(960)
    whole = h.make_elf(identity, 300000)
    with good_upstream(identity, size=300000) as server, symsrv("--upstream", "ssqp=" + server.url, "--transient", "503") as back:
        with nginx(back.port) as (front, _):
            status, headers, body = front.debuginfo(identity)
            equal((status, body), (200, whole), "first")
            equal(headers["x-debuginfod-size"], str(len(whole)), "x-debuginfod-size")
            status, headers, body = front.debuginfo(identity)
            equal((status, body, headers["x-cache"]), (200, whole, "HIT"), "from its cache")
            equal(front.debuginfo(identity, headers={"Range": "bytes=5-10"})[2], whole[5:11], "a range")
            equal(front.debuginfo(identity, headers={"If-None-Match": headers["etag"]})[0], 304, "a tag")
            equal(front.debuginfo(h.build_id(961))[0], 404, "a miss")
            equal(front.get("/symbols/_.debug%2felf-buildid-sym-" + identity + "%2F_.debug")[2], whole, "escaped slashes")
            if h.find_tool("debuginfod-find"):
                found = subprocess.run(["debuginfod-find", "debuginfo", identity], env=client_environment(front.url),
                                       capture_output=True, text=True)
                equal(open(found.stdout.strip(), "rb").read(), whole, "debuginfod-find")


@test
def static_files_laid_out_like_a_symbol_server_are_an_upstream():
    root = tempfile.mkdtemp(dir=RUN.scratch)
    os.chmod(RUN.scratch, 0o755)
    elf, code = h.build_id(970), h.build_id(971)
    guid = "0123456789abcdef0123456789abcdef"
    text = b"FFFFFFFF 00 0123456789ABCDEF0123456789ABCDEF\nFFFFFFFE 00 1\n000115D0 0D A::B()\n"
    pdb = h.make_pdb(guid, 3)
    files = {
        "_.debug/elf-buildid-sym-%s/_.debug" % elf: h.make_elf(elf),
        "libcoreclr.so/elf-buildid-%s/libcoreclr.so" % code: h.make_elf(code, code=True, debug=False),
        "system.dll/9757F3A636c00/system.dll": h.make_pe(0x9757F3A6, 0x36C00),
        "a.ni.r2rmap/r2rmap-v1-%s/a.ni.r2rmap" % guid: text,
    }
    shared = {"Old.pdb/%s3/Old.pdb" % guid.upper(): pdb}  # as symstore.exe lays it
    for name, content in {**files, **shared}.items():
        os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
        with open(os.path.join(root, name), "wb") as file:
            file.write(content)
    for directory, _, _ in os.walk(root):
        os.chmod(directory, 0o755)
    with nginx(1, root) as (_, static):
        for kind, wanted in (("ssqp=" + static.url, files), ("dir=" + root, {**files, **shared})):
            with symsrv("--upstream", kind) as program:
                for name, content in wanted.items():
                    equal(program.get("/symbols/" + name)[2], content, "%s from %s" % (name, kind))
                equal(program.debuginfo(elf)[2], h.make_elf(elf), "the same over debuginfod's protocol")
                equal(program.get("/symbols/LIBCORECLR.SO/ELF-BUILDID-%s/LibCoreClr.so" % code.upper())[0], 200, "in any case")
                equal(program.get("/buildid/%s/executable" % code)[0], 200, "and then over debuginfod's protocol")
                equal(program.get("/symbols/")[0], 404, "no listing")


@test
def an_exported_store_serves_clients_without_a_server():
    need("debuginfod-find", "eu-addr2line")
    directory, tree = tempfile.mkdtemp(dir=RUN.scratch), os.path.join(tempfile.mkdtemp(dir=RUN.scratch), "tree")
    program, debug, identity = compile_program(directory)
    guid, image = "00112233445566778899aabbccddeeff", h.make_pe(0x9757F3A6, 0x36C00)
    files = {"/_.debug/elf-buildid-sym-%s/_.debug" % identity: open(debug, "rb").read(),
             "/a.dll/9757F3A636c00/a.dll": image, "/x/../a.pdb/%s1/a.pdb" % guid: b"no"}
    with upstream(h.serve_files(files)) as server, symsrv("--upstream", "ssqp=" + server.url) as front:
        equal(front.debuginfo(identity)[0], 200, "debug file")
        equal(front.get("/symbols/a.dll/9757F3A636c00/a.dll")[0], 200, "PE file")
        equal(front.get("/buildid/%s/symtab" % identity)[0], 200, "names")
        done = subprocess.run([RUN.program, "--store", front.store, "--export", tree], capture_output=True, text=True)
        equal((done.returncode, done.stdout.startswith("3 objects written")), (0, True), done.stdout + done.stderr)
    found = subprocess.run(["debuginfod-find", "debuginfo", identity], capture_output=True, text=True,
                           env=client_environment("file://" + tree), check=True).stdout.strip()
    equal(open(found, "rb").read(), open(debug, "rb").read(), "debuginfod-find")
    linked = os.path.join(tree, ".build-id", identity[:2], identity[2:] + ".debug")
    equal(open(linked, "rb").read(), open(debug, "rb").read(), "the tree of build-ids")
    equal(open(os.path.join(tree, "a.dll", "9757F3A636c00", "a.dll"), "rb").read(), image, "SSQP")
    with symsrv("--upstream", "dir=" + tree) as second:
        equal(second.debuginfo(identity)[2], open(debug, "rb").read(), "as an upstream")
