"""ONNX Runtime's own dynamic quantization, the reference for ours."""
from onnxruntime.quantization import QuantType, quantize_dynamic

TYPES = {"": QuantType.QInt8, "int8": QuantType.QInt8, "uint8": QuantType.QUInt8}


def ort_dynamic(source, target, options):
    extra = {}
    if options["Asymmetric"]:
        extra["WeightSymmetric"] = False
    quantize_dynamic(
        source,
        target,
        op_types_to_quantize=options.get("Ops"),
        per_channel=options["PerChannel"],
        reduce_range=options["ReduceRange"],
        weight_type=TYPES[options.get("WeightType", "")],
        nodes_to_exclude=options.get("Exclude"),
        use_external_data_format=options["External"],
        extra_options=extra,
    )
