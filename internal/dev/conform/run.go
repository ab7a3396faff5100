package conform

import (
	"math"
	"strconv"
)

// Options say how a model is run. The zero value runs it on the data in
// test_data_set_0 next to it, else on random inputs of seed 0, on one thread, fully
// optimised.
type Options struct {
	Seed uint64 // of random inputs; each input's values depend on seed, name, shape and type only

	// Inputs are .npz files (arrays by input name) and .pb files (by position).
	Inputs []string
	Random bool // random inputs even where there is a test_data_set_0

	// Axes that the model leaves open, for random inputs. Without Size, sizes from 4 to
	// 224 and integer bounds from 1 to 1000 are tried until the model runs.
	Batch int            // an open first axis; 1 if 0; in Accuracy the samples in one run, 64 if 0
	Dims  map[string]int // axes by their name in the model
	Size  int            // every other open axis
	Bound int            // integers lie in [0, Bound); 2 if 0; used with Size

	Threads int    // 1 if 0
	Level   string // of ONNX Runtime's optimisation: none, basic, extended, all; all if empty
	First   string // of Compare: the level of the first model; Level if empty
	Output  string // of Accuracy: the output with the scores; the first if empty
}

// An Array is one output. Sequences and maps become several: NAME[0], NAME.keys, NAME.values.
type Array struct {
	Name  string
	DType string // NumPy's name of it, or string
	Shape []int
	Data  []byte // little-endian, row-major; strings are separated by a zero byte
}

// An Output is the difference between an output of two models.
type Output struct {
	Name   string
	Equal  bool  // bit for bit
	SQNR   Float // in dB; +Inf where nothing differs, -Inf where not even the finite elements are the same ones
	MaxErr Float // largest absolute difference
	Cosine Float // of the angle between them as vectors
}

// A Float is a number that may be infinite, which JSON's own numbers may not.
type Float float64

// UnmarshalJSON reads a number written as text.
func (f *Float) UnmarshalJSON(text []byte) error {
	s, err := strconv.Unquote(string(text))
	if err != nil {
		return err
	}
	v, err := strconv.ParseFloat(s, 64)
	*f = Float(v)
	return err
}

// Run returns the outputs of the model in ONNX Runtime.
func (w *Worker) Run(path string, o Options) ([]Array, error) {
	var arrays []Array
	err := w.call("run", map[string]any{"path": path, "options": o}, &arrays)
	return arrays, err
}

// Compare runs both models on the same inputs, those on which a runs, and returns
// the difference of each output. Outputs of other names, types or shapes are an
// error.
func (w *Worker) Compare(a, b string, o Options) ([]Output, error) {
	var outputs []Output
	err := w.call("compare", map[string]any{"a": a, "b": b, "options": o}, &outputs)
	return outputs, err
}

// LowestSQNR returns the worst figure among outputs, +Inf if there are none.
func LowestSQNR(outputs []Output) float64 {
	low := math.Inf(1)
	for _, o := range outputs {
		low = min(low, float64(o.SQNR))
	}
	return low
}

// Accuracy returns the fraction of samples whose largest score is at their label. npz
// holds samples along the first axis, in arrays named after the inputs (or one array
// of any name, for one input), and the class numbers under labels.
func (w *Worker) Accuracy(path, npz, labels string, o Options) (float64, error) {
	var accuracy float64
	args := map[string]any{"path": path, "npz": npz, "labels": labels, "options": o}
	err := w.call("accuracy", args, &accuracy)
	return accuracy, err
}
