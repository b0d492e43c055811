#!/usr/bin/env python3
"""Installs the build, then builds and runs a consumer project against the installation alone.

usage: install_test.py BUILD_DIR SOURCE_DIR CXX SANITIZER_FLAGS
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BUILD, SOURCE, CXX, FLAGS = sys.argv[1:5]
EXAMPLE = f"{SOURCE}/examples/embed_run.cc"
HELLO = """(module
  (import "wasi_snapshot_preview1" "fd_write"
    (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\\08\\00\\00\\00\\06\\00\\00\\00hello\\n")
  (func (export "_start")
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 100)))))
"""


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command} exits {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="bulkhead install ")
        root = pathlib.Path(cls.folder.name)
        cls.root = root
        os.environ["XDG_CACHE_HOME"] = str(root / "cache")  # not the user's own
        # Installed under one prefix and moved: nothing in the layout may name the prefix.
        run("cmake", "--install", BUILD, "--prefix", str(root / "first"))
        cls.prefix = root / "prefix"
        (root / "first").rename(cls.prefix)
        (root / "hello.wat").write_text(HELLO)
        run("wat2wasm", str(root / "hello.wat"), "-o", str(root / "hello.wasm"))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_consumer(self, program):
        environment = dict(os.environ)
        environment["BULKHEAD_WORKER_DIR"] = str(self.prefix / "libexec" / "bulkhead")
        output = run(str(program), str(self.root / "hello.wasm"), env=environment)
        self.assertEqual(output, "hello\n")

    def test_find_package(self):
        build = self.root / "consumer"
        run("cmake", "-S", f"{SOURCE}/tests/install/consumer", "-B", str(build), "-G", "Ninja",
            f"-DCMAKE_CXX_COMPILER={CXX}", f"-DCMAKE_CXX_FLAGS={FLAGS}",
            f"-DCMAKE_PREFIX_PATH={self.prefix}", f"-DEMBED_RUN_SOURCE={EXAMPLE}")
        run("cmake", "--build", str(build))
        self.run_consumer(build / "consumer")

    def test_pkg_config(self):
        environment = dict(os.environ)
        environment["PKG_CONFIG_PATH"] = str(self.prefix / "lib" / "pkgconfig")
        found = list(self.prefix.glob("lib/**/bulkhead.pc"))
        self.assertEqual(len(found), 1)
        environment["PKG_CONFIG_PATH"] = str(found[0].parent)
        cflags = run("pkg-config", "--cflags", "bulkhead", env=environment)
        libs = run("pkg-config", "--libs", "--static", "bulkhead", env=environment)
        # A shell reads what pkg-config printed, as a user's Makefile would: paths may hold blanks.
        run("sh", "-c", f'{CXX} -std=c++20 {FLAGS} "{EXAMPLE}" {cflags.strip()} {libs.strip()} '
            f'-o "{self.root}/pkg-consumer"')
        self.run_consumer(self.root / "pkg-consumer")

    def test_command_finds_its_worker(self):
        output = run(str(self.prefix / "bin" / "bulkhead"), "run", str(self.root / "hello.wasm"))
        self.assertEqual(output, "hello\n")

    def test_public_headers_stand_alone(self):
        for header in sorted((self.prefix / "include" / "bulkhead").glob("*.h")):
            (self.root / "alone.cc").write_text(f"#include <bulkhead/{header.name}>\n")
            run(CXX, "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                f"-I{self.prefix}/include", str(self.root / "alone.cc"))

    def test_man_page_and_completions_are_installed(self):
        share = self.prefix / "share"
        for path in ("man/man1/bulkhead.1", "bash-completion/completions/bulkhead",
                     "zsh/site-functions/_bulkhead", "fish/vendor_completions.d/bulkhead.fish"):
            self.assertTrue((share / path).is_file(), path)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
