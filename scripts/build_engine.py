"""Builds the engine with long-term support as one static library, once for each user.

usage: build_engine.py LINK      build it unless it is there; LINK becomes a symbolic link to it
       build_engine.py --where   say where it is, or would be

What is built stands in scripts/engine_lts. The result, in the official layout (include/, lib/,
LICENSE), goes below $XDG_CACHE_HOME/bulkhead/engine, or ~/.cache/bulkhead/engine, where every
checkout finds it. Takes about ten minutes on two processors, 2 GiB of memory and 1 GiB of disk, of
which 80 MiB stay. Needs cargo, and its registry.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time

RECIPE = pathlib.Path(__file__).resolve().parent / "engine_lts"
CRATE = "wasmtime-c-api-impl"
# In Cargo.lock, for the registry that cargo is configured with.
REGISTRY_MARK = "@REGISTRY@"
# Shows that a long build is alive, also in a log.
PROGRESS_SECONDS = 20
LOG_LINES_SHOWN = 20


class EngineError(Exception):
    """What is wrong, and what would repair it."""


def say(text: str) -> None:
    print(f"engine: {text}", file=sys.stderr, flush=True)


def pinned_version() -> str:
    lock = (RECIPE / "Cargo.lock").read_text()
    return re.search(rf'name = "{CRATE}"\nversion = "([^"]+)"', lock)[1]


def engine_name() -> str:
    """Another recipe is another engine."""
    digest = hashlib.sha256()
    for name in ("Cargo.toml", "Cargo.lock", "lib.rs"):
        digest.update((RECIPE / name).read_bytes())
    return f"wasmtime-{pinned_version()}-{platform.machine()}-{digest.hexdigest()[:16]}"


def cache_directory() -> pathlib.Path:
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # the specification of the variable: others are ignored
        base = os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(base) / "bulkhead" / "engine"


@contextlib.contextmanager
def only_builder(path: pathlib.Path):
    with open(path, "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another build of it is under way; waiting for that one")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run_cargo(arguments: list[str], directory: pathlib.Path, **options) -> subprocess.CompletedProcess:
    try:
        return subprocess.run(["cargo", *arguments], cwd=directory, stdin=subprocess.DEVNULL, text=True, **options)
    except FileNotFoundError:
        raise EngineError("cargo is missing: install cargo, or on Debian 12 the package cargo-web") from None


def last_lines(text: str) -> str:
    return "\n".join(text.rstrip().splitlines()[-LOG_LINES_SHOWN:])


def write_lock(source: pathlib.Path) -> None:
    """The pinned one, for whatever the registry is called here."""
    made = run_cargo(["generate-lockfile"], source, capture_output=True)
    if made.returncode != 0:
        raise EngineError(f"cargo did not reach its registry:\n{last_lines(made.stderr)}")
    registry = re.search(r'source = "([^"]+)"', (source / "Cargo.lock").read_text())[1]
    pinned = (RECIPE / "Cargo.lock").read_text()
    (source / "Cargo.lock").write_text(pinned.replace(REGISTRY_MARK, registry))


def compile_engine(source: pathlib.Path, target: pathlib.Path) -> None:
    tree = run_cargo(["tree", "--locked", "--edges", "normal,build", "--prefix", "none"], source, capture_output=True)
    if tree.returncode != 0:
        raise EngineError(f"cargo did not deliver the pinned packages:\n{last_lines(tree.stderr)}")
    total = len({line.removesuffix(" (*)") for line in tree.stdout.splitlines() if line})
    log = []
    built = 0
    begun = shown = time.monotonic()
    say(f"building wasmtime {pinned_version()} once for this user: {total} packages, about ten minutes")
    with subprocess.Popen(["cargo", "build", "--release", "--locked", "--target-dir", target], cwd=source,
                          stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as build:
        for line in build.stderr:
            log.append(line)
            built += line.lstrip().startswith("Compiling ")
            if time.monotonic() - shown >= PROGRESS_SECONDS:
                shown = time.monotonic()
                say(f"{built} of {total} packages begun after {int(shown - begun)} s")
    if build.returncode != 0:
        raise EngineError(f"cargo could not build it:\n{last_lines(''.join(log))}")
    say(f"built in {int(time.monotonic() - begun)} s")


def packages(source: pathlib.Path) -> list[dict]:
    told = run_cargo(["metadata", "--locked", "--format-version", "1"], source, capture_output=True, check=True)
    return json.loads(told.stdout)["packages"]


def configure(template: str, features: list[str]) -> str:
    """conf.h: which of its declarations the library really has."""

    def define(match: re.Match) -> str:
        enabled = match[1].lower().replace("_", "-") in features
        return f"#define WASMTIME_FEATURE_{match[1]}" if enabled else f"/* no {match[1]} */"

    return re.sub(r"^#cmakedefine WASMTIME_FEATURE_(\w+)$", define, template, flags=re.MULTILINE)


def enabled_features() -> list[str]:
    text = re.search(r"^features = \[(.*?)\]", (RECIPE / "Cargo.toml").read_text(), re.MULTILINE | re.DOTALL)[1]
    return re.findall(r'"([^"]+)"', text)


def licences(every: list[dict]) -> str:
    """Of all that is linked in, each text once."""
    texts: dict[str, list[str]] = {}
    for package in sorted(every, key=lambda package: package["name"]):
        folder = pathlib.Path(package["manifest_path"]).parent
        for file in sorted(folder.iterdir()):
            if re.match(r"(?i)(licen[cs]e|copying|notice)", file.name) and file.is_file():
                texts.setdefault(file.read_text(errors="replace").strip(), []).append(package["name"])
    return "\n\n".join(f"==== {', '.join(dict.fromkeys(names))}\n\n{text}" for text, names in texts.items()) + "\n"


def lay_out(source: pathlib.Path, target: pathlib.Path, destination: pathlib.Path) -> None:
    every = packages(source)
    api = next(package for package in every if package["name"] == CRATE)
    shutil.copytree(pathlib.Path(api["manifest_path"]).parent / "include", destination / "include")
    template = destination / "include" / "wasmtime" / "conf.h.in"
    template.with_suffix("").write_text(configure(template.read_text(), enabled_features()))
    template.unlink()
    (destination / "lib").mkdir()
    shutil.move(target / "release" / "libwasmtime.a", destination / "lib")
    (destination / "LICENSE").write_text(licences(every))


def build(destination: pathlib.Path) -> None:
    for left in destination.parent.glob(f".{destination.name}.*"):  # of a build that was killed
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f".{destination.name}.", dir=destination.parent) as scratch:
        source = pathlib.Path(scratch) / "source"
        shutil.copytree(RECIPE, source)
        write_lock(source)
        target = pathlib.Path(scratch) / "target"
        compile_engine(source, target)
        finished = pathlib.Path(scratch) / "finished"
        finished.mkdir()
        lay_out(source, target, finished)
        finished.rename(destination)  # whole, or not at all


def ensure() -> pathlib.Path:
    destination = cache_directory() / engine_name()
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        with only_builder(destination.with_name(destination.name + ".lock")):
            if not destination.is_dir():
                build(destination)
    except OSError as error:
        raise EngineError(f"{destination}: {error.strerror or error}") from error
    return destination


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    if sys.argv[1] == "--where":
        print(cache_directory() / engine_name())
        return 0
    link = pathlib.Path(sys.argv[1])
    try:
        engine = ensure()
        if link.is_symlink():
            link.unlink()
        link.symlink_to(engine)
    except (EngineError, OSError) as error:
        say(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
