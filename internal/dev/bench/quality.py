"""Samples for calibration, and outputs side by side.

  samples MODEL OUT N     N samples as peers.py calibrates with, one array for each input
  nncf MODEL OUT          NNCF's 4-bit weights in groups of 32, of a model whose data may be external
  evaluate SOURCE MODEL...   for each model a line: SQNR of the first output and the lowest of any in dB, least latency in ms, or why it does not run
"""
import os, sys, time
import numpy as np

TESTED, TIMED = 4, 25  # inputs that outputs are compared on, none of which calibration saw, and runs


def inputs(session, seed, n):
    """As peers.py makes them: batch 1, other open axes 128, token ids below 1000."""
    g = np.random.default_rng(seed)
    for _ in range(n):
        feed = {}
        for a in session.get_inputs():
            shape = [d if isinstance(d, int) else (1 if i == 0 else 128) for i, d in enumerate(a.shape)]
            if "mask" in a.name:
                feed[a.name] = np.ones(shape, np.int64)
            elif "int64" in a.type:
                feed[a.name] = g.integers(0, 1000, shape)
            else:
                feed[a.name] = g.standard_normal(shape, dtype=np.float32)
        yield feed


def samples(model, out, n):
    feeds = list(inputs(session(model, 2), 7, int(n)))
    np.savez(out, **{k: np.concatenate([f[k] for f in feeds]) for k in feeds[0]})


def nncf(model, out):
    import onnx, nncf
    from nncf.onnx.quantization.backend_parameters import BackendParameters
    advanced = nncf.AdvancedCompressionParameters(backend_params={BackendParameters.EXTERNAL_DATA_DIR: os.path.dirname(os.path.abspath(model))})
    small = nncf.compress_weights(onnx.load(model, load_external_data=False), mode=nncf.CompressWeightsMode.INT4_SYM, group_size=32, advanced_parameters=advanced)
    large = small.ByteSize() > 1 << 30 or any(t.data_location for t in small.graph.initializer)
    onnx.save(small, out, save_as_external_data=large, location=os.path.basename(out) + ".data")


def sqnr(pairs):
    """Of each output, over all samples."""
    for k in range(len(pairs[0][0])):
        signal = noise = 0.0
        for a, b in pairs:
            a, b = a[k].astype(np.float64), b[k].astype(np.float64)
            signal, noise = signal + (a ** 2).sum(), noise + ((a - b) ** 2).sum()
        yield 10 * np.log10(signal / noise) if noise > 0 else np.inf


def evaluate(source, *models):
    s = session(source, 2)
    feeds = list(inputs(s, 11, TESTED))
    want = [s.run(None, f) for f in feeds]
    del s
    for path in models:
        try:
            s = session(path, 2)
            names = {i.name for i in s.get_inputs()}
            mine = [{k: v for k, v in f.items() if k in names} for f in feeds]
            got = [s.run(None, f) for f in mine]
            took = []
            for _ in range(TIMED):
                start = time.perf_counter()
                s.run(None, mine[0])
                took.append(time.perf_counter() - start)
            dbs = list(sqnr(list(zip(want, got))))
            print(f"{dbs[0]:.1f} {min(dbs):.1f} {1000 * min(took):.2f}", flush=True)
            del s
        except Exception as e:
            print("0 0 0 " + str(e).splitlines()[0][:80], flush=True)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
