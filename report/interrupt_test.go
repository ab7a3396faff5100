package report

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/mcompress/mcompress/pass"
)

// A countdown is a context that ends after a number of checks.
type countdown struct {
	context.Context
	left, checks int
}

func (c *countdown) Err() error {
	c.checks++
	if c.checks > c.left {
		return context.Canceled
	}
	return nil
}

// Build checks the context at each constant of both models, and returns at the first check after its end.
func TestBuildStopsAtEveryConstant(t *testing.T) {
	const n = 50
	m := network(odd())
	for i := range n {
		m.Graph.AddConst(fmt.Sprint("unused", i), odd())
	}
	in := (&job{model: m, methods: []*pass.Method{rounding}}).input(t)
	all := &countdown{Context: t.Context(), left: math.MaxInt}
	if _, err := Build(all, in); err != nil {
		t.Fatal(err)
	}
	if all.checks < 3*n { // of the index of the result, and of the sums of both
		t.Errorf("%d checks for %d constants", all.checks, n)
	}
	for left := range all.checks {
		ctx := &countdown{Context: t.Context(), left: left}
		if _, err := Build(ctx, in); !errors.Is(err, context.Canceled) {
			t.Fatalf("ended after %d checks: %v, want %v", left, err, context.Canceled)
		}
		if ctx.checks != left+1 {
			t.Errorf("ended after %d checks: returned after %d more", left, ctx.checks-left)
		}
	}
}
