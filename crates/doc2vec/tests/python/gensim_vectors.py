"""Opens ours.txt and ours.bin of a folder with gensim, writes gensim.txt and gensim.bin there, and
prints names, bits and nearest neighbours as JSON."""

import json
import sys
from pathlib import Path

import numpy as np
from gensim.models import KeyedVectors

folder = Path(sys.argv[1])


def describe(vectors: KeyedVectors) -> dict:
    return {
        "names": list(vectors.index_to_key),
        "bits": vectors.vectors.astype(np.float32).view(np.uint32).flatten().tolist(),
        "nearest": [vectors.most_similar(name, topn=1)[0] for name in vectors.index_to_key],
    }


text = KeyedVectors.load_word2vec_format(str(folder / "ours.txt"), binary=False)
binary = KeyedVectors.load_word2vec_format(str(folder / "ours.bin"), binary=True)
binary.save_word2vec_format(str(folder / "gensim.txt"), binary=False)
binary.save_word2vec_format(str(folder / "gensim.bin"), binary=True)
print(json.dumps({"text": describe(text), "binary": describe(binary)}))
