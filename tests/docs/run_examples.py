#!/usr/bin/env python3
"""Keeps the documents true: runs their examples and compiles their C++.

    run_examples.py --source DIR --bin DIR --compiler PROGRAM --scratch DIR DOCUMENT...

--source is the source tree, --bin has the built programs, in --scratch temporary folders are made.

In a document these fenced blocks are examples; the words after ``` say so:

    sh test [NEEDED...]   executed by bash in a folder that the blocks of one document share, with
                          the build's programs first on PATH. The folder passes for the top of the
                          source tree: guest/ is there. It has to succeed. A NEEDED program that
                          the machine lacks skips the block, and then the whole test counts as
                          skipped, with the block and the program named.
    text test             what the block before has printed, stdout and stderr together; "..."
                          stands for any text
    c++                   a whole translation unit; has to compile against the public headers

Exit status: 0 all examples hold, 1 one does not, 77 one was skipped.
"""
import argparse
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
# Reached only when something hangs.
EXAMPLE_SECONDS_MAX = 60
FENCE = re.compile(r"^```(?P<info>.*)$")


@dataclasses.dataclass
class Block:
    document: pathlib.Path
    line: int  # of its first line, from 1
    words: list
    text: str

    @property
    def place(self):
        return f"{self.document.name}:{self.line}"


def fenced_blocks(document):
    blocks, open_block, lines = [], None, []
    for number, line in enumerate(document.read_text(encoding="utf-8").splitlines(), 1):
        fence = FENCE.match(line)
        if fence is None:
            lines.append(line)
        elif open_block is None:
            open_block, lines = Block(document, number + 1, fence["info"].split(), ""), []
        else:
            open_block.text = "".join(text + "\n" for text in lines)
            blocks.append(open_block)
            open_block = None
    if open_block is not None:
        sys.exit(f"{open_block.place}: the block does not end")
    return blocks


class Examples:
    """Runs the blocks of documents and remembers what did not hold."""

    def __init__(self, options):
        self.options = options
        self.failed, self.skipped, self.held = [], [], 0

    def note(self, block, problem):
        if problem is None:
            self.held += 1
        else:
            self.failed.append(block.place)
            print(f"FAILED {block.place}: {problem}\n{indented(block.text)}", flush=True)

    def run_document(self, document):
        with tempfile.TemporaryDirectory(prefix="docs-", dir=self.options.scratch) as folder:
            (pathlib.Path(folder) / "guest").symlink_to(self.options.source / "guest")
            printed = None
            for block in fenced_blocks(document):
                if block.words[:2] == ["sh", "test"]:
                    printed = self.run_shell(block, folder)
                elif block.words == ["text", "test"] and printed is not None:
                    self.note(block, mismatch(block.text, printed))
                elif block.words == ["c++"]:
                    self.note(block, self.compile(block, folder))

    def run_shell(self, block, folder):
        """What the block printed, or None if there is nothing to compare."""
        missing = [program for program in block.words[2:] if shutil.which(program) is None]
        if missing:
            self.skipped.append(block.place)
            print(f"SKIPPED {block.place}: no {', '.join(missing)} here", flush=True)
            return None
        environment = {"PATH": f"{self.options.bin}:{os.environ['PATH']}", "HOME": folder,
                       "LC_ALL": "C.UTF-8"}
        try:
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", block.text], cwd=folder,
                                  env=environment, stdin=subprocess.DEVNULL, check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  timeout=EXAMPLE_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.note(block, f"not done after {EXAMPLE_SECONDS_MAX} s")
            return None
        printed = done.stdout.decode(errors="replace")
        if done.returncode != 0:
            self.note(block, f"exit status {done.returncode}, it printed:\n{indented(printed)}")
            return None
        self.note(block, None)
        return printed

    def compile(self, block, folder):
        source = pathlib.Path(folder) / f"line{block.line}.cc"
        source.write_text(block.text, encoding="utf-8")
        command = [self.options.compiler, "-std=c++20", "-Wall", "-Wextra", "-Werror",
                   "-fsyntax-only", f"-I{self.options.source / 'include'}", str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return None if done.returncode == 0 else f"does not compile:\n{indented(done.stderr)}"


def indented(text):
    return "".join(f"    {line}\n" for line in text.splitlines())


def mismatch(expected, printed):
    pattern = ".*".join(re.escape(part) for part in expected.rstrip("\n").split("..."))
    if re.fullmatch(pattern, printed.rstrip("\n"), re.DOTALL):
        return None
    return f"the example printed something else:\n{indented(printed)}expected was:"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--scratch", type=pathlib.Path, required=True)
    parser.add_argument("documents", type=pathlib.Path, nargs="+")
    options = parser.parse_args()
    options.source = options.source.resolve()  # examples run elsewhere
    options.bin = options.bin.resolve()
    examples = Examples(options)
    for document in options.documents:
        examples.run_document(document)
    print(f"{examples.held} held, {len(examples.failed)} failed, {len(examples.skipped)} skipped")
    if examples.failed or examples.held == 0:
        return 1
    return SKIPPED if examples.skipped else 0


sys.exit(main())
