package pass

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
)

// constsWithoutInputs is the first IR version in which initializers need not be graph inputs.
const constsWithoutInputs = 4

// raiseIR raises the IR version of a changed model to the minimum of its nodes and types. Below IR 4 every initializer
// must be a graph input: weights are removed from the inputs. It reports whether they were.
func raiseIR(m *ir.Model, was int64) (raised bool) {
	m.IRVersion = max(m.IRVersion, constsWithoutInputs, opset.IRVersion(m.Opset("")))
	if was >= constsWithoutInputs {
		return false
	}
	// Callers that fed a weight could not feed its new form either; the ledger notes that they are no longer inputs.
	m.Graph.Inputs = slices.DeleteFunc(m.Graph.Inputs, func(v *ir.Value) bool { return v.Const != nil })
	return true
}

// typeVersions are the first IR versions of types that operators outside of the default domain may have at any opset.
var typeVersions = map[ir.DType]int64{
	ir.Float8E4M3FN: 9, ir.Float8E4M3FNUZ: 9, ir.Float8E5M2: 9, ir.Float8E5M2FNUZ: 9, ir.Uint4: 10, ir.Int4: 10,
	ir.Float4E2M1: 11, ir.Float8E8M0: 12, ir.Uint2: 13, ir.Int2: 13, ir.Float6E2M3: 14, ir.Float6E3M2: 14,
}

const (
	withFunctions = 8  // the first IR version with functions
	withOverloads = 10 // the first one with overloads of functions
)

// neededIR is the lowest IR version that has all parts of the model: its opsets, types of constants and functions. What
// a later version adds besides is metadata.
func neededIR(m *ir.Model) int64 {
	needed := max(constsWithoutInputs, opset.IRVersion(m.Opset("")))
	for _, f := range m.Functions {
		needed = max(needed, withFunctions, opset.IRVersion(f.Body.Opset("")))
		if f.ID.Overload != "" {
			needed = max(needed, withOverloads)
		}
	}
	for g := range m.Graphs() {
		for _, v := range g.Consts() {
			needed = max(needed, typeVersions[v.Const.DType])
		}
	}
	return needed
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
