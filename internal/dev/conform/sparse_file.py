"""Reading of the sparse matrices that `sparse --export` writes, by the library that they are written for."""
import numpy as np
import scipy.sparse

import run


def sparse(path):
    """Format, number of stored values, and the dense matrix that the file means."""
    matrix = scipy.sparse.load_npz(path)
    dense = np.asarray(matrix.toarray())
    return {"Format": matrix.format, "Stored": int(matrix.nnz), "Dense": run.encoded("", dense)}
