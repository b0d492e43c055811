#!/usr/bin/env python3
"""Are the pinned engines still repaired by their makers, and free of holes known for a week?

usage: currency.py [--today YYYY-MM-DD] [--root DIR]

Reads scripts/pins/{engine,support,advisories}.txt and scripts/engine_lts/Cargo.lock. Exit status 1
if an engine is to be replaced, 2 if the files do not say enough.
"""

import argparse
import datetime
import pathlib
import re
import sys

# From the publication of a hole to the release that closes it.
DAYS_TO_REPAIR = 7


class Incomplete(Exception):
    pass


def pinned_versions(root: pathlib.Path) -> dict[str, str]:
    """By kind: what ENGINE= chooses."""
    wheel = re.search(r"^wasmtime==(\S+)", (root / "scripts/pins/engine.txt").read_text(), re.MULTILINE)
    lts = re.search(r'^name = "wasmtime-c-api-impl"\nversion = "([^"]+)"',
                    (root / "scripts/engine_lts/Cargo.lock").read_text(), re.MULTILINE)
    if not wheel or not lts:
        raise Incomplete("no pinned version was found in scripts/pins/engine.txt or scripts/engine_lts/Cargo.lock")
    return {"wheel": wheel[1], "lts": lts[1]}


def rows(file: pathlib.Path, fields: int) -> list[list[str]]:
    found = []
    for number, line in enumerate(file.read_text().splitlines(), 1):
        words = line.split("#", 1)[0].split()
        if words and len(words) < fields:
            raise Incomplete(f"{file}:{number}: {fields} words are expected")
        if words:
            found.append(words)
    return found


def day(text: str, file: pathlib.Path) -> datetime.date:
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        raise Incomplete(f"{file}: {text} is no day like 2026-11-30") from None


def problems(root: pathlib.Path, today: datetime.date) -> list[str]:
    support_file = root / "scripts/pins/support.txt"
    advisory_file = root / "scripts/pins/advisories.txt"
    support = {version: day(until, support_file) for version, until, *_ in rows(support_file, 2)}
    found = []
    for kind, version in pinned_versions(root).items():
        if version not in support:
            raise Incomplete(f"{support_file}: nothing about {version}, which ENGINE={kind} takes")
        if today > support[version]:
            found.append(f"ENGINE={kind}: wasmtime {version} has been out of support since {support[version]}")
        for identity, published, *versions in rows(advisory_file, 3):
            age = (today - day(published, advisory_file)).days
            if version in versions and age > DAYS_TO_REPAIR:
                found.append(f"ENGINE={kind}: wasmtime {version} has {identity}, known for {age} days")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--today", type=datetime.date.fromisoformat,
                        default=datetime.datetime.now(datetime.timezone.utc).date())
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    options = parser.parse_args()
    try:
        found = problems(options.root, options.today)
        versions = pinned_versions(options.root)
    except (Incomplete, OSError) as error:
        print(f"currency: {error}", file=sys.stderr)
        return 2
    for problem in found:
        print(f"currency: {problem}", file=sys.stderr)
    if found:
        print('currency: replace it as docs/operations.md says under "A new engine"', file=sys.stderr)
        return 1
    print(", ".join(f"ENGINE={kind}: wasmtime {version} is current" for kind, version in versions.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
