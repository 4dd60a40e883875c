"""Words of sequences in plain Python, from the definition: what `SequenceDataset` must deliver."""

from collections import Counter
from itertools import product


def frames_of(letters, k, stride, frames, padding):
    """The words of each frame as texts, with X before and Y after the sequence."""
    padded = "X" * (k * padding) + letters + "Y" * (k * padding)
    if len(letters) < k:
        return [[] for _ in range(frames)]
    return [
        [padded[at : at + k] for at in range(frame, len(padded) - k + 1, stride)]
        for frame in range(frames)
    ]


class NaiveVocabulary:
    """The words of sequences with their numbers."""

    def __init__(self, sequences, k, stride, frames, padding, unknown, alphabet):
        self.cut = (k, stride, frames, padding)
        self.unknown = unknown
        counts = Counter(
            word
            for letters in sequences
            for frame in frames_of(letters, *self.cut)
            for word in frame
            if set(word) <= set(alphabet)
        )
        by_letter = {letter: at for at, letter in enumerate(alphabet)}
        order = sorted(counts, key=lambda word: (-counts[word], [by_letter[one] for one in word]))
        self.words = order
        if padding:
            parts = ["".join(one) for n in range(k) for one in product(alphabet, repeat=n)]
            self.words = [*order, *("X" * (k - len(one)) + one for one in parts),
                          *(one + "Y" * (k - len(one)) for one in parts)]
        if unknown == "word":
            self.words = [*self.words, "<unk>"]
        self.counts = [counts[word] for word in self.words]
        self.numbers = {word: at for at, word in enumerate(self.words)}

    def encode(self, letters):
        """The numbers of each frame's words."""
        encoded = []
        for frame in frames_of(letters, *self.cut):
            numbers = [self.numbers.get(word) for word in frame]
            if self.unknown == "word":
                unknown = self.numbers["<unk>"]
                numbers = [unknown if one is None else one for one in numbers]
            encoded.append([one for one in numbers if one is not None])
        return encoded


def windows_of(frames, context):
    """Target and context of each window, which stays within its frame."""
    return [
        (frame[at], frame[at - context : at] + frame[at + 1 : at + context + 1])
        for frame in frames
        for at in range(context, len(frame) - context)
    ]
