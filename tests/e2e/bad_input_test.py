"""Bad input: one clear sentence, the documented status, nothing left behind, nothing existing changed."""

import os
import shutil
import stat
import subprocess

from support import BULKHEAD, CommandTest, printer


class BadInput(CommandTest):
    def setUp(self):
        super().setUp()
        self.writer = self.guest("write_output", END="(nop)")

    def snapshot(self):
        """Every entry below the folder with its kind, content or target, and inode."""
        entries = {}
        for root, folders, files in os.walk(self.dir):
            for name in folders + files:
                path = os.path.join(root, name)
                info = os.lstat(path)
                content = None
                if stat.S_ISREG(info.st_mode):
                    with open(path, "rb") as file:
                        content = file.read()
                elif stat.S_ISLNK(info.st_mode):
                    content = os.readlink(path)
                entries[path] = (info.st_mode, info.st_ino, content)
        return entries

    def check_refused(self, status, arguments, *parts):
        before = self.snapshot()
        result = self.bulkhead("run", self.writer, *arguments)
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertEqual(result.stdout, b"")
        self.check_says(result, *parts)
        self.assertEqual(self.snapshot(), before)

    def test_output_destinations(self):
        os.mkdir(self.path("folder"))
        self.write("file", "old")
        os.symlink("file", self.path("link"))
        os.symlink("nowhere", self.path("dangling"))
        os.mkfifo(self.path("fifo"))
        for path, *parts in (
            ("none/destination", "'none' does not exist"),
            ("file/destination", "'file' is not a directory"),
            ("folder", "'folder' is a directory"),
            ("folder/", "does not name a file"),
            ("folder/..", "does not name a file"),
            (".", "does not name a file"),
            ("link", "'link' is a symbolic link"),
            ("dangling", "'dangling' is a symbolic link"),
            ("fifo", "'fifo' is not a regular file"),
            ("/dev/null", "'/dev/null' is not a regular file"),
            ("/dev/stdout", "'/dev/stdout'"),
            ("x" * 256, "File name too long"),
        ):
            with self.subTest(path=path):
                self.check_refused(125, ("--output", path), "--output: ", *parts)

    def test_output_in_a_folder_that_is_not_writable(self):
        os.mkdir(self.path("folder"), 0o555)
        like_others = ["setpriv", "--bounding-set=-dac_override"] if os.geteuid() == 0 else []
        result = subprocess.run([*like_others, BULKHEAD, "run", self.writer, "--output", "folder/destination"],
                                capture_output=True, cwd=self.dir, check=False)
        self.assertEqual((result.returncode, result.stdout), (125, b""))
        self.check_says(result, "no file can be created in the directory 'folder'")
        self.assertEqual(os.listdir(self.path("folder")), [])

    def test_no_clobber(self):
        self.write("destination", "old")
        self.check_refused(125, ("--output", "destination", "--no-clobber"), "'destination' exists already")
        os.unlink(self.path("destination"))
        self.assertEqual(self.bulkhead("run", self.writer, "--output", "destination", "--no-clobber").returncode, 0)
        self.assertEqual(self.read("destination"), b"guest output")

    def test_report_of_a_refused_destination(self):
        result, report = self.run_with_report(self.writer, "--output", "none/destination")
        self.assertEqual((result.returncode, report["code"]), (125, "worker-output-grant"))
        self.assertEqual(report["stage"], "admit")

    def test_directories_and_stdin(self):
        self.write("file", "x")
        for arguments, part in (
            (("--dir", "none"), "--dir: 'none': No such file or directory"),
            (("--dir-rw", "file::/x"), "--dir-rw: 'file' is not a directory"),
            (("--stdin", "none"), "--stdin: 'none': No such file or directory"),
            (("--stdin", "."), "--stdin: '.' is a directory"),
        ):
            with self.subTest(arguments=arguments):
                self.check_refused(122, arguments, part)

    def test_options(self):
        for arguments, part in (
            (("--deadlin", "5s"), "did you mean --deadline?"),
            (("--memory", "512"), "no unit"),
            (("--memory", "512M"), "unknown unit 'M'"),
            (("--deadline", "1.5"), "no unit"),
            (("--threads", "0"), "'0' is outside 1 to 1024"),
            (("--threads", "1025"), "'1025' is outside 1 to 1024"),
            (("--threads", "many"), "--threads"),
            (("--repeet", "4"), "unknown option '--repeet' of run; did you mean --repeat?"),
            (("--sandbox", "strictest"), "is none of: strict, default, none"),
            (("--require", "walls"), "is none of: pid-namespace, "),
            (("argument",), "arguments of the guest go after --"),
        ):
            with self.subTest(arguments=arguments):
                self.check_refused(122, arguments, part)

    def test_full_disk(self):
        if os.geteuid() != 0 or shutil.which("unshare") is None:
            self.skipTest("a small file system needs root and unshare")
        os.mkdir(self.path("small"))
        # Two pages for everything: the folder of the run fits, the output does not.
        script = ('mount -t tmpfs -o size=8k none small && head -c 8192 /dev/zero > small/filler; '
                  '"$0" run "$1" --output small/destination; status=$?; ls -A small; exit $status')
        result = subprocess.run(["unshare", "-m", "sh", "-c", script, BULKHEAD, self.writer], capture_output=True,
                                cwd=self.dir, check=False)
        if b"unshare" in result.stderr or b"mount:" in result.stderr:
            self.skipTest("no mount namespace to be had: " + result.stderr.decode())
        self.assertNotEqual(result.returncode, 0)
        self.assertEqual(result.stdout, b"filler\n")

    def test_a_module_from_a_pipe(self):
        module = self.compile(printer("piped"))
        result = subprocess.run(["bash", "-c", '"$0" run <(cat "$1")', BULKHEAD, module], capture_output=True,
                                check=False)
        self.assertEqual((result.returncode, result.stdout), (0, b"piped"), result.stderr)
