package conform

// OptimizedOps counts the operators of the graph that ONNX Runtime makes of the model
// before it runs it, subgraphs included. Operators of another domain than ONNX's are
// named DOMAIN.OP.
func (w *Worker) OptimizedOps(path string, o Options) (map[string]int, error) {
	r, err := w.optimized(path, o)
	return r.Ops, err
}

// OptimizedBytes is the size of that graph as a file: the runtime memory of the model.
func (w *Worker) OptimizedBytes(path string, o Options) (int64, error) {
	r, err := w.optimized(path, o)
	return r.Bytes, err
}

// OptimizedConstants is the bytes of the initializers and Constant nodes of that graph, subgraphs included.
func (w *Worker) OptimizedConstants(path string, o Options) (int64, error) {
	r, err := w.optimized(path, o)
	return r.Constants, err
}

type optimized struct {
	Ops       map[string]int
	Bytes     int64
	Constants int64
}

func (w *Worker) optimized(path string, o Options) (optimized, error) {
	var r optimized
	err := w.call("optimized", map[string]any{"path": path, "options": o}, &r)
	return r, err
}

// DynamicOptions are those of ONNX Runtime's quantize_dynamic.
type DynamicOptions struct {
	PerChannel  bool
	ReduceRange bool
	Asymmetric  bool     // of the weights
	WeightType  string   // int8 or uint8; int8 if empty
	Ops         []string // operators to quantize; all supported ones if nil
	Exclude     []string // nodes to leave alone
	External    bool     // write external data
}

// ORTDynamic quantizes in to out by ONNX Runtime's quantize_dynamic, the reference
// for outputs.
func (w *Worker) ORTDynamic(in, out string, o DynamicOptions) error {
	return w.call("ort_dynamic", map[string]any{"source": in, "target": out, "options": o}, nil)
}

// A SparseMatrix is a file of scipy.sparse.
type SparseMatrix struct {
	Format string // csr, coo, bsr, …
	Stored int    // values in the file, zeros among them included
	Dense  Array
}

// SparseFiles writes matrices of all formats and several types by scipy.sparse.save_npz to a folder: NAME.npz for each
// name.
func (w *Worker) SparseFiles(folder string) (names []string, err error) {
	err = w.call("sparse_files", map[string]any{"folder": folder}, &names)
	return names, err
}

// Sparse reads path by scipy.sparse.load_npz.
func (w *Worker) Sparse(path string) (SparseMatrix, error) {
	var m SparseMatrix
	err := w.call("sparse", map[string]any{"path": path}, &m)
	return m, err
}
