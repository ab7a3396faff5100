"""A small language model, and token ids of the shared texts.

    model OUT                a decoder of random weights with caches of keys and values, as exporters of Llama write it
    tokens SHARED OUT        OUT/train.bin, OUT/test.bin: ids of 16 bits, and OUT/tokenizer.json, byte pairs learned from the training texts
"""
import gzip, os, sys

import numpy as np

VOCABULARY = 2048
WIDTH, LAYERS, HEADS, KEYS, MLP, POSITIONS = 256, 6, 8, 2, 704, 1024
SIZE = WIDTH // HEADS


def model(out):
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    nodes, weights = [], []

    def constant(name, array):
        weights.append(numpy_helper.from_array(array, name))
        return name

    def node(op, inputs, name, domain="", outputs=None, **attributes):
        outputs = outputs or [name + "/out"]
        nodes.append(helper.make_node(op, inputs, outputs, name, domain=domain, **attributes))
        return outputs[0]

    def dense(x, name, a, b, scale=1.0):
        w = rng.standard_normal((a, b)) * scale / np.sqrt(a)
        return node("MatMul", [x, constant(name + ".weight", w.astype(np.float32))], name)

    def norm(x, name):
        return node("SimplifiedLayerNormalization", [x, constant(name + ".weight", np.ones(WIDTH, np.float32))], name, axis=-1, epsilon=1e-6, stash_type=1)

    count = node("ReduceSum", ["attention_mask", constant("one", np.array([1], np.int64))], "count", keepdims=0)
    last = node("Cast", [node("Sub", [count, "one"], "before_last")], "last", to=TensorProto.INT32)
    sizes = node("Shape", ["attention_mask"], "sizes")
    total = node("Cast", [node("Gather", [sizes, constant("second", np.array(1, np.int64))], "width")], "total", to=TensorProto.INT32)
    angles = np.outer(np.arange(POSITIONS), 10000.0 ** (-np.arange(SIZE // 2) / (SIZE // 2)))
    cos, sin = constant("cos", np.cos(angles).astype(np.float32)), constant("sin", np.sin(angles).astype(np.float32))
    table = constant("embed_tokens.weight", (rng.standard_normal((VOCABULARY, WIDTH)) * 0.5).astype(np.float32))
    x = node("Gather", [table, "input_ids"], "embed_tokens")
    residual = 1 / np.sqrt(2 * LAYERS)
    for i in range(LAYERS):
        at = f"layers.{i}."
        h = norm(x, at + "input_layernorm")
        q, k, v = (dense(h, at + f"self_attn.{n}_proj", WIDTH, m * SIZE) for n, m in (("q", HEADS), ("k", KEYS), ("v", KEYS)))
        a = node("GroupQueryAttention", [q, k, v, f"past_key_values.{i}.key", f"past_key_values.{i}.value", last, total, cos, sin], at + "self_attn", "com.microsoft",
                 [at + "self_attn/out", f"present.{i}.key", f"present.{i}.value"], num_heads=HEADS, kv_num_heads=KEYS, do_rotary=1)
        x = node("Add", [x, dense(a, at + "self_attn.o_proj", WIDTH, WIDTH, residual)], at + "attention_residual")
        h = norm(x, at + "post_attention_layernorm")
        gate, up = (dense(h, at + f"mlp.{n}_proj", WIDTH, MLP) for n in ("gate", "up"))
        gated = node("Mul", [node("Mul", [gate, node("Sigmoid", [gate], at + "mlp.sigmoid")], at + "mlp.silu"), up], at + "mlp.gated")
        x = node("Add", [x, dense(gated, at + "mlp.down_proj", MLP, WIDTH, residual)], at + "mlp_residual")
    w = rng.standard_normal((WIDTH, VOCABULARY)) / WIDTH
    node("MatMul", [norm(x, "norm"), constant("lm_head.weight", w.astype(np.float32))], "lm_head", outputs=["logits"])

    info = helper.make_tensor_value_info
    caches = [(f"{i}.{n}", ["batch", KEYS, None, SIZE]) for i in range(LAYERS) for n in ("key", "value")]
    past = [info("past_key_values." + n, TensorProto.FLOAT, [d or "past_sequence_length" for d in dims]) for n, dims in caches]
    present = [info("present." + n, TensorProto.FLOAT, [d or "total_sequence_length" for d in dims]) for n, dims in caches]
    graph = helper.make_graph(nodes, "decoder",
        [info("input_ids", TensorProto.INT64, ["batch", "sequence_length"]), info("attention_mask", TensorProto.INT64, ["batch", "total_sequence_length"]), *past],
        [info("logits", TensorProto.FLOAT, ["batch", "sequence_length", VOCABULARY]), *present], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)], ir_version=10), out)


def tokens(shared, out):
    from tokenizers import ByteLevelBPETokenizer

    def read(name):
        with gzip.open(os.path.join(shared, "fixtures", "datasets", "text", name + ".txt.gz"), "rt", encoding="utf-8") as f:
            return f.read()

    os.makedirs(out, exist_ok=True)
    train = [read("tinyshakespeare"), read("wikitext2-valid")]
    bpe = ByteLevelBPETokenizer()
    bpe.train_from_iterator((line for text in train for line in text.splitlines(True)), vocab_size=VOCABULARY, min_frequency=2, show_progress=False)
    bpe.save(os.path.join(out, "tokenizer.json"))
    for name, texts in (("train", train), ("test", [read("wikitext2-test-first-half")])):
        ids = [i for text in texts for i in bpe.encode(text).ids]
        np.array(ids, np.uint16).tofile(os.path.join(out, name + ".bin"))


globals()[sys.argv[1]](*sys.argv[2:])
