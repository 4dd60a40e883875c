"""The cells of `write_multimodal.py`: values that say where they are, and which are there.

Needs numpy alone, because tiledbsoma's Python reads this file, too.
"""

import numpy as np

N_CELLS = 60
N_GENES = {"rna": 6, "prot": 4, "atac": 9}
FEATURE_TYPES = {"rna": "Gene Expression", "prot": "Antibody Capture", "atac": "Peaks"}
N_PROT_ROWS = 50
"""Number of rows of `prot` in the SOMA experiment: its later cells are not there."""


def has(modality, cells):
    """Whether each cell is in a modality of the MuData."""
    cells = np.asarray(cells)
    return {"rna": cells % 5 != 2, "prot": cells % 4 != 3, "atac": cells % 3 != 0}[modality]


def values(modality, cells):
    """Counts of these cells: float32, some of them 0."""
    rows, columns = np.meshgrid(np.asarray(cells), np.arange(N_GENES[modality]), indexing="ij")
    counts = {
        "rna": (rows * 7 + columns * 3) % 13,
        "prot": rows * 10 + columns + 1,
        "atac": (rows * 5 + columns) % 3,
    }
    return counts[modality].astype(np.float32)


def masked(modality, cells):
    """The counts, zeros for cells that the MuData's modality lacks."""
    return values(modality, cells) * has(modality, cells)[:, None]


def order(modality):
    """The cells of a modality of the MuData, in its own order."""
    cells = np.flatnonzero(has(modality, np.arange(N_CELLS)))
    if modality == "rna":
        return cells[::-1]
    return np.random.default_rng(1).permutation(cells) if modality == "prot" else cells


def names(modality):
    """The names of a modality's features."""
    return [f"{modality}{column}" for column in range(N_GENES[modality])]
