package prune

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// Blocks leaves whole blocks out of a model that repeats one: layers of a transformer, residual blocks of a stage. Those
// that stay are spread evenly, as DistilBERT takes its layers (Sanh et al. 2019, arXiv:1910.01108, section 3). The model
// needs training then.
type Blocks struct {
	pass.Selection
	Amount *float64 `flag:"amount" default:"0.5" usage:"'fraction' of the blocks of each kind that is removed, from 0 to 1; one always stays"`
}

var blocksMethod = &pass.Method{
	Name:    "blocks",
	Command: "prune",
	Doc:     "leave out some of the blocks that a model repeats, such as layers of a transformer",
	Stage:   pass.Prune,
	Shrinks: true,
	Repeats: true,
	New:     func() pass.Options { return &Blocks{} },
}

// Method describes the method.
func (Blocks) Method() *pass.Method { return blocksMethod }

// Check reports an amount that is not a fraction.
func (o Blocks) Check() error { return checkAmount(*o.Amount) }

// Run implements pass.Options.
func (o Blocks) Run(c *pass.Context) error {
	nodes, err := c.Model.Graph.Order()
	if err != nil {
		return err
	}
	readers := map[*ir.Value][]*ir.Node{}
	for _, w := range c.Weights() {
		readers[w] = pass.Readers(w)
	}
	before := map[*ir.Value]*ir.Tensor{}
	for w := range readers {
		before[w] = w.Const
	}
	weights, told := c.Weights(), map[*ir.Value]bool{}
	runs := repeats(nodes)
	for _, r := range runs {
		stay := o.leaveOut(r)
		for _, w := range weights {
			if w.Removed() && !told[w] {
				told[w] = true
				c.Changed(w, before[w], readers[w], pass.Row{Form: pass.Smaller, Reason: fmt.Sprintf("its block is left out: %d of %d stay", stay, len(r)-1)})
			}
		}
	}
	for _, w := range weights {
		if !w.Removed() {
			c.Skip(w, readers[w], "it belongs to no block that is left out")
		}
	}
	return nil
}

// leaveOut takes blocks out of a run, so that what enters one enters the next that stays, and returns how many stay.
func (o Blocks) leaveOut(r run) int {
	n := len(r) - 1
	stay := max(1, n-int(amount(*o.Amount).of(int64(n))))
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

// evenly is the i-th of so many that stay of n: the first, the last, and others evenly between; the last if it is the only one,
// as its result has the name that others know.
func evenly(i, stay, n int) int {
	if stay == 1 {
		return n - 1
	}
	return int(math.RoundToEven(float64(i) * float64(n-1) / float64(stay-1)))
}
