"""Sketches from C source to their output: the guest kit, guest-pack, and the examples in guest/."""

import os
import struct
import subprocess
import unittest
import zlib

from support import BULKHEAD, KIT, CommandTest, SketchKit, require_sketch_tools

ENOUGH_FUEL = ("--fuel", "1e12")


def setUpModule():
    require_sketch_tools()


def section(name, content):
    def leb(value):
        return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + leb(value >> 7)

    payload = leb(len(name)) + name + content
    return b"\0" + leb(len(payload)) + payload


class Sketch(SketchKit):
    def test_s9_the_acceptance_guest_completes(self):
        result, report = self.run_with_report(self.example("acceptance"), *ENOUGH_FUEL, "--deadline", "90s")
        self.assertEqual(report["code"], "worker-completed", result.stderr)
        self.assertEqual(report["terminal"]["outcome"], "started")
        self.assertEqual(report["module"]["profile"], "sketch")

    def test_s10_the_acceptance_guest_meets_its_deadline(self):
        result, report = self.run_with_report(self.example("acceptance"), *ENOUGH_FUEL, "--deadline", "100ms")
        self.assertIn(report["code"], ("deadline-exceeded", "forced-containment-deadline-exceeded"), result.stderr)

    def test_s11_the_output_replaces_what_was_there(self):
        sketch = self.example("acceptance")
        os.mkdir(self.path("folder"))
        self.write("folder/destination", "original")
        _, report = self.run_with_report(sketch, *ENOUGH_FUEL, "--deadline", "90s", "--output", "folder/destination")
        self.assertEqual(report["code"], "worker-completed")
        self.assertEqual(self.read("folder/destination"), b"guest exact output")
        self.assertEqual(os.listdir(self.path("folder")), ["destination"])

    def test_four_threads_draw_a_picture(self):
        _, report = self.run_with_report(self.example("picture"), *ENOUGH_FUEL, "--deadline", "90s", "--output",
                                         "picture.png")
        self.assertEqual(report["code"], "worker-completed")
        png = self.read("picture.png")
        data, at = b"", 8
        while at < len(png):
            size, kind = struct.unpack(">I4s", png[at:at + 8])
            content = png[at + 8:at + 8 + size]
            self.assertEqual(struct.unpack(">I", png[at + 8 + size:at + 12 + size])[0], zlib.crc32(kind + content))
            data += content if kind == b"IDAT" else b""
            at += 12 + size
        pixels = zlib.decompress(data)
        self.assertEqual(len(pixels), 512 * (1 + 3 * 512))
        for thread in range(4):  # each has drawn its rows
            row = pixels[(256 + thread) * 1537 + 1:(256 + thread + 1) * 1537]
            self.assertGreater(len(set(row)), 50)

    def test_default_fuel_is_that_of_the_contract(self):
        result, report = self.run_with_report(self.example("acceptance"))
        self.assertEqual((report["code"], result.returncode), ("out-of-fuel", 120))


class Pack(CommandTest):
    def setUp(self):
        super().setUp()
        self.write("nothing.c", '#include "bulkhead_guest.h"\nint bulkhead_main(void) { return 0; }\n')
        subprocess.run([os.path.join(KIT, "build_sketch.sh"), self.path("sketch.wasm"), self.path("nothing.c")],
                       check=True, env={**os.environ, "BULKHEAD": BULKHEAD})
        self.sketch = self.read("sketch.wasm")

    def pack(self, *arguments):
        return self.bulkhead("guest-pack", *arguments)

    def test_packing_again_changes_nothing(self):
        self.write("again.wasm", "old")
        result = self.pack("sketch.wasm", "-o", "again.wasm")
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, b"", b""))
        self.assertEqual(self.read("again.wasm"), self.sketch)

    def test_sections_are_replaced_and_left_out(self):
        self.write("odd.wasm", self.sketch + section(b"bulkhead.abi", b"old") + section(b"secret", b"x") +
                   section(b"producers", b"\0"))
        result = self.pack("odd.wasm", "-o", "packed.wasm")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.check_says(result, "left out custom sections: secret")
        self.assertIn(section(b"producers", b"\0"), self.read("packed.wasm"))
        self.assertNotIn(b"secret", self.read("packed.wasm"))
        self.assertEqual(self.bulkhead("run", "packed.wasm").returncode, 0)

    def test_what_would_be_refused_is_not_written(self):
        self.write("out.wasm", "old")
        command = self.guest("empty")
        for arguments, status, part in (
            ((command, "-o", "out.wasm"), 126, "missing-shared-memory"),
            (("none.wasm", "-o", "out.wasm"), 127, "none.wasm"),
            (("sketch.wasm",), 122, "guest-pack needs --output FILE"),
            (("sketch.wasm", "-o", "no/out.wasm"), 125, "--output: the directory 'no' does not exist"),
        ):
            with self.subTest(arguments=arguments):
                result = self.pack(*arguments)
                self.assertEqual(result.returncode, status, result.stderr)
                self.assertIn(part, result.stderr.decode())
                self.assertEqual(self.read("out.wasm"), b"old")
        for content, part in (
            (b"", "empty-module: the module has no bytes"),
            (b"(module)", "text-module: "),
            (b"\0asm\1\0\0\0\1\xff", "invalid-binary: at byte "),
            (b"no module\0", "invalid-binary: at byte 0: expected the magic bytes"),
        ):
            with self.subTest(content=content):
                self.write("odd.wasm", content)
                result = self.pack("odd.wasm", "-o", "out.wasm")
                self.assertEqual(result.returncode, 126, result.stderr)
                said, why = result.stderr.decode().splitlines()
                self.assertIn("odd.wasm is no sketch", said)
                self.assertIn(part, why)
        self.assertEqual(self.read("out.wasm"), b"old")


if __name__ == "__main__":
    unittest.main()
