"""The specifications of operators: ONNX's, and those that ONNX Runtime adds."""
import onnx.defs
import onnxruntime.capi.onnxruntime_pybind11_state as runtime


def operators():
    """Operator → versions, maximum number of inputs, whether the first one is variadic, and attributes. Names have their domain, but for ai.onnx."""
    found = {}
    for schema in [*onnx.defs.get_all_schemas_with_history(), *runtime.get_all_operator_schema()]:
        name = f"{schema.domain}.{schema.name}" if schema.domain else schema.name
        entry = found.setdefault(name, {"since": [], "inputs": 0, "variadic": False, "attributes": []})
        entry["since"] = sorted({*entry["since"], schema.since_version})
        entry["inputs"] = max(entry["inputs"], schema.max_input)
        entry["variadic"] |= bool(schema.inputs) and schema.inputs[0].option.name == "Variadic"
        entry["attributes"] = sorted({*entry["attributes"], *schema.attributes})
    return found
