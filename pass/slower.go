package pass

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// A slowdown is a method that makes models slower than float in a runtime of Runtimes.
type slowdown struct {
	method        string
	options       []Option // with which the method does; empty for any
	runtime       string
	median, worst float64 // speed of float is 1, over the models of docs/compatibility.md
}

// attentionSpeeds is about a property of models that the shared ones do not have enough examples of: ViT-B/16 has 0.45
// and CLIP 0.44 times the speed of float in ONNX Runtime 1.31, MiniLM-L6 1.16 (docs/decisions/slower-methods.md).
const attentionSpeeds = "0.44 to 1.2 × the speed of float in ONNX Runtime, for models with attention; " +
	"measure with --max-latency-ratio"

// opsetSpeeds is about models whose opset a step has raised to 19 or later: up to ONNX Runtime 1.24, AveragePool of
// that version has no blocked kernel, and MiniLM-L6 is slower for reasons that were not found.
const opsetSpeeds = "0.65 to 1.0 × the speed of float in ONNX Runtime up to 1.24 with an opset raised to 19 or " +
	"later; measure with --max-latency-ratio"

// Slower is by how much step o is known to make models slower than float in a runtime of t; empty if it is not.
func (t *Target) Slower(o Options) string {
	var slowest *slowdown
	for _, r := range t.runtimes() {
		for i, s := range slowdowns {
			if s.runtime == baseOf(r.Name) && s.method == o.Method().Name && s.of(o) &&
				(slowest == nil || s.median < slowest.median) {
				slowest = &slowdowns[i]
			}
		}
	}
	if slowest == nil {
		return ""
	}
	return fmt.Sprintf("%.2f × the speed of float in %s, median of the measured models (lowest %.2f ×)", slowest.median,
		slowest.runtime, slowest.worst)
}

// of reports whether o has the options of s.
func (s slowdown) of(o Options) bool {
	values := Values(o)
	return !slices.ContainsFunc(s.options, func(want Option) bool {
		return !slices.ContainsFunc(values, func(v Option) bool { return v.Name == want.Name && v.Value == want.Value })
	})
}

// baseOf is the runtime of the table whose facts a version has.
func baseOf(name string) string {
	n, version := minor(name)
	for _, r := range slices.Backward(Runtimes) {
		if first, ok := minor(r.Name); version && ok && first <= n {
			return r.Name
		}
	}
	return name
}

// noteSlower adds a row for each step that changed weights and is known to make the model slower in its target.
func (r *Result) noteSlower(m *ir.Model, t *Target, steps []Options) {
	for _, o := range steps {
		method := o.Method().Name
		if !slices.ContainsFunc(r.Rows, func(row Row) bool { return row.Method == method && row.Status == Changed }) {
			continue
		}
		text := t.Slower(o)
		// Measured slowdowns of the target come first, as they are of the method itself; these are about the model and its
		// opset.
		if text == "" && method == "static-int8" && t.onlyORT() && hasAttention(m) {
			text = attentionSpeeds
		}
		if text == "" && m.Opset("") >= 19 && !t.Can(FastOpset19) &&
			slices.ContainsFunc(r.Rows, func(row Row) bool { return row.Method == method && row.Reason.Code == OpsetRaised }) {
			text = opsetSpeeds
		}
		if text != "" {
			r.Rows = append(r.Rows, Row{Method: method, Status: Noted, Reason: Reason{Code: SlowerThanFloat, Detail: text}})
		}
	}
}

// onlyORT reports whether all runtimes of t are versions of ONNX Runtime.
func (t *Target) onlyORT() bool {
	return !slices.ContainsFunc(t.runtimes(), func(r Runtime) bool {
		_, version := minor(r.Name)
		return !version
	})
}

// hasAttention reports whether a softmax of the main graph is an operand of a product, possibly after quantization.
func hasAttention(m *ir.Model) bool {
	for n := range m.Graph.Nodes() {
		if n.Op.Is("MatMul") && slices.ContainsFunc(n.Inputs(), fromSoftmax) {
			return true
		}
	}
	return false
}

// fromSoftmax reports whether a softmax computes v, possibly before QuantizeLinear and DequantizeLinear.
func fromSoftmax(v *ir.Value) bool {
	// DequantizeLinear, QuantizeLinear and Softmax, from v backwards.
	for range 3 {
		if v == nil || v.Producer() == nil {
			return false
		}
		if v.Producer().Op.Is("Softmax") {
			return true
		}
		v = v.Producer().Input(0)
	}
	return false
}
