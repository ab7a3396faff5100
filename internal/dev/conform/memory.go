package conform

// A Memory is the memory use of ONNX Runtime for one model, on one thread, in bytes.
type Memory struct {
	Held  int64 // allocated after loading: weights and prepacked weights
	First int64 // peak of the first run in addition to Held: values, outputs and scratch, without inputs
	Later int64 // peak of a later run, which uses one block planned from the first run
	// growth of the resident memory of a separate process in the first run; 0 if not requested or not available
	Resident int64
}

// Memory runs the model on these inputs and measures. The first three figures are
// requested bytes, without rounding and without memory retained by an arena. Resident
// costs a second.
func (w *Worker) Memory(path string, inputs []Array, resident bool) (Memory, error) {
	var m Memory
	err := w.call("memory", map[string]any{"path": path, "inputs": inputs, "resident": resident}, &m)
	return m, err
}
