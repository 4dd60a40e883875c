"""Checks that batches on a device are right: `python3 checks.py KIND DEVICE`, in a folder for data.

Each function is about one kind of samples. What a data set of the Python package delivers on the
device must equal, value by value, what it delivers in the processor's memory.
"""

import json
import shutil
import sys
from functools import partial
from pathlib import Path

from comparing import assert_all_equal, busy_on, compare


def cells(device: str) -> None:
    """Cells in every form, with codes; rows; transformed; as tokens."""
    import numpy as np
    import pyarrow
    import somafeed
    from somafeed import BinTokens, ExperimentDataset, RankTokens

    uri = "checked-cells"
    n_cells, n_genes = (700, 300) if device == "cpu" else (4_000, 8_000)
    somafeed.generate_example(uri, n_cells=n_cells, n_genes=n_genes)
    settings = {
        "uri": uri, "obs_column_names": ["soma_joinid", "cell_type"], "obs_form": "codes",
        "batch_size": 64, "io_batch_size": 256, "shuffle_chunk_size": 16, "seed": 5,
    }
    names = pyarrow.table(somafeed.Experiment(uri).var("RNA"))["feature_id"].to_pylist()
    vocabulary = {"<pad>": 0, "<cls>": 1} | {name: 2 + idx for idx, name in enumerate(names)}
    ranks = RankTokens(vocabulary, dict.fromkeys(names, 1.5), max_length=64, cls="<cls>")
    works = {
        "dense": {"form": "torch"},
        "f16": {"form": "torch_f16"},
        "CSR": {"form": "torch_csr"},
        "COO": {"form": "torch_coo"},
        "dense, transformed": {"form": "torch", "target_sum": 1e4, "log1p": True},
        "one cell": {"form": "torch", "batch_size": 1, "obs_joinids": np.arange(20)},
        "rank tokens": {"form": "torch", "tokens": ranks},
        "bin tokens": {"form": "torch", "tokens": BinTokens(vocabulary, 64, "feature_id")},
    }
    for name, options in works.items():
        compare(name, partial(ExperimentDataset, **{**settings, **options}), device)


def cells_beside(device: str) -> None:
    """A layer, an array of obsm and a modality that some cells lack, beside X in each form."""
    import numpy as np
    import scipy.sparse
    from plain_zarr import write_anndata
    from somafeed import ExperimentDataset, Modality

    drawn = np.random.default_rng(3)

    def counts(n_cells: int, n_genes: int):
        return scipy.sparse.csr_matrix(drawn.poisson(0.2, (n_cells, n_genes)).astype(np.float32))

    n_cells, n_genes = (500, 60) if device == "cpu" else (4_000, 2_000)
    x, kinds = counts(n_cells, n_genes), np.arange(n_cells) % 7
    places = drawn.normal(size=(n_cells, 5)).astype(np.float32)
    write_anndata(
        "checked-rna.zarr", x, layers={"doubled": 2 * x}, obsm={"X_pca": places}, kind=kinds
    )
    # Its cells have the names of the first ones.
    write_anndata("checked-protein.zarr", counts(n_cells // 2, 30))
    settings = {
        "uri": "checked-rna.zarr", "obs_column_names": ["soma_joinid", "kind"], "seed": 5,
        "obs_form": "codes", "batch_size": 64, "io_batch_size": 256, "shuffle_chunk_size": 16,
        "layers": ["doubled"], "obsm": ["X_pca"],
    }
    for form, of_modality in (
        ("torch", "torch"), ("torch", "torch_csr"), ("torch", "torch_coo"),
        ("torch_f16", "torch_f16"), ("torch_csr", "torch"), ("torch_coo", "torch_coo"),
    ):
        protein = Modality(uri="checked-protein.zarr", form=of_modality)
        options = {**settings, "form": form, "modalities": {"protein": protein}}
        name = f"{form}, a modality as {of_modality}"
        compare(name, partial(ExperimentDataset, **options), device)


def fields(device: str) -> None:
    """Fields of `checked-fields`, with steps and normalised; what came before a damaged chunk."""
    from somafeed import FieldDataset, SomafeedError, Variable

    settings = {"form": "torch", "seed": 5, "batch_size": 4, "number_samples": True}
    works = {
        "whole arrays": {"x": "inputs", "y": "targets"},
        "steps": {"x": Variable("inputs", steps=[-1, 0]), "y": Variable("targets", steps=1)},
        "normalised": {"x": Variable("inputs", normalize=(1.0, 2.0))},
    }
    for name, variables in works.items():
        make = partial(FieldDataset, "checked-fields", variables, **settings)
        compare(name, make, device)
    compare("several steps read together", partial(make, io_batch_size=16), device)

    shutil.copytree("checked-fields", "damaged-fields")
    # Chunks are of one sample.
    [damaged] = [file for file in Path("damaged-fields/inputs/c/20").rglob("*") if file.is_file()]
    damaged.write_bytes(damaged.read_bytes()[:40])

    def before_failure(**options) -> list:
        variables, found = works["whole arrays"], []
        in_order = {**settings, "shuffle": False, **options}
        try:
            for batch in FieldDataset("damaged-fields", variables, **in_order):
                busy_on(device).compute()
                found.append(batch)
        except (OSError, ValueError, SomafeedError) as error:
            print(f"failed as it should after {len(found)} batches: {error}")
            return found
        raise AssertionError("a damaged chunk was read")

    found, wanted = before_failure(device=device), before_failure()
    assert_all_equal("before a damaged chunk", found, wanted, device)


def cubes(device: str) -> None:
    """Cubes and masks of `checked-cubes` in two stored forms; augmented by the loader's threads,
    and to the same values on the device."""
    from somafeed import Augmentation, ImageDataset

    augmentation = Augmentation(seed=3, valid_pixels="valid_pixels")
    settings = {"form": "torch", "seed": 5, "batch_size": 4, "number_samples": True}
    for stored in ["raw32", "raw16"]:
        make = partial(ImageDataset, "checked-cubes", stored=stored, **settings)
        compare(stored, make, device)
        augmented = partial(make, augment=augmentation)
        compare(f"{stored}, augmented", augmented, device)
        sent, found = make(device=device), []
        for batch in sent:
            busy_on(device).compute()
            found.append(augmentation.on_batch(batch, epoch=0, keys=sent.keys))
        situation = f"{stored}, augmented on the device"
        # Like Kornia's, computed in another order than by the loader's threads.
        tolerance = 1e-5 if stored == "raw32" else 1e-3
        n_batches = assert_all_equal(situation, found, list(augmented()), device, tolerance)
        print(json.dumps({"compared": situation, "batches": n_batches}), flush=True)


def sequences(device: str) -> None:
    """Words, one-hot letters and windows, in rows and ragged; two stores by their weights."""
    import random

    from somafeed import Kmers, Mixture, OneHot, SequenceDataset, Windows, import_sequences

    drawn = random.Random(0)
    for name in ["first", "second"]:
        letters = ("".join(drawn.choices("ACGT", k=drawn.randint(20, 200))) for _ in range(300))
        lines = "".join(f">{name}{idx}\n{one}\n" for idx, one in enumerate(letters))
        Path(f"{name}.fasta").write_text(lines)
        import_sequences(f"{name}.fasta", f"checked-{name}")
    settings = {"form": "torch", "seed": 5, "batch_size": 32, "io_batch_size": 128}
    both = {"a": "checked-first", "b": "checked-second"}
    one_hot, mixture = OneHot("ACGT"), Mixture("store", {"a": 0.8, "b": 0.2})
    works = {
        "padded words": {"kmers": Kmers(3), "layout": "padded", "max_length": 64},
        "longest, int64": {"kmers": Kmers(3, 1), "layout": "longest", "integers": "int64"},
        "padded one-hot": {"one_hot": one_hot, "layout": "padded", "max_length": 128},
        "ragged": {"kmers": Kmers(3), "one_hot": one_hot, "letters": True, "names": True},
        "windows": {"kmers": Kmers(3), "windows": Windows(2, 3), "number_samples": True},
        "a mixture": {"store": both, "kmers": Kmers(3), "sampling": mixture},
    }
    for name, options in works.items():
        make = partial(SequenceDataset, **{"store": "checked-first", **settings, **options})
        compare(name, make, device)


def own_samples(device: str) -> None:
    """Samples that Python code reads."""
    import numpy as np
    from somafeed import SourceDataset

    class Numbers:
        n_rows = 500

        def read(self, rows):
            return {"x": rows.astype(np.float32)[:, None] * np.arange(1_000), "row": rows}

    compare("own samples", partial(
        SourceDataset, Numbers(), form="torch", seed=5, batch_size=32, io_batch_size=128,
        shuffle_chunk_size=4,
    ), device)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
