#!/usr/bin/env python3
"""Keeps the documents complete: what the code can say stands in them, and their links lead
somewhere.

    check_lists.py SOURCE_DIR
"""
import pathlib
import re
import sys


def found(pattern, *files):
    """All that `pattern` captures in the files; one that finds nothing would check nothing."""
    names = {name for file in files
             for name in re.findall(pattern, file.read_text(encoding="utf-8"), re.MULTILINE)}
    if not names:
        sys.exit(f"{pattern!r} finds nothing: this check has to follow the code")
    return names


def missing_names(document, names):
    text = document.read_text(encoding="utf-8")
    return [f"{document.name} lacks {name}" for name in sorted(names)
            if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)]


def missing_tests(document, root):
    """Suite.Name, or Suite.Begin* for several."""
    files = [*(root / "src").rglob("*_test.cc"), *(root / "tests").rglob("*_test.cc")]
    tests = found(r"^TEST(?:_F|_P)?\((\w+, \w+)\)", *files)
    named = re.findall(r"\b([A-Z]\w+)\.([A-Z]\w+|(?=\*))(\*?)",
                       document.read_text(encoding="utf-8"))
    return [f"{document.name} names the test {suite}.{name}{more}, which does not exist"
            for suite, name, more in named
            if not any(test == f"{suite}, {name}" or (more and test.startswith(f"{suite}, {name}"))
                       for test in tests)]


def missing_test_files(document, root):
    paths = set(re.findall(r"(?<![\w/(])tests/[\w/]+\.(?:py|cc)", document.read_text(encoding="utf-8")))
    return [f"{document.name} names {path}, which does not exist" for path in sorted(paths)
            if not (root / path).exists()]


def dead_links(document):
    text = re.sub(r"```.*?```", "", document.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = [target.split("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text)]
    return [f"{document.name} links to {target}, which does not exist" for target in targets
            if target and "://" not in target and not (document.parent / target).exists()]


def fields(header, struct):
    """The data members of a struct of values, one a line."""
    body = re.search(rf"^struct {struct} {{\n(.*?)^}};", header.read_text(encoding="utf-8"),
                     re.DOTALL | re.MULTILINE)
    code = re.sub(r"//.*", "", body[1])
    return set(re.findall(r"^  (?!static)\w[\w:<> ]*? ([a-z]\w*)(?: =|;)", code, re.MULTILINE))


def settings(include):
    """Struct::field of everything a host can set."""
    places = {"run.h": ("RunLimits", "WorkerConfig"), "sketch_limits.h": ("SketchLimits",),
              "output_grant.h": ("OutputGrant",), "module.h": ("ModulePolicy",),
              "runtime.h": ("RuntimeOptions",), "code_cache.h": ("CodeCacheOptions",)}
    names = {f"{struct}::{field}" for header, structs in places.items() for struct in structs
             for field in fields(include / header, struct)}
    # What is no setting of its own: where something is.
    return names - {"OutputGrant::path", "CodeCacheOptions::directory", "RuntimeOptions::observer",
                    "RuntimeOptions::code_cache"} | {"GuestStream::capture_bytes_max"}


def untested_limits(document, names):
    """Settings without a row that names a test, and rows about nothing."""
    rows = dict(re.findall(r"^\| `(\w+::\w+)` \| (.*?) \|$", document.read_text(encoding="utf-8"), re.MULTILINE))
    return [*(f"{document.name} lacks {name}" for name in sorted(names - set(rows))),
            *(f"{document.name} has a row for {name}, which does not exist" for name in sorted(set(rows) - names)),
            *(f"{document.name} names no test for {name}" for name, tests in sorted(rows.items())
              if not re.search(r"\b[A-Z]\w+\.[A-Z]\w+", tests))]


def main():
    root = pathlib.Path(sys.argv[1])
    src, docs = root / "src", root / "docs"
    admission = [file for file in (src / "admission").glob("*.cc")
                 if not file.name.endswith("_test.cc")]
    messages = list((src / "wire").glob("messages_*.h"))
    sketch_header = root / "include" / "bulkhead" / "sketch_limits.h"
    run_header = root / "include" / "bulkhead" / "run.h"
    codes = (found(r'CodeRow\{OutcomeCode::\w+,\s+"([a-z-]+)"', src / "supervise" / "outcome.cc") |
             found(r'Refus(?:e|ed|al)[({]\s*"([a-z0-9-]+)"', *admission) |
             found(r'CountBound k\w+ = \{"[^"]+",\s*"([a-z-]+)"', *admission))
    operations = (found(r'json\["(\w+)"\]', src / "cli" / "report_json.cc") |
                  fields(run_header, "RunLimits") | fields(run_header, "WorkerConfig") |
                  fields(sketch_header, "SketchLimits"))
    problems = [*missing_names(docs / "outcomes.md", codes),
                *missing_names(docs / "protocol.md",
                               found(r"(?:struct|enum class) (\w+)", *messages) |
                               found(r"a\.Field\(m\.(\w+)", *messages)),
                *missing_names(docs / "operations.md", operations),
                *untested_limits(docs / "limits.md", settings(root / "include" / "bulkhead")),
                *missing_tests(docs / "limits.md", root),
                *missing_tests(docs / "containment.md", root),
                *missing_test_files(docs / "containment.md", root)]
    for document in [*root.glob("*.md"), *docs.rglob("*.md"), *src.glob("*/README.md"),
                     root / "guest" / "README.md"]:
        problems += dead_links(document)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


sys.exit(main())
