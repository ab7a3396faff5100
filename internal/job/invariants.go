package job

import (
	"context"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/invariants"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

// checkInvariants checks that the report on the written files has what the one on their plan states, and a row for
// each weight of the source.
func (r *run) checkInvariants(ctx context.Context, p *onnx.Plan, written *report.Report) error {
	// The plan of a packed output has the size of the model before it is packed.
	if !invariants.Enabled || isPacked(r.path) {
		return nil
	}
	plan, err := r.evaluateGates(ctx, p, plannedFiles(p, r.path))
	if err != nil {
		return err
	}
	if why := firstDifference(plan, written, pass.Weights(r.source.Model)); why != "" {
		return ir.Bugf("%s", why)
	}
	return nil
}

// firstDifference describes the first difference between a plan and its result, or a weight without a row; empty if
// there is none.
func firstDifference(plan, written *report.Report, weights []*ir.Value) string {
	if plan.Totals.FileBytes != written.Totals.FileBytes {
		return fmt.Sprintf("files of %v bytes, planned %v", written.Totals.FileBytes, plan.Totals.FileBytes)
	}
	if plan.Totals.TensorBytes != written.Totals.TensorBytes {
		return fmt.Sprintf("tensors of %v bytes, planned %v", written.Totals.TensorBytes, plan.Totals.TensorBytes)
	}
	if !slices.EqualFunc(plan.Weights, written.Weights, func(a, b report.Weight) bool {
		return a.Tensor == b.Tensor && a.Scope == b.Scope && a.Changed == b.Changed && a.Bytes == b.Bytes &&
			slices.Equal(a.Forms, b.Forms)
	}) {
		return "the weights of the plan are not those of the result"
	}
	rows := map[weightPlace]bool{}
	for _, w := range written.Weights {
		rows[weightPlace{w.Scope, w.Tensor}] = true
	}
	for _, v := range weights {
		// Scales and zero points belong to the row of the weight that they are of.
		if !pass.IsQuantizationParam(v) && !hasRow(v, rows) {
			return fmt.Sprintf("weight %q has no row", v.Name)
		}
	}
	return ""
}

// A weightPlace identifies a weight in a report.
type weightPlace struct{ scope, tensor string }

// hasRow reports whether v has a row, or all that is computed from it has one, as parts of a weight in a sparse
// form that became dense do.
func hasRow(v *ir.Value, rows map[weightPlace]bool) bool {
	seen := map[*ir.Value]bool{}
	for pending := []*ir.Value{v}; len(pending) > 0; {
		v := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		if seen[v] || rows[weightPlace{pass.Scope(v.Graph()), v.Name}] {
			continue
		}
		seen[v] = true
		if len(v.Uses()) == 0 {
			return false
		}
		for _, u := range v.Uses() {
			if u.Node == nil {
				return false
			}
			for _, o := range u.Node.Outputs {
				if o != nil {
					pending = append(pending, o)
				}
			}
		}
	}
	return true
}
