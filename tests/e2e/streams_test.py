"""The guest's streams through pipes, as programs and people use them."""

import subprocess
import threading

from support import BULKHEAD, PATIENCE_S, CommandTest

MIB = 1 << 20


class Streams(CommandTest):
    def setUp(self):
        super().setUp()
        self.copies = self.guest("read_stdin")

    def start(self):
        process = subprocess.Popen([BULKHEAD, "run", "--quiet", "--stdin", "-", self.copies], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)
        for pipe in (process.stdin, process.stdout, process.stderr):
            self.addCleanup(pipe.close)
        self.addCleanup(process.kill)
        return process

    def check_copied(self, content):
        process = self.start()
        stdout, stderr = process.communicate(content, timeout=PATIENCE_S)
        self.assertEqual((process.returncode, stderr), (0, b""))
        self.assertTrue(stdout == content, f"{len(stdout)} of {len(content)} bytes came back, or others")

    def test_g21_an_answer_comes_while_stdin_is_open(self):
        process = self.start()
        for request in (b"twenty bytes of text", b"one\r\n", b"x"):
            process.stdin.write(request)
            answer = b""
            while len(answer) < len(request):
                chunk = process.stdout.read(len(request) - len(answer))
                self.assertTrue(chunk, "the output ended")
                answer += chunk
            self.assertEqual(answer, request)
        stdout, stderr = process.communicate(timeout=PATIENCE_S)
        self.assertEqual((process.returncode, stdout, stderr), (0, b"", b""))

    def test_g21_bytes_pass_whatever_they_are(self):
        for content in (b"", b"a" * (3 * MIB) + b"\n", b"one\r\ntwo\r\n", b"no newline at the end", b"\n",
                        b"\x04\x1a\x00"):
            with self.subTest(content[:20]):
                self.check_copied(content)

    def test_g21_one_byte_at_a_time(self):
        process = self.start()
        content = bytes(range(256)) * 4

        def write():
            for byte in content:
                process.stdin.write(bytes([byte]))
            process.stdin.close()

        writer = threading.Thread(target=write)
        writer.start()
        received = process.stdout.read(1)
        while chunk := process.stdout.read(65536):
            received += chunk
        writer.join()
        self.assertEqual((process.wait(PATIENCE_S), process.stderr.read()), (0, b""))
        self.assertEqual(received, content)

    def test_g32_both_directions_at_once(self):
        content = bytes(i * 7919 >> 5 & 0xFF for i in range(8 * MIB))
        for _ in range(20):
            self.check_copied(content)
