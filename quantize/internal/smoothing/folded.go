package smoothing

import (
	"context"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/rescale"
)

// Folded are the products of a model whose inputs can be scaled at their producers, for methods with factors of their
// own (AWQ).
type Folded struct {
	e        *rescale.Editor
	Products []*Products
}

// Products are the layers that are the only consumers of one value.
type Products struct {
	X      *ir.Value
	Layers []*rescale.Layer
	e      *rescale.Editor
	g      *group
}

// NewFolded finds them in the main graph.
func NewFolded(s *pass.Step) *Folded {
	f := &Folded{e: rescale.New(s)}
	for _, g := range groups(f.e, s.Model.Graph) {
		if g.fold != nil {
			f.Products = append(f.Products, &Products{g.x, g.layers, f.e, g})
		}
	}
	return f
}

// Scale divides the channels of X by factors at the producer, and multiplies the weights by them. The caller adds the
// ledger rows of the weights.
func (p *Products) Scale(ctx context.Context, by []float64) error {
	for _, l := range p.Layers {
		p.e.Forget(l.Weight)
	}
	return p.g.scale(ctx, by)
}

// Report adds ledger rows of the constants that absorbed factors.
func (f *Folded) Report(changed pass.Code) { f.e.Report(changed, "") }
