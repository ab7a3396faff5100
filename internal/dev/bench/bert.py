"""bert.py OUT: a BERT of 12 layers of 768 channels, random weights; bert.py time RUNS MODEL...: the least seconds of each in ONNX Runtime, in turns."""
import sys, time


def export(path):
    import torch, transformers
    torch.manual_seed(0)
    model = transformers.BertModel(transformers.BertConfig(vocab_size=2048), add_pooling_layer=False).eval()
    for p in model.parameters():
        if p.dim() == 1:
            p.data.normal_(0, 0.02)  # biases that differ, as those of trained models

    class Hidden(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, ids, mask):
            return self.model(input_ids=ids, attention_mask=mask)[0]

    ids, d = torch.arange(4, 132).reshape(1, 128), torch.export.Dim.DYNAMIC
    torch.onnx.export(Hidden(), (ids, torch.ones_like(ids)), path, input_names=["input_ids", "attention_mask"], dynamic_shapes=({0: d, 1: d},) * 2,
                      dynamo=True, verbose=False, external_data=False)


def measure(runs, *paths):
    import numpy as np, onnxruntime as ort
    o = ort.SessionOptions()
    o.intra_op_num_threads = 1
    sessions = [ort.InferenceSession(p, o, providers=["CPUExecutionProvider"]) for p in paths]
    feed = {"input_ids": np.arange(128)[None], "attention_mask": np.ones((1, 128), np.int64)}
    took = [[] for _ in sessions]
    for _ in range(int(runs)):
        for s, t in zip(sessions, took):
            start = time.perf_counter()
            s.run(None, feed)
            t.append(time.perf_counter() - start)
    print(*[min(t) for t in took])


if sys.argv[1] == "time":
    measure(*sys.argv[2:])
else:
    export(sys.argv[1])
