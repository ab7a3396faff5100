"""Common parts of the scripts of this folder: ONNX Runtime and its tools. The others are run after it, in its namespace."""
import contextlib, os


def session(path, threads):
    import onnxruntime as ort
    ort.set_default_logger_severity(4)
    # Without it int8 products saturate on CPUs without VNNI, for every tool alike; some models do not load with it.
    for entries in ({"session.x64quantprecision": "1"}, {}):
        o = ort.SessionOptions()
        o.intra_op_num_threads = threads
        for entry in entries.items():
            o.add_session_config_entry(*entry)
        try:
            return ort.InferenceSession(path, o, providers=["CPUExecutionProvider"])
        except Exception:
            if not entries:
                raise


def prepared(src, folder):
    """src as the tools want it for static quantization, made in folder once; without symbolic shapes where those fail."""
    from onnxruntime.quantization.shape_inference import quant_pre_process
    src, ready = os.path.abspath(src), os.path.join(os.path.abspath(folder), "prepared.onnx")
    if not os.path.exists(ready):
        with contextlib.chdir(folder):  # where it fails it leaves files in the working folder
            try:
                quant_pre_process(src, ready)
            except Exception:
                quant_pre_process(src, ready, skip_symbolic_shape=True)
    return ready


def blocks(src, dst, config=None, **options):
    """MatMulNBits by the tool's own quantizer."""
    import onnx
    from onnxruntime.quantization import matmul_nbits_quantizer
    q = matmul_nbits_quantizer.MatMulNBitsQuantizer(onnx.load(src), algo_config=config, **options)
    q.process()
    onnx.save(getattr(q.model, "model", q.model), dst)
