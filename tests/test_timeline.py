#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The timeline page in a real browser (Debian's chromium, headless): that its script runs to the end, that lanes are
drawn, that zooming, panning, hovering and dimming change what they should, that it needs no network, and that the trace
beside it is one that Perfetto reads. Leaves timeline.png in the build folder to be looked at.

usage: test_timeline.py --build DIR"""
import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--window-size=1400,900"]

# Runs after the page's own script and leaves what it saw in attributes of the body.
PROBE = """<script>
"use strict";
const seen = document.body.dataset;
const pixels = () => context.getImageData(0, 0, canvas.width, canvas.height).data;
const colours = () => { const p = new Uint32Array(pixels().buffer.slice(0)); return new Set(p).size; };
const sum = () => { let s = 0; const p = pixels(); for (let i = 0; i < p.length; i += 7) s = (s * 31 + p[i]) >>> 0; return s; };
seen.colours = colours();
draw(); // reading pixels moves the canvas into memory, which rounds edges otherwise
const whole = sum();
const e = data.events.reduce((a, b) => b[END] - b[START] > a[END] - a[START] ? b : a);
const at = { offsetX: x((e[START] + e[END]) / 2), offsetY: TOP + e[LEADER] * ROW + 3 };
function send(kind, more) {
  const event = new Event(kind, { cancelable: true });
  Object.assign(event, at, { clientX: at.offsetX, clientY: at.offsetY }, more);
  canvas.dispatchEvent(event);
}
send("mousemove", {});
seen.tip = el("tip").style.display + " " + el("tip").textContent;
send("wheel", { deltaY: -900 });
seen.zoomed = sum() !== whole && to - from < span ? "yes" : "no";
const before = from;
send("mousedown", {}); send("mousemove", { offsetX: at.offsetX - 80 }); window.dispatchEvent(new Event("mouseup"));
seen.panned = from > before ? "yes" : "no";
send("dblclick", {});
seen.restored = sum() === whole ? "yes" : "no";
el("legend").firstChild.click();
seen.dimmed = sum() !== whole ? "yes" : "no";
</script></body>"""


def chromium(folder, page, *more):
    profile = tempfile.mkdtemp(dir=folder)
    done = subprocess.run([shutil.which("chromium"), *FLAGS, f"--user-data-dir={profile}", *more, page.as_uri()],
                          capture_output=True, text=True, timeout=120, env={"HOME": str(folder), "PATH": "/usr/bin:/bin"})
    assert done.returncode == 0, done.stderr
    return done.stdout


def attribute(dom, name):
    found = re.search(rf'<body[^>]*\bdata-{name}="([^"]*)"', dom)
    assert found, f"found no {name}: the page's script did not run to its end"
    return found.group(1)


def check_page(folder, page, words, joined=False):
    text = page.read_text()
    assert not re.search(r'(src|href)\s*=|https?://|import\s*\(|fetch\s*\(', text), "the page asks for something outside itself"
    probed = folder / "probed.html"
    probed.write_text(text.replace("</body>", PROBE))
    dom = chromium(folder, probed, "--dump-dom")
    assert attribute(dom, "ready") == "yes"
    assert int(attribute(dom, "colours")) > 10, "the canvas is blank"
    tip = attribute(dom, "tip")
    for word in ("block", "duration", "level", "waited", "width", *words):
        assert word in tip, f"found '{tip}', expected {word} in it"
    for name in ("zoomed", "panned", "restored", "dimmed"):
        assert attribute(dom, name) == "yes", f"not {name}"
    assert dom.count("<table") == 3 and "nothing ready" in dom and "in its team" in dom
    check_lanes(dom, joined)


def check_lanes(dom, joined):
    """Of each lane the four causes make all of the step, and where somebody joined, leaders waited."""
    rows = [re.findall(r"<td>([^<]*)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", dom.split("<table")[1])][1:]
    for name, *causes, _ in rows:
        assert abs(sum(float(cause.removesuffix(" %")) for cause in causes if cause != "–") - 100) < 0.25, (name, causes)
    assert not joined or float(rows[-1][4].removesuffix(" %")) > 0, rows[-1]


# KERNEL: INPUT... -> OUTPUT..., of many the first and how many more.
ARGUMENT = r" \w+\[[\d,<=]*\]"
DETAIL = {addresses: re.compile(rf"[^:]+:({ARGUMENT}{at})*( and \d+ more)? ->({ARGUMENT}{at})+( and \d+ more)?")
          for addresses, at in ((False, ""), (True, "@(0x[0-9a-f]+|\\(nil\\))"))}


def check_details(path, addresses):
    """No text is cut: every operation has its outputs, and they are whole."""
    details = [e["args"]["detail"] for e in json.loads(path.read_text())["traceEvents"] if e["ph"] == "X"]
    for detail in details:
        assert DETAIL[addresses].fullmatch(detail), detail
    return details


def check_trace(path, executions):
    """Complete events with non-negative times, not overlapping within a lane: what Perfetto draws without complaint. How
    time was spent makes up all of it; averages are there where there were executions."""
    trace = json.loads(path.read_text())
    events = trace["traceEvents"] if isinstance(trace, dict) else trace
    told = trace["otherData"]
    assert told["executions"] == executions
    assert abs(told["busy"] + told["nothing_ready"] + told["scheduling"] + told["in_teams"] - 1) < 1e-5
    lanes = {}
    for event in events:
        if event["ph"] != "X":
            continue
        assert event["ts"] >= 0 and event["dur"] >= 0 and event["name"]
        more = event["args"]
        assert 0 <= more["team_wait_us"] <= event["dur"] + 0.002 and ("mean_us" in more) == (executions > 0)
        assert not executions or more["mean_us"] > 0 and (more["deviation_us"] > 0 or executions == 1)
        lanes.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["ts"] + event["dur"], event["name"]))
    assert lanes, "found no events"
    for spans in lanes.values():
        spans.sort()
        for (_, end, first), (start, _, second) in zip(spans, spans[1:]):
            assert start >= end - 0.002, f"{first} and {second} overlap"


def main():
    parser = argparse.ArgumentParser(description="the timeline in a browser")
    parser.add_argument("--build", type=Path, required=True)
    build = parser.parse_args().build.resolve()
    if not shutil.which("chromium"):
        sys.exit("test_timeline: found no chromium, expected one: tools/setup.sh long installs it")
    with tempfile.TemporaryDirectory(prefix="graphi-timeline-") as name:
        folder = Path(name)
        environment = {"HOME": name, "PATH": "/usr/bin:/bin"}
        machine = Path(__file__).resolve().parent.parent / "machines" / "knl-7210.json"
        for prefix, executions, said, words in (
                ("run", 3, ("@0x", "mean of 3 executions", "deviation"), ["run", "pathnet", "--repeat", "3"]),
                ("simulated", 0, (), ["simulate", "googlenet", "--machine", str(machine), "--executors", "8", "--width", "8"]),
                ("joined", 0, (), ["simulate", "googlenet", "--machine", str(machine), "--executors", "16", "--width", "1", "--join", "on"]),
                # Teams of workers that are no neighbours, or not the leader's: on other lanes they would overlap.
                ("teams", 0, (), ["simulate", "lstm", "--machine", str(machine), "--cores", "8", "--policy", "malleable"])):
            subprocess.run([build / "graphi", *words, "--timeline", folder / prefix], check=True, capture_output=True, env=environment)
            check_page(folder, folder / f"{prefix}.html", said, joined=prefix == "joined")
            check_trace(folder / f"{prefix}.json", executions)
            check_details(folder / f"{prefix}.json", executions > 0)
        assert "simulated" in (folder / "simulated.html").read_text()
        chromium(folder, folder / "run.html", f"--screenshot={build / 'timeline.png'}")
        chromium(folder, folder / "simulated.html", f"--screenshot={build / 'timeline-simulated.png'}")
        # Of many operands, as those of the weights' gradients over time, outputs were cut off.
        words = ["run", "lstm", "--training", "--cores", "1", "--tune", "0", "--timeline", folder / "many"]
        subprocess.run([build / "graphi", *words], check=True, capture_output=True, env=environment)
        assert any("more ->" in detail for detail in check_details(folder / "many.json", True))
        # The checks find a page whose script fails and one that draws nothing.
        blank = ('"use strict"; for (const name of ["fillRect", "fillText", "strokeRect", "stroke"]) '
                 'CanvasRenderingContext2D.prototype[name] = () => {};')
        for fault in ('"use strict"; throw 1;', blank):
            broken = folder / "broken.html"
            broken.write_text((folder / "run.html").read_text().replace('"use strict";', fault, 1))
            try:
                check_page(folder, broken, ())
            except AssertionError:
                continue
            sys.exit(f"test_timeline: the planted fault {fault} was not found")
    print(f"wrote {build / 'timeline.png'}")


if __name__ == "__main__":
    main()
