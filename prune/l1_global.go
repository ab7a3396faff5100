package prune

import (
	"context"
	"fmt"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// L1Global zeroes the smallest elements of all weights together, by one threshold (global magnitude pruning): layers of
// small weights have a higher sparsity. Equal magnitudes are pruned in the order of the file, then by index. Weights
// are read block by block, so memory does not grow with the model.
type L1Global struct {
	pass.Selection
	// Amount is the fraction of all elements that is pruned, above 0 up to 1; 0 is the default.
	Amount float64 `flag:"amount" default:"0.5" usage:"'fraction' of all elements that is pruned, above 0 up to 1"`
	// Embeddings prunes tables that Gather looks up, too.
	Embeddings bool `flag:"embeddings" usage:"prune tables that Gather looks up, too"`
	// Biases prunes the biases of layers, too.
	Biases bool `flag:"biases" usage:"prune biases, too"`
}

var l1GlobalMethod = &pass.Method{
	Name:    "l1-global",
	Command: "prune",
	Doc:     "zero the smallest elements of all weights together",
	Stage:   pass.Prune,
	New:     func() pass.Options { return &L1Global{} },
}

// Method describes the method.
func (L1Global) Method() *pass.Method { return l1GlobalMethod }

// Check reports an amount that is not a fraction.
func (o L1Global) Check() error { return checkAmount(o.Amount) }

// Run implements pass.Options.
func (o L1Global) Run(ctx context.Context, s *pass.Step) error {
	for ws := weightsAndBiases(s, o.Embeddings, o.Biases); len(ws) > 0; {
		rest, err := o.prune(ctx, s, ws)
		if err != nil || len(rest) == len(ws) {
			return err
		}
		ws = rest // the others have NaN: the fraction applies to the rest
	}
	return nil
}

// prune prunes ws, or none of them if some have NaN or infinities; it returns the finite ones.
func (o L1Global) prune(ctx context.Context, s *pass.Step, ws []*weight) ([]*weight, error) {
	p, err := newRanking(ctx, s, &buffers{}, tensors(ws)...)
	if err != nil {
		return nil, err
	}
	k := prunedCount(o.Amount, p.total())
	if k == 0 {
		skipAll(s, ws, roundsToZero)
		return ws, nil
	}
	t, err := p.threshold(ctx, k)
	if err != nil {
		return nil, err
	}
	if !p.isFinite() {
		return p.separate(ws), nil
	}
	note := pass.Reason{Code: pass.Pruned, Detail: fmt.Sprintf("%d of %d elements of all weights, the largest %.4g", k,
		p.total(), p.value(t))}
	for i, cut := range p.masks(t) {
		ws[i].applyMask(s, cut, note)
	}
	return ws, nil
}

// separate skips the weights with NaN or infinities and returns the others.
func (p *ranking) separate(ws []*weight) []*weight {
	var sound []*weight
	for i, w := range ws {
		if p.nonFinite[i].Load() {
			w.skip(p.step, notFinite)
			continue
		}
		sound = append(sound, w)
	}
	return sound
}

func tensors(ws []*weight) []*ir.Tensor {
	ts := make([]*ir.Tensor, len(ws))
	for i, w := range ws {
		ts[i] = w.before
	}
	return ts
}

func skipAll(s *pass.Step, ws []*weight, reason pass.Reason) {
	for _, w := range ws {
		w.skip(s, reason)
	}
}
