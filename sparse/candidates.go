package sparse

import (
	"context"
	"fmt"
	"sync"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// candidates are the constants that a form may be laid out for, in file order: also
// the quantized weights of an earlier step. The others get their rows.
func candidates(ctx context.Context, s *pass.Step) []*ir.Value {
	// Values and positions of forms that are there already must not get a form of their own.
	own := partsOf(newFinder(s).forms(ctx))
	var vs []*ir.Value
	for g := range s.Model.Graphs() {
		for _, v := range g.Consts() {
			if !stores(v.Const.DType) || len(v.Const.Shape) == 0 {
				continue
			}
			consumers := pass.Consumers(v)
			if reason := unfit(s, v, consumers, own); !reason.None() {
				s.Ledger.Skip(v, consumers, reason)
				continue
			}
			vs = append(vs, v)
		}
	}
	return vs
}

// partsOf maps what forms store to the forms' names.
func partsOf(fs []graphForm) map[*ir.Tensor]string {
	own := map[*ir.Tensor]string{}
	for _, f := range fs {
		for _, t := range f.parts {
			own[t] = f.label()
		}
	}
	return own
}

// unfit is the reason why v cannot be replaced by nodes.
func unfit(s *pass.Step, v *ir.Value, consumers []*ir.Node, own map[*ir.Tensor]string) pass.Reason {
	if s.Select.Excludes(v, consumers) {
		return pass.Reason{Code: pass.NotSelected}
	}
	switch {
	case own[v.Const] != "":
		return pass.Reason{Code: pass.StoredSparse, Detail: own[v.Const]}
	case isCoordinateConstant(v):
		return pass.Reason{Code: pass.StoredSparse, Detail: "coordinates"}
	case len(v.Uses()) == 0:
		return pass.Reason{Code: pass.Unused}
	case isOutput(v):
		return pass.Reason{Code: pass.GraphOutput}
	case v.Ambiguous:
		return pass.Reason{Code: pass.Ambiguous}
	case v.Const.Elems() == 0:
		return pass.Reason{Code: pass.Shape, Detail: "no elements"}
	case v.Const.Elems() > maxElems:
		return pass.Reason{Code: pass.Shape, Detail: fmt.Sprintf("more than %d elements", int64(maxElems))}
	case v.Graph().Opset("") == 0:
		return pass.Reason{Code: pass.Opset, Detail: "no import of standard operators in the function"}
	}
	return pass.Reason{}
}

// isCoordinateConstant reports whether v is a constant that the model holds as coordinates: the
// reader expands it.
func isCoordinateConstant(v *ir.Value) bool {
	o, ok := v.Const.Source.(ir.Output)
	return ok && v.Extra != nil && o.Of.Name == denseName
}

func isOutput(v *ir.Value) bool {
	for _, u := range v.Uses() {
		if u.Node == nil {
			return true
		}
	}
	return false
}

// measureAll measures the first of every set of equal tensors, on all workers.
func measureAll(ctx context.Context, s *pass.Step, vs []*ir.Value, first map[*ir.Value]*ir.Value,
	block Block) (map[*ir.Value]statistics, error) {
	ms := map[*ir.Value]statistics{}
	var mu sync.Mutex
	err := pass.Parallel(ctx, s.Env.Workers, len(vs), func(ctx context.Context, i int) error {
		// Of equal weights the first is measured, as all have its form.
		if first[vs[i]] != vs[i] {
			return nil
		}
		m, err := measure(ctx, s.Eval, vs[i].Const, pass.MatrixRows(vs[i].Const.Shape, pass.Consumers(vs[i])), block)
		if err != nil {
			return fmt.Errorf("tensor %q: %w", vs[i].Name, err)
		}
		mu.Lock()
		defer mu.Unlock()
		ms[vs[i]] = m
		return nil
	})
	return ms, err
}
