"""What a terminal gets to see: colours, the live line, and nothing a guest could use against it."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import unittest

from support import BULKHEAD, HOSTILE_TEXT, PATIENCE_S, CommandTest, printer

DRAWN = re.compile(rb"\x1bD\x1b\[A\x1b\[J\x1b7\x1b\[B\r([^\x1b]*)\x1b8")


def setUpModule():
    try:
        for end in pty.openpty():
            os.close(end)
    except OSError as error:
        raise unittest.SkipTest(f"missing: pseudo-terminals: {error}")


class Terminal(CommandTest):
    def on_terminal(self, *arguments, stdout_too=False, **variables):
        """(status, bytes the terminal got) of a command whose stderr is a terminal 60 columns wide."""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
        environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "CLICOLOR_FORCE")}
        environment.update({"TERM": "xterm", **variables})
        process = subprocess.Popen(
            [BULKHEAD, *arguments], stdin=subprocess.DEVNULL, stdout=slave if stdout_too else subprocess.DEVNULL,
            stderr=slave, env=environment, cwd=self.dir)
        os.close(slave)
        seen = b""
        try:
            while chunk := os.read(master, 4096):
                seen += chunk
        except OSError:  # EIO: the other end is closed
            pass
        os.close(master)
        return process.wait(PATIENCE_S), seen

    def test_live_line_of_a_long_run(self):
        status, seen = self.on_terminal("run", self.guest("sleep"), "--deadline", "2500ms")
        self.assertEqual(status, 124)
        lines = DRAWN.findall(seen)
        self.assertTrue(lines, seen)
        self.assertTrue(any(re.fullmatch(rb"execute \d+\.\d s \d.* [KM]iB", line) for line in lines), lines)
        self.assertTrue(all(len(line) < 60 for line in lines))
        after = seen[seen.rindex(b"\x1b8") + 2:]
        self.assertTrue(after.startswith(b"\x1b[J"), after)  # erased before the result
        self.assertIn(b"deadline of 2.5 s exceeded", after)

    def test_no_live_line_without_need(self):
        quick = self.compile(printer("x"))
        _, seen = self.on_terminal("run", quick)
        took_ms = re.search(rb"completed in (\d+) ms", seen)  # else it did take over a second
        self.assertTrue(took_ms is None or not DRAWN.search(seen), seen)
        sleep = self.guest("sleep")
        for arguments, variables in ((("--quiet",), {}), ((), {"TERM": "dumb"})):
            _, seen = self.on_terminal("run", sleep, "--deadline", "1500ms", *arguments, **variables)
            self.assertNotIn(b"\x1b7", seen)
        result = self.bulkhead("run", sleep, "--deadline", "1500ms")
        self.assertNotIn(b"\x1b", result.stderr)

    def test_colours(self):
        module = self.compile(printer("x"))
        _, seen = self.on_terminal("run", module)
        self.assertIn(b"\x1b[32mbulkhead:\x1b[0m completed", seen)
        _, seen = self.on_terminal("run", module, NO_COLOR="1")
        self.assertNotIn(b"\x1b[3", seen)
        _, seen = self.on_terminal("run", module, NO_COLOR="")
        self.assertIn(b"\x1b[32m", seen)
        forced = {**os.environ, "CLICOLOR_FORCE": "1"}
        self.assertIn(b"\x1b[32m", self.bulkhead("run", module, env=forced).stderr)
        both = {**forced, "NO_COLOR": "1"}
        self.assertNotIn(b"\x1b", self.bulkhead("run", module, env=both).stderr)

    def test_guest_cannot_control_the_terminal(self):
        module = self.compile(printer(HOSTILE_TEXT))
        _, seen = self.on_terminal("run", "-q", module, stdout_too=True)
        self.assertNotIn(b"\x1b", seen)
        self.assertNotIn(b"\x07", seen)
        self.assertIn(b"hi", seen)

    def test_a_pipe_gets_the_bytes_as_they_are(self):
        result = self.bulkhead("run", "-q", self.compile(printer(HOSTILE_TEXT)))
        self.assertEqual(result.stdout, b"\x1b[2J\x1b]0;owned\x07hi\n")

    def test_names_cannot_control_the_terminal(self):
        name = "evil\x1b[2J.wasm"
        status, seen = self.on_terminal("run", name, NO_COLOR="1")
        self.assertEqual(status, 127)
        self.assertNotIn(b"\x1b", seen)
        self.assertIn(b"evil\\x1b[2J.wasm", seen)
        self.write(name, b"no module")
        for command in (("run", name), ("inspect", name)):
            _, seen = self.on_terminal(*command, stdout_too=True, NO_COLOR="1")
            self.assertNotIn(b"\x1b", seen)
