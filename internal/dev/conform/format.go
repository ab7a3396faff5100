package conform

// Schema returns the field numbers of onnx.proto: by message (a nested one is named
// Outer.Inner), then by field.
func (w *Worker) Schema() (map[string]map[string]int, error) {
	var messages map[string]map[string]int
	err := w.call("schema", map[string]any{}, &messages)
	return messages, err
}

// ElementTypes returns the numbers of TensorProto.DataType by name.
func (w *Worker) ElementTypes() (map[string]int, error) {
	var types map[string]int
	err := w.call("element_types", map[string]any{}, &types)
	return types, err
}

// ParseText writes the model that onnx.parser makes of a text to path.
func (w *Worker) ParseText(text, path string) error {
	return w.call("parse_text", map[string]any{"text": text, "path": path}, nil)
}
