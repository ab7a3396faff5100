package pass

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
)

// constsWithoutInputs is the first IR version in which initializers need not be graph inputs.
const constsWithoutInputs = 4

// raiseIR raises the IR version of a changed model to the minimum of its nodes and types. Below IR 4 every initializer must
// be a graph input: weights are removed from the inputs. It reports whether they were.
func raiseIR(m *ir.Model, was int64) (raised bool) {
	m.IRVersion = max(m.IRVersion, constsWithoutInputs, opset.IRVersion(m.Opset("")))
	if was >= constsWithoutInputs {
		return false
	}
	m.Graph.Inputs = slices.DeleteFunc(m.Graph.Inputs, func(v *ir.Value) bool { return v.Const != nil })
	return true
}

// listConsts adds new initializers of a model below IR 4 to its inputs.
func listConsts(m *ir.Model) {
	g := m.Graph
	if m.IRVersion >= constsWithoutInputs {
		return
	}
	input := map[*ir.Value]bool{}
	for _, v := range g.Inputs {
		input[v] = true
	}
	for _, v := range g.Consts() {
		if !input[v] {
			g.Inputs = append(g.Inputs, v)
		}
	}
}
