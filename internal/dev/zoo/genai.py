#!/usr/bin/env python3
"""Makes language models of small configurations with the builder of onnxruntime-genai: genai.py OUT [NAME...].

A model that the builder cannot make has a line in OUT/failed.txt, with the builder's error.
"""
import contextlib, functools, io, os, runpy, sys, tempfile, warnings
import tiny

warnings.simplefilter("ignore")

# Precision, execution provider, and extra options, by the name of a variant.
VARIANTS = {
    "int4": ("int4", []),
    "int4-tied": ("int4", ["int4_tied_embeddings=true"]),
    "int4-qdq": ("int4", ["use_qdq=true"]),
    "int8": ("int8", []),
    "fp32": ("fp32", []),
}
NAMES = [n for n in tiny.DECODERS if n not in ("gpt2", "opt", "bloom", "falcon", "gpt-neox", "gemma", "llama-tied")] + ["whisper"]


def make(name, variant, out):
    precision, options = VARIANTS[variant]
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "source")
        tiny.save(name, source)
        sys.argv = ["builder", "-i", source, "-o", out, "-p", precision, "-e", "cpu", "-c", folder]
        if options:
            sys.argv += ["--extra_options", *options]
        with contextlib.redirect_stdout(io.StringIO()):
            runpy.run_module("onnxruntime_genai.models.builder", run_name="__main__")


def main(out, *names):
    tiny.export(out, {f"{name}-{variant}": functools.partial(make, name, variant) for name in names or NAMES for variant in VARIANTS})


if __name__ == "__main__":
    main(*sys.argv[1:])
