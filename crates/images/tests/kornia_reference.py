"""Warps images and masks by given parameters with Kornia, for the tests of images::augment.

    python kornia_reference.py CASES.json RESULTS.bin

CASES.json: {"cases": [{"shape": [rows, columns, channels], "affine": null or {"degrees": angle,
"translation": [right, down], "scale": factor}, "horizontal_flip": bool, "vertical_flip": bool}]}.
RESULTS.bin: for each case the image as float32 in the order of its shape, then the mask as uint8,
little endian. Needs torch and kornia; made with torch 2.11.0 and kornia 0.9.0.

The sequence is that of htc's benchmark. Images and masks are made from their indices, as in
tests/images/augment.rs.
"""

import json
import sys

import kornia.augmentation as K
import numpy as np
import torch
from kornia.augmentation.container.params import ParamItem


def scrambled(count):
    return np.arange(count, dtype=np.uint32) * np.uint32(2654435761)


def image(rows, columns, channels):
    values = (scrambled(rows * columns * channels) >> 8).astype(np.float32) / np.float32(1 << 24)
    return torch.from_numpy(values.reshape(1, rows, columns, channels)).permute(0, 3, 1, 2)


def mask(rows, columns):
    labels = (scrambled(rows * columns) >> 28).astype(np.float32)
    return torch.from_numpy(labels.reshape(1, 1, rows, columns))


def sequence():
    return K.AugmentationSequential(
        K.RandomAffine(degrees=45, translate=(0.0625, 0.0625), scale=(0.9, 1.1), padding_mode="reflection", p=0.5),
        K.RandomHorizontalFlip(p=0.5),
        K.RandomVerticalFlip(p=0.5),
    )


def parameters(case):
    """What Kornia draws itself, if it is not given."""
    rows, columns, channels = case["shape"]
    affine = case["affine"] or {"degrees": 0.0, "translation": [0.0, 0.0], "scale": 1.0}
    common = {"forward_input_shape": torch.tensor([1, channels, rows, columns])}
    applied = lambda is_applied: {"batch_prob": torch.tensor([1.0 if is_applied else 0.0]), **common}
    drawn = {
        "angle": torch.tensor([affine["degrees"]]),
        "translations": torch.tensor([affine["translation"]]),
        "scale": torch.tensor([[affine["scale"]] * 2]),
        "center": torch.tensor([[columns / 2 - 0.5, rows / 2 - 0.5]]),
        "shear_x": torch.zeros(1),
        "shear_y": torch.zeros(1),
    }
    return [
        ParamItem("RandomAffine_0", {**drawn, **applied(case["affine"] is not None)}),
        ParamItem("RandomHorizontalFlip_1", applied(case["horizontal_flip"])),
        ParamItem("RandomVerticalFlip_2", applied(case["vertical_flip"])),
    ]


def main(cases, results):
    with open(cases) as file:
        cases = json.load(file)["cases"]
    with open(results, "wb") as file:
        for case in cases:
            rows, columns, _ = case["shape"]
            warped, labels = sequence()(
                image(*case["shape"]), mask(rows, columns), params=parameters(case), data_keys=["input", "mask"]
            )
            file.write(warped.permute(0, 2, 3, 1).contiguous().numpy().astype("<f4").tobytes())
            file.write(labels.numpy().astype(np.uint8).tobytes())


if __name__ == "__main__":
    main(*sys.argv[1:])
