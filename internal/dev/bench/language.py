"""Language models of random weights: made, built and quantized by the peers, and run.

    model SHAPE OUT            a model of transformers
    build SRC OUT PRECISION    by the builder of onnxruntime-genai
    nbits SRC OUT              by ONNX Runtime's MatMulNBitsQuantizer
    sqnr SRC MODEL             of the logits, in dB
    speed RUNS DIR...          tokens a second in onnxruntime-genai, the best of interleaved runs
    generate DIR               tokens, for the peak memory of the process
"""
import glob, json, os, runpy, shutil, sys, time

import numpy as np

# Hidden size, layers, width of the MLP, heads, heads of keys, vocabulary.
SHAPES = {
    "0.4B": (1024, 24, 2816, 16, 8, 32000),
    "1.2B": (2048, 20, 6144, 16, 8, 64000),
    "tiny": (64, 2, 128, 4, 2, 256),
}
PROMPT, TOKENS = 32, 32


def model(shape, out):
    import torch, transformers
    from tokenizers import Tokenizer, models

    hidden, layers, mlp, heads, keys, vocabulary = SHAPES[shape]
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float16)
    transformers.Qwen2ForCausalLM(transformers.Qwen2Config(
        hidden_size=hidden, num_hidden_layers=layers, intermediate_size=mlp, num_attention_heads=heads, num_key_value_heads=keys, vocab_size=vocabulary,
        max_position_embeddings=512, tie_word_embeddings=False, bos_token_id=1, eos_token_id=2, pad_token_id=0)).save_pretrained(out)
    words = {f"w{i}": i for i in range(vocabulary)}
    transformers.PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel(words, unk_token="w0")), bos_token="w1", eos_token="w2").save_pretrained(out)


def build(src, out, precision):
    sys.argv = ["builder", "-i", src, "-o", out, "-p", precision, "-e", "cpu", "-c", out + ".cache"]
    runpy.run_module("onnxruntime_genai.models.builder", run_name="__main__")
    shutil.rmtree(out + ".cache", ignore_errors=True)


def nbits(src, out):
    import onnx
    from onnxruntime.quantization import matmul_nbits_quantizer

    q = matmul_nbits_quantizer.MatMulNBitsQuantizer(onnx.load(os.path.join(src, "model.onnx")), block_size=32, is_symmetric=True, accuracy_level=4)
    q.process()
    os.makedirs(out)
    q.model.save_model_to_file(os.path.join(out, "model.onnx"), True)
    for name in os.listdir(src):
        if not name.startswith("model.onnx"):
            shutil.copy(os.path.join(src, name), out)


def logits(folder):
    import onnxruntime as ort

    path, = glob.glob(os.path.join(folder, "*.onnx"))
    s = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    with open(os.path.join(folder, "genai_config.json")) as f:
        decoder = json.load(f)["model"]["decoder"]
    feeds = {}
    for i in s.get_inputs():
        if i.name == "input_ids":
            feeds[i.name] = np.random.default_rng(0).integers(0, 256, (1, 64))
        elif i.name == "attention_mask":
            feeds[i.name] = np.ones((1, 64), np.int64)
        else:
            feeds[i.name] = np.zeros((1, decoder["num_key_value_heads"], 0, decoder["head_size"]), np.float32)
    return s.run(["logits"], feeds)[0].astype(np.float64)


def sqnr(src, quantized):
    want = logits(src)
    noise = logits(quantized) - want
    print(f"{10 * np.log10((want ** 2).sum() / (noise ** 2).sum()):.2f}")


def once(m):
    import onnxruntime_genai as og

    p = og.GeneratorParams(m)
    p.set_search_options(max_length=PROMPT + TOKENS, min_length=PROMPT + TOKENS)
    g = og.Generator(m, p)
    g.append_tokens(list(range(3, 3 + PROMPT)))
    g.generate_next_token()
    start = time.perf_counter()
    n = 0
    while not g.is_done():
        g.generate_next_token()
        n += 1
    return n / (time.perf_counter() - start)


def speed(runs, *folders):
    import onnxruntime_genai as og

    models = [og.Model(f) for f in folders]
    best = [0.0] * len(models)
    for _ in range(int(runs)):
        best = [max(b, once(m)) for b, m in zip(best, models)]
    print(*(f"{b:.1f}" for b in best))


def generate(folder):
    import onnxruntime_genai as og

    once(og.Model(folder))


globals()[sys.argv[1]](*sys.argv[2:])
