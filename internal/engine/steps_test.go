package engine_test

import (
	"errors"
	"testing"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/ir"
)

// A run of exactly the limit of steps succeeds, one of more is a StepError. Large values count several times.
func TestStepsAreLimited(t *testing.T) {
	for _, c := range []struct {
		width int64 // of a row of the scan output
		trips int64
		least int64 // steps of the run
	}{{1, 0, 1}, {1, 10, 41}, {1 << 15, 10, 50}} {
		m := ir.NewModel()
		m.Opsets = []ir.Opset{{Version: 17}}
		b := &builder{m.Graph}
		b.output(collecting(b, b.input("n", ir.Int64, "1"), c.width))
		in := map[string]*ir.Array{"n": ir.ArrayOf([]int64{c.trips}, 1)}
		steps := func(limit int64) error {
			e, err := engine.Open(t.Context(), m, engine.Options{Workers: 1, Limits: memory.Limits{Steps: limit}})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			_, err = e.Run(t.Context(), in, nil)
			return err
		}
		n := int64(1)
		for steps(n) != nil && n < 1000 {
			n++
		}
		if n < c.least || n == 1000 {
			t.Errorf("width %d, %d iterations: %d steps", c.width, c.trips, n)
		}
		var over *engine.StepError
		if n > 1 && (!errors.As(steps(n-1), &over) || over.Limit != n-1) {
			t.Errorf("limit %d: got %v", n-1, over)
		}
	}
}

// Folded text counts in the budget of folded constants: nodes whose results exceed it run in each run.
func TestFoldedTextRespectsBudget(t *testing.T) {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 20}}
	b := &builder{m.Graph}
	s := b.AddConst("s", &ir.Tensor{Spec: ir.Spec{DType: ir.String, Shape: []int64{1}}, Source: ir.Text(func() ([]string, error) {
		return []string{string(make([]byte, 16<<10))}, nil
	})})
	for range 10 { // 32 KiB to 16 MiB
		s = b.op("StringConcat", s, s)
	}
	b.output(s)
	e, err := engine.Open(t.Context(), m, engine.Options{Workers: 1, Limits: memory.Limits{Weights: 1 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	u, err := e.Usage(nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(u.Steps) != 5 { // 32 KiB to 512 KiB fit
		t.Errorf("%d nodes are not folded", len(u.Steps))
	}
}
