"""What holds a worker: the levels of --sandbox, --require, and what is left where the machine denies namespaces."""

import os
import shutil
import subprocess
import unittest

from support import BULKHEAD, CommandTest, printer

STRICT = {"pid-namespace", "mount-namespace", "network-namespace", "ipc-namespace", "uts-namespace", "rlimits",
          "no-new-privs", "empty-root", "landlock", "not-dumpable", "seccomp"}
NAMESPACES = {name for name in STRICT if name.endswith("-namespace")}
CGROUP_LIMITS = ["cgroup-memory", "cgroup-pids"]
NOBODY = 65534

# Root of a user namespace without any capability, where no further namespaces may be made.
CONFINED = ["unshare", "--user", "--map-root-user", "sh", "-c",
            'echo 0 >/proc/sys/user/max_user_namespaces && exec setpriv --inh-caps -all --bounding-set -all "$@"',
            "sh"]

# No cgroup can be made.
WITHOUT_CGROUPS = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o ro none /sys/fs/cgroup && exec "$@"', "sh"]


def works(*command):
    return shutil.which(command[0]) and subprocess.run(command, stdout=subprocess.DEVNULL,
                                                       stderr=subprocess.DEVNULL, check=False).returncode == 0


def has_capability(number):
    with open("/proc/self/status", encoding="ascii") as status:
        effective = next(line for line in status if line.startswith("CapEff:"))
    return int(effective.split()[1], 16) >> number & 1 == 1


def names(report):
    """The mechanisms without versions."""
    return {mechanism.split("-abi-")[0] for mechanism in report["containment"]}


class Sandbox(CommandTest):
    def report_of(self, *options, **more):
        return self.run_with_report(*options, self.compile(printer("hello")), **more)

    def test_levels(self):
        result, default = self.report_of()
        self.assertEqual(result.stdout, b"hello", result.stderr)
        result, none = self.report_of("--sandbox", "none")
        self.assertEqual(result.stdout, b"hello", result.stderr)
        self.assertLessEqual({"rlimits", "no-new-privs", "not-dumpable"}, names(none))
        self.assertFalse({"seccomp", "landlock", "empty-root", "pid-namespace"} & names(none))
        result, strict = self.report_of("--sandbox", "strict")
        if not STRICT <= names(default):
            self.assertEqual((result.returncode, strict["code"]), (125, "worker-launch"))
            self.skipTest(f"missing here: {', '.join(sorted(STRICT - names(default)))}")
        self.assertEqual(result.stdout, b"hello", result.stderr)
        self.assertLessEqual(STRICT, names(strict))

    def test_what_is_required_and_missing_is_named_before_the_guest_runs(self):
        result, report = self.report_of("--sandbox", "none", "--require", "seccomp")
        self.assertEqual((result.returncode, report["code"], report["stage"]), (125, "worker-launch", "handshake"))
        self.assertEqual(result.stdout, b"")
        self.assertIn(b"lacks seccomp", result.stderr)
        result, report = self.report_of("--require", "seccomp", "--require", "landlock")
        self.assertEqual(report["code"], "worker-completed", result.stderr)

    def test_limits_by_cgroup_where_they_are_asked_for(self):
        options = [f"--require={limit}" for limit in CGROUP_LIMITS]
        result, report = self.report_of(*options)
        if report["code"] == "worker-launch":
            self.assertIn(b"lacks cgroup-", result.stderr)
            self.skipTest("missing: writable cgroups with the controllers memory and pids")
        self.assertEqual(result.stdout, b"hello", result.stderr)
        self.assertLessEqual(set(CGROUP_LIMITS), names(report))
        limit = next(limit for limit in report["limits"] if limit["name"] == "cgroup-memory-bytes")
        self.assertGreater(limit["used"], 0)
        self.assertLess(limit["used"], limit["cap"])
        # Threads and a compiler on all processors fit.
        result = self.bulkhead("run", *options, "--compile-memory", "64MiB", "--sandbox", "strict",
                               self.compile(printer("hello")))
        self.assertEqual(result.stdout, b"hello", result.stderr)

    def test_limits_by_cgroup_where_there_are_none(self):
        if not works(*WITHOUT_CGROUPS, "true"):
            self.skipTest("missing: permission to mount")
        result, report = self.report_of(prefix=WITHOUT_CGROUPS)
        self.assertEqual(result.stdout, b"hello", result.stderr)
        self.assertFalse(set(CGROUP_LIMITS) & names(report))
        for limit in CGROUP_LIMITS:
            result, report = self.report_of("--require", limit, prefix=WITHOUT_CGROUPS)
            self.assertEqual((result.returncode, report["code"], report["stage"]), (125, "worker-launch", "handshake"))
            self.assertEqual(result.stdout, b"")
            self.assertIn(b"lacks " + limit.encode(), result.stderr)
            self.assertIn(b"can be made here", result.stderr)
        doctor = self.bulkhead("doctor", prefix=WITHOUT_CGROUPS)
        self.assertIn(b"no cgroup with the controller memory or pids can be made", doctor.stdout)

    def test_root_becomes_nobody_but_for_granted_directories(self):
        if os.geteuid() != 0:
            self.skipTest("missing: root")
        _, report = self.report_of()
        if "pid-namespace" not in names(report) or "user-namespace" in names(report):
            self.skipTest("missing: the right to make namespaces without a user namespace")
        self.assertIn("no-capabilities", names(report))
        # Without CAP_SYS_RESOURCE the parent could not limit another user's process.
        self.assertEqual("unprivileged-user" in names(report), has_capability(24))
        _, report = self.report_of("--dir", f"{self.dir}::/data")
        self.assertIn("file-capabilities-only", names(report))
        self.assertNotIn("unprivileged-user", names(report))

    def test_degraded_by_the_machine(self):
        if not works(*CONFINED, "true"):
            self.skipTest("missing: user namespaces whose number can be limited")
        result, report = self.report_of(prefix=CONFINED)
        self.assertEqual(result.stdout, b"hello", result.stderr)
        self.assertFalse(NAMESPACES & names(report))
        self.assertLessEqual({"process-group", "rlimits", "no-new-privs", "landlock", "not-dumpable", "seccomp"},
                             names(report))
        for options, lacks in ((("--sandbox", "strict"), b"lacks pid-namespace"),
                               (("--require", "empty-root"), b"lacks empty-root")):
            result, report = self.report_of(*options, prefix=CONFINED)
            self.assertEqual((result.returncode, report["code"]), (125, "worker-launch"), result.stderr)
            self.assertEqual(result.stdout, b"")
            self.assertIn(lacks, result.stderr)
            self.assertIn(b"(namespaces): clone: ", result.stderr)
            self.assertIn(b"bulkhead doctor", result.stderr)
        self.assertIn(b"sysctl -w user.max_user_namespaces", self.bulkhead("doctor", prefix=CONFINED).stdout)

    def test_an_ordinary_user_gets_namespaces_by_way_of_a_user_namespace(self):
        user = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]
        if os.geteuid() != 0 or not works(*user, "true"):
            self.skipTest("missing: root, who can become an ordinary user")
        if not works(*user, BULKHEAD, "version"):
            self.skipTest("missing: a build that other users can execute")
        if not works(*user, "unshare", "--user", "true"):
            self.skipTest("missing: user namespaces for ordinary users")
        os.chmod(self.dir, 0o777)
        result, report = self.report_of("--sandbox", "strict", "--dir-rw", f"{self.dir}::/data", prefix=user)
        self.assertEqual(result.stdout, b"hello", result.stderr)
        self.assertLessEqual(STRICT | {"user-namespace", "no-capabilities"}, names(report))


if __name__ == "__main__":
    unittest.main(verbosity=2)
