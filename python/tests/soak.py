"""A soak: one process that loads cells for as long as is asked, in random ways.

Epochs are left early and resumed by other numbers of ranks; the workers of a DataLoader are killed,
and its state resumed; forked processes load beside this one, and are killed. Each cell must come
once with its values, and memory, threads and descriptors must not grow. Prints a line each minute,
and ends with 1 if a promise is broken.

    python soak.py MINUTES SEED ADDRESS...
"""

import multiprocessing
import os
import random
import signal
import sys
import time
import warnings
from pathlib import Path
from statistics import median

import board
import numpy as np
from somafeed import ExperimentDataset, experiment_dataloader
from torch.utils.data import _utils
from torchdata.stateful_dataloader import StatefulDataLoader
from torchdata.stateful_dataloader.stateful_dataloader import _StatefulMultiProcessingDataLoaderIter

GLOBAL_BATCH = 12
N_CELLS, N_GENES = 100, 6
LONG_SECS = 600.0


def settings(rng):
    """Settings of a data set that stay the same in all pieces of an epoch."""
    chunk = rng.choice([1, 2, 5])
    return {
        "seed": rng.randrange(1 << 32), "shuffle": rng.random() < 0.8, "shuffle_chunk_size": chunk,
        "io_batch_size": chunk * rng.choice([2, 7, 16]), "use_eager_fetch": rng.random() < 0.7,
        "return_sparse_X": rng.random() < 0.3,
    }


def checked(batch):
    """The cells of a batch, whose values are right."""
    x, obs = batch
    cells = obs["soma_joinid"].to_numpy()
    x = x.toarray() if hasattr(x, "toarray") else np.atleast_2d(x)
    assert np.array_equal(x, board.values(cells, N_GENES)), f"wrong values in cells {cells}"
    return cells.tolist()


def check_once(cells):
    missing = sorted(set(range(N_CELLS)) - set(cells))
    assert sorted(cells) == list(range(N_CELLS)), f"{len(cells)} cells came, {missing} did not"


def pieces(rng, uri):
    """An epoch in pieces, each by another number of ranks."""
    options = settings(rng)
    epoch, state, found, n_done = rng.randrange(100), None, [], 0
    n_batches = -(-N_CELLS // GLOBAL_BATCH)
    while n_done < n_batches:
        size, n = rng.choice([1, 2, 3, 4]), rng.randint(1, n_batches - n_done)
        for rank in range(size):
            ds = ExperimentDataset(
                uri=uri, batch_size=GLOBAL_BATCH // size, world=(rank, size), remainder="pad", **options
            )
            ds.set_epoch(epoch)
            if state is not None:
                ds.load_state_dict(state)
            iterator = iter(ds)
            for _ in range(n):
                found += checked(next(iterator))
            after = iterator.state_dict()
        state, n_done = after, n_done + n
    # The padding repeats cells.
    assert len(found) == n_batches * GLOBAL_BATCH
    check_once(sorted(set(found)))


def killed_workers(rng, uri):
    """An epoch by workers of a DataLoader that are killed, resumed from the last state."""
    options, n_workers = settings(rng), rng.choice([1, 2, 3])
    n_kills = rng.choice([0, 1, 1, 2])
    found, state = [], None

    def go_on():
        """Whether the epoch came to its end; a worker is killed on the way while kills are left."""
        nonlocal found, state, n_kills
        ds = ExperimentDataset(uri=uri, batch_size=5, **options)
        loader = StatefulDataLoader(ds, batch_size=None, num_workers=n_workers)
        if state is not None:
            loader.load_state_dict(state)
        kill_at = rng.randrange(20) if n_kills > 0 else None
        for at, batch in enumerate(loader):
            found += checked(batch)
            state = loader.state_dict()
            if at == kill_at:
                n_kills -= 1
                os.kill(rng.choice(multiprocessing.active_children()).pid, signal.SIGKILL)
                # What it sent before may still come.
        return True

    while not despite_kills(go_on):
        pass
    check_once(found)


def despite_kills(call):
    """What the call returns; `None` if the death of a worker ended it. No worker is left then."""
    found = None
    try:
        found = call()
    except (ConnectionResetError, EOFError):
        # It died while it passed a tensor.
        pass
    except RuntimeError as error:
        assert "DataLoader worker" in str(error), error
    for left in multiprocessing.active_children():
        left.kill()
        left.join()
    return found


def ask_for_dead_workers():
    """Has torch find dead workers by asking ten times a second. Its handler of their signal raises
    between any two instructions, and what it interrupts stays open, with torch's own data sets,
    too: a socket within 776 rounds of `killed_workers`, two within 1,075."""
    _utils.signal_handling._set_SIGCHLD_handler()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _StatefulMultiProcessingDataLoaderIter._try_get_data.__defaults__ = (0.1,)


def plain_workers(rng, uri):
    """Some batches of a DataLoader with workers, then the whole epoch."""
    ds = ExperimentDataset(uri=uri, batch_size=5, **settings(rng))
    loader = experiment_dataloader(ds, num_workers=rng.choice([0, 1, 2]))
    for at, _ in enumerate(loader):
        if at == rng.randrange(10):
            break
    ds.set_epoch(3)
    check_once([cell for batch in loader for cell in checked(batch)])


def forks(rng, uri):
    """Forked processes that go on with this one's data set; some are killed."""
    ds = ExperimentDataset(uri=uri, batch_size=5, **settings(rng))
    iterator = iter(ds)
    found = checked(next(iterator))
    children = []
    for _ in range(rng.choice([1, 2])):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                check_once([cell for batch in ds for cell in checked(batch)])
                code = 0
            finally:
                os._exit(code)
        children.append((child, rng.random() < 0.3))
    for child, is_killed in children:
        if is_killed:
            time.sleep(rng.random() / 50)
            os.kill(child, signal.SIGKILL)
    found += [cell for batch in iterator for cell in checked(batch)]
    check_once(found)
    for child, is_killed in children:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code == 0 or (is_killed and code == -signal.SIGKILL), f"a forked process: {code}"


def early_drops(rng, uri):
    """Data sets and iterators that are dropped before, during and after their first batches."""
    for _ in range(3):
        ds = ExperimentDataset(uri=uri, batch_size=3, **settings(rng))
        iterator = iter(ds)
        for _ in range(rng.randrange(4)):
            checked(next(iterator))
        if rng.random() < 0.5:
            iterator.close()


ROUNDS = [pieces, killed_workers, plain_workers, forks, early_drops]


def status(entry):
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(entry)).split()[1])


def is_open():
    """Number of threads, and of descriptors."""
    folders = {"threads": "task", "descriptors": "fd"}
    return {name: len(os.listdir(f"/proc/self/{folder}")) for name, folder in folders.items()}


def is_more(before):
    return any(n > before[name] for name, n in is_open().items())


def verdict(memory, before, secs):
    """A line, and whether all promises were kept."""
    until = time.monotonic() + 20
    while is_more(before) and time.monotonic() < until:
        time.sleep(0.05)
    warmed = [kib for at, kib in memory if at >= min(60, secs / 4)]
    quarter = max(len(warmed) // 4, 1)
    early, late = median(warmed[:quarter]), median(warmed[-quarter:])
    most = 1.05 if secs >= LONG_SECS else 1.3
    is_good = not is_more(before) and late <= early * most
    return is_good, (
        f"{'good' if is_good else 'BAD'}: memory {early:.0f} KiB, then {late:.0f} KiB "
        f"({100 * (late / early - 1):+.1f} %, at most {100 * (most - 1):.0f} %; medians of the first and "
        f"last quarter after the first minute); {before}, then {is_open()}"
    )


def main(minutes, seed, uris):
    rng, secs = random.Random(seed), 60 * minutes
    warnings.simplefilter("ignore")
    ask_for_dead_workers()
    # torch starts threads of its own with the first workers, and zarrs with the first array.
    for play in ROUNDS:
        for uri in uris:
            play(rng, uri)
    # Threads that have ended take a moment to go.
    time.sleep(1)
    before, started, n, minute, memory = is_open(), time.monotonic(), {}, 1, []
    print(f"soak of {secs:.0f} s with seed {seed}, {os.cpu_count()} cores: {before}", flush=True)

    def line(start):
        peak, now = status("VmHWM") >> 10, status("VmRSS") >> 10
        print(f"{start}: {sum(n.values())} rounds {n}; {now} MiB, peak {peak} MiB, {is_open()}", flush=True)

    while (at := time.monotonic() - started) < secs:
        play, uri = rng.choice(ROUNDS), rng.choice(uris)
        play(rng, uri)
        n[play.__name__] = n.get(play.__name__, 0) + 1
        assert multiprocessing.active_children() == []
        if not memory or memory[-1][0] + min(1, secs / 40) <= at:
            memory.append((at, status("VmRSS")))
        if at >= 60 * minute:
            line(f"minute {minute}")
            minute += 1
    line("end")
    is_good, text = verdict(memory, before, secs)
    print(text, flush=True)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))
