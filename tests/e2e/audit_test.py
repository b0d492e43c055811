"""`bulkhead audit` of live workers: at all levels, by root and by the worker's own user, and of what is no worker."""

import json
import os
import subprocess
import unittest

from sandbox_test import CGROUP_LIMITS, CONFINED, NAMESPACES, NOBODY, works
from support import BULKHEAD, PATIENCE_S, CommandTest, printer

USER = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]


class Audit(CommandTest):
    def sleeping_worker(self, *options, prefix=()):
        """The process id of a worker whose guest sleeps; the run is cancelled when the test ends."""
        reader, writer = os.pipe()
        run = subprocess.Popen([*prefix, BULKHEAD, "run", "--deadline", f"{PATIENCE_S}s", "--status-fd", str(writer),
                                *options, self.guest("sleep")], pass_fds=(writer,), cwd=self.dir,
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        os.close(writer)

        def stop():
            run.terminate()
            run.communicate(timeout=PATIENCE_S)

        self.addCleanup(stop)
        with os.fdopen(reader, encoding="utf-8") as lines:
            for line in lines:
                event = json.loads(line)
                if event.get("stage") == "execute":
                    return event["worker_pid"]
        self.fail(run.stderr.read())

    def audit(self, pid, **options):
        """(exit status, mechanism -> finding)"""
        result = self.bulkhead("audit", str(pid), "--json", **options)
        found = json.loads(result.stdout)
        self.assertEqual((found["schema"], found["pid"], result.stderr), ("bulkhead.audit/1", pid, b""))
        self.assertEqual(result.returncode, 0 if found["holds"] else 1)
        findings = {finding["mechanism"]: finding for finding in found["findings"]}
        for finding in findings.values():
            self.assertEqual(finding["state"] == "ok", finding["meaning"] == "", finding)
        return result.returncode, findings

    def check_states(self, findings, state, names):
        self.assertEqual({name: findings[name]["state"] for name in names}, dict.fromkeys(names, state), findings)

    def test_worker_as_started(self):
        status, findings = self.audit(self.sleeping_worker())
        self.assertEqual(status, 0, findings)
        self.check_states(findings, "unknown", ["landlock"])
        self.check_states(findings, "ok", ["seccomp", "no-new-privs", "no-capabilities", "umask", "rlimits"])
        self.assertIn("guest phase", findings["seccomp"]["finding"])
        if os.geteuid() == 0:
            self.check_states(findings, "ok", ["environment", "descriptors"])
        if findings["init"]["state"] == "ok":
            self.check_states(findings, "ok", ["parent-death-signal", "cgroup", "pid-namespace"])

    def test_limits_of_its_cgroup(self):
        options = [f"--require={limit}" for limit in CGROUP_LIMITS]
        if self.bulkhead("run", *options, self.compile(printer("hello"))).returncode != 0:
            self.skipTest("missing: writable cgroups with the controllers memory and pids")
        status, findings = self.audit(self.sleeping_worker(*options, "--memory", "1MiB"))
        self.assertEqual(status, 0, findings)
        self.check_states(findings, "ok", CGROUP_LIMITS)
        limit = int(findings["cgroup-memory"]["finding"].split()[0])
        self.assertGreater(limit, 64 << 20)  # the worker's own
        self.assertLess(limit, 256 << 20)

    def test_text_has_one_line_for_each_mechanism(self):
        pid = self.sleeping_worker()
        _, findings = self.audit(pid)
        result = self.bulkhead("audit", str(pid))
        self.assertEqual(result.returncode, 0)
        lines = result.stdout.decode().split("\n\n")[0].split("\n")
        self.assertEqual([line.split()[:2] for line in lines],
                         [[finding["state"], name] for name, finding in findings.items()])

    def test_granted_directories_as_root(self):
        if os.geteuid() != 0:
            self.skipTest("missing: root")
        status, findings = self.audit(self.sleeping_worker("--dir", f"{self.dir}::/data"))
        self.assertEqual(status, 0, findings)
        self.assertEqual(findings["unprivileged-user"]["promised"], False)
        self.check_states(findings, "ok", ["file-capabilities-only"])

    def test_without_a_sandbox(self):
        status, findings = self.audit(self.sleeping_worker("--sandbox", "none"))
        self.assertEqual(status, 1)
        self.check_states(findings, "weaker", ["seccomp", "pid-namespace", "init"])
        self.check_states(findings, "ok", ["no-new-privs", "rlimits", "umask"])

    def test_without_namespaces(self):
        if not works(*CONFINED, "true"):
            self.skipTest("missing: user namespaces whose number can be limited")
        pid = self.sleeping_worker(prefix=CONFINED)
        status, findings = self.audit(pid)
        self.assertEqual(status, 0, findings)
        self.check_states(findings, "weaker", NAMESPACES | {"init"})
        self.assertFalse(any(findings[name]["promised"] for name in NAMESPACES))
        self.check_states(findings, "unknown", ["parent-death-signal"])

    def need_ordinary_users(self):
        if os.geteuid() != 0 or not works(*USER, BULKHEAD, "version"):
            self.skipTest("missing: root, who can become an ordinary user that can execute this build")
        os.chmod(self.dir, 0o755)

    def test_ordinary_user_sees_what_proc_shows_of_a_worker_of_root(self):
        self.need_ordinary_users()
        status, findings = self.audit(self.sleeping_worker(), prefix=USER)
        self.assertEqual(status, 0, findings)
        # What may not be read is said to be unknown, even to the worker's own user; another file tells of pids.
        self.check_states(findings, "unknown", ["environment", "descriptors", "empty-root", "network-namespace"])
        self.assertIn("may not be read", findings["environment"]["finding"])
        self.check_states(findings, "ok", ["seccomp", "no-capabilities"])
        # Seen only where the worker has become the very user who looks.
        self.assertIn(findings["not-dumpable"]["state"], ("ok", "unknown"))
        if findings["init"]["state"] == "ok":
            self.check_states(findings, "ok", ["pid-namespace"])

    def test_ordinary_user_sees_a_worker_in_a_user_namespace_of_its_own(self):
        self.need_ordinary_users()
        if not works(*USER, "unshare", "--user", "true"):
            self.skipTest("missing: user namespaces for ordinary users")
        pid = self.sleeping_worker(prefix=USER)
        for prefix in (USER, ()):
            status, findings = self.audit(pid, prefix=prefix)
            self.assertEqual(status, 0, findings)
            self.check_states(findings, "ok", NAMESPACES | {"environment", "descriptors", "empty-root"})
            self.check_states(findings, "unknown", ["not-dumpable"])
            self.assertEqual(findings["user-namespace"]["finding"], "its own")

    def test_what_is_no_worker(self):
        status, findings = self.audit(os.getpid(), env={"PATH": os.environ["PATH"]})
        self.assertEqual(status, 1)
        self.check_states(findings, "weaker", ["no-new-privs", "environment", "rlimits"])

    def test_what_is_no_process(self):
        ended = subprocess.Popen(["true"])
        ended.wait()
        result = self.bulkhead("audit", str(ended.pid))
        self.assertEqual((result.returncode, result.stdout), (127, b""))
        self.check_says(result, "No such process")
        zombie = subprocess.Popen(["true"])
        os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
        result = self.bulkhead("audit", str(zombie.pid))
        self.assertEqual((result.returncode, result.stdout), (127, b""))
        self.check_says(result, "has ended")
        zombie.wait()
        for word in ("x", "0", "99999999999"):
            result = self.bulkhead("audit", word)
            self.assertEqual((result.returncode, result.stdout), (122, b""))
            self.check_says(result, "is no process id")


if __name__ == "__main__":
    unittest.main(verbosity=2)
