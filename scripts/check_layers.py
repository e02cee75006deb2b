#!/usr/bin/env python3
"""Proves that every #include stays within the layers that its own layer may use.

usage: check_layers.py [--root DIR] [--self-test]

The layers and their edges are the mg_layer() calls of CMakeLists.txt. Sources may reach what their
layer depends on, directly or not; tests also what the call's TEST_DEPENDS and the layer's own
layer.cmake name. Headers of other projects and of the operating system are bound to a few places.
"""

import argparse
import pathlib
import re
import sys
import tempfile

# Which layer a public header belongs to.
PUBLIC_HEADERS = {
    "autodiff.h": "autodiff",
    "compile.h": "compile",
    "data.h": "io",
    "device.h": "device",
    "dtype.h": "base",
    "error.h": "base",
    "export.h": "base",
    "gradcheck.h": "gradcheck",
    "graph.h": "graph",
    "models.h": "models",
    "nn.h": "nn",
    "ops.h": "ops",
    "optim.h": "optim",
    "safetensors.h": "io",
    "session.h": "runtime",
    "shape.h": "base",
    "trainer.h": "train",
}
# Public headers that include others and declare nothing themselves.
UMBRELLA_HEADERS = {"meganeura.h"}
# The one public header that may include Vulkan.
VULKAN_INTEROP = "include/meganeura/interop_vulkan.h"

# Headers of others, by the start of their name, and the places (path prefixes) that may use them.
FOREIGN_HEADERS = [
    (("vulkan/", "vk_video/"), ("src/device/vulkan/", VULKAN_INTEROP)),
    (
        ("unistd.h", "sys/", "dlfcn.h", "fcntl.h", "poll.h", "signal.h", "termios.h", "windows.h"),
        ("src/base/platform_",),
    ),
    (("nlohmann/",), ("src/io/", "src/cli/")),
    (("zlib.h",), ("src/io/",)),
    (("CLI/", "fmt/", "stb/"), ("src/cli/",)),
    (("spirv/", "spirv-tools/"), ("src/emit/spirv/",)),
]
# Folders inside a layer whose files serve its tests.
TEST_FOLDERS = {"testing", "validate", "exhaustive"}
TEST_HEADERS = ("gtest/", "gmock/", "benchmark/")

LAYER = re.compile(r"^\s*mg_layer\(([^)]*)\)", re.MULTILINE)
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]', re.MULTILINE)
SOURCE_SUFFIXES = {".h", ".cc"}


class Layer:
    def __init__(self, words):
        self.name = words[0]
        lists = {"DIRECTORY": [], "DEPENDS": [], "TEST_DEPENDS": []}
        current = None
        for word in words[1:]:
            if word in lists:
                current = lists[word]
            elif current is None:
                sys.exit(f"CMakeLists.txt: mg_layer({self.name}) has the stray argument {word}.")
            else:
                current.append(word)
        self.directory = lists["DIRECTORY"][0] if lists["DIRECTORY"] else self.name
        self.depends = lists["DEPENDS"]
        self.test_depends = lists["TEST_DEPENDS"]


class Checker:
    def __init__(self, root):
        self.root = root
        text = re.sub(r"#[^\n]*", "", (root / "CMakeLists.txt").read_text())
        layers = [Layer(match.group(1).split()) for match in LAYER.finditer(text)]
        self.layers = {layer.name: layer for layer in layers}
        self.faults = []
        self.files = 0

    def closure(self, names):
        reached, open_names = set(), list(names)
        while open_names:
            name = open_names.pop()
            if name in reached:
                continue
            if name not in self.layers:
                self.faults.append(f"CMakeLists.txt: a layer depends on {name}, which is none.")
                continue
            reached.add(name)
            open_names += self.layers[name].depends
        return reached

    def layer_of(self, path):
        """The layer whose folder holds the path (relative to src/), the innermost one."""
        best = None
        for layer in self.layers.values():
            inside = path.parts[: len(pathlib.PurePath(layer.directory).parts)]
            if "/".join(inside) == layer.directory:
                if best is None or len(layer.directory) > len(best.directory):
                    best = layer
        return best

    def check_order(self):
        """A layer may depend only on layers above it in the list, so there is no cycle."""
        seen = set()
        for layer in self.layers.values():
            for name in layer.depends:
                if name not in seen:
                    self.faults.append(
                        f"CMakeLists.txt: layer {layer.name} depends on {name}, which does not "
                        "stand before it."
                    )
            seen.add(layer.name)

    def check_foreign(self, path, header):
        for prefixes, places in FOREIGN_HEADERS:
            if header.startswith(prefixes):
                if not path.startswith(places):
                    self.faults.append(
                        f"{path}: <{header}> may be included only in {', '.join(places)}."
                    )
                return

    def check_include(self, path, quote, header, allowed, is_test):
        if header.startswith(TEST_HEADERS):
            if not is_test:
                self.faults.append(f"{path}: <{header}> belongs in tests.")
            return
        if header.startswith("meganeura/"):
            name = header.removeprefix("meganeura/")
            if name in UMBRELLA_HEADERS:
                if path.startswith("src/") and not is_test:
                    self.faults.append(f"{path}: {header} reaches every layer; name the header.")
                return
            target = PUBLIC_HEADERS.get(name)
        elif quote == '"':
            target_path = pathlib.PurePath(header)
            if not (self.root / "src" / target_path).is_file():
                self.faults.append(f"{path}: there is no file src/{header}.")
                return
            found = self.layer_of(target_path)
            target = found.name if found else None
        else:
            self.check_foreign(path, header)
            return
        if target is None:
            self.faults.append(f"{path}: {header} belongs to no layer.")
        elif target not in allowed:
            self.faults.append(
                f"{path}: {header} belongs to layer {target}, which its own layer does not "
                "depend on."
            )

    def check_file(self, file, allowed, is_test):
        self.files += 1
        path = file.relative_to(self.root).as_posix()
        for quote, header in INCLUDE.findall(file.read_text(encoding="utf-8")):
            self.check_include(path, quote, header, allowed, is_test)

    def check_public(self):
        for file in sorted((self.root / "include/meganeura").glob("*.h")):
            if file.name in UMBRELLA_HEADERS:
                allowed = set(self.layers)
            elif file.name in PUBLIC_HEADERS:
                allowed = self.closure([PUBLIC_HEADERS[file.name]])
            elif file.relative_to(self.root).as_posix() == VULKAN_INTEROP:
                allowed = self.closure(["runtime"])
            else:
                self.faults.append(
                    f"include/meganeura/{file.name}: name its layer in PUBLIC_HEADERS of "
                    "scripts/check_layers.py."
                )
                continue
            self.check_file(file, allowed, False)
            for quote, header in INCLUDE.findall(file.read_text(encoding="utf-8")):
                if quote == '"' and not header.startswith("meganeura/"):
                    self.faults.append(
                        f"include/meganeura/{file.name}: a public header includes the internal "
                        f"{header}."
                    )

    def check_sources(self):
        source = self.root / "src"
        for file in sorted(source.rglob("*")):
            if file.suffix not in SOURCE_SUFFIXES:
                continue
            relative = file.relative_to(source)
            layer = self.layer_of(relative)
            if layer is None:
                self.faults.append(f"src/{relative.as_posix()}: it lies in no layer.")
                continue
            is_test = (
                relative.stem.endswith("_test")
                or "test_support" in relative.stem
                or bool(TEST_FOLDERS & set(relative.parts[:-1]))
            )
            names = [layer.name]
            if is_test:
                names += layer.test_depends
                extras = source / layer.directory / "layer.cmake"
                if extras.is_file():
                    words = set(re.findall(r"\bmg_(\w+)", extras.read_text()))
                    names += sorted(words & set(self.layers))
            self.check_file(file, self.closure(names), is_test)

    def run(self):
        if not self.layers:
            self.faults.append("CMakeLists.txt: it has no mg_layer() call.")
        self.check_order()
        self.check_public()
        self.check_sources()
        return sorted(set(self.faults))


def self_test():
    """Every rule must refuse a tree that breaks it, and accept one that does not."""
    table = "mg_layer(base)\nmg_layer(io DEPENDS base)\nmg_layer(graph DEPENDS base TEST_DEPENDS io)\n"
    good = {
        "CMakeLists.txt": table,
        "include/meganeura/error.h": "#pragma once\n#include <string>\n",
        "src/base/check.h": '#include "meganeura/error.h"\n',
        "src/base/platform_file.cc": "#include <fcntl.h>\n",
        "src/io/json.cc": '#include <nlohmann/json.hpp>\n#include "base/check.h"\n',
        "src/io/json.h": "",
        "src/graph/graph.h": "",
        "src/graph/graph_test.cc": '#include <gtest/gtest.h>\n#include "io/json.h"\n',
    }
    bad = [
        ({"src/base/a.cc": '#include "graph/graph.h"\n'}, "does not depend on"),
        ({"src/graph/a.cc": '#include "io/json.h"\n'}, "does not depend on"),
        ({"src/graph/a.cc": "#include <gtest/gtest.h>\n"}, "belongs in tests"),
        ({"src/graph/a.cc": '  #  include "base/missing.h"\n'}, "no file src/base/missing.h"),
        ({"src/graph/a.cc": "#include <unistd.h>\n"}, "only in src/base/platform_"),
        ({"src/graph/a.cc": "#include <vulkan/vulkan.h>\n"}, "only in src/device/vulkan/"),
        ({"src/base/a.h": "#include <nlohmann/json.hpp>\n"}, "only in src/io/"),
        ({"src/stray/a.cc": ""}, "lies in no layer"),
        ({"include/meganeura/new.h": ""}, "name its layer"),
        ({"include/meganeura/error.h": '#include "base/check.h"\n'}, "internal base/check.h"),
        ({"include/meganeura/error.h": '#include "meganeura/data.h"\n'}, "does not depend on"),
        ({"include/meganeura/error.h": "#include <vulkan/vulkan.h>\n"}, "only in src/device/vulkan/"),
        ({"CMakeLists.txt": "mg_layer(graph DEPENDS base)\nmg_layer(base)\nmg_layer(io)\n"}, "before it"),
    ]

    def faults_of(files):
        with tempfile.TemporaryDirectory() as directory:
            root = pathlib.Path(directory)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return Checker(root).run()

    failed = 0
    if faults := faults_of(good):
        print(f"self-test: a good tree was refused: {faults}")
        failed += 1
    for change, expected in bad:
        faults = faults_of({**good, **change})
        if not any(expected in fault for fault in faults):
            print(f"self-test: {change} was not refused with '{expected}': {faults}")
            failed += 1
    print(f"check_layers.py self-test: {len(bad) + 1 - failed} passed, {failed} failed")
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default_root = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--root", type=pathlib.Path, default=default_root)
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        sys.exit(1 if self_test() else 0)
    checker = Checker(arguments.root)
    faults = checker.run()
    for fault in faults:
        print(fault)
    print(f"check_layers.py: {checker.files} files, {len(checker.layers)} layers, {len(faults)} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
