"""Writes tests/data/dragon.txt: Dragon's rules for a few short sequences, in plain Python.

4-mers in four frames, each sequence padded with 12 X before and 12 Y after it, three words of
context at each side. The vocabulary counts targets; words with padding have count 0.

    python3 crates/sequences/tests/python/dragon.py > crates/sequences/tests/data/dragon.txt
"""

import collections
import itertools
import random

K, CONTEXT = 4, 3


def frames(letters):
    padded = "X" * K * CONTEXT + letters + "Y" * K * CONTEXT
    return [
        [padded[at : at + K] for at in range(frame, len(padded) - K + 1, K)] for frame in range(K)
    ]


def windows(letters):
    for frame in frames(letters):
        for at in range(CONTEXT, len(frame) - CONTEXT):
            around = [frame[at + by] for by in range(-CONTEXT, CONTEXT + 1) if by != 0]
            yield frame[at], around


def vocabulary(sequences):
    counts = collections.Counter(target for letters in sequences for target, _ in windows(letters))
    known = sorted({letter for target in counts for letter in target})
    words = set(counts) | {"X" * K, "Y" * K}
    for n in range(1, K):
        for part in map("".join, itertools.product(known, repeat=K - n)):
            words |= {"X" * n + part, part + "Y" * n}
    return words, counts


def main():
    chance = random.Random(1)
    sizes = [("ACGT", 4), ("ACGU", 5), ("ACGT", 6), ("ACGU", 7), ("ACGT", 13), ("ACGU", 3), ("ACGT", 1)]
    sequences = ["".join(chance.choice(letters) for _ in range(n)) for letters, n in sizes]
    for letters in sequences:
        print("sequence", letters)
        for target, around in windows(letters):
            print(target, *around)
    words, counts = vocabulary(sequences)
    print("vocabulary", len(words), sum(counts.values()))
    for word, count in sorted(counts.items()):
        print(word, count)


if __name__ == "__main__":
    main()
