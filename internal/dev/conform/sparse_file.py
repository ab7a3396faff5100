"""Sparse matrices by SciPy: reading of those that `sparse --export` writes, and writing of those that --data reads."""
import os

import numpy as np
import scipy.sparse

import run


def sparse(path):
    """Format, number of stored values, and the dense matrix that the file means."""
    matrix = scipy.sparse.load_npz(path)
    dense = np.asarray(matrix.toarray())
    return {"Format": matrix.format, "Stored": int(matrix.nnz), "Dense": run.encoded("", dense)}


def sparse_files(folder):
    """Writes matrices in all formats, with duplicates, empty rows, both index types and several types of values. Their names."""
    rng = np.random.default_rng(7)
    matrices = {}
    for kind in ["float32", "float64", "int8", "uint16", "int64", "bool"]:
        dense = (rng.integers(-5, 6, (12, 9)) * (rng.random((12, 9)) < 0.3)).astype(kind)
        dense[4] = 0
        for form in ["csr", "csc", "bsr", "coo", "dia"]:
            matrices[f"{form}-{kind}"] = scipy.sparse.csr_matrix(dense).asformat(form)
    rows, columns = rng.integers(0, 30, 400), rng.integers(0, 20, 400)
    values = rng.standard_normal(400).astype("float32")
    duplicates = scipy.sparse.coo_array((values, (rows, columns)), shape=(30, 20))
    matrices["coo-duplicates"] = duplicates
    at = np.concatenate([[0], np.cumsum(rng.integers(0, 20, 30))])
    column = rng.integers(0, 20, at[-1]).astype("int64")
    matrices["csr-duplicates"] = scipy.sparse.csr_array((np.ones(at[-1], "float32") / 3, column, at.astype("int64")), shape=(30, 20))
    matrices["csc-duplicates"] = scipy.sparse.csc_array((np.ones(at[-1], "float32") / 3, column, at), shape=(20, 30))
    matrices["bsr-blocks"] = scipy.sparse.bsr_array(rng.standard_normal((12, 9)), blocksize=(2, 3))
    matrices["dia-padded"] = scipy.sparse.dia_array((rng.standard_normal((4, 7)), [-15, -2, 0, 5]), shape=(10, 6))
    matrices["dia-wide"] = scipy.sparse.dia_array((rng.standard_normal((3, 20)), [-1, 2, 19]), shape=(5, 20))
    matrices["csr-large"] = scipy.sparse.random(300, 2000, 0.05, format="csr", random_state=3, dtype="float32")
    matrices["csr-empty"] = scipy.sparse.csr_matrix((4, 5), dtype="float32")
    for i, (name, matrix) in enumerate(matrices.items()):
        scipy.sparse.save_npz(os.path.join(folder, name + ".npz"), matrix, compressed=i % 2 == 0)
    return sorted(matrices)
