"""Top-1 accuracy of a classifier on labelled arrays."""
import numpy as np

import feeds
import run


def accuracy(path, npz, labels, options):
    """The fraction of samples whose largest score is at the label.

    npz holds arrays named after the model's inputs (or one array, for a model of one input), samples along the first
    axis, and the class numbers under labels. Scores are the output named by options["Output"], else the first.
    """
    s = run.session(path, options)
    inputs = s.get_inputs()
    with np.load(npz) as arrays:
        want = np.asarray(arrays[labels]).ravel()
        samples = {i.name: _samples(arrays, i, inputs, labels) for i in inputs}
    output = options.get("Output") or s.get_outputs()[0].name
    step = _step(inputs[0], len(want), options)
    right = sum(_right(s, output, samples, want, slice(at, at + step)) for at in range(0, len(want), step))
    return right / len(want)


def _samples(arrays, node, inputs, labels):
    names = [n for n in arrays.files if n != labels]
    name = node.name if node.name in names else names[0] if len(names) == len(inputs) == 1 else None
    if name is None:
        raise KeyError(f"no array for input {node.name!r} among {names}")
    array = arrays[name].astype(feeds.ELEMENTS[node.type.removeprefix("tensor(").removesuffix(")")])
    declared = node.shape[1:]
    return array.reshape(-1, *declared) if all(isinstance(d, int) for d in declared) else array


def _step(node, samples, options):
    """Samples a run: what the model declares, else what options say, else 64."""
    declared = node.shape[0] if node.shape else None
    if not isinstance(declared, int):
        return options.get("Batch") or 64
    if samples == 0 or samples % declared:
        raise ValueError(f"{samples} samples do not fill batches of {declared}")
    return declared


def _right(s, output, samples, want, rows):
    scores = s.run([output], {name: array[rows] for name, array in samples.items()})[0]
    return int((scores.reshape(len(want[rows]), -1).argmax(axis=1) == want[rows]).sum())
