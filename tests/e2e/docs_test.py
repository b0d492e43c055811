"""inspect, doctor, version, help, the man page and the completions."""

import json
import os
import re
import shutil
import subprocess

from support import BULKHEAD, SHARE_DIR, CommandTest, printer

MAN_PAGE = os.path.join(SHARE_DIR, "man/man1/bulkhead.1")
BASH = os.path.join(SHARE_DIR, "bash-completion/completions/bulkhead")
ZSH = os.path.join(SHARE_DIR, "zsh/site-functions/_bulkhead")
FISH = os.path.join(SHARE_DIR, "fish/vendor_completions.d/bulkhead.fish")


class Inspect(CommandTest):
    def inspect(self, *arguments):
        result = self.bulkhead("inspect", *arguments, "--json")
        return result.returncode, json.loads(result.stdout)

    def test_admissible_module(self):
        status, found = self.inspect(self.compile(printer("x")))
        self.assertEqual(status, 0)
        self.assertEqual((found["schema"], found["admissible"], found["refusals"]),
                         ("bulkhead.inspection/1", True, []))
        self.assertEqual(found["profile"], "wasi")
        self.assertEqual(found["imports"][0]["name"], "fd_write")
        self.assertEqual(found["memories"][0]["pages_min"], 1)
        result = self.bulkhead("inspect", self.path("guest.wasm"))
        self.assertEqual(result.returncode, 0)
        self.assertIn(b": admissible\n", result.stdout)
        self.assertIn(b"fd_write", result.stdout)

    def test_text_module(self):
        self.write("m.wat", printer("x"))
        status, found = self.inspect("m.wat")
        self.assertEqual((status, found["admissible"]), (0, True))

    def test_refused_module(self):
        wat = '(module (import "env" "a" (func)) (import "env" "b\\1b[2J" (func)) (func (export "_start")))'
        status, found = self.inspect(self.compile(wat))
        self.assertEqual((status, found["admissible"]), (126, False))
        self.assertGreaterEqual(len(found["refusals"]), 2)
        result = self.bulkhead("inspect", self.path("guest.wasm"))
        self.assertEqual(result.returncode, 126)
        self.assertNotIn(b"\x1b", result.stdout)

    def test_missing_and_unreadable_module(self):
        status, found = self.inspect("none.wasm")
        self.assertEqual((status, found["admissible"], found["refusals"][0]["code"]), (127, False, "not-found"))
        status, found = self.inspect(self.dir)
        self.assertEqual((status, found["refusals"][0]["code"]), (126, "unreadable"))
        result = self.bulkhead("inspect", "none.wasm")
        self.assertEqual((result.returncode, result.stdout), (127, b""))
        self.check_says(result, "none.wasm")


class Doctor(CommandTest):
    def test_this_machine(self):
        result = self.bulkhead("doctor", "--json")
        found = json.loads(result.stdout)
        self.assertEqual(found["schema"], "bulkhead.doctor/1")
        self.assertEqual(result.returncode, 0 if found["contained"] else 1)
        names = [check["name"] for check in found["checks"]]
        for name in ("kernel", "seccomp", "landlock", "namespaces", "cgroup", "cgroup-limits", "pidfd", "memfd",
                     "openat2", "open-files", "worker", "trial-run"):
            self.assertIn(name, names)
        for check in found["checks"]:
            self.assertEqual(check["state"] == "ok", check["fix"] == "", check)
        self.assertTrue(found["contained"], found)

    def test_without_a_worker(self):
        os.link(BULKHEAD, self.path("bulkhead"))
        result = subprocess.run([self.path("bulkhead"), "doctor"], capture_output=True, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"can not be contained", result.stdout)
        self.assertIn(b"BULKHEAD_WORKER_DIR", result.stdout)

    def test_few_descriptors_are_noticed(self):
        script = 'ulimit -n 64; exec "$0" doctor --json'
        result = subprocess.run(["sh", "-c", script, BULKHEAD], capture_output=True, check=False)
        checks = {check["name"]: check for check in json.loads(result.stdout)["checks"]}
        self.assertEqual(checks["open-files"]["state"], "degraded")
        self.assertEqual(checks["open-files"]["fix"], "ulimit -n 256")


class Version(CommandTest):
    def test_version(self):
        found = json.loads(self.bulkhead("version", "--json").stdout)
        self.assertEqual(found["schema"], "bulkhead.version/1")
        self.assertTrue(found["build_id"].startswith(found["version"] + "+"))
        self.assertEqual(found["protocol_version"], 1)
        self.assertEqual(found["engine"]["name"], "wasmtime")
        self.assertRegex(found["engine"]["supported_until"], r"^20\d\d-\d\d-\d\d$")
        text = self.bulkhead("version").stdout
        self.assertTrue(text.startswith(f"bulkhead {found['version']}\n".encode()))
        self.assertEqual(self.bulkhead("--version").stdout, text)


class Help(CommandTest):
    def test_help_is_a_result(self):
        overview = self.bulkhead("help")
        self.assertEqual((overview.returncode, overview.stderr), (0, b""))
        for command in ("run", "inspect", "doctor", "version"):
            help_text = self.bulkhead(command, "--help")
            self.assertEqual((help_text.returncode, help_text.stderr), (0, b""))
            self.assertEqual(self.bulkhead("help", command).stdout, help_text.stdout)
            self.assertIn(b"Examples:", help_text.stdout)

    def test_standard_output_that_fails(self):
        with open("/dev/full", "wb") as full:
            result = self.bulkhead("help", stdout=full)
        self.assertEqual(result.returncode, 125)
        self.check_says(result, "No space left on device")
        read_end, write_end = os.pipe()
        os.close(read_end)
        result = self.bulkhead("help", stdout=write_end)
        os.close(write_end)
        self.assertEqual((result.returncode, result.stderr), (141, b""))


class Generated(CommandTest):
    def tool(self, name):
        if shutil.which(name) is None:
            self.skipTest(f"{name} is not installed")
        return name

    def test_man_page_renders_without_warnings(self):
        result = subprocess.run([self.tool("groff"), "-man", "-Tutf8", "-ww", MAN_PAGE], capture_output=True,
                                check=False)
        self.assertEqual((result.returncode, result.stderr), (0, b""))
        text = re.sub(".\x08", "", result.stdout.decode())  # bold and underlined letters are overstruck
        for part in ("NAME", "EXIT", "SIGNALS", "deadline", "BULKHEAD_WORKER_DIR"):
            self.assertIn(part, text)

    def complete(self, *words):
        script = (f'source "{BASH}"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
                  '_bulkhead; printf "%s\\n" "${COMPREPLY[@]}"')
        result = subprocess.run([self.tool("bash"), "-c", script, "bash", *words], capture_output=True, text=True,
                                cwd=self.dir, check=True)
        return result.stdout.split("\n")[:-1]

    def test_bash(self):
        subprocess.run([self.tool("bash"), "-n", BASH], check=True)
        self.assertEqual(self.complete("bulkhead", "ru"), ["run"])
        self.assertEqual(self.complete("bulkhead", "help", "d"), ["doctor"])
        self.assertEqual(self.complete("bulkhead", "run", "--dead"), ["--deadline"])
        self.assertEqual(self.complete("bulkhead", "run", "--stop-mode", ""), ["cooperative", "kill"])
        self.assertEqual(self.complete("bulkhead", "run", "--stop-mode", "=", "k"), ["kill"])
        self.write("my module.wasm", "")
        self.assertEqual(self.complete("bulkhead", "run", "my"), ["my module.wasm"])

    def test_zsh(self):
        subprocess.run([self.tool("zsh"), "-n", ZSH], check=True)

    def test_fish(self):
        subprocess.run([self.tool("fish"), "--no-execute", FISH], check=True)
        script = f'source "{FISH}"; complete -C "bulkhead run --dead"; complete -C "bulkhead ru"'
        result = subprocess.run(["fish", "--no-config", "-c", script], capture_output=True, text=True, check=True,
                                env={**os.environ, "HOME": self.dir})
        self.assertIn("--deadline\t", result.stdout)
        self.assertIn("run\t", result.stdout)
