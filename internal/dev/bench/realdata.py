"""Inputs of the shared real models: calibration samples, and held-out ones.

  FIXTURES PHOTOS OUT     for every model OUT/NAME.npz, arrays by input, one row a sample, and OUT/NAME.test.npz, with labels where there are some

Models with data use that; pictures, sound and texts are cut to the size of the input, and others get random inputs of its range.
PHOTOS holds the shared images as PPM. Calibration and held-out samples never come from the same picture, half of a recording, or text.
"""
import glob, gzip, os, sys, wave
import numpy as np

FIXTURES, PHOTOS, OUT = sys.argv[1:]
rng = np.random.default_rng(1)
RGB, IMAGENET = np.array([0, 1, 2]), (255 * np.array([0.485, 0.456, 0.406]), 255 * np.array([0.229, 0.224, 0.225]))


def data(*parts):
    return os.path.join(FIXTURES, "datasets", *parts)


def found(name, file="model.onnx"):
    return next(iter(glob.glob(os.path.join(FIXTURES, "models", "*", name, file))), None)


def inputs(name):
    return session(found(name), 1).get_inputs()


# Pictures.

def picture(name):
    with open(os.path.join(PHOTOS, name + ".ppm"), "rb") as f:
        _, size, _, pixels = f.read().split(b"\n", 3)
    w, h = map(int, size.split())
    return np.frombuffer(pixels, np.uint8).reshape(h, w, 3).astype(np.float32)


def resized(x, h, w):
    """Bilinear."""
    at = [np.linspace(0, n - 1, m) for n, m in zip(x.shape, (h, w))]
    (y0, x0), (fy, fx) = [a.astype(int) for a in at], [(a % 1)[:, None] for a in at]
    y1, x1 = np.minimum(y0 + 1, x.shape[0] - 1), np.minimum(x0 + 1, x.shape[1] - 1)
    rows = x[y0] * (1 - fy)[..., None] + x[y1] * fy[..., None]
    return rows[:, x0] * (1 - fx) + rows[:, x1] * fx


def crops(sources, n, h, w):
    """Parts of pictures, from half to all of a side, every other one mirrored."""
    for i in range(n):
        x = sources[i % len(sources)]
        side = [int(s * rng.uniform(0.5, 1)) for s in x.shape[:2]]
        top, left = [rng.integers(0, s - k + 1) for s, k in zip(x.shape, side)]
        yield resized(x[top:top + side[0], left:left + side[1]], h, w)[:, ::1 - 2 * (i % 2)]


def pictures(h, w, mean=0, std=1, order=RGB, layout=(2, 0, 1), n=16, tested=8, texts=False, convert=lambda x: x):
    whole = [picture(p) for p in (("text_cls", "text_det") if texts else ("daisy", "rose", "tulip"))]
    learn, evaluate = ([p[:, :p.shape[1] // 2] for p in whole], [p[:, p.shape[1] // 2:] for p in whole]) if texts else (whole[:2], whole[2:])
    for sources, count in ((learn, n), (evaluate, tested)):
        x = np.stack([convert(((c[..., order] - mean) / std)).transpose(layout) for c in crops(sources, count, h, w)])
        yield [x.astype(np.float32)], None


# Sets with labels.

def idx(name):
    with gzip.open(data("mnist", name)) as f:
        b = f.read()
    shape = np.frombuffer(b, ">i4", b[3], 4)
    return np.frombuffer(b, np.uint8, offset=4 + 4 * len(shape)).reshape(shape)


def mnist(shape, scale):
    for name, part in (("train", slice(0, 60000, 500)), ("t10k-even", slice(None))):
        x = idx(name + "-images-idx3-ubyte.gz")[part]
        yield [(x * np.float32(scale)).reshape(-1, *shape).astype(np.float32)], idx(name + "-labels-idx1-ubyte.gz")[part]


def cifar(mean, std, layout, dtype=np.float32):
    raw = np.fromfile(data("cifar10", "sdp200.bin"), np.uint8).reshape(-1, 3073)
    x = ((raw[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1) - mean) / std).transpose(0, *layout).astype(dtype)
    for mine in (np.arange(200) % 5 == 0, np.arange(200) % 5 != 0):
        yield [x[mine]], raw[mine, 0]


def magika():
    z = np.load(data("magika", "inputs.npz"))
    x, y = [z[k] for k in sorted(z.files, key=lambda k: -z[k].ndim)[:2]]
    for mine in (np.arange(len(y)) % 4 == 0, np.arange(len(y)) % 4 != 0):
        yield [x[mine]], y[mine]


def sms():
    """Calibrated on training texts; evaluated on every other one of all, as the centroids come from the training texts."""
    z = np.load(data("sms_spam", "sms800_tokens.npz"))
    ids, mask = z["input_ids"].astype(np.int64), z["attention_mask"].astype(np.int64)
    train = np.flatnonzero(z["is_test"] == 0)[::7]
    yield [ids[train], mask[train], ids[train] * 0], z["labels"][train]
    some = slice(None, None, 2)
    yield [ids[some], mask[some], ids[some] * 0], np.stack([z["labels"], z["is_test"]], 1)[some]


def iris():
    rows = [line.strip().split(",") for line in open(data("iris", "iris.csv"))]
    rows = [r for r in rows if r[0][:1].isdigit()]
    kinds = sorted({r[-1] for r in rows})
    x, y = np.array([r[:4] for r in rows], np.float32), np.array([kinds.index(r[-1]) for r in rows])
    for mine in (np.arange(len(y)) % 4 == 0, np.arange(len(y)) % 4 != 0):
        yield [x[mine]], y[mine]


def near(name):
    """Around the rows that came with the model."""
    z = np.load(found(name, "io.npz"))
    x = z["input"] if "input" in z.files else z[z.files[0]]
    for n in (64, 128):
        yield [(x[np.arange(n) % len(x)] * rng.uniform(0.8, 1.25, (n, x.shape[1]))).astype(x.dtype)], None


def letters(size):
    """The bytes of texts, in rows of one size."""
    with open(data("sms_spam", "sms800.tsv"), "rb") as f:
        text = b". ".join(line.rstrip(b"\n").split(b"\t")[-1] for line in f)
    x = np.frombuffer(text, np.uint8)
    for part in np.array_split(x[:len(x) // (2 * size) * 2 * size].reshape(-1, size), 2):
        yield [part[:64]], None


# Sound.

def sound(rate):
    """The two halves of the recording."""
    with wave.open(data("audio", "vocadito_10.wav")) as f:
        was, x = f.getframerate(), np.frombuffer(f.readframes(f.getnframes()), {2: np.int16, 4: np.int32}[f.getsampwidth()])
        x = x.reshape(-1, f.getnchannels())[:, 0] / float(np.iinfo(x.dtype).max)
    return np.array_split(np.interp(np.arange(0, len(x), was / rate), np.arange(len(x)), x).astype(np.float32), 2)


def frames(x, size, hop, n):
    """n frames, spread over x."""
    all = np.lib.stride_tricks.sliding_window_view(x, size)[::hop]
    return all[np.linspace(0, len(all) - 1, min(n, len(all))).astype(int)] if n else all


def mel(x, bands, size, hop, rate):
    power = np.abs(np.fft.rfft(frames(x, size, hop, 0) * np.hanning(size))) ** 2
    to = lambda f: 2595 * np.log10(1 + f / 700)
    edges = np.interp(np.linspace(to(20), to(rate / 2), bands + 2), to(np.arange(size // 2 + 1) * rate / size), np.arange(size // 2 + 1))
    i = np.arange(size // 2 + 1)[:, None]
    filters = np.clip(np.minimum((i - edges[:-2]) / np.diff(edges)[:-1], (edges[2:] - i) / np.diff(edges)[1:]), 0, None)
    return 10 * np.log10(power @ filters + 1e-6)


def windows(size, rate, n, shape):
    for x in sound(rate):
        yield [frames(x, size, size // 4, n).reshape(-1, *shape).copy()], None


def log_mels():
    for x in sound(16000):
        m = mel(x, 128, 1024, 512, 16000)
        yield [np.stack([m[i:i + 5].ravel() for i in range(0, len(m) - 5, 3)]).astype(np.float32)], None


def mfccs():
    turn = np.cos(np.pi / 40 * np.outer(np.arange(40) + 0.5, np.arange(10)))
    for x in sound(16000):
        m = (mel(x, 40, 480, 320, 16000) / 10 * np.log(10)) @ turn / 8
        yield [np.stack([m[i:i + 49] for i in range(0, len(m) - 49, 12)])[..., None].astype(np.float32)], None


def recurrent(name, cut, state, more=()):
    """Frames one after another, with the states that the model itself left."""
    s = session(found(name), 1)
    names = [i.name for i in s.get_inputs()]
    for x in sound(16000):
        held, seen = np.zeros(state, np.float32), []
        for f in cut(x):
            row = [f, held, *more]
            seen.append(row)
            held = s.run(None, dict(zip(names, row)))[1]
        seen = seen[::max(1, len(seen) // 100)]
        yield [np.stack(column) for column in zip(*seen)], None


def spectra(x):
    return [np.abs(np.fft.rfft(f))[None, None].astype(np.float32) for f in frames(x, 512, 128, 0)[:2000]]


def windowed(x):
    return [f[None].copy() for f in frames(x, 576, 512, 0)]


# Random numbers.

def uniform(*shape, low=-1, high=1, more=()):
    for n in (128, 256):
        yield [rng.uniform(low, high, (n, *shape)).astype(np.float32), *[np.full((n, *np.shape(m)), m, np.float32) for m in more]], None


def tokens(name, past):
    """Ids after a past of random keys and values, in the types that the model takes."""
    types = {"tensor(int32)": np.int32, "tensor(int64)": np.int64, "tensor(float16)": np.float16, "tensor(float)": np.float32}
    for n in (16, 32):
        columns = []
        for i in inputs(name):
            t = types[i.type]
            if "ids" in i.name:
                x = rng.integers(0, 200, (n, 1, 8)) if "position" not in i.name else np.tile(past + np.arange(8), (n, 1, 1))
            elif "mask" in i.name:
                x = np.ones((n, 1, 8 + past))
            else:
                x = rng.standard_normal((n, *[d if isinstance(d, int) else 1 if "batch" in d else past for d in i.shape]))
            columns.append(x.astype(t))
        yield columns, None


ACAS = lambda: uniform(5, low=-0.5, high=0.5)
MODELS = {
    "yunet_n_320": lambda: pictures(320, 320, order=RGB[::-1]),
    "fastestdet": lambda: pictures(352, 352, std=255, order=RGB[::-1]),
    "yolox_nano": lambda: pictures(416, 416, order=RGB[::-1]),
    "fsanet_1x1": lambda: pictures(64, 64, 127.5, 128, RGB[::-1], n=64, tested=64),
    "ppocr_mobile_v2_cls": lambda: pictures(48, 192, 127.5, 127.5, n=32, tested=32, texts=True),
    "ppocr_v3_det": lambda: pictures(320, 320, *IMAGENET, texts=True),
    "style_candy": lambda: pictures(720, 720, n=1, tested=1),
    "mobilenetv2_qdq": lambda: pictures(244, 244, *IMAGENET),
    "super_resolution": lambda: pictures(224, 224, std=255, convert=lambda x: x @ np.array([[0.299], [0.587], [0.114]])),
    "traffic_sign": lambda: pictures(32, 32, std=255, layout=(0, 1, 2), n=64, tested=128),
    "espcn_float": lambda: pictures(4, 4, std=255, n=128, tested=256),
    "mnist_cntk": lambda: mnist((1, 28, 28), 1),
    "mnist_cnn_max3": lambda: mnist((28, 28, 1), 1 / 255),
    "mnist_self_attention": lambda: mnist((28, 28, 1), 1 / 255),
    "mnist_sigmoid": lambda: mnist((28, 28), 1 / 255),
    "mnist_softmax_head": lambda: mnist((1, 28, 28), 1 / 255),
    "cifar_wide_kw": lambda: cifar(255 * np.array([0.485, 0.456, 0.406]), 255 * 0.225, (3, 1, 2)),
    "cifar_deep_kw": lambda: cifar(255 * np.array([0.485, 0.456, 0.406]), 255 * 0.225, (3, 1, 2)),
    "mlperf_resnet8": lambda: cifar(0, 1, (1, 2, 3)),
    "mlperf_resnet8_int8": lambda: cifar(128, 1, (1, 2, 3), np.int8),
    "magika_v3_3": magika,
    "minilm_l6_v2_vocab3086": sms,
    "sklearn_randomforest": iris,
    "lgbm_classifier": lambda: near("lgbm_classifier"),
    "byte_bidi_lstm": lambda: letters(256),
    "basic_pitch": lambda: windows(43844, 22050, 4, (43844, 1)),
    "mlperf_ad_autoencoder": log_mels,
    "mlperf_kws_dscnn": mfccs,
    "silero_vad": lambda: recurrent("silero_vad", windowed, (2, 1, 128), (np.array(16000),)),
    "dtln_1": lambda: recurrent("dtln_1", spectra, (1, 2, 128, 2)),
    "godot_score_goal": lambda: uniform(16, more=(0,)),
    "godot_ships": lambda: uniform(675, more=(0,)),
    "mujoco_go1": lambda: uniform(48),
    "hand_keypoint": lambda: uniform(42),
    "hand_history_lstm": lambda: uniform(32, more=(0.5,)),
    "gpt2_tiny_fp32": lambda: tokens("gpt2_tiny_fp32", 5),
    "qwen35_tiny": lambda: tokens("qwen35_tiny", 5),
    **{f"acasxu_{k}": ACAS for k in ("1_1", "2_6", "3_3", "4_5", "5_9")},
}

if __name__ == "__main__":
    for name, make in MODELS.items():
        if not found(name):
            continue
        for kind, (columns, labels) in zip((".npz", ".test.npz"), make()):
            held = {i.name: x for i, x in zip(inputs(name), columns)}
            np.savez(os.path.join(OUT, name + kind), **held, **({} if labels is None or kind == ".npz" else {"labels": labels}))
