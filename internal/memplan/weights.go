package memplan

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/report/inspection"
	"github.com/mcompress/mcompress/report/memoryplan"
)

// storedWeights are the constants of all graphs of m.
func storedWeights(m *ir.Model) memoryplan.Weights {
	var specs []ir.Spec
	for g := range m.Graphs() {
		for _, v := range g.Consts() {
			spec := v.Const.Spec
			spec.Name = v.Name
			specs = append(specs, spec)
		}
	}
	return sumByType(specs)
}

// sumByType sums up by element type, in the order of ONNX's enum.
func sumByType(specs []ir.Spec) memoryplan.Weights {
	w := memoryplan.Weights{Tensors: len(specs), DTypes: []inspection.DType{}}
	by := map[ir.DType]*inspection.DType{}
	var order []ir.DType
	for _, s := range specs {
		if by[s.DType] == nil {
			by[s.DType] = &inspection.DType{DType: s.DType.String()}
			order = append(order, s.DType)
		}
		by[s.DType].Tensors++
		by[s.DType].Bytes += s.Bytes()
		w.Bytes += s.Bytes()
	}
	slices.Sort(order)
	for _, d := range order {
		w.DTypes = append(w.DTypes, *by[d])
	}
	return w
}
