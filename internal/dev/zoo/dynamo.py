#!/usr/bin/env python3
"""Makes models of small configurations with torch.onnx.export(dynamo=True), decoders without caches: dynamo.py OUT [NAME...].

A model that the exporter cannot make has a line in OUT/failed.txt, with the exporter's error.
"""
import functools, os, sys, warnings
import torch
import tiny

warnings.simplefilter("ignore")

TOKENS = torch.arange(4, 20).reshape(2, 8)
IMAGES, SAM_IMAGES, SOUND = torch.randn(2, 3, 32, 32), torch.randn(1, 3, 64, 64), torch.randn(1, 4000)
TEXT = dict(input_ids=TOKENS, attention_mask=torch.ones_like(TOKENS))
SEQ2SEQ = dict(**TEXT, decoder_input_ids=TOKENS)
INPUTS = {
    **{n: TEXT for n in (*tiny.DECODERS, "bert", "distilbert", "roberta", "deberta-v2", "modernbert", "vits")},
    **{n: SEQ2SEQ for n in ("t5", "bart", "marian")},
    "whisper": dict(input_features=torch.randn(1, 80, 3000), decoder_input_ids=TOKENS[:1]),
    "clip": dict(**TEXT, pixel_values=IMAGES), "siglip": dict(**TEXT, pixel_values=IMAGES),
    "sam": dict(pixel_values=SAM_IMAGES, input_points=torch.rand(1, 1, 2, 2) * 64),
    "wav2vec2": dict(input_values=SOUND), "hubert": dict(input_values=SOUND),
    "detr": dict(pixel_values=torch.randn(1, 3, 64, 64), pixel_mask=torch.ones(1, 64, 64, dtype=torch.int64)),
}
# Inputs whose first two axes are open.
OPEN = ("input_ids", "attention_mask", "decoder_input_ids")


class Outputs(torch.nn.Module):
    """A model whose outputs are its tensors, without caches."""

    def __init__(self, model, names):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *inputs):
        more = {} if getattr(self.model.config, "use_cache", None) is None else {"use_cache": False}
        result = self.model(**dict(zip(self.names, inputs)), return_dict=True, **more)
        return tuple(v for v in result.values() if isinstance(v, torch.Tensor))


def make(name, folder):
    model = tiny.build(name)
    if hasattr(model, "set_experts_implementation"):
        model.set_experts_implementation("batched_mm")  # the default loops over experts that were chosen
    inputs = INPUTS.get(name, dict(pixel_values=IMAGES))
    batch, length = torch.export.Dim.DYNAMIC, torch.export.Dim.DYNAMIC
    shapes = tuple({0: batch, 1: length} if n in OPEN else {} for n in inputs)
    wrapped = Outputs(model, list(inputs))
    os.makedirs(folder)
    for dynamic in (shapes, None):  # some models fix sizes of their inputs
        try:
            torch.onnx.export(wrapped, tuple(inputs.values()), os.path.join(folder, "model.onnx"), input_names=list(inputs), dynamic_shapes=dynamic and (dynamic,),
                              dynamo=True, verbose=False, external_data=False)
            return
        except Exception:
            if dynamic is None:
                raise


def main(out, *names):
    tiny.export(out, {name: functools.partial(make, name) for name in names or [*tiny.DECODERS, *tiny.OTHERS]})


if __name__ == "__main__":
    main(*sys.argv[1:])
