package smoothing

import (
	"context"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/rescale"
)

// A group is the products that consume one value: its channels have one factor each.
type group struct {
	x      *ir.Value
	layers []*rescale.Layer
	fold   scaler // multiplies the channels at the producer; nil if not possible
	seen   statistics
}

// groups are those of the main graph, in node order: values of subgraphs are not observed
// during calibration.
func groups(e *rescale.Editor, g *ir.Graph) []*group {
	var all []*group
	by := map[*ir.Value]*group{}
	for n := range g.Nodes() {
		l, reason := e.Layer(n)
		if !reason.None() || l.Node != n || l.Spatial() {
			continue
		}
		x := n.Input(0)
		if x == nil || x.Const != nil || opset.Elem(x) != ir.Float && l.Weight.Const.DType != ir.Float {
			continue
		}
		if by[x] == nil {
			by[x] = &group{x: x}
			all = append(all, by[x])
		}
		by[x].layers = append(by[x].layers, l)
	}
	// A value that products read as different numbers of channels has no factors.
	all = slices.DeleteFunc(all, func(g *group) bool {
		return slices.ContainsFunc(g.layers, func(l *rescale.Layer) bool { return l.Inputs != g.channels() })
	})
	for _, g := range all {
		// All consumers are products whose weights take the inverse: any other one would read scaled channels.
		if len(g.x.Uses()) == len(g.layers) {
			g.fold = (&folder{Editor: e, channels: g.channels()}).into(g.x)
		}
	}
	return all
}

func (g *group) channels() int64 { return g.layers[0].Inputs }

// names of the values to observe.
func names(gs []*group) []string {
	list := make([]string, len(gs))
	for i, g := range gs {
		list[i] = g.x.Name
	}
	return list
}

// scale divides the channels by f and multiplies the weights by it. If the division
// cannot be folded into the producer, it inserts a Mul.
func (g *group) scale(ctx context.Context, f []float64) error {
	inverse := make([]float64, len(f))
	for i := range f {
		// As it is stored: the weight is multiplied by exactly what the producer is divided by.
		f[i] = float64(float32(f[i]))
		inverse[i] = 1 / f[i]
	}
	if g.fold != nil {
		if err := g.fold(ctx, inverse); err != nil {
			return err
		}
	} else {
		g.insert(inverse)
	}
	for _, l := range g.layers {
		l.ScaleInputs(f)
	}
	return nil
}

// overflow is the reason why the weights multiplied by f are not finite.
func (g *group) overflow(ctx context.Context, f []float64) (reason pass.Reason, err error) {
	for _, l := range g.layers {
		if reason, err = l.Overflow(ctx, f); err != nil || !reason.None() {
			break
		}
	}
	return reason, err
}

// insert inserts a Mul before the products.
func (g *group) insert(by []float64) {
	single := make([]float32, len(by))
	for i, v := range by {
		single[i] = float32(v)
	}
	h := g.layers[0].Node.Graph()
	factors := h.AddConst("m", &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{g.channels()}},
		Source: ir.Floats(single...)})
	y := h.Insert(g.layers[0].Node, "Mul", []*ir.Value{g.x, factors})
	y.Type = g.x.Type
	for _, l := range g.layers {
		l.Node.SetInput(0, y)
	}
}
