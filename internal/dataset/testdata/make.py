"""Writes numpy.npz: arrays of shape (4, 3, 2) whose element k is k, in every element
type, byte order and memory order that NumPy saves and the package reads.

    python make.py numpy.npz
"""

import sys

import numpy as np

TYPES = ["b1", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16", "U3", "S3"]


def main(path):
    count = np.arange(24)
    arrays = {}
    for kind in TYPES:
        values = count % 2 if kind == "b1" else count
        if kind[0] in "US":
            values = np.array(["" if k == 0 else str(k) + "é" * (kind[0] == "U") for k in count]).astype("U3")
            values = np.char.encode(values) if kind[0] == "S" else values
        for order in "<>":
            a = values.astype(order + kind).reshape(4, 3, 2)
            arrays[f"{kind}_{'little' if order == '<' else 'big'}_c"] = a
            arrays[f"{kind}_{'little' if order == '<' else 'big'}_fortran"] = np.asfortranarray(a)
    np.savez_compressed(path, **arrays)


main(sys.argv[1])
