package job

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/ir"
)

// expressions computes constant expressions of a model by the engine, each as a model of its own.
type expressions struct {
	workers int
	limits  memory.Limits
	lock    sync.Mutex // held by the weight that is computed, so that memory is that of one
}

// An expression holds this number of copies of its weight at once (parts, results of nodes and the weight), and
// scratch bytes of its operators.
const (
	weightCopies = 6
	scratchBytes = 1 << 20
)

// tensor is the value of v, of the type as, computed when it is read; nil for operators that the engine does not have,
// and for weights that do not fit into the memory limit.
func (e *expressions) tensor(v *ir.Value, as ir.Spec) *ir.Tensor {
	work := weightCopies * as.Bytes()
	if as.DType == ir.Undefined || work+scratchBytes > e.limits.Resolved().Memory {
		return nil
	}
	m, ok := expressionModel(v, as)
	if !ok {
		return nil
	}
	// Operators that the engine lacks are found here, before the report counts on the weight.
	plan, err := engine.Open(context.Background(), m, engine.Options{Workers: 1, Limits: e.limits, PlanOnly: true})
	if err != nil {
		return nil
	}
	if plan.Close() != nil {
		return nil
	}
	r := &ir.Recipe{Name: "constant expression", Out: []ir.Spec{as}, Work: work,
		Run: func(ctx context.Context, _ []io.ReaderAt, out []io.Writer) error {
			e.lock.Lock()
			defer e.lock.Unlock()
			s, err := engine.Open(ctx, m, engine.Options{Workers: e.workers, Limits: e.limits})
			if err != nil {
				return err
			}
			defer s.Close()
			got, err := s.Run(ctx, nil, nil)
			if err != nil {
				return err
			}
			a := got[m.Graph.Outputs[0].Name]
			if a == nil || a.DType != as.DType || !slices.Equal(a.Shape, as.Shape) {
				return fmt.Errorf("the constant expression of %q is %s, not %s", as.Name, a, as)
			}
			_, err = out[0].Write(a.Data)
			return err
		}}
	return r.Derive()[0]
}

// expressionModel is a model without inputs whose output is v, a value that constants alone determine; false if a
// node has graphs or calls a function.
func expressionModel(v *ir.Value, as ir.Spec) (*ir.Model, bool) {
	source := v.Graph().Model()
	m := ir.NewModel()
	m.IRVersion, m.Opsets = source.IRVersion, source.Opsets
	if f := v.Graph().Function(); f != nil {
		m.Opsets = f.Opsets
	}
	made := map[*ir.Value]*ir.Value{}
	// A node follows its inputs: it is visited again once these are made. Expressions may be as long as the graph, so
	// that this does not recurse.
	for pending := []*ir.Value{v}; len(pending) > 0; {
		at := pending[len(pending)-1]
		if made[at] != nil {
			pending = pending[:len(pending)-1]
			continue
		}
		if at.Const != nil {
			made[at] = m.Graph.AddConst("c", at.Const)
			continue
		}
		n := at.Producer()
		if n == nil || n.Callee() != nil {
			return nil, false
		}
		for range n.Subgraphs() {
			return nil, false
		}
		ready := true
		ins := make([]*ir.Value, len(n.Inputs()))
		for i, in := range n.Inputs() {
			if in == nil {
				continue
			}
			if ins[i] = made[in]; ins[i] == nil {
				pending, ready = append(pending, in), false
			}
		}
		if !ready {
			continue
		}
		node := m.Graph.NewNode(n.Op, ins, n.Attrs...)
		outs := make([]*ir.Value, len(n.Outputs))
		for i, o := range n.Outputs {
			if o != nil {
				outs[i] = m.Graph.NewValue("t")
				made[o] = outs[i]
			}
		}
		node.SetOutputs(outs...)
		m.Graph.Append(node)
	}
	out := made[v]
	out.Type = &ir.Type{Elem: as.DType}
	m.Graph.AddOutput(out)
	return m, true
}
