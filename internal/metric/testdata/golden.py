"""Writes golden.json: random outputs and labels, and their metrics by scikit-learn, SciPy and pycocotools.

    python -m venv /tmp/golden && /tmp/golden/bin/pip install scikit-learn==1.9.1 pycocotools==2.0.11
    /tmp/golden/bin/python internal/metric/testdata/golden.py
"""
import contextlib
import io
import json
import os

import numpy as np
import scipy.stats
import sklearn.metrics
import sklearn.model_selection
import sklearn.neighbors
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

rng = np.random.default_rng(7)
cases = []


def case(metric, outputs, labels, value):
    cases.append({"metric": metric, "outputs": np.round(outputs, 6).tolist(), "labels": np.asarray(labels).tolist(), "value": float(value)})


def classes(n, ties=False):
    scores = np.round(rng.normal(size=(60, n)), 1 if ties else 6)
    return scores, rng.integers(0, n, 60)


for n in (3, 8):
    scores, labels = classes(n)
    case("top1", scores, labels, sklearn.metrics.accuracy_score(labels, scores.argmax(1)))
    case("top5", scores, labels, sklearn.metrics.top_k_accuracy_score(labels, scores, k=5, labels=range(n)))
    case("f1", scores, labels, sklearn.metrics.f1_score(labels, scores.argmax(1), average="macro"))
    absent = np.minimum(labels, n - 2)  # one class is only predicted
    case("f1", scores, absent, sklearn.metrics.f1_score(absent, scores.argmax(1), average="macro"))

activity, active = np.round(rng.random((60, 1)), 6), rng.integers(0, 2, 60)
case("f1", activity, active, sklearn.metrics.f1_score(active, activity[:, 0] > 0.5))

relevance = rng.integers(0, 4, 60)
ranked = np.round(rng.normal(size=(60, 1)) + relevance[:, None], 1)
case("spearman", ranked, relevance, scipy.stats.spearmanr(ranked[:, 0], relevance).statistic)

vectors, names = np.round(rng.normal(size=(60, 6)), 6), rng.integers(0, 3, 60)
vectors[np.arange(60), names] += 1.5
unit = np.round(vectors, 6) / np.linalg.norm(np.round(vectors, 6), axis=1, keepdims=True)
one_out = sklearn.model_selection.cross_val_score(sklearn.neighbors.NearestCentroid(), unit, names, cv=sklearn.model_selection.LeaveOneOut())
case("nearest-centroid", vectors, names, one_out.mean())


def boxes(images, most, near):
    """Labels, and detections near them, some of a wrong class, some alone; lists are filled up."""
    labels, found = np.full((images, most, 5), -1.0), np.zeros((images, 2 * most, 6))
    for i in range(images):
        for k in range(rng.integers(0, most + 1)):
            x, y = rng.random(2) * 80
            labels[i, k] = [x, y, x + 5 + rng.random() * 40, y + 5 + rng.random() * 40, rng.integers(0, 3)]
        for k in range(2 * most):
            at = labels[i, rng.integers(0, most)]
            box = at[:4] + rng.normal(size=4) * near if at[4] >= 0 else np.array([1, 1, 20, 20]) + rng.random(4)
            wrong = rng.random() < 0.2
            found[i, k] = [*box, rng.random(), rng.integers(0, 3) if wrong or at[4] < 0 else at[4]]
    return np.round(found, 6), np.round(labels, 6)


def average_precision(found, labels, iou=None):
    def coco_box(b):
        return [b[0], b[1], b[2] - b[0], b[3] - b[1]]

    truth = COCO()
    truth.dataset = {
        "images": [{"id": i + 1} for i in range(len(labels))],
        "categories": [{"id": c + 1} for c in range(3)],
        "annotations": [],
    }
    for i, image in enumerate(labels):
        for b in image[image[:, 4] >= 0]:
            box = coco_box(b)
            truth.dataset["annotations"].append({"id": len(truth.dataset["annotations"]) + 1, "image_id": i + 1, "category_id": int(b[4]) + 1, "bbox": box, "area": box[2] * box[3], "iscrowd": 0})
    with contextlib.redirect_stdout(io.StringIO()):
        truth.createIndex()
        results = truth.loadRes([{"image_id": i + 1, "category_id": int(b[5]) + 1, "bbox": coco_box(b), "score": b[4]} for i, image in enumerate(found) for b in image if b[4] > 0])
        e = COCOeval(truth, results, "bbox")
        if iou:
            e.params.iouThrs = np.array([iou])
        e.evaluate()
        e.accumulate()
    precision = e.eval["precision"][:, :, :, 0, -1]  # all areas, 100 detections
    return precision[precision > -1].mean()


for near in (0.5, 3.0):
    found, labels = boxes(20, 6, near)
    case("map", found, labels, average_precision(found, labels))
    case("map:iou=0.5", found, labels, average_precision(found, labels, 0.5))

with open(os.path.join(os.path.dirname(__file__), "golden.json"), "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")
