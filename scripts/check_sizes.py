#!/usr/bin/env python3
"""Holds files to 800 lines and functions to 100.

usage: check_sizes.py [--root DIR] [--self-test]

Functions are found by their braces, without a compiler. Lines inside brace initialisers do not
count, so a table may be as long as its subject.
"""

import argparse
import pathlib
import re
import sys

MAX_FILE_LINES = 800
MAX_FUNCTION_LINES = 100
FOLDERS = ("include", "src", "tests", "bench", "examples")
SUFFIXES = {".h", ".cc"}

RAW_STRING = re.compile(r'R"([^\s()\\]{0,16})\(.*?\)\1"', re.DOTALL)
TOKENS = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])\'(?:\\.|[^\'\\\n])*\'', re.DOTALL
)
PREPROCESSOR = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.MULTILINE)
# What a brace follows when it opens a scope of declarations.
SCOPE = re.compile(
    r"^(?:(?:inline|export|typedef|static|constexpr)\s+|template\s*<.*>\s*)*"
    r"(?:namespace|class|struct|union|enum|extern)\b",
    re.DOTALL,
)
# A constructor's initialiser list up to a member that is initialised with braces.
MEMBER = re.compile(r"\)\s*(?:noexcept\s*)?:(?!:).*\w\s*$", re.DOTALL)
QUALIFIER = re.compile(r"\b(?:const|noexcept|override|final|mutable|try)\s*$")


def blank(match):
    """Only the line breaks of what is matched."""
    return re.sub(r"[^\n]", " ", match.group(0))


def strip(text):
    """The text with comments, literals and preprocessor lines blanked out; lines keep numbers."""
    text = RAW_STRING.sub(blank, text)
    text = TOKENS.sub(blank, text)
    return PREPROCESSOR.sub(blank, text)


def kind_of(head):
    """What the brace behind `head` opens: a 'scope', a 'function' body or an 'initialiser'."""
    head = head.strip()
    if head and head[-1] in "=,(<&|?" or re.search(r"\b(?:return|co_return)$", head):
        return "initialiser"
    if SCOPE.match(head) and not re.search(r"\)\s*(?:const)?$", head):
        return "scope"
    if MEMBER.search(head) and not QUALIFIER.search(head):
        return "initialiser"
    if "(" in head:
        return "function"
    return "initialiser" if re.search(r"[\w>\]]$", head) else "scope"


def functions(text):
    """Yields (first line, name-like head, lines that count) of each outermost function."""
    stripped = strip(text)
    stack = []  # (kind, head that continues behind an initialiser)
    head = ""
    head_line = line = 1
    start = None
    table_lines = set()
    table_start = None
    for character in stripped:
        if character == "\n":
            line += 1
        if character == "{":
            inside = start is not None
            kind = kind_of(head)
            if inside and kind != "initialiser":
                kind = "block"
            elif not inside and kind == "function":
                start = (head_line, " ".join(head.split())[-60:], len(stack))
            if inside and kind == "initialiser" and table_start is None:
                table_start = (line, len(stack))
            stack.append((kind, head))
            head = ""
        elif character == "}":
            if not stack:
                continue
            kind, before = stack.pop()
            if table_start is not None and table_start[1] == len(stack):
                table_lines.update(range(table_start[0] + 1, line))
                table_start = None
            if start is not None and start[2] == len(stack):
                yield start[0], start[1], line - start[0] + 1 - len(table_lines)
                start = None
                table_lines = set()
            head = before + "}" if kind == "initialiser" else ""
        elif character == ";" and head.count("(") <= head.count(")"):
            head = ""
        else:
            if not head.strip() and not character.isspace():
                head, head_line = "", line
            head += character
            if head.strip() in ("public:", "private:", "protected:"):
                head = ""


def check_file(path, text):
    faults = []
    lines = text.count("\n")
    if lines > MAX_FILE_LINES:
        faults.append(f"{path}: {lines} lines; a file has at most {MAX_FILE_LINES}.")
    for line, head, size in functions(text):
        if size > MAX_FUNCTION_LINES:
            faults.append(
                f"{path}:{line}: {size} lines; a function has at most {MAX_FUNCTION_LINES} ({head})."
            )
    return faults


def self_test():
    def statements(count):
        return "  step();\n" * count

    rows = '    {"name", 1},\n' * 300
    cases = [
        ("small function", "void f() {\n" + statements(98) + "}\n", 0),
        ("long function", "void f() {\n" + statements(99) + "}\n", 1),
        ("long file", "// comment\n" * 801, 1),
        ("full file", "// comment\n" * 800, 0),
        ("long method", "class A {\n public:\n  int f() const {\n" + statements(120) + "  }\n};\n", 1),
        ("long in namespace", "namespace a {\nnamespace {\nint f(int x) {\n" + statements(120) + "}\n}\n}\n", 1),
        ("many small ones", "namespace a {\n" + ("int f() {\n" + statements(30) + "}\n") * 20 + "}\n", 0),
        ("constructor", "A::A(int x) : x_{x}, y_{1} {\n" + statements(120) + "}\n", 1),
        ("constructor calls", "A::A(int x)\n    : x_(x), y_(1) {\n" + statements(120) + "}\n", 1),
        ("trailing return", "auto f(int x) -> int {\n" + statements(120) + "}\n", 1),
        ("test body", "TEST(A, B) {\n" + statements(120) + "}\n", 1),
        ("table", "const Row kRows[] = {\n" + rows + "};\n", 0),
        ("table of calls", "const Row kRows[] = {\n" + "  row(1, 2),\n" * 300 + "};\n", 0),
        ("table in function", "int f() {\n  static const Row rows[] = {\n" + rows + "  };\n  return 1;\n}\n", 0),
        ("table and code", "int f() {\n  static const Row rows[] = {\n" + rows + "  };\n" + statements(120) + "}\n", 1),
        ("braces in text", 'int f() {\n  say("}{{{");\n  c = \'{\';\n  // {\n' + statements(120) + "}\n", 1),
        ("raw string", 'const char* t = R"x(\n' + "int f() {\n" * 150 + ')x";\n', 0),
        ("long lambda", "void f() {\n  run([&](int x) {\n" + statements(120) + "  });\n}\n", 1),
        ("struct of data", "struct A {\n" + "  int a = 0;\n" * 150 + "};\n", 0),
        ("macro", "#define M(x) \\\n  f({ \\\n  x\nint f() {\n" + statements(10) + "}\n", 0),
        ("loop", "void f() {\n  for (int i = 0; i < 3; ++i) {\n" + statements(120) + "  }\n}\n", 1),
    ]
    failed = 0
    for name, text, expected in cases:
        found = check_file(name, text)
        if len(found) != expected:
            print(f"self-test: '{name}' gave {found}, expected {expected} faults")
            failed += 1
    print(f"check_sizes.py self-test: {len(cases) - failed} passed, {failed} failed")
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default_root = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--root", type=pathlib.Path, default=default_root)
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        sys.exit(1 if self_test() else 0)
    faults, files = [], 0
    for folder in FOLDERS:
        for file in sorted((arguments.root / folder).rglob("*")):
            if file.suffix in SUFFIXES:
                files += 1
                path = file.relative_to(arguments.root).as_posix()
                faults += check_file(path, file.read_text(encoding="utf-8"))
    for fault in faults:
        print(fault)
    print(f"check_sizes.py: {files} files, {len(faults)} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
