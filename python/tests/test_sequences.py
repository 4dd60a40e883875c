"""Sequences: values against plain Python, parts, ranks, states, workers, servers, errors."""

import gzip
import logging
import os
import pickle
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from naive_sequences import NaiveVocabulary, frames_of, windows_of
from programs import bucket, hidden, started
from somafeed import (
    ClassBalanced,
    Kmers,
    OneHot,
    SequenceDataset,
    SequenceServers,
    SomafeedError,
    Vocabulary,
    Windows,
    WithReplacement,
    experiment_dataloader,
    import_sequences,
)
from torchdata.stateful_dataloader import StatefulDataLoader


def written(path, sequences):
    """A store of these sequences, named `name-0` and so on."""
    fasta = path.with_suffix(".fasta")
    fasta.write_text("".join(f">name-{at}\n{one}\n" for at, one in enumerate(sequences)))
    import_sequences(fasta, path)
    return str(path)


def drawn(seed, n=60, letters="ACGT", longest=40):
    generator = random.Random(seed)
    return [
        "".join(generator.choices(letters, k=generator.randint(1, longest))) for _ in range(n)
    ]


SEQUENCES = drawn(0)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return written(tmp_path_factory.mktemp("sequences") / "store", SEQUENCES)


def sequences(store, *arguments, **options):
    options = {"batch_size": 4, "io_batch_size": 16, "shuffle_chunk_size": 2, "seed": 3, **options}
    return SequenceDataset(store, *arguments, number_samples=True, **options)


def samples_of(batches):
    """The numbers of sequences, whose letters are right."""
    found = []
    for batch in batches:
        letters = bytes(np.asarray(batch["letters"])).decode()
        ends = np.asarray(batch["letter_offsets"]).tolist()
        rows = np.asarray(batch["sample"]).tolist()
        assert [letters[a:b] for a, b in zip(ends, ends[1:])] == [SEQUENCES[row] for row in rows]
        found += rows
    return found


def random_kmers(generator):
    k, stride = generator.randint(1, 4), generator.randint(1, 5)
    return Kmers(
        k, stride=stride, frames=generator.randint(1, stride), padding=generator.randint(0, 3),
        unknown=generator.choice(["skip", "word"]), alphabet=generator.choice(["ACGT", "TGCA", "AC"]),
    )


@pytest.mark.parametrize("seed", range(int(os.environ.get("SOMAFEED_RANDOM_SEQUENCES", "12"))))
def test_batches_are_those_of_plain_python(tmp_path, seed):
    generator = random.Random(seed)
    texts = drawn(seed, letters="ACGTN", longest=generator.choice([6, 40]))
    store, kmers = written(tmp_path / "store", texts), random_kmers(generator)
    naive = NaiveVocabulary(
        texts, kmers.k, kmers.stride, kmers.frames, kmers.padding, kmers.unknown, kmers.alphabet
    )
    encoded = [naive.encode(text) for text in texts]
    options = {"names": True, "integers": "int64"}
    ragged = sequences(store, kmers, **options)
    assert ragged.vocabulary.words == naive.words
    assert ragged.vocabulary.counts.tolist() == naive.counts
    assert [one.tolist() for one in ragged.vocabulary.encode(texts[0])] == encoded[0]
    seen = []
    for batch in ragged:
        frames = np.split(batch["input_ids"], batch["offsets"][1:-1])
        expected = [frame for row in batch["sample"] for frame in encoded[row]]
        assert [frame.tolist() for frame in frames] == expected
        assert batch["name"] == [f"name-{row}" for row in batch["sample"]]
        seen += batch["sample"].tolist()
    assert sorted(seen) == list(range(len(texts)))
    width = generator.randint(1, 30)
    for layout in ({"layout": "padded", "max_length": width, "pad": 7}, {"layout": "longest"}):
        one_hot = OneHot("GAC")
        for batch in sequences(store, kmers, one_hot=one_hot, letters=True, **layout, **options):
            check_rows(batch, texts, encoded, layout, len(naive.words))


def check_rows(batch, texts, encoded, layout, n_words):
    """Rows of words and of letters, and encoded letters."""
    words = [sum(encoded[row], []) for row in batch["sample"]]
    letters = [texts[row] for row in batch["sample"]]
    for name, sequences, fill in (
        ("input_ids", words, layout.get("pad", n_words)), ("letters", letters, 0)
    ):
        width = layout.get("max_length", max(map(len, sequences)))
        rows = [
            [ord(one) if isinstance(one, str) else one for one in sequence[:width]]
            for sequence in sequences
        ]
        expected = [row + [fill] * (width - len(row)) for row in rows]
        assert batch[name].tolist() == expected
        lengths = batch["length" if name == "input_ids" else "letter_length"]
        assert lengths.tolist() == list(map(len, rows))
    mask = batch["attention_mask"]
    assert mask.dtype == np.bool_ and mask.sum(axis=1).tolist() == batch["length"].tolist()
    assert np.array_equal(mask, np.sort(mask, axis=1)[:, ::-1])
    assert batch["one_hot"].dtype == np.float32
    alphabet = np.frombuffer(b"GAC", np.uint8)
    assert np.array_equal(batch["one_hot"], batch["letters"][..., None] == alphabet)


@pytest.mark.parametrize("seed", range(4))
def test_windows_are_those_of_plain_python(tmp_path, seed):
    generator = random.Random(seed)
    texts = drawn(seed)
    store, context = written(tmp_path / "store", texts), generator.randint(1, 3)
    kmers = Kmers(3, padding=generator.randint(0, 3))
    naive = NaiveVocabulary(texts, 3, 3, 3, kmers.padding, "fail", "ACGT")
    windows = Windows(context, n_noise=4)
    noise, of_sequence = [], {}
    for batch in sequences(store, kmers, windows=windows):
        expected = [
            (row, *window)
            for row in batch["sample"].tolist()
            for window in windows_of(naive.encode(texts[row]), context)
        ]
        found = zip(batch["sequences"].tolist(), batch["targets"].tolist(),
                    batch["contexts"].tolist())
        assert list(found) == expected and "input_ids" not in batch
        assert np.array_equal(batch["targets_and_noise"][:, 0], batch["targets"])
        for row in batch["sample"].tolist():
            of_sequence[row] = batch["targets_and_noise"][batch["sequences"] == row, 1:].tolist()
        noise += batch["targets_and_noise"][:, 1:].ravel().tolist()
    # Drawn in proportion to the counts to the power of 0.75.
    weights = np.array(naive.counts) ** 0.75
    expected = len(noise) * weights / weights.sum()
    found = np.bincount(noise, minlength=len(weights))
    assert (found[expected == 0] == 0).all()
    is_drawn = expected > 0
    chi_square = ((found - expected) ** 2)[is_drawn] / expected[is_drawn]
    n = is_drawn.sum() - 1
    assert abs(chi_square.sum() - n) < 6 * np.sqrt(2 * n)
    # By the seed, the epoch and the sequence: not by batches, ranks or workers.
    other = sequences(store, kmers, windows=windows, batch_size=7, world=(1, 2))
    first, second = (
        [
            batch["targets_and_noise"][batch["sequences"] == row, 1:].tolist() == of_sequence[row]
            for batch in other
            for row in batch["sample"].tolist()
            if len(of_sequence[row]) > 1
        ]
        for _ in range(2)
    )
    assert first and all(first) and second and not any(second)


def test_files_of_all_kinds_give_one_store(tmp_path):
    records = [("ACGT", "a"), ("GGN", "b")]
    texts = {
        "a.fasta": "".join(f">{name} more\n{letters}\n" for letters, name in records),
        "a.fastq": "".join(f"@{name}\n{one}\n+\n{'I' * len(one)}\n" for one, name in records),
        "a.txt": "".join(f"{letters},{name}\n" for letters, name in records),
    }
    found = []
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        with gzip.open(tmp_path / f"{name}.gz", "wt") as file:
            file.write(text)
        for file in (name, f"{name}.gz"):
            report = import_sequences(tmp_path / file, tmp_path / f"{file}.store")
            assert (report["n_sequences"], report["n_letters"]) == (2, 7)
            ds = SequenceDataset(tmp_path / f"{file}.store", shuffle=False, names=True)
            [batch] = ds
            found.append((bytes(batch["letters"]), batch["name"], ds.summary["fingerprint"]))
    assert set(map(str, found)) == {str((b"ACGTGGN", ["a", "b"], ds.summary["fingerprint"]))}
    with pytest.raises(FileExistsError):
        import_sequences(tmp_path / "a.txt", tmp_path / "a.txt.store")
    (tmp_path / "bad.fasta").write_text(">a\n\n>a\nAC\n>a\nGG\n")
    with pytest.raises(ValueError, match="record 1.*skip_empty=True"):
        import_sequences(tmp_path / "bad.fasta", tmp_path / "bad")
    with pytest.raises(ValueError, match="skip_doubled=True"):
        import_sequences(tmp_path / "bad.fasta", tmp_path / "bad", skip_empty=True)
    assert not (tmp_path / "bad").exists()
    both = [tmp_path / "a.fasta", tmp_path / "bad.fasta"]
    report = import_sequences(both, tmp_path / "both", skip_empty=True, skip_doubled=True)
    assert (report["n_sequences"], report["n_empty"], report["n_doubled"]) == (2, 1, 2)


def test_each_sequence_comes_once_an_epoch_in_another_order(store):
    ds = sequences(store)
    assert (len(ds), ds.n_samples) == (15, 60)
    first, second = samples_of(ds), samples_of(ds)
    assert sorted(first) == sorted(second) == list(range(60)) and first != second
    assert samples_of(sequences(store)) == first
    assert samples_of(sequences(store, shuffle=False)) == sorted(first)
    assert repr(ds) == "SequenceDataset(60 sequences in batches of 4)"
    assert ds.names == [f"name-{at}" for at in range(60)]


def test_the_progress_of_an_import_is_logged(tmp_path, caplog, capfd):
    lines = tmp_path / "lines.txt"
    n = 300_000
    lines.write_text("".join(f"ACGTACGTACGTACGTACGTACGTACGTACGT,name-{at}\n" for at in range(n)))
    with caplog.at_level("INFO", "somafeed"):
        import_sequences(lines, tmp_path / "store")
    found = [one.getMessage() for one in caplog.records if one.name == "somafeed.sequences"]
    *progress, last = found
    assert last == f"imported {n} sequences of {32 * n} letters"
    counts = [int(re.fullmatch(r"import: (\d+) sequences so far", one)[1]) for one in progress]
    # After 50, 100, 200 milliseconds and so on.
    assert counts == sorted(counts) and 0 < len(counts) < 20 and counts[-1] <= n
    assert capfd.readouterr() == ("", "")
    # What a handler raises ends the import.
    caplog.clear()

    class Refusing(logging.Handler):
        def emit(self, record):
            raise KeyboardInterrupt

    logger, handler = logging.getLogger("somafeed.sequences"), Refusing()
    logger.addHandler(handler)
    logger.setLevel("INFO")
    try:
        with pytest.raises(KeyboardInterrupt):
            import_sequences(lines, tmp_path / "other")
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
    assert not (tmp_path / "other").exists()


def test_a_vocabulary_is_saved_with_a_model(store):
    ds = sequences(store, Kmers(3, unknown="word"))
    read = Vocabulary.from_json(ds.vocabulary.to_json())
    assert read.words == ds.vocabulary.words and len(read) == len(read.words)
    assert np.array_equal(read.counts, ds.vocabulary.counts)
    assert pickle.loads(pickle.dumps(read)).words == read.words
    for one, other in zip(ds, sequences(store, read)):
        assert np.array_equal(one["input_ids"], other["input_ids"])
    counted = Vocabulary.count(store, Kmers(3, unknown="word"), threads=3)
    assert counted.words == read.words
    with pytest.raises(ValueError, match="not a saved vocabulary"):
        Vocabulary.from_json("{}")


def test_batches_belong_to_the_user(store):
    kept = []
    for batch in sequences(store):
        samples_of([batch])
        batch["letters"] += 1
        kept.append(batch["letters"])
    codes = np.frombuffer(b"BDHU", np.uint8)
    assert all(np.isin(one, codes).all() for one in kept)


def test_arrays_share_the_memory_of_batches(store):
    [native_batch] = sequences(store, Kmers(3), batch_size=60, io_batch_size=60)._loaders.of(
        ds := sequences(store, Kmers(3), batch_size=60, io_batch_size=60), ds._epochs,
        ds._epochs.upcoming(),
    )[0].epoch(0)
    one, other = native_batch.arrays(), native_batch.arrays()
    assert one["input_ids"].dtype == np.int32
    for name in one:
        assert np.shares_memory(one[name], other[name]), name
    batch = next(iter(sequences(store, form="torch")))
    assert isinstance(batch["letters"], torch.Tensor) and batch["sample"].dtype == torch.int64
    samples_of([batch])


def test_parts(store):
    ds = sequences(store)
    train, test = ds.random_split(0.75, 0.25, seed=1)
    assert sorted(samples_of(train) + samples_of(test)) == list(range(60))
    early = ds.isel(slice(0, -10))
    assert sorted(samples_of(early)) == list(range(50))
    assert early.names == [f"name-{at}" for at in range(50)]
    copied = pickle.loads(pickle.dumps(early.random_split(0.5, 0.5, seed=4)[1]))
    assert samples_of(copied) == samples_of(early.random_split(0.5, 0.5, seed=4)[1])
    shares = [ds.in_order(world=(rank, 3)) for rank in range(3)]
    assert samples_of(batch for share in shares for batch in share) == list(range(60))
    assert len(samples_of(ds.with_sampling(WithReplacement(100)))) == 100


@pytest.mark.parametrize("size", [1, 2, 3])
def test_ranks_and_states(store, size):
    whole = samples_of(sequences(store, batch_size=12, io_batch_size=24))
    found, state, options = [], None, {"io_batch_size": 24, "remainder": "pad"}
    for rank in range(size):
        ds = sequences(store, batch_size=12 // size, world=(rank, size), **options)
        iterator = iter(ds)
        found += samples_of([next(iterator)])
        state = iterator.state_dict()
    for rank in range(2):
        ds = sequences(store, batch_size=6, world=(rank, 2), **options)
        ds.load_state_dict(state)
        found += samples_of(ds)
    assert sorted(found) == sorted(whole) == list(range(60))


@pytest.mark.parametrize("start", ["fork", "spawn"])
@pytest.mark.parametrize("form", ["numpy", "torch"])
def test_workers_deliver_what_one_process_does(store, start, form):
    def batches(n_workers, **options):
        ds = sequences(store, Kmers(3), windows=Windows(1, 2), letters=True, form=form)
        return list(experiment_dataloader(ds, num_workers=n_workers, **options))

    alone, shared = batches(0), batches(2, multiprocessing_context=start)
    assert len(alone) == len(shared)
    for one, other in zip(alone, shared):
        assert one.keys() == other.keys()
        assert all(np.array_equal(one[name], other[name]) for name in one)


def test_a_stateful_dataloader_goes_on(store):
    stateful = StatefulDataLoader(sequences(store), batch_size=None, num_workers=2)
    found = []
    for at, batch in enumerate(stateful):
        found += samples_of([batch])
        if at == 2:
            state = stateful.state_dict()
            break
    again = StatefulDataLoader(sequences(store), batch_size=None, num_workers=2)
    again.load_state_dict(state)
    assert sorted(found + samples_of(again)) == list(range(60))


def test_threads_share_an_iterator(store):
    iterator, found = iter(sequences(store, batch_size=1)), []

    def take():
        for batch in iterator:
            found.append(batch)

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(samples_of(found)) == list(range(60))


def test_a_forked_process_goes_on(store):
    ds = sequences(store, Kmers(3), letters=True)
    next(iter(ds))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = int(sorted(samples_of(ds)) != list(range(60)))
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_stats_and_memory(store):
    iterator = iter(sequences(store, memory="128MiB"))
    next(iterator)
    stats = iterator.stats()
    assert stats["n_batches"] == 1 and stats["bytes_read"] > 0 and "nnz" not in stats
    assert "waiting" in iterator.waited_for() or "first batch" in iterator.waited_for()
    with pytest.raises(MemoryError, match="memory"):
        next(iter(sequences(store, memory="1KiB")))


BAD = {
    "a path that is not there": (FileNotFoundError, {"store": "no-store"}),
    "no store": (ValueError, {"store": {}}),
    "a number as store": (TypeError, {"store": 5}),
    "an unknown form": (ValueError, {"form": "jax"}),
    "an unknown layout": (ValueError, {"layout": "square"}),
    "unknown integers": (ValueError, {"integers": "int8"}),
    "rows without a length": (ValueError, {"layout": "padded"}),
    "a length without rows": (ValueError, {"max_length": 3}),
    "a pad without words": (ValueError, {"pad": 3, "layout": "longest"}),
    "windows without words": (ValueError, {"windows": Windows()}),
    "no context": (ValueError, {"windows": lambda: Windows(0)}),
    "a number as words": (TypeError, {"kmers": 4}),
    "a text as letters": (TypeError, {"one_hot": "ACGT"}),
    "too many frames": (ValueError, {"kmers": Kmers(3, frames=4)}),
    "words that are too long": (ValueError, {"kmers": Kmers(13)}),
    "an unknown rule": (ValueError, {"kmers": Kmers(unknown="ignore")}),
    "a letter of no alphabet": (ValueError, {"kmers": Kmers(alphabet="ACG")}),
    "a letter twice": (ValueError, {"one_hot": OneHot("ACGA")}),
    "no chunks": (ValueError, {"io_batch_size": 5, "shuffle_chunk_size": 2}),
    "a label": (ValueError, {"sampling": ClassBalanced("x")}),
}


@pytest.mark.parametrize("name", BAD)
def test_errors(store, name):
    kind, options = BAD[name]
    with pytest.raises(kind) as raised:
        options = {one: value() if callable(value) else value for one, value in options.items()}
        len(SequenceDataset(**{"store": store, **options}))
    assert str(raised.value)


def test_damaged_stores(store, tmp_path):
    for name in ["letters", "letter-ends", "names", "sequences.json"]:
        damaged = tmp_path / name
        shutil.copytree(store, damaged)
        content = (damaged / name).read_bytes()
        (damaged / name).write_bytes(content[:-1])
        with pytest.raises((SomafeedError, FileNotFoundError), match=str(damaged)):
            SequenceDataset(damaged)
        (damaged / name).unlink()
        with pytest.raises(FileNotFoundError, match=name):
            SequenceDataset(damaged)
    cut = tmp_path / "cut"
    shutil.copytree(store, cut)
    ds = SequenceDataset(cut, batch_size=2, io_batch_size=2, shuffle=False)
    os.truncate(cut / "letters", 10)
    with pytest.raises(OSError, match="letters"):
        list(ds)


def test_numpy_is_enough(store):
    program = hidden("torch", "pandas", "scipy", "pyarrow") + (
        f"ds = somafeed.SequenceDataset({store!r}, batch_size=2, shuffle=False)\n"
        "print(bytes(next(iter(ds))['letters']).decode())"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ended.stdout == f"{SEQUENCES[0]}{SEQUENCES[1]}\n"


def test_the_programs_of_the_page(tmp_path):
    page = (Path(__file__).parents[2] / "docs/sequences.md").read_text()
    program = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    command = [sys.executable, "-W", "error::DeprecationWarning", "-c", program]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_bucket_delivers_what_a_folder_does(store):
    with bucket(store) as (uri, config):
        ds = sequences(uri, Kmers(3), names=True, letters=True, config=config)
        for one, other in zip(sequences(store, Kmers(3), names=True, letters=True), ds, strict=True):
            assert one["name"] == other["name"]
            assert np.array_equal(one["input_ids"], other["input_ids"])
        assert sorted(samples_of(pickle.loads(pickle.dumps(ds)))) == list(range(60))
        with pytest.raises(FileNotFoundError, match="absent"):
            SequenceDataset("s3://link/absent", config=config)


# Servers


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture
def server(tmp_path):
    """A server of its own, which ends with the test: its process and its address."""
    program = shutil.which("redis-server") or shutil.which("valkey-server")
    assert program, "install Redis 7 or Valkey, so that redis-server or valkey-server is on the PATH"
    port = free_port()
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir",
               str(tmp_path), "--maxmemory-policy", "noeviction", "--requirepass", "s3cret"]
    with started(command, stdout=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.02)
        yield process, f"redis://:s3cret@127.0.0.1:{port}"


def test_servers_deliver_what_files_do(store, server):
    _, address = server
    servers = SequenceServers([address], "some", retry_for=2)
    assert "s3cret" not in repr(servers)
    with pytest.raises(FileNotFoundError, match="fill it first"):
        SequenceDataset(servers)
    assert servers.fill(store, sequences_per_key=4) == servers.fill(store, sequences_per_key=4) == 60
    arguments = {"kmers": Kmers(3), "names": True, "letters": True}
    ds = sequences(servers, **arguments)
    assert ds.names == [f"name-{at}" for at in range(60)]
    for one, other in zip(sequences(store, **arguments), ds, strict=True):
        assert one["name"] == other["name"]
        assert np.array_equal(one["input_ids"], other["input_ids"])
    copied = pickle.loads(pickle.dumps(ds))
    loader = experiment_dataloader(copied, num_workers=2, multiprocessing_context="spawn")
    assert sorted(samples_of(loader)) == list(range(60))
    plain = SequenceServers([address])
    plain.fill(store)
    assert samples_of(sequences(address)) == samples_of(sequences(store))


def test_a_server_that_dies_is_an_error(store, server):
    process, address = server
    servers = SequenceServers([address], retry_for=0.5)
    servers.fill(store)
    ds = sequences(servers, batch_size=1, io_batch_size=2, use_eager_fetch=False)
    iterator = iter(ds)
    samples_of([next(iterator)])
    process.kill()
    process.wait()
    with pytest.raises(ConnectionError, match="127.0.0.1") as raised:
        list(iterator)
    assert "s3cret" not in str(raised.value)


def test_a_server_that_is_not_there_is_an_error():
    address = f"redis://ada:s3cret@127.0.0.1:{free_port()}"
    for store in (address, SequenceServers([address], retry_for=0.1)):
        with pytest.raises(ConnectionError, match="cannot connect") as raised:
            SequenceDataset(store)
        assert "s3cret" not in str(raised.value)
    for bad in ("redis://ada:s3/cret@host", ["http://ada:s3cret@host"], []):
        with pytest.raises(ValueError, match="address") as raised:
            SequenceDataset(SequenceServers(bad))
        assert "cret" not in str(raised.value)


WAITING = """
import socket, sys, threading, time
import somafeed
silent = socket.create_server(("127.0.0.1", 0))
address = f"redis://127.0.0.1:{silent.getsockname()[1]}"
ticks = 0

def tick():
    global ticks
    while True:
        time.sleep(0.01)
        ticks += 1
        if ticks == 20:
            print("ticking", flush=True)

threading.Thread(target=tick, daemon=True).start()
try:
    somafeed.SequenceDataset(address)
except KeyboardInterrupt:
    print("interrupted")
"""


def ends_by_ctrl_c(program, first_line):
    """Interrupts a program after its first line; what it wrote after that, within a second or two."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with started([sys.executable, "-c", program], **options) as process:
        assert process.stdout.readline() == first_line
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert time.monotonic() - begun < 3, "it took long to end"
    return out, err


def test_other_threads_run_while_a_server_is_waited_for_and_ctrl_c_ends_it():
    assert ends_by_ctrl_c(WAITING, "ticking\n") == ("interrupted\n", "")


def test_naive_words_are_those_of_the_definition():
    assert frames_of("ACGTA", 2, 2, 2, 1) == [["XX", "AC", "GT", "AY"], ["XA", "CG", "TA", "YY"]]
    assert windows_of([[1, 2, 3, 4]], 1) == [(2, [1, 3]), (3, [2, 4])]
