#!/usr/bin/env python3
"""Makes long inputs of a corpus: each input with a part of it repeated, for scripts/fuzz.sh. Usage: lengthen.py CORPUS OUT

What takes a reader longer than in proportion to the length does not show at the lengths at which a fuzzer is quick.
"""

import pathlib
import random
import sys

LENGTH = 1_000_000
VARIANTS = 6


def lengthened(data, generator):
    begin = generator.randrange(len(data))
    end = generator.randrange(begin + 1, len(data) + 1)
    return data[:begin] + data[begin:end] * (LENGTH // (end - begin)) + data[end:]


def main():
    corpus, out = map(pathlib.Path, sys.argv[1:])
    for path in sorted(corpus.iterdir()):
        data, generator = path.read_bytes(), random.Random(path.name)
        for k in range(VARIANTS if data else 0):
            (out / f"{path.name}-{k}").write_bytes(lengthened(data, generator))


if __name__ == "__main__":
    main()
