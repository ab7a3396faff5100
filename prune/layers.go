package prune

import (
	"context"
	"fmt"
	"math"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// Layers removes layers from a model that repeats one: layers of a transformer, residual blocks of a stage. The layers to
// keep are spread evenly, as those of DistilBERT (Sanh et al. 2019, arXiv:1910.01108, section 3). The model requires
// fine-tuning afterwards.
type Layers struct {
	pass.Selection
	// Amount is the fraction of the layers of each kind that is removed, above 0 up to 1; 0 is the default.
	Amount float64 `flag:"amount" default:"0.5" usage:"'fraction' of the layers of each kind that is removed, above 0 up to 1; one always stays"`
}

var layersMethod = &pass.Method{
	Name:    "layers",
	Command: "prune",
	Doc:     "remove some of the layers that a model repeats, such as those of a transformer",
	Stage:   pass.Prune,
	Shrinks: true,
	Repeats: true,
	New:     func() pass.Options { return &Layers{} },
}

// Method describes the method.
func (Layers) Method() *pass.Method { return layersMethod }

// Check reports an amount that is not a fraction.
func (o Layers) Check() error { return checkAmount(o.Amount) }

// Run implements pass.Options.
func (o Layers) Run(_ context.Context, s *pass.Step) error {
	nodes, err := s.Model.Graph.Order()
	if err != nil {
		return err
	}
	consumers := map[*ir.Value][]*ir.Node{}
	for _, w := range pass.Weights(s.Model) {
		consumers[w] = pass.Consumers(w)
	}
	before := map[*ir.Value]*ir.Tensor{}
	for w := range consumers {
		before[w] = w.Const
	}
	weights, reported := pass.Weights(s.Model), map[*ir.Value]bool{}
	runs := repetitions(nodes)
	for _, r := range runs {
		stay := o.leaveOut(r)
		for _, w := range weights {
			if w.Removed() && !reported[w] {
				reported[w] = true
				s.Ledger.Changed(w, before[w], consumers[w], pass.Row{Form: pass.Smaller, Notes: pass.Notes(pass.Reason{Code: pass.LayerRemoved, Detail: fmt.Sprintf("%d of %d kept", stay, len(r)-1)})})
			}
		}
	}
	for _, w := range weights {
		if !w.Removed() {
			s.Ledger.Skip(w, consumers[w], pass.Reason{Code: pass.LayerKept})
		}
	}
	return nil
}

// leaveOut removes layers from a repetition: the input of a removed layer becomes that of the next one. It returns the
// number of layers that are kept.
func (o Layers) leaveOut(r repetition) int {
	n := len(r) - 1
	stay := max(1, n-int(rounded(o.Amount, int64(n))))
	kept := map[int]bool{}
	for i := range stay {
		kept[evenly(i, stay, n)] = true
	}
	enters := r[0]
	for b := range n {
		if kept[b] {
			enters = r[b+1]
			continue
		}
		r[b+1].ReplaceUses(enters)
		r[b+1].Drop()
	}
	return stay
}

// evenly is the i-th of the layers to keep of n: the first, the last, and others evenly between. A single layer is the last
// one, whose output has the name that its consumers use.
func evenly(i, stay, n int) int {
	if stay == 1 {
		return n - 1
	}
	return int(math.RoundToEven(float64(i) * float64(n-1) / float64(stay-1)))
}
