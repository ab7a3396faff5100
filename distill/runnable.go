package distill

import (
	"context"
	"fmt"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/ir"
)

// A runnable is a graph of training. All graphs of a layout are planned; those of the chosen one are opened.
type runnable struct {
	model     *ir.Model
	usage     *engine.Usage       // once planned, and the following
	constants int64               // bytes of weights in a session
	session   *engine.Interpreter // once opened
}

// plan plans the memory of a run, without reading weights, with one worker thread: layouts, which affect results, and
// reports depend on it.
func (r *runnable) plan(ctx context.Context, o engine.Options) error {
	o.PlanOnly = true
	s, err := engine.Open(ctx, r.model, o)
	if err != nil {
		return err
	}
	defer s.Close()
	if r.usage, err = s.UsageWith(inputTypes(s), serial); err != nil {
		return err
	}
	r.constants = s.ConstantBytes()
	if len(r.usage.Dynamic) > 0 {
		return fmt.Errorf("node %q: the output shape depends on data, so its memory cannot be planned", r.usage.Dynamic[0])
	}
	return nil
}

// inputTypes returns the types of a session's inputs, whose shapes are fixed.
func inputTypes(s *engine.Interpreter) map[string]ir.Spec {
	specs := map[string]ir.Spec{}
	for _, p := range s.Inputs() {
		spec := ir.Spec{DType: p.Type.Elem}
		for _, d := range p.Type.Shape {
			spec.Shape = append(spec.Shape, d.N)
		}
		specs[p.Name] = spec
	}
	return specs
}

// arena returns the planned size of the arena in bytes.
func (r *runnable) arena() int64 { return r.usage.Plan.Size }

// open opens a session for the graph.
func (r *runnable) open(ctx context.Context, o engine.Options) (err error) {
	r.session, err = engine.Open(ctx, r.model, o)
	return err
}

func (r *runnable) close() error {
	if r.session == nil {
		return nil
	}
	return r.session.Close()
}
