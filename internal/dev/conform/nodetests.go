package conform

// NodeTests writes the backend node tests of the onnx package into folder, one folder a
// test: model.onnx, tolerance.json, and test_data_set_N with input_N.pb and output_N.pb. It
// returns how many there are.
func (w *Worker) NodeTests(folder string) (int, error) {
	var n int
	err := w.call("node_tests", map[string]any{"folder": folder}, &n)
	return n, err
}
