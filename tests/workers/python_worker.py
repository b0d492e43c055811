#!/usr/bin/python3
"""No sin: a worker in another language, written from docs/protocol.md alone. Outcome: worker-completed.

Sends the guest's arguments, one a line, to guest stdout, copies the module to the output file, reports Completed.
"""
import array
import mmap
import os
import socket
import struct
import sys

HELLO, EXECUTE, CANCEL = 1, 2, 3
HELLO_ACK, READY, STARTED, TERMINAL = 16, 17, 18, 20
HEADER = struct.Struct("<IHBBIIQ")  # magic, version, kind, flags, length, generation, request id
MAGIC, VERSION = 0x44484B42, 1
BUILD_ID = "python-worker"


class Reader:
    """Takes fields off a message body in the order they are declared."""

    def __init__(self, body):
        self.body, self.at = body, 0

    def take(self, size):
        piece = self.body[self.at:self.at + size]
        if len(piece) != size:
            sys.exit("message cut short")
        self.at += size
        return piece

    def number(self, code):
        return struct.unpack("<" + code, self.take(struct.calcsize("<" + code)))[0]

    def text(self):
        return self.take(self.number("I"))

    def texts(self):
        return [self.text() for _ in range(self.number("I"))]

    def finish(self):
        if self.at != len(self.body):
            sys.exit("message too long")


class Channel:
    def __init__(self):
        self.socket = socket.socket(fileno=3)
        self.socket.setblocking(True)
        self.descriptors = []
        self.buffer = b""

    def fill(self, size):
        while len(self.buffer) < size:
            room = array.array("i")
            data, ancillary, _, _ = self.socket.recvmsg(65536, socket.CMSG_SPACE(32 * room.itemsize))
            for level, kind, payload in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    fds = array.array("i")
                    fds.frombytes(payload[:len(payload) - len(payload) % fds.itemsize])
                    self.descriptors += fds
            if not data:
                sys.exit("the parent closed the channel")
            self.buffer += data
        piece, self.buffer = self.buffer[:size], self.buffer[size:]
        return piece

    def receive(self, expected):
        magic, version, kind, flags, length, self.generation, self.request = HEADER.unpack(self.fill(HEADER.size))
        if (magic, version, kind, flags) != (MAGIC, VERSION, expected, 0):
            sys.exit("unexpected message")
        return Reader(self.fill(length))

    def send(self, kind, body):
        header = HEADER.pack(MAGIC, VERSION, kind, 0, len(body), self.generation, self.request)
        self.socket.sendall(header + body)


def text(value):
    raw = value.encode()
    return struct.pack("<I", len(raw)) + raw


def take_hello(channel):
    hello = channel.receive(HELLO)
    nonce = hello.take(16)
    hello.number("I")  # largest frame the parent accepts
    hello.text()  # its build id
    for _ in range(hello.number("I")):  # directory grants: path and whether writable
        hello.text()
        hello.number("B")
    hello.take(4 * 8 + 4)  # scratch, compile memory, CPU seconds, file size, sandbox, namespaces, users
    hello.finish()
    return nonce


def take_execute(channel):
    execute = channel.receive(EXECUTE)
    execute.number("B")  # mode
    execute.number("B")  # profile
    module_bytes = execute.number("Q")
    code_bytes = execute.number("Q")
    execute.take(6 * 8)  # code offset, remaining ms, fuel, memory, memory overhead, stack
    execute.take(2 * 4 + 2 * 8 + 1 + 4 * 8 + 3 * 4 + 8)  # limits of threads and blobs
    execute.number("B")  # cooperative
    has_stream = [execute.number("B") for _ in range(4)]  # stdin, stdout, stderr, output
    execute.text()  # output name
    execute.number("Q")  # its largest size
    arguments = execute.texts()
    execute.texts()  # environment
    execute.finish()
    module = channel.descriptors.pop(0)
    if code_bytes:  # compiled code; this worker runs nothing
        os.close(channel.descriptors.pop(0))
    streams = [channel.descriptors.pop(0) if present else None for present in has_stream]
    return module, module_bytes, streams, arguments


def terminal_completed(output_created):
    started = 1
    return (struct.pack("<BB4I", 1, started, 0, 0, 0, 0) +  # kind Completed, as Started, no rejections
            b"\0" +  # no status
            text("") + text("") +  # diagnostic, reason
            b"\0" +  # no limit
            struct.pack("<5Q", 0, 0, 0, 0, 0) +  # counters
            b"\0" +  # no trap
            struct.pack("<QBQQQB", 0, 0, 0, 0, 0, output_created))  # facts


def main():
    if set(os.environ) - {"LC_CTYPE"}:  # Python itself adds that one
        sys.exit("the environment is not empty")
    channel = Channel()
    nonce = take_hello(channel)
    channel.send(HELLO_ACK, nonce + text(BUILD_ID) + struct.pack("<I", 0) + text("") + struct.pack("<i", 0))
    module, module_bytes, (_, stdout, _, output), arguments = take_execute(channel)
    channel.send(READY, struct.pack("<Q", module_bytes))
    channel.send(STARTED, struct.pack("<Q", 0))
    if stdout is not None:
        for argument in arguments:
            os.write(stdout, argument + b"\n")
    if output is not None:
        with mmap.mmap(module, module_bytes, prot=mmap.PROT_READ) as image:
            os.write(output, image)
    channel.send(TERMINAL, terminal_completed(output is not None))


main()
