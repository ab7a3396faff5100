"""Reference implementations of metrics, by the formulas of scikit-learn, SciPy and pycocotools."""
import itertools

import numpy as np
import scipy.special
import scipy.stats

import feeds
import run
from cache import Cache, identity

scores_of = Cache()  # the first output of models on all samples of files


def metric(name, scores, labels, reference, mask):
    """A metric of an output, its labels, the same output of a reference, and a mask of tokens: lists whose first axis is samples."""
    return str(float(METRICS[name](np.asarray(scores, float), labels, reference, mask)))


def topk(scores, labels, k):
    scores, labels = scores.reshape(-1, scores.shape[-1]), np.ravel(labels)
    best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return np.mean([label in row for label, row in zip(labels, best) if label >= 0])


def f1(scores, labels):
    labels = np.asarray(labels)
    if scores.size == labels.size:
        return _f1(np.ravel(labels) == 1, np.ravel(scores) > 0.5)
    axis = 1 if scores.ndim > 3 else scores.ndim - 1
    classes = np.ravel(scores.argmax(axis=axis))
    labels = np.ravel(labels)
    classes, labels = classes[labels >= 0], labels[labels >= 0]
    return np.mean([_f1(labels == c, classes == c) for c in np.union1d(labels, classes)])


def _f1(want, got):
    both = np.sum(want & got)
    precision, recall = both / max(1, np.sum(got)), both / max(1, np.sum(want))
    return 0 if both == 0 else 2 * precision * recall / (precision + recall)


def pooled(tokens, mask):
    tokens = np.asarray(tokens, float)
    if tokens.ndim == 2:
        return tokens
    weights = np.ones(tokens.shape[:2]) if mask is None else np.asarray(mask, float)
    return (tokens * weights[..., None]).sum(1) / weights.sum(1, keepdims=True)


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def spearman(scores, labels, mask):
    if scores.size == len(labels):
        return scipy.stats.spearmanr(np.ravel(scores), labels).statistic
    v = unit(pooled(scores, mask))
    return scipy.stats.spearmanr((v[0::2] * v[1::2]).sum(1), labels[0::2]).statistic


def nearest_centroid(scores, labels, mask):
    v, labels = unit(pooled(scores, mask)), np.asarray(labels)
    right = 0
    for i in range(len(v)):
        rest = np.arange(len(v)) != i
        classes = np.unique(labels[rest])
        centroids = np.stack([v[rest & (labels == c)].mean(0) for c in classes])
        right += classes[np.linalg.norm(centroids - v[i], axis=1).argmin()] == labels[i]
    return right / len(v)


def edit_distance(a, b):
    table = np.zeros((len(a) + 1, len(b) + 1), int)
    table[:, 0], table[0] = np.arange(len(a) + 1), np.arange(len(b) + 1)
    for i, j in itertools.product(range(len(a)), range(len(b))):
        table[i + 1, j + 1] = min(table[i, j] + (a[i] != b[j]), table[i, j + 1] + 1, table[i + 1, j] + 1)
    return table[-1, -1]


def cer(scores, labels):
    texts = [[c for c, _ in itertools.groupby(steps.argmax(-1)) if c != 0] for steps in scores]
    labels = [[c for c in row if c >= 0] for row in labels]
    return sum(edit_distance(t, want) for t, want in zip(texts, labels)) / sum(map(len, labels))


def perplexity(scores, tokens):
    tokens = np.asarray(tokens)
    logs = scores - scipy.special.logsumexp(scores, axis=-1, keepdims=True)
    taken = np.take_along_axis(logs[:, :-1], tokens[:, 1:, None], -1)
    return np.exp(-taken.mean())


def mean_ap(rows, labels):
    """COCO's AP as pycocotools computes it: boxes of all areas, 100 detections of a class and an image, no crowds."""
    thresholds, recalls = np.linspace(0.5, 0.95, 10), np.linspace(0, 1, 101)
    found = [[r for r in image if r[4] > 0 and r[5] >= 0] for image in rows]
    labels = [[r for r in image if r[4] >= 0] for image in np.asarray(labels)]
    precisions = []
    for c in sorted({int(r[4]) for image in labels for r in image}):
        scores, hits, total = [], [], sum(r[4] == c for image in labels for r in image)
        for image, wanted in zip(found, labels):
            image = sorted((r for r in image if r[5] == c), key=lambda r: -r[4])[:100]
            scores += [r[4] for r in image]
            hits.append(_matches(image, [r for r in wanted if r[4] == c], thresholds))
        order = np.argsort(-np.asarray(scores), kind="mergesort")
        hits = np.concatenate(hits, axis=1)[:, order]
        for row in hits:
            tp = np.cumsum(row)
            precision = np.maximum.accumulate((tp / np.arange(1, len(row) + 1))[::-1])[::-1]
            at = np.searchsorted(tp / total, recalls, side="left")
            precisions.append([precision[i] if i < len(row) else 0 for i in at])
    return np.mean(precisions)


def box_agreement(rows, reference):
    """The F1 score of boxes with those of the reference as labels: each of these takes the free box of its class that overlaps it most, by half or more."""
    values = []
    for image, wanted in zip(rows, reference):
        found, wanted = ([r for r in boxes if r[4] > 0 and r[5] >= 0] for boxes in (image, wanted))
        taken = set()
        for w in wanted:
            free = [(_iou(w, f), -k) for k, f in enumerate(found) if k not in taken and f[5] == w[5] and _iou(w, f) >= 0.5]
            if free:
                taken.add(-max(free)[1])
        values.append(2 * len(taken) / (len(found) + len(wanted)) if len(found) + len(wanted) else 1)
    return np.mean(values)


def _matches(found, wanted, thresholds):
    hits = np.zeros((len(thresholds), len(found)))
    for t, threshold in enumerate(thresholds):
        taken = set()
        for i, f in enumerate(found):
            best = max(((_iou(f, w), k) for k, w in enumerate(wanted) if k not in taken), default=(0, None))
            if best[1] is not None and best[0] >= min(threshold, 1 - 1e-10):
                taken.add(best[1])
                hits[t, i] = 1
    return hits


def _iou(a, b):
    if list(a[:4]) == list(b[:4]):  # also of no area
        return 1
    width = max(0, min(a[2], b[2]) - max(a[0], b[0]))
    height = max(0, min(a[3], b[3]) - max(a[1], b[1]))
    both = width * height
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)


METRICS = {
    "top1": lambda scores, labels, reference, mask: topk(scores, labels, 1),
    "top5": lambda scores, labels, reference, mask: topk(scores, labels, 5),
    "f1": lambda scores, labels, reference, mask: f1(scores, labels),
    "map": lambda scores, labels, reference, mask: mean_ap(scores, labels),
    "box-agreement": lambda scores, labels, reference, mask: box_agreement(scores, reference),
    "cer": lambda scores, labels, reference, mask: cer(scores, labels),
    "spearman": lambda scores, labels, reference, mask: spearman(scores, labels, mask),
    "nearest-centroid": lambda scores, labels, reference, mask: nearest_centroid(scores, labels, mask),
    "embedding-cosine": lambda scores, labels, reference, mask: np.mean((unit(pooled(scores, mask)) * unit(pooled(reference, mask))).sum(1)),
    "perplexity": lambda scores, labels, reference, mask: perplexity(scores, labels),
}


def measured(metric, reference, candidate, npz, options):
    """A metric of two models on labelled arrays: before and after. Inputs that npz lacks are those of samples without padding and past."""
    with np.load(npz) as arrays:
        rows = dict(arrays)
    labels = rows.get("labels", rows.get("label", rows.get("input_ids")))
    outputs = [_scores(path, npz, rows, options) for path in (reference, candidate)]
    mask = rows.get("attention_mask")
    return [str(float(METRICS[metric](scores.astype(float), labels, outputs[0], mask))) for scores in outputs]


def thinned(npz, out, step, names, tokens):
    """Writes arrays with every step-th sample of npz, token ids modulo the number of tokens."""
    with np.load(npz) as arrays:
        rows = {name: arrays[name][::step] for name in names}
    if tokens:
        rows["input_ids"] = rows["input_ids"] % tokens
    np.savez(out, **rows)


def _scores(path, npz, rows, options):
    def compute():
        s = run.session(path, options)
        scores = s.run([s.get_outputs()[0].name], {node.name: _input(node, rows) for node in s.get_inputs()})[0]
        return scores, scores.nbytes
    # one model is measured by several metrics, and is the reference of several others
    return scores_of.get((identity(path), identity(npz), repr(sorted(options.items()))), compute)


def _input(node, rows):
    dtype = feeds.ELEMENTS[node.type.removeprefix("tensor(").removesuffix(")")]
    if node.name in rows:
        return rows[node.name].astype(dtype)
    ids = rows["input_ids"]
    if node.name == "attention_mask":
        return np.ones(ids.shape, dtype)
    if node.name == "position_ids":
        return np.broadcast_to(np.arange(ids.shape[1], dtype=dtype), ids.shape)
    if node.name == "token_type_ids":
        return np.zeros(ids.shape, dtype)
    return np.zeros([d if isinstance(d, int) else len(ids) if d == "batch_size" else 0 for d in node.shape], dtype)  # an empty cache
