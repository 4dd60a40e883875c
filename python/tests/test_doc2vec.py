"""Doc2Vec: what it learns, its vectors in files and in gensim, its end by Ctrl-C."""

import json
import pickle
import random
import subprocess

import numpy as np
import pytest
from conftest import tiledbsoma_python
from somafeed import Doc2Vec, Kmers, SequenceDataset, Vocabulary, import_sequences
from somafeed.doc2vec import NamedVectors
from test_sequences import ends_by_ctrl_c

N_FAMILIES, N_MEMBERS = 20, 5


def family(name):
    return name.split("_")[0]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Families of related sequences; relatives are no neighbours."""
    path = tmp_path_factory.mktemp("families")
    generator = random.Random(1)
    ancestors = [generator.choices("ACGT", k=200) for _ in range(N_FAMILIES)]
    with open(path / "families.fasta", "w") as file:
        for member in range(N_MEMBERS):
            for number, ancestor in enumerate(ancestors):
                letters = [generator.choice("ACGT") if generator.random() < 0.1 else letter
                           for letter in ancestor]
                file.write(f">f{number}_{member}\n{''.join(letters)}\n")
    import_sequences(path / "families.fasta", path / "families")
    return str(path / "families")


SETTINGS = {"vector_size": 24, "epochs": 20, "alpha": 0.05, "workers": 2}


@pytest.fixture(scope="module")
def model(store):
    return Doc2Vec(store, window=3, **SETTINGS)


def share_of_relatives(model):
    names = model.dv.index_to_key
    near = [model.dv.most_similar(name, topn=1)[0][0] for name in names]
    return np.mean([family(one) == family(other) for one, other in zip(names, near)])


def test_relatives_are_near_each_other(store, model):
    assert share_of_relatives(model) > 0.8
    assert share_of_relatives(Doc2Vec(store, dm=0, **SETTINGS)) > 0.8
    assert model.losses[-1] < model.losses[0] and len(model.losses) == 20
    assert model.dv.vectors.shape == (N_FAMILIES * N_MEMBERS, 24)
    assert model.wv["ACGT"].shape == (24,) and "XXXX" in model.wv
    assert repr(model) == "Doc2Vec(100 sequences, vectors of length 24)"


def test_one_seed_gives_one_result(store, model):
    again = Doc2Vec(window=3, **SETTINGS).train(store)
    assert np.array_equal(again.dv.vectors, model.dv.vectors)
    other = Doc2Vec(store, window=3, seed=2, **SETTINGS)
    assert not np.array_equal(other.dv.vectors, model.dv.vectors)


def test_a_part_of_a_data_set_is_trained_on(store):
    whole = SequenceDataset(store, Kmers(3, stride=1, padding=0), seed=1)
    part = whole.isel(slice(10, 50))
    model = Doc2Vec(part, vector_size=8, epochs=1, workers=1)
    assert model.dv.index_to_key == part.names == whole.names[10:50]
    assert model.wv.index_to_key == whole.vocabulary.words
    with pytest.raises(ValueError, match="leave kmers out"):
        Doc2Vec(part, kmers=Kmers())
    with pytest.raises(AttributeError, match="give kmers"):
        Doc2Vec(SequenceDataset(store))


def test_the_counts_of_another_store_are_no_measure_of_this_one(store):
    """The learning rate falls by the words of the store that is trained on."""
    counted = SequenceDataset(store, Kmers()).vocabulary
    occurring = counted.counts > 0
    words = [word for word, occurs in zip(counted.words, occurring) if occurs]
    few = Vocabulary(counted.kmers, words, counted.counts[occurring] // 100 + 1)
    model = Doc2Vec(store, kmers=few, window=3, **SETTINGS)
    assert set(model.wv.index_to_key) == set(counted.words)
    assert share_of_relatives(model) > 0.8


def test_rare_words_are_left_out(store):
    words = SequenceDataset(store, Kmers(4)).vocabulary
    counts = dict(zip(words.words, words.counts.tolist()))
    least = sorted(counts.values())[-20]
    model = Doc2Vec(store, vector_size=4, epochs=1, min_count=least)
    kept = {word for word in model.wv.index_to_key if "X" not in word and "Y" not in word}
    assert kept == {word for word, count in counts.items() if count >= least}
    with pytest.raises(ValueError, match="min_count"):
        Doc2Vec(store, min_count=10**9)


def test_neighbours_are_those_of_the_cosine():
    vectors = np.random.default_rng(0).normal(size=(50, 6)).astype(np.float32)
    vectors[7] = 0
    named = NamedVectors([f"v{at}" for at in range(50)], vectors)
    lengths = np.linalg.norm(vectors, axis=1)
    lengths[7] = 1
    cosines = (vectors @ vectors.T) / np.outer(lengths, lengths)
    for row in (0, 7, 49):
        order = [at for at in np.argsort(-cosines[row], kind="stable") if at != row]
        found = named.most_similar(f"v{row}", topn=5)
        if row != 7:
            assert [name for name, _ in found] == [f"v{at}" for at in order[:5]]
        assert np.allclose([one for _, one in found], cosines[row, order[:5]], atol=1e-6)
    assert named.most_similar(vectors[3], topn=1)[0][0] == "v3"
    assert abs(named.similarity("v1", "v2") - cosines[1, 2]) < 1e-6
    assert named[["v1", "v2"]].shape == (2, 6) and len(named) == 50
    with pytest.raises(KeyError):
        named["absent"]
    with pytest.raises(ValueError, match="3 names"):
        NamedVectors(["a", "b", "c"], vectors)


GENSIM = """
import sys
import numpy as np
from gensim.models import KeyedVectors
text = KeyedVectors.load_word2vec_format("sequences.txt")
binary = KeyedVectors.load_word2vec_format("sequences.bin", binary=True)
expected = np.load("sequences.npy")
assert np.array_equal(text.vectors, expected) and np.array_equal(binary.vectors, expected)
print(text.index_to_key == binary.index_to_key, text.most_similar("f0_0", topn=3))
sys.path.insert(0, sys.argv[1])
from somafeed.doc2vec import NamedVectors
keyed = NamedVectors(text.index_to_key, expected).to_gensim()
assert keyed.index_to_key == text.index_to_key and np.array_equal(keyed.vectors, expected)
"""


def test_gensim_reads_the_vectors(model, tmp_path):
    from pathlib import Path

    import somafeed

    model.dv.save_word2vec_format(tmp_path / "sequences.txt")
    model.dv.save_word2vec_format(tmp_path / "sequences.bin", binary=True)
    np.save(tmp_path / "sequences.npy", model.dv.vectors)
    package = Path(somafeed.__file__).parents[1]
    command = [tiledbsoma_python(), "-c", GENSIM, package]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    same, _, found = ran.stdout.strip().partition(" ")
    assert same == "True"
    names = [name for name, _ in model.dv.most_similar("f0_0", topn=3)]
    assert [name for name in names if f"'{name}'" in found] == names
    blank = NamedVectors(["a b"], np.zeros((1, 2), np.float32))
    with pytest.raises(ValueError, match="white space"):
        blank.save_word2vec_format(tmp_path / "blank.txt")


def letters_of(store):
    """The letters of all sequences, in their order."""
    [batch] = SequenceDataset(store, shuffle=False, batch_size=N_FAMILIES * N_MEMBERS)
    text = bytes(batch["letters"]).decode()
    ends = batch["letter_offsets"].tolist()
    return [text[begin:end] for begin, end in zip(ends, ends[1:])]


def share_of_themselves(inferred, trained):
    """The share of the rows that are nearest to the same row."""
    one, other = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (inferred, trained))
    return np.mean((one @ other.T).argmax(axis=1) == np.arange(len(one)))


@pytest.mark.parametrize("dm", [0, 1])
def test_inferred_vectors_are_near_those_of_training(store, dm):
    model = Doc2Vec(store, window=3, dm=dm, **SETTINGS)
    texts = letters_of(store)
    inferred = model.infer_vectors(texts)
    assert inferred.shape == model.dv.vectors.shape and inferred.dtype == np.float32
    # Four relatives are near, too.
    assert share_of_themselves(inferred, model.dv.vectors) > 0.6
    # A relative that is not in the store.
    generator = random.Random(5)
    for number in range(N_FAMILIES):
        letters = [generator.choice("ACGT") if generator.random() < 0.1 else letter
                   for letter in texts[number]]
        near = model.dv.most_similar(model.infer_vector("".join(letters)), topn=3)
        assert f"f{number}" in {family(name) for name, _ in near}
    # It depends on the sequence and the seed alone.
    assert np.array_equal(model.infer_vector(texts[7]), inferred[7])
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.infer_vectors(texts[5:9]), inferred[5:9])
    other = Doc2Vec(store, window=3, dm=dm, **{**SETTINGS, "seed": 2})
    assert not np.array_equal(other.infer_vector(texts[7]), inferred[7])
    assert not np.array_equal(model.infer_vector(texts[7], epochs=40), inferred[7])
    assert not np.array_equal(model.infer_vector(texts[7], alpha=0.01), inferred[7])
    assert model.infer_vectors([]).shape == (0, 24)


def test_what_cannot_be_inferred(store, model, tmp_path):
    with pytest.raises(ValueError, match="call train"):
        Doc2Vec().infer_vector("ACGT")
    with pytest.raises(TypeError, match="sequences must be several names"):
        model.infer_vectors("ACGT")
    with pytest.raises(ValueError, match="letter 'N'"):
        model.infer_vector("ACGTNACGT")
    for name, value in (("epochs", 0), ("alpha", -1.0), ("min_alpha", 1.0)):
        with pytest.raises(ValueError, match=name):
            model.infer_vector("ACGT", **{name: value})
    model.save(tmp_path / "vectors.safetensors")
    with pytest.raises(ValueError, match="can be pickled"):
        Doc2Vec.load(tmp_path / "vectors.safetensors").infer_vector("ACGT")


GENSIM_INFERS = """
import json, sys
import numpy as np
from gensim.models.doc2vec import Doc2Vec, TaggedDocument
texts = json.load(open(sys.argv[1]))
words = [[text[at : at + 4] for at in range(len(text) - 3)] for text in texts]
documents = [TaggedDocument(one, [at]) for at, one in enumerate(words)]
model = Doc2Vec(
    documents, vector_size=24, epochs=20, alpha=0.05, min_alpha=0.0001, window=3, min_count=1, sample=0, workers=1,
    seed=1, dm=int(sys.argv[2]),
)
np.save(sys.argv[3], np.stack([model.infer_vector(one) for one in words]))
np.save(sys.argv[4], model.dv.vectors)
"""


@pytest.mark.parametrize("dm", [0, 1])
def test_as_many_are_near_themselves_as_in_gensim(store, tmp_path, dm):
    texts = letters_of(store)
    (tmp_path / "texts.json").write_text(json.dumps(texts))
    files = [tmp_path / name for name in ("texts.json", "inferred.npy", "trained.npy")]
    command = [tiledbsoma_python(), "-c", GENSIM_INFERS, files[0], str(dm), *files[1:]]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    of_gensim = share_of_themselves(*map(np.load, files[1:]))
    kmers = Kmers(4, stride=1, padding=0)
    model = Doc2Vec(store, kmers=kmers, window=3, dm=dm, **{**SETTINGS, "workers": 1})
    ours = share_of_themselves(model.infer_vectors(texts), model.dv.vectors)
    assert ours > of_gensim - 0.1, (ours, of_gensim)


def test_vectors_are_saved(model, tmp_path):
    model.save(tmp_path / "vectors.safetensors")
    for read in (Doc2Vec.load(tmp_path / "vectors.safetensors"), pickle.loads(pickle.dumps(model))):
        for one, other in ((read.dv, model.dv), (read.wv, model.wv)):
            assert one.index_to_key == other.index_to_key
            assert np.array_equal(one.vectors, other.vectors)
    (tmp_path / "other").write_text("other")
    with pytest.raises(ValueError, match="safetensors"):
        Doc2Vec.load(tmp_path / "other")
    with pytest.raises(FileNotFoundError):
        Doc2Vec.load(tmp_path / "absent")


BAD = {
    "vector_size": (ValueError, 0), "window": (ValueError, 0), "negative": (ValueError, 0),
    "epochs": (ValueError, 0), "workers": (ValueError, 0), "alpha": (ValueError, -1.0),
    "min_alpha": (ValueError, 1.0), "sample": (ValueError, -1.0), "seed": (TypeError, "x"),
    "ns_exponent": (ValueError, float("nan")), "min_count": (TypeError, 1.5),
}


@pytest.mark.parametrize("name", BAD)
def test_errors_name_the_argument(store, name):
    kind, value = BAD[name]
    with pytest.raises(kind, match="exponent" if name == "ns_exponent" else name):
        Doc2Vec(store, **{name: value})


def test_large_values_are_errors_too(store):
    with pytest.raises(ValueError, match="vector_size is 513"):
        Doc2Vec(store, vector_size=513)
    with pytest.raises(ValueError, match="call train"):
        Doc2Vec().dv
    with pytest.raises(ValueError, match="alpha"):
        Doc2Vec(store, alpha=1e30, epochs=50)


TRAINING = """
import threading, time
import somafeed
ticks = 0

def tick():
    global ticks
    while True:
        time.sleep(0.01)
        ticks += 1
        if ticks == 50:
            print("ticking", flush=True)

threading.Thread(target=tick, daemon=True).start()
try:
    somafeed.Doc2Vec({store!r}, epochs=1_000_000, vector_size=200)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_other_threads_run_while_it_trains_and_ctrl_c_ends_it(store):
    assert ends_by_ctrl_c(TRAINING.format(store=store), "ticking\n") == ("interrupted\n", "")
