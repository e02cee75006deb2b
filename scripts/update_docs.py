#!/usr/bin/env python3
"""Brings the generated parts of the documentation up to date, or says where they are not.

usage: update_docs.py [--check] [--program FILE] [--root DIR] [--self-test]

A generated part stands between two comments; the first says where it comes from:

    <!-- generated: meganeura ARGUMENT... [| SELECTION]... -->
    <!-- generated: file PATH [| SELECTION]... -->
    <!-- end of generated -->

SELECTION is "block N" (the N-th paragraph, from 0), "from TEXT" (everything from the first line
that starts with TEXT), "until TEXT" (everything before such a line) or "first N" (so many lines,
and a last one that says how many were left out). A page that ends with .md and starts with a
marker "whole page" is printed by the program as it is. With --check nothing is written: pages that
differ and relative links that lead nowhere are listed, and the exit status is 1.
"""

import argparse
import difflib
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

# Pages that the program prints as a whole, and how.
WHOLE_PAGES = {"docs/ops.md": ["ops"]}
PART = re.compile(
    r"(<!-- generated: ([^\n]*?) -->\n)(.*?)(<!-- end of generated -->)", re.DOTALL
)
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def select(text, selection):
    """Applies one selection to a text."""
    kind, _, argument = selection.strip().partition(" ")
    lines = text.split("\n")
    if kind == "block":
        blocks = [block for block in re.split(r"\n{2,}", text.strip("\n")) if block]
        if int(argument) >= len(blocks):
            raise ValueError(f"there are only {len(blocks)} blocks, so none is number {argument}")
        return blocks[int(argument)]
    if kind in ("from", "until"):
        at = next((i for i, line in enumerate(lines) if line.startswith(argument)), None)
        if at is None:
            raise ValueError(f'no line starts with "{argument}"')
        return "\n".join(lines[at:] if kind == "from" else lines[:at])
    if kind == "first":
        lines = text.strip("\n").split("\n")
        left_out = len(lines) - int(argument)
        if left_out <= 0:
            return text
        return "\n".join(lines[: int(argument)] + [f"... and {left_out} more lines"])
    raise ValueError(f'"{selection}" is no selection')


class Documentation:
    def __init__(self, root, run):
        self.root = root
        self.run = run  # arguments of the program → what it prints
        self.printed = {}

    def pages(self):
        pages = sorted(self.root.glob("*.md")) + sorted(self.root.glob("docs/**/*.md"))
        return pages + sorted(self.root.glob("data/*/README.md"))

    def source_text(self, source):
        kind, *arguments = shlex.split(source)
        if kind == "file":
            return (self.root / arguments[0]).read_text(encoding="utf-8")
        if kind != "meganeura":
            raise ValueError(f'"{source}" is neither a file nor a call of meganeura')
        key = tuple(arguments)
        if key not in self.printed:
            self.printed[key] = self.run(arguments)
        return self.printed[key]

    def part(self, recipe):
        source, *selections = recipe.split(" | ")
        text = self.source_text(source)
        for selection in selections:
            text = select(text, selection)
        language = "cpp" if source.endswith((".cc", ".h")) else "text"
        return "```" + language + "\n" + text.strip("\n") + "\n```\n"

    def current(self, page):
        """What the page should say."""
        name = page.relative_to(self.root).as_posix()
        if name in WHOLE_PAGES:
            return self.run(WHOLE_PAGES[name])
        text = page.read_text(encoding="utf-8")
        try:
            return PART.sub(lambda m: m[1] + self.part(m[2]) + m[4], text)
        except (ValueError, OSError) as error:
            raise ValueError(f"{name}: {error}.") from error

    def broken_links(self, page, text):
        for target in LINK.findall(FENCED.sub("", text)):
            path = target.partition("#")[0]
            if path and "://" not in path and not (page.parent / path).exists():
                yield f"{page.relative_to(self.root)}: the link to {target} leads nowhere."

    def check(self):
        """Yields a sentence, or a difference, for every fault."""
        for name in WHOLE_PAGES:
            if not (self.root / name).exists():
                yield f"{name} is missing; run scripts/update_docs.py."
        for page in self.pages():
            try:
                wanted = self.current(page)
            except ValueError as error:
                yield str(error)
                continue
            text = page.read_text(encoding="utf-8")
            name = page.relative_to(self.root).as_posix()
            if text != wanted:
                difference = difflib.unified_diff(
                    text.splitlines(), wanted.splitlines(), name, "generated now", lineterm="", n=1
                )
                yield "\n".join(list(difference)[:30])
            yield from self.broken_links(page, text)

    def update(self):
        for name in WHOLE_PAGES:
            (self.root / name).touch()
        for page in self.pages():
            text = page.read_text(encoding="utf-8")
            wanted = self.current(page)
            if text != wanted:
                page.write_text(wanted, encoding="utf-8")
                print(f"updated {page.relative_to(self.root)}")


def run_program(program):
    def run(arguments):
        result = subprocess.run(
            [program, *arguments], capture_output=True, text=True, check=False, timeout=300
        )
        if result.returncode != 0:
            sys.exit(f"update_docs.py: {program} {shlex.join(arguments)} failed: {result.stderr}")
        return result.stdout

    return run


def self_test():
    """Plants faults in a small documentation and expects each to be found."""
    output = {"ops": "# Ops\n", "show": "a 1\na 2\n\nb 1\nb 2\nb 3\n"}
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        (root / "docs").mkdir()
        page = root / "README.md"
        start = "<!-- generated: meganeura show | block 1 | first 2 -->\n"
        page.write_text(f"[ops](docs/ops.md)\n{start}<!-- end of generated -->\n")
        docs = Documentation(root, lambda arguments: output[arguments[0]])
        assert len(list(docs.check())) == 3, "a missing page, the link to it, and an empty part"
        docs.update()
        assert list(docs.check()) == [], "nothing after an update"
        assert "b 2\n... and 1 more lines\n" in page.read_text(), "the selections"
        good = page.read_text()
        faults = {
            "a changed part": good.replace("b 2", "b 7"),
            "a broken link": good.replace("docs/ops.md", "docs/other.md"),
            "an unknown selection": good.replace("block 1", "third 1"),
            "a block that is not there": good.replace("block 1", "block 9"),
            "an unknown source": good.replace("meganeura show", "perhaps show"),
        }
        for name, text in faults.items():
            page.write_text(text)
            assert len(list(docs.check())) == 1, name
        page.write_text(good)
        output["ops"] = "# Other ops\n"
        assert len(list(docs.check())) == 1, "a page of the program that has changed"
    print("update_docs.py: self-test passed")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--program", default="build/release/meganeura")
    parser.add_argument("--root", default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        self_test()
        return
    docs = Documentation(pathlib.Path(arguments.root), run_program(arguments.program))
    if not arguments.check:
        docs.update()
        return
    faults = list(docs.check())
    print("\n".join(faults))
    print(f"update_docs.py: {len(docs.pages())} pages, {len(faults)} faults")
    if faults:
        sys.exit("Run scripts/update_docs.py with the built program to bring them up to date.")


if __name__ == "__main__":
    main()
