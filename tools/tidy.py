#!/usr/bin/env python3
"""The house lint: what compilers and clang-tidy do not know about this project.

usage: tidy.py [FILE...]     without files: every file that git tracks or would track

Prints one line per finding and fails if there is any. The rules are below, each with its reason in
the message it prints; who may include whom is in layers.txt.
"""

import dataclasses
import fnmatch
import functools
import pathlib
import re
import subprocess
import sys
from collections.abc import Callable, Iterator

ROOT = pathlib.Path(__file__).resolve().parent.parent

COLUMNS_MAX = 100
PYTHON_COLUMNS_MAX = 120  # no formatter wraps these files for us
FUNCTION_LINES_MAX = 70
README_LINES_MAX = 30
FILE_BYTES_MAX = 256 * 1024
FUNCTION_EXEMPTION = "// tidy: decision-table"

CXX_SUFFIXES = {".cc", ".h", ".c"}
CODE_SUFFIXES = CXX_SUFFIXES | {".py", ".sh", ".cmake"}

# Functions whose string literals are stable codes that users match on.
CODE_FUNCTIONS = ("ErrorName", "OutcomeCodeName")


@dataclasses.dataclass(frozen=True)
class Finding:
    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


@dataclasses.dataclass(frozen=True)
class Banned:
    pattern: str
    message: str
    allowed: tuple[str, ...] = ()  # path patterns where the word is all right


# Looked for in code only: comments and literals are blanked before.
BANNED = [
    Banned(r"(?<![\w.>])(v?fork|clone3?)\s*\(", "start processes through process/launcher.h",
           ("src/process/*", "tests/*", "*_test.cc", "bench/*")),
    Banned(r"\bwaitpid\s*\(\s*-1", "wait for one process by its pidfd; -1 takes others' children",
           ("tests/*", "*_test.cc")),
    Banned(r"(?<![\w.>])signal\s*\((?![^()]*\bSIG_(IGN|DFL)\b)",
           "install handlers with sigaction: what signal() does differs between systems",
           ("tests/workers/*",)),
    Banned(r"(?<![\w.>])(system|popen)\s*\(",
           "no shell: start programs through process/launcher.h", ("tests/*", "*_test.cc")),
    Banned(r"(?<!\w)(sleep_for|sleep_until|usleep|nanosleep|sleep)\s*\(",
           "wait for an event with a bound (base/wait_set.h), never for time to pass",
           ("tests/workers/*", "bench/*")),
    Banned(r"\b(system_clock|CLOCK_REALTIME\w*|gettimeofday)\b|(?<![\w.>])time\s*\(\s*(nullptr|NULL|0|&)",
           "the wall clock jumps: base/clock.h",
           ("src/wasi/*", "src/cli/engine_support.cc", "tests/preload/*", "*_test.cc")),
    Banned(r"\.detach\s*\(\s*\)", "a thread has an owner that joins it"),
    Banned(r"\bstd::endl\b", "write '\\n'; flush where it matters"),
    Banned(r"\busing\s+namespace\b(?![\w\s:]*literals\b)", "name what you use"),
    Banned(r"^\s*#\s*if.*\b__linux__\b",
           "platform code lives in files of its own, not in #ifdef"),
    Banned(r"(?<![\w.>])strerror\s*\(", "use base/errno_error.h: strerror is not thread-safe",
           ("tests/workers/*", "guests/*")),
    Banned(r"(?<!\w)assert\s*\(", "BH_CHECK works in every build type"),
    Banned(r"(?<![\w.>])s?rand\s*\(", "use base/random_id.h"),
]

# Looked for in the whole text of every file. The names are put together so as not to match
# themselves.
BANNED_TEXT = [
    (re.compile(r"(?<![\w.])/(home/\w|root/\w|farm/\w|work/(main|shared)\b|Users/\w)"),
     "an absolute path of somebody's machine"),
    (re.compile("|".join([r"\bcrates" r"\.io\b", r"\bpypi" r"\.org\b", r"\bpython" r"hosted\.org\b",
                          r"\bdeb\.deb" r"ian\.org\b", r"\bnpm" r"js\.(org|com)\b",
                          r"\bproxy\.gol" r"ang\.org\b", r"\bmaven" r"\.org\b"])),
     "the host of a package registry: name the registry or the package"),
    (re.compile("|".join(["TO" "DO", "FIX" "ME"]) + r"\b"), "file an issue instead"),
]


COMMENT_OR_LITERAL = re.compile(
    "|".join([
        r"//[^\n]*", r"/\*.*?\*/",
        r'R"([^()\\\s]{0,16})\(.*?\)\1"', r'"(?:\\.|[^"\\\n])*"',
        r"(?<!\w)'(?:\\.|[^'\\\n])*'",  # not the separator in 1'000
    ]), re.DOTALL)


def strip(text: str) -> str:
    """The same text with comments and literals blanked, position by position."""
    return COMMENT_OR_LITERAL.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def line_of(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


@dataclasses.dataclass
class Source:
    """One file as the rules see it."""

    path: str  # relative to the project, with forward slashes
    text: str

    @functools.cached_property
    def suffix(self) -> str:
        return pathlib.PurePosixPath(self.path).suffix

    @functools.cached_property
    def code(self) -> str:
        return strip(self.text)

    @property
    def is_cxx(self) -> bool:
        return self.suffix in CXX_SUFFIXES

    @property
    def is_test(self) -> bool:
        name = self.path.rpartition("/")[2]
        return self.path.startswith("tests/") or "_test." in name or name.startswith("test_")

    def matches(self, patterns: tuple[str, ...] | list[str]) -> bool:
        return any(fnmatch.fnmatchcase(self.path, pattern) for pattern in patterns)


# ---- sizes ---------------------------------------------------------------------------------------


def check_columns(source: Source) -> Iterator[Finding]:
    if source.suffix not in CODE_SUFFIXES:
        return
    for number, line in enumerate(source.text.splitlines(), 1):
        # An include cannot be broken, nor can a test vector's literal be made more readable by it.
        most = PYTHON_COLUMNS_MAX if source.path.endswith(".py") else COLUMNS_MAX
        if len(line) > most and not line.startswith("#include"):
            yield Finding(source.path, number, f"{len(line)} columns, at most {most}")


def lines_max(source: Source) -> int | None:
    if source.is_test and source.is_cxx:
        return 1000
    limits = {".cc": 500, ".c": 500, ".h": 300, ".py": 500, ".sh": 300, ".cmake": 300}
    return limits.get(source.suffix)


def check_file_lines(source: Source) -> Iterator[Finding]:
    limit = lines_max(source)
    count = len(source.text.splitlines())
    if limit is not None and count > limit:
        yield Finding(source.path, limit + 1, f"{count} lines, at most {limit}: split by task")


@dataclasses.dataclass(frozen=True)
class Block:
    """A braced function body; lines count from 1."""

    header: str
    first: int
    last: int


# What stands before a brace, without preprocessor lines and template parameters.
NOISE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.)*|\btemplate\s*<.*?>\s*(?=[\w:\[~])",
                   re.MULTILINE | re.DOTALL)
SCOPE = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b")
PARAMETERS_END = re.compile(r"\)\s*(const|noexcept|override|final|&)*\s*(->[^;{}()]+)?$")


def is_function(declaration: str) -> bool:
    if PARAMETERS_END.search(declaration):
        return True
    return ")" in declaration and not SCOPE.search(declaration.split("(")[0])


def closing_brace(code: str, opening: int) -> int:
    depth = 0
    for match in re.finditer(r"[{}]", code[opening:]):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return opening + match.start()
    return len(code) - 1


def function_blocks(code: str) -> Iterator[Block]:
    """Outermost function bodies of blanked code, told by how clang-format lays braces out."""
    header_start = 0
    position = 0
    while position < len(code):
        char = code[position]
        if char in ";}":
            header_start = position + 1
        elif char == "{":
            header = code[header_start:position]
            end = closing_brace(code, position)
            attached = position > 0 and re.match(r"[\w>]", code[position - 1])
            if attached or header.rstrip().endswith("="):
                position = end  # an initialiser; the declaration goes on behind it
                position += 1
                continue
            declaration = NOISE.sub("", header).strip()
            if is_function(declaration):
                name = " ".join(declaration.split())
                yield Block(name, line_of(code, position), line_of(code, end))
                position = end
                header_start = end + 1
            elif SCOPE.search(declaration):
                header_start = position + 1  # look inside
            else:
                position = end
                header_start = end + 1
        position += 1


def check_function_lines(source: Source) -> Iterator[Finding]:
    if not source.is_cxx:
        return
    lines = source.text.splitlines()
    for block in function_blocks(source.code):
        length = block.last - block.first
        if length <= FUNCTION_LINES_MAX:
            continue
        # The marker stands in the body or in the comment above the signature.
        around = lines[max(0, block.first - 1 - 8):block.last]
        if not any(FUNCTION_EXEMPTION in line for line in around):
            yield Finding(source.path, block.first,
                          f"function of {length} lines, at most {FUNCTION_LINES_MAX}")


# ---- words ---------------------------------------------------------------------------------------


def check_banned_words(source: Source) -> Iterator[Finding]:
    if not source.is_cxx:
        return
    for rule in BANNED:
        if source.matches(rule.allowed):
            continue
        for match in re.finditer(rule.pattern, source.code, re.MULTILINE):
            word = " ".join(match[0].split())
            line = line_of(source.code, match.start())
            yield Finding(source.path, line, f"'{word}': {rule.message}")


def check_banned_text(source: Source) -> Iterator[Finding]:
    for pattern, message in BANNED_TEXT:
        for match in pattern.finditer(source.text):
            line = line_of(source.text, match.start())
            yield Finding(source.path, line, f"'{match[0]}': {message}")


# ---- layers --------------------------------------------------------------------------------------


@dataclasses.dataclass
class Layers:
    may_include: dict[str, set[str]] = dataclasses.field(default_factory=dict)
    confined: dict[str, list[str]] = dataclasses.field(default_factory=dict)


def parse_layers(text: str) -> Layers:
    layers = Layers()
    for line in text.splitlines():
        line = line.split("#")[0].strip()
        if not line:
            continue
        name, _, rest = line.partition(":")
        if name.startswith("only "):
            layers.confined[name.removeprefix("only ").strip()] = rest.split()
        else:
            layers.may_include[name.strip()] = set(rest.split())
    return layers


def layer_of(path: str) -> str | None:
    parts = path.split("/")
    if parts[0] == "src" and len(parts) > 2:
        return parts[1]
    if parts[0] == "apps" and len(parts) > 2:
        return "/".join(parts[:2])
    return None


INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)


def own_include_problem(source: Source, name: str, layers: Layers) -> str | None:
    """What is wrong with including "name" from source, if anything."""
    if source.path.startswith("include/"):
        return "a public header includes no private one"
    layer = layer_of(source.path)
    folder = name.split("/")[0]
    if name.startswith(".") or (folder == name and source.path.startswith("src/")):
        return 'write "folder/name.h", as seen from src/'
    if layer is None or folder == layer or (source.is_test and folder == "support"):
        return None
    if layer not in layers.may_include:
        return f"{layer} is not in tools/layers.txt"
    if folder not in layers.may_include[layer]:
        return f"{layer} may not include {folder} (tools/layers.txt)"
    return None


def system_include_problem(source: Source, name: str, layers: Layers) -> str | None:
    """What is wrong with including <name> from source, if anything."""
    if source.path.startswith("include/"):
        public = name.startswith("bulkhead/") or name == "tl/expected.hpp"
        if not public and not re.fullmatch(r"[a-z_0-9]+", name):
            return "public headers include std, each other and tl/expected.hpp only"
    if source.is_test or layer_of(source.path) is None:
        return None
    for prefix, files in layers.confined.items():
        if name.startswith(prefix) and not source.matches(files):
            return f"only {', '.join(files)} may include it (tools/layers.txt)"
    return None


def check_includes(source: Source, layers: Layers) -> Iterator[Finding]:
    if not source.is_cxx:
        return
    for match in INCLUDE.finditer(source.text):
        quote, name = match.groups()
        problem = own_include_problem if quote == '"' else system_include_problem
        message = problem(source, name, layers)
        if message:
            yield Finding(source.path, line_of(source.text, match.start()), f"{name}: {message}")


def check_cmake_layers(source: Source, layers: Layers) -> Iterator[Finding]:
    """What CMakeLists.txt links must be permitted by layers.txt."""
    if source.path != "CMakeLists.txt":
        return
    for match in re.finditer(r"^bh_library\((\w+)(.*?)\)", source.text, re.MULTILINE | re.DOTALL):
        name = match[1]
        line = line_of(source.text, match.start())
        if name not in layers.may_include:
            yield Finding(source.path, line, f"{name} is not in tools/layers.txt")
            continue
        words = match[2].partition("DEPS")[2].split()
        for dep in words:
            if dep in layers.may_include and dep not in layers.may_include[name]:
                yield Finding(source.path, line, f"{name} may not use {dep} (tools/layers.txt)")


# ---- documents -----------------------------------------------------------------------------------


def message_names(code: str) -> list[str]:
    return re.findall(r"^struct (\w+) \{", code, re.MULTILINE)


def code_strings(source: Source) -> Iterator[tuple[int, str]]:
    lines = source.text.splitlines()
    for block in function_blocks(source.code):
        if not any(re.search(rf"\b{name}\(", block.header) for name in CODE_FUNCTIONS):
            continue
        for number in range(block.first, block.last + 1):
            for literal in re.findall(r'"([a-z][a-z0-9/-]*)"', lines[number - 1]):
                yield number, literal


def check_documented(sources: list[Source]) -> Iterator[Finding]:
    """Messages are in docs/protocol.md, codes in docs/outcomes.md, once these exist."""
    by_path = {source.path: source for source in sources}
    protocol = by_path.get("docs/protocol.md")
    messages = by_path.get("src/wire/messages.h")
    if protocol and messages:
        for name in message_names(messages.code):
            if not re.search(rf"\b{name}\b", protocol.text):
                yield Finding(messages.path, 1, f"message {name} is not in {protocol.path}")
    outcomes = by_path.get("docs/outcomes.md")
    if not outcomes:
        return
    for source in sources:
        if not source.path.startswith("src/") or source.suffix != ".cc" or source.is_test:
            continue
        for line, code in code_strings(source):
            if f"`{code}`" not in outcomes.text:
                yield Finding(source.path, line, f"code `{code}` is not in {outcomes.path}")


def check_readmes(sources: list[Source]) -> Iterator[Finding]:
    by_path = {source.path: source for source in sources}
    folders = {source.path.split("/")[1] for source in sources
               if source.path.startswith("src/") and source.is_cxx}
    for folder in sorted(folders):
        path = f"src/{folder}/README.md"
        if path not in by_path:
            yield Finding(path, 1, "every folder of src/ has a README.md")
        elif len(by_path[path].text.splitlines()) > README_LINES_MAX:
            yield Finding(path, README_LINES_MAX + 1, f"at most {README_LINES_MAX} lines")


# ---- the run -------------------------------------------------------------------------------------

FILE_CHECKS: list[Callable[[Source], Iterator[Finding]]] = [
    check_columns, check_file_lines, check_function_lines, check_banned_words, check_banned_text]
LAYER_CHECKS: list[Callable[[Source, Layers], Iterator[Finding]]] = [
    check_includes, check_cmake_layers]
TREE_CHECKS: list[Callable[[list[Source]], Iterator[Finding]]] = [check_documented, check_readmes]


def project_files() -> list[str]:
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT, capture_output=True, check=False)
    if listing.returncode == 0:
        names = listing.stdout.decode().split("\0")
        return sorted({name for name in names if name and (ROOT / name).is_file()})
    # An exported tree has no history: take everything but what a build leaves behind.
    skipped = ("build/", ".git/")
    paths = (path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*") if path.is_file())
    return sorted(name for name in paths
                  if not name.startswith(skipped) and "__pycache__" not in name)


def load(names: list[str]) -> tuple[list[Source], list[Finding]]:
    sources, findings = [], []
    for name in names:
        data = (ROOT / name).read_bytes()
        if len(data) > FILE_BYTES_MAX:
            findings.append(Finding(name, 1, f"{len(data)} bytes, at most {FILE_BYTES_MAX}"))
        elif b"\0" not in data:
            sources.append(Source(name, data.decode("utf-8", "replace")))
    return sources, findings


def main(arguments: list[str]) -> int:
    layers = parse_layers((ROOT / "tools/layers.txt").read_text())
    names = [pathlib.Path(name).resolve().relative_to(ROOT).as_posix() for name in arguments]
    sources, findings = load(names or project_files())
    for source in sources:
        for check in FILE_CHECKS:
            findings += check(source)
        for check in LAYER_CHECKS:
            findings += check(source, layers)
    if not names:
        for check in TREE_CHECKS:
            findings += check(sources)
    for finding in sorted(findings, key=lambda f: (f.path, f.line)):
        print(finding)
    print(f"tidy: {len(sources)} files, {len(findings)} findings", file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
