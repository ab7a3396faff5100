package sparse

import (
	"context"

	"github.com/mcompress/mcompress/pass"
)

// Auto stores each weight in the form that is smallest in the file. Weights that no form makes smaller stay dense.
type Auto struct {
	pass.Selection
	// Block is the shape of a block in block CSR; the zero value is 16 by 16.
	Block Block `flag:"block" default:"16" usage:"side of a block in block CSR, or 'ROWSxCOLS'"`
}

var autoMethod = method("auto", "the smallest form for each weight", func() pass.Options { return &Auto{} })

// Method describes the method.
func (Auto) Method() *pass.Method { return autoMethod }

// Run implements pass.Options.
func (o Auto) Run(ctx context.Context, s *pass.Step) error {
	return (&sparsifier{forms: []sizer{newDelta, newBitmask, newCSR, newBSR, newCOO}, block: o.Block}).sparsify(ctx, s)
}
