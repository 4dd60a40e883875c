"""Trains gensim's Doc2Vec on sequences, and prints how fast, and how well related ones are found.

The counterpart of crate doc2vec's example `train_sequences`, which writes the sequences:

    cargo run --release -p doc2vec --example train_sequences -- --write /tmp/sequences.txt
    python benches/peers/doc2vec.py /tmp/sequences.txt --model dm --workers 1,2

`doc2vec.txt` here pins the packages. Each line of the file is a family, a tab, and bases. The
words of a sequence are its 4-mers in all four frames, one frame after another. Settings are those of
the example: whole windows, no subsampling, negative sampling, and the mean of context and document,
or with --sum their sum (gensim then divides the step by the number of summed words).

Speed is gensim's own measure: effective words, without the tags of documents, over the time of
`train`. The vocabulary is built before.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from gensim.models.doc2vec import Doc2Vec, TaggedDocument

K = 4


def words(bases: str) -> list[str]:
    """The 4-mers of all frames, one frame after another."""
    return [
        bases[begin : begin + K]
        for frame in range(K)
        for begin in range(frame, len(bases) - K + 1, K)
    ]


def score(vectors: np.ndarray, families: np.ndarray) -> float:
    """The share of vectors whose nearest neighbour by cosine is of the same family."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    found = 0
    for begin in range(0, len(unit), 500):
        cosines = unit[begin : begin + 500] @ unit.T
        rows = np.arange(len(cosines))
        cosines[rows, begin + rows] = -2
        found += int(np.sum(families[np.argmax(cosines, axis=1)] == families[begin + rows]))
    return found / len(unit)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sequences", type=Path, help="the file with sequences")
    parser.add_argument("--model", choices=["dm", "dbow"], default="dm")
    parser.add_argument("--workers", default="1,2", help="numbers of worker threads, in turn")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--repetitions", type=int, default=1)
    parser.add_argument("--dimension", type=int, default=24)
    parser.add_argument("--window", type=int, default=3)
    parser.add_argument("--negatives", type=int, default=5)
    parser.add_argument("--alpha", type=float, default=0.025)
    parser.add_argument("--sum", action="store_true", help="add up instead of taking the mean")
    arguments = parser.parse_args()

    lines = [line.split("\t") for line in arguments.sequences.read_text().splitlines()]
    families = np.array([int(family) for family, _ in lines])
    documents = [TaggedDocument(words(bases), [row]) for row, (_, bases) in enumerate(lines)]
    print("model  workers  seconds  words/s  score")
    for _ in range(arguments.repetitions):
        for workers in map(int, arguments.workers.split(",")):
            model = Doc2Vec(
                dm=int(arguments.model == "dm"),
                dm_mean=int(not arguments.sum),
                vector_size=arguments.dimension,
                window=arguments.window,
                shrink_windows=False,
                negative=arguments.negatives,
                hs=0,
                sample=0,
                min_count=1,
                alpha=arguments.alpha,
                min_alpha=0.0001,
                epochs=arguments.epochs,
                workers=workers,
                seed=0,
            )
            model.build_vocab(documents)
            begin = time.perf_counter()
            model.train(documents, total_examples=len(documents), epochs=arguments.epochs)
            seconds = time.perf_counter() - begin
            n_words = model.corpus_total_words * arguments.epochs
            print(
                f"gensim {arguments.model}  {workers}  {seconds:.2f}  {n_words / seconds:.0f}  "
                f"{score(model.dv.vectors, families):.4f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
