# SPDX-License-Identifier: MIT
"""Source Link: a program built with a map of its sources, as the compiler puts it into the PDB."""
import gzip
import json
import os
import shutil

from harness import built, copy_of_sources, expect
import live_lines

SERVER = "https://example.com/store/4d38"


def linked_program(documents):
    """The program, built with this Source Link."""
    # At the same place every time: the program is built with this path once, and not again.
    path = os.path.join(built("source-link"), f"link-{len(documents)}.json")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"documents": documents}, file)
    return live_lines.program(f"-p:SourceLink={path}", "-p:Deterministic=false", name="lines-linked-" + str(len(documents)))


def urls_of(context, lines):
    return [answer for chain in live_lines.chains(context, lines, "--return-addresses", "--urls").values() for answer in chain]


def test_lines_have_the_url_that_the_build_named(context):
    sources = os.path.join(copy_of_sources(), "fixtures/src")
    with live_lines.Lines([shutil.which("dotnet"), linked_program({f"{sources}/*": f"{SERVER}/*"})]) as lines:
        answers = urls_of(context, lines)
        own = [answer for answer in answers if answer["file"] == f"{sources}/lines/Lines.cs"]
        addresses = [own[0]["input"]]
        text = context.mapgen.must("resolve", str(lines.pid), "--urls", "--return-addresses", *addresses).stdout
    expect(len(own) > 50, f"only {len(own)} frames of the program have a line")
    wrong = [answer for answer in own if answer["url"] != f"{SERVER}/lines/Lines.cs"]
    expect(not wrong, f"{len(wrong)} have another URL, first: {wrong[:1]}")
    others = [answer for answer in answers if answer["file"] is None]
    expect(all(answer["url"] is None and answer["url_reason"] for answer in others), "a frame without a line has a URL, or no reason")
    elsewhere = [answer for answer in answers if answer["file"] and not answer["file"].startswith(sources)]
    expect(elsewhere and all(answer["url"] is None for answer in elsewhere), "a file that the build did not name has a URL")
    expect(text.strip().endswith(f" {SERVER}/lines/Lines.cs#L{own[0]['line']}"), f"printed: {text}")


def test_hostile_source_link_gives_no_url(context):
    """A compiler accepts any JSON."""
    sources = os.path.join(copy_of_sources(), "fixtures/src")
    documents = {f"{sources}/*": "javascript:alert(1)//*", "/elsewhere/*": f"{SERVER}/*"}
    with live_lines.Lines([shutil.which("dotnet"), linked_program(documents)]) as lines:
        answers = urls_of(context, lines)
    own = [answer for answer in answers if answer["file"]]
    expect(len(own) > 50, f"only {len(own)} frames have a line")
    expect(all(answer["url"] is None for answer in answers), "a URL came from a hostile text")
    expect(any("http(s)" in answer["url_reason"] for answer in own), f"reason: {own[0]['url_reason']}")


def test_recordings_have_urls(context):
    """The program is gone when the report is made. A recording has frames of threads that run, so it begins with the program."""
    sources, path = os.path.join(copy_of_sources(), "fixtures/src"), os.path.join(context.scratch, "linked.trace.zip")
    program = linked_program({f"{sources}/*": f"{SERVER}/*"})
    with live_lines.Lines([context.mapgen.program, "record", "-o", path, "--", shutil.which("dotnet"), program]) as lines:
        lines.process.stdin.write("\n")
        lines.process.stdin.flush()
        lines.process.wait(timeout=60)
    report = json.loads(context.mapgen.must("report", "cpu", "--by=line", "--format=json", "-i", path, codes=(0, 3)).stdout)
    own = [row for row in report["views"][0]["rows"] if row["file"] == f"{sources}/lines/Lines.cs"]
    expect(own, "no line of the program was recorded")
    expect(all(row["url"] == f"{SERVER}/lines/Lines.cs" for row in own), f"another URL: {own[:1]}")
    text = context.mapgen.must("report", "cpu", "--by=line", "--urls", "--top=0", "-i", path, codes=(0, 3)).stdout
    expect(f"{SERVER}/lines/Lines.cs#L{own[0]['line']}" in text, "the text has no URL")
    for urls, wanted in (((), f"{sources}/lines/Lines.cs"), (("--urls",), f"{SERVER}/lines/Lines.cs")):
        scope = context.mapgen.must("report", "cpu", "--by=line", "--format=speedscope", *urls, "-i", path, codes=(0, 3)).stdout
        files = {frame.get("file") for frame in json.loads(scope)["shared"]["frames"] if "line" in frame}
        expect(wanted in files, f"speedscope has {files}")
        out = os.path.join(context.scratch, "linked.pb.gz")
        context.mapgen.must("report", "cpu", "--format=pprof", *urls, "-o", out, "-i", path, codes=(0, 3))
        with gzip.open(out) as file:
            expect(wanted.encode() in file.read(), f"pprof has no {wanted}")
