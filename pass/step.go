package pass

import "github.com/mcompress/mcompress/ir"

// A Step is one running step of a pipeline, as its method sees it.
type Step struct {
	Model  *ir.Model   // which the method rewrites
	Eval   *ir.Eval    // reads tensors, and runs lazy ones
	Env    Environment // of the run
	Method string      // name of the method
	Select Selection   // the weights that the step applies to
	Later  []Options   // the steps after this one
	Ledger Ledger      // records the results of the step

	index  int        // of the step in the run
	consts constCache // of the run

	overridable []*ir.Value // inputs with a default, which are no constants to steps
}

// A constCache is the small constants that steps have added, by graph, type, shape and payload.
type constCache map[constKey]*ir.Value

type constKey struct {
	g    *ir.Graph
	spec string
	data string
}

// Const returns a small constant of root graph g with the given payload, such as a zero point, a shape or axes. Calls
// with equal arguments return the same constant in all steps of a run.
func (s *Step) Const(g *ir.Graph, dt ir.DType, shape []int64, data []byte) *ir.Value {
	spec := ir.Spec{DType: dt, Shape: shape}
	k := constKey{g, spec.String(), string(data)}
	// A later step may have dropped the last consumer, and the constant with it.
	if v := s.consts[k]; v != nil && !v.Removed() {
		return v
	}
	v := g.AddConst("c", &ir.Tensor{Spec: spec, Source: ir.Mem(data)})
	s.consts[k] = v
	return v
}
