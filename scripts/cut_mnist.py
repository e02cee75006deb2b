#!/usr/bin/env python3
"""Cuts the first images of MNIST into small, reproducible gzipped IDX files.

usage: cut_mnist.py SOURCE_DIR DESTINATION_DIR [--train N] [--test N]

SOURCE_DIR holds the four uncompressed files of MNIST ({train,t10k}-images-idx3-ubyte and
{train,t10k}-labels-idx1-ubyte). The output depends on nothing but their bytes: no file name, no
time stamp, a fixed compression level.
"""

import argparse
import gzip
import io
import pathlib
import struct
import sys

IMAGE_MAGIC = 0x00000803
LABEL_MAGIC = 0x00000801


def read_idx(path, magic, rank):
    """Returns (extents, payload) of an IDX file of unsigned bytes, checked against its size."""
    data = path.read_bytes()
    header = 4 + 4 * rank
    if len(data) < header:
        sys.exit(f"{path} is shorter than the header of an IDX file of rank {rank}.")
    found, *extents = struct.unpack(f">{1 + rank}I", data[:header])
    if found != magic:
        sys.exit(f"{path} starts with magic {found:#010x}; {magic:#010x} was expected.")
    size = 1
    for extent in extents:
        size *= extent
    if len(data) != header + size:
        sys.exit(f"{path} has {len(data)} bytes; its header asks for {header + size}.")
    return extents, data[header:]


def first(path, magic, rank, count):
    """The bytes of an IDX file that holds the first `count` items of `path`."""
    extents, payload = read_idx(path, magic, rank)
    if extents[0] < count:
        sys.exit(f"{path} has {extents[0]} items; {count} were asked for.")
    item = len(payload) // extents[0]
    header = struct.pack(f">{1 + rank}I", magic, count, *extents[1:])
    return header + payload[: count * item]


def write_gzip(path, data):
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=buffer, mtime=0) as stream:
        stream.write(data)
    path.write_bytes(buffer.getvalue())
    print(f"{path}: {len(data)} bytes in {len(buffer.getvalue())}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("destination", type=pathlib.Path)
    parser.add_argument("--train", type=int, default=12000, help="training images to keep")
    parser.add_argument("--test", type=int, default=2000, help="test images to keep")
    arguments = parser.parse_args()
    arguments.destination.mkdir(parents=True, exist_ok=True)
    for source, name, count in (
        ("train", "train", arguments.train),
        ("t10k", "test", arguments.test),
    ):
        for kind, magic, rank in (("images-idx3", IMAGE_MAGIC, 3), ("labels-idx1", LABEL_MAGIC, 1)):
            data = first(arguments.source / f"{source}-{kind}-ubyte", magic, rank, count)
            write_gzip(arguments.destination / f"{name}-{kind}-ubyte.gz", data)


if __name__ == "__main__":
    main()
