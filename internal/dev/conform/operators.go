package conform

// An Operator is the specification of an operator over all its versions.
type Operator struct {
	Since      []int64  // versions
	Inputs     int      // maximum number
	Variadic   bool     // the first input is variadic
	Attributes []string // of any version
}

// Operators returns the operators of ONNX and of ONNX Runtime, by name; names have their domain, except those of
// ai.onnx.
func (w *Worker) Operators() (map[string]Operator, error) {
	var operators map[string]Operator
	err := w.call("operators", map[string]any{}, &operators)
	return operators, err
}
