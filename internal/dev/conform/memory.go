package conform

// A Memory is the bytes that ONNX Runtime takes for one model, on one thread.
type Memory struct {
	Held     int64 // what its allocator has given when the model is loaded: weights and what was made of them
	First    int64 // the most that a first run has beside that at one time: values, outputs and scratch, but no inputs
	Later    int64 // the most that a later one has, for which it plans one block from what the first one took
	Resident int64 // by how much the resident memory of a process of its own grows in a first run; 0 where nobody asked or the system does not say
}

// Memory runs the model on these inputs, as its users would, and counts: all of the first
// three are bytes that were asked for, neither rounded nor what an arena keeps. To see a process
// grow takes a second.
func (w *Worker) Memory(path string, inputs []Array, resident bool) (Memory, error) {
	var m Memory
	err := w.ask("memory", map[string]any{"path": path, "inputs": inputs, "resident": resident}, &m)
	return m, err
}
