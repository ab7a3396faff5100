#!/usr/bin/env python3
"""Makes models of small configurations with optimum-onnx: optimum_onnx.py OUT [NAME...].

A model that the exporter cannot make has a line in OUT/failed.txt, with the exporter's error.
"""
import functools, sys, tempfile, warnings
import tiny

warnings.simplefilter("ignore")

# The task of a model; decoders with caches are of text-generation-with-past.
TASKS = {
    "bert": "feature-extraction", "distilbert": "feature-extraction", "roberta": "feature-extraction", "deberta-v2": "feature-extraction", "modernbert": "feature-extraction",
    "t5": "text2text-generation-with-past", "bart": "text2text-generation-with-past", "marian": "text2text-generation-with-past",
    "whisper": "automatic-speech-recognition-with-past", "clip": "zero-shot-image-classification", "siglip": "zero-shot-image-classification", "sam": "feature-extraction",
    "vit": "image-classification", "deit": "image-classification", "dinov2": "feature-extraction", "beit": "image-classification", "swin": "image-classification",
    "swinv2": "image-classification", "convnext": "image-classification", "convnextv2": "image-classification", "resnet": "image-classification",
    "mobilenet-v2": "image-classification", "segformer": "semantic-segmentation", "detr": "object-detection", "yolos": "object-detection",
    "wav2vec2": "automatic-speech-recognition", "hubert": "feature-extraction", "vits": "text-to-audio",
}


def make(name, out):
    from optimum.exporters.onnx import main_export
    from optimum.exporters.onnx.convert import onnx_export_from_model
    task = TASKS.get(name, "text-generation-with-past")
    with tempfile.TemporaryDirectory() as folder:
        tiny.save(name, folder)
        if name in ("whisper", "wav2vec2", "hubert", "sam", "clip", "siglip") or task.startswith(("image", "object", "semantic")):
            onnx_export_from_model(tiny.build(name), out, task=task, do_validation=False, monolith=False)
        else:
            main_export(folder, out, task=task, do_validation=False)


def main(out, *names):
    tiny.export(out, {name: functools.partial(make, name) for name in names or [*tiny.DECODERS, *tiny.OTHERS]})


if __name__ == "__main__":
    main(*sys.argv[1:])
