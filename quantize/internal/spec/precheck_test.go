package spec

import (
	"math"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/quanttest"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// Precheck leaves out weights without scales, and returns errors of reading.
func TestPrecheck(t *testing.T) {
	nan := float32(math.NaN())
	weight := func(x ...float32) *ir.Value {
		return ir.NewModel().Graph.AddConst("w", quanttest.TensorOf(ir.Float, []int64{int64(len(x))}, x))
	}
	good, bad, missing := weight(1, 2), weight(1, nan), weight(3, 4)
	missing.Const.Source = ir.Mem(nil)
	precheck := func(enabled bool, ws ...*ir.Value) ([]*ir.Value, error) {
		e := ir.NewEval(t.TempDir())
		defer e.Close()
		s := &pass.Step{Eval: e, Env: pass.Environment{Precheck: enabled, Workers: 1}}
		return Precheck(t.Context(), s, ws, func(v *ir.Value) (*ir.Value, Encoding) {
			return v, &PerChannel{Weight: v.Const, Shape: v.Const.Shape, Layout: PerTensorLayout(v.Const.Elems()), Axis: -1}
		})
	}
	if got, err := precheck(true, bad, good, bad); err != nil || !slices.Equal(got, []*ir.Value{good}) {
		t.Errorf("%d weights are left, want 1: %v", len(got), err)
	}
	if got, err := precheck(true, good, missing); err == nil {
		t.Errorf("a weight that cannot be read: %d weights, no error", len(got))
	}
	if got, err := precheck(false, bad, good); err != nil || len(got) != 2 {
		t.Errorf("%d weights are left without precheck: %v", len(got), err)
	}
}
