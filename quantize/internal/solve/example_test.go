package solve_test

import (
	"context"
	"fmt"
	"log"

	"github.com/mcompress/mcompress/internal/calibrate/hessian"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/quantize/internal/solve"
)

// Two correlated inputs: the rounding error of one weight is compensated by the other.
func Example() {
	p := op.NewPool(1)
	defer p.Close()
	h := hessian.New(p, 2)
	h.Add([]float32{1, 1, 2, 2, -1, -1, 1, 0.9})
	f, err := h.Factor(context.Background(), hessian.Options{Damp: 0.01, Order: true, Block: 2})
	if err != nil {
		log.Fatal(err)
	}
	c := solve.GPTQ(p, []float32{0.4, 0.4}, 1, f, solve.Spec{Low: -1, High: 1, Symmetric: true, Block: 2}, nil)
	fmt.Println(c.Weight(0, 0)+c.Weight(1, 0) > 0.7)
	// Output: true
}
