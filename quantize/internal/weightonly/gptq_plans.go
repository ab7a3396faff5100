package weightonly

import (
	"context"

	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/solve"
	"github.com/mcompress/mcompress/quantize/internal/spec"
	"github.com/mcompress/mcompress/quantize/internal/weights"
)

// applyGPTQ quantizes those plans that are right operands of products.
func (o *BlockOptions) applyGPTQ(ctx context.Context, s *pass.Step, plans []*plan) error {
	if o == nil || o.Algo != "gptq" || s.Env.DryRun { // sizes do not depend on quantized values
		return nil
	}
	var ls []*matrix
	of := map[*matrix]*plan{}
	for _, p := range plans {
		l, reason := p.matrix()
		if !reason.None() {
			p.note(reason)
			continue
		}
		ls, of[l] = append(ls, l), p
	}
	if len(ls) == 0 {
		return nil
	}
	left, err := o.GPTQ.solve(ctx, s, ls)
	if err != nil {
		return err
	}
	for _, l := range ls {
		if reason := left[l]; !reason.None() {
			of[l].note(reason)
			continue
		}
		b := of[l].encoding.(*spec.Blockwise).Layout
		// Values were solved already: the writer only loads them, in its own chunks.
		b.Rounder = func(c *solve.Quantized, _ []float32, row, col int) error { return l.load(c, row, col) }
		b.Solved = l.dequantized(s.Env.Workers)
	}
	return nil
}

// matrix is the matrix that p stores, or the reason why GPTQ does not support it.
func (p *plan) matrix() (*matrix, pass.Reason) {
	var product *weights.Consumer
	table := false
	for _, s := range p.Consumers {
		switch {
		case s.Side == weights.Lookup:
			table = true
		case product != nil:
			return nil, pass.Reason{Code: pass.GPTQConsumers}
		default:
			product = s
		}
	}
	switch b := p.encoding.(*spec.Blockwise).Layout; {
	case product == nil:
		return nil, pass.Reason{Code: pass.GPTQLayout, Detail: "not the matrix of one product"}
	// Lookups read rows, whose errors no product's inputs describe.
	case table:
		return nil, pass.Reason{Code: pass.GPTQLayout, Detail: "layout of lookups"}
	default:
		return &matrix{weight: p.Base, node: product.Node, k: int(b.Rows), n: int(b.Cols), transposed: b.ColumnMajor,
			spec: b.Spec}, pass.Reason{}
	}
}
