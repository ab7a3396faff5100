package verify

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/mcompress/mcompress/dataset"
	"github.com/mcompress/mcompress/engine"
	"github.com/mcompress/mcompress/ir"
)

// A Layer is a value that both graphs make under the same name, with its error.
type Layer struct {
	Value  string `json:"value"`
	Node   string `json:"node"` // of the first model, which makes it
	Op     string `json:"op"`
	Errors Errors `json:"errors"`
}

// Shared are the names of the values that nodes of both main graphs make, in the order of a's
// nodes; the outputs are among them.
func Shared(a, b *ir.Model) ([]string, error) {
	made := map[string]bool{}
	for n := range b.Graph.Nodes() {
		for _, v := range n.Outputs {
			if v != nil && !v.Ambiguous {
				made[v.Name] = true
			}
		}
	}
	nodes, err := a.Graph.Order()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, n := range nodes {
		for _, v := range n.Outputs {
			if v != nil && !v.Ambiguous && made[v.Name] {
				names = append(names, v.Name)
			}
		}
	}
	return names, nil
}

// atOnce is how many values inside the graphs are held at a time: a run for each so many
// layers is the price of memory that does not grow with the graph.
const atOnce = 16

// CompareLayers compares the named values of both models on the first batch of set. The sessions must have
// been opened to keep them. Values that are no floats are left out.
func (r *Result) CompareLayers(ctx context.Context, a, b engine.Session, model *ir.Model, names []string, set *dataset.Set, o Options) error {
	by := map[string]*sums{}
	for batch, err := range set.Batches(ctx, dataset.Order{Size: max(o.Batch, 1)}) {
		if err != nil {
			return err
		}
		for chunk := range slices.Chunk(names, atOnce) {
			if err := compareChunk(ctx, a, b, chunk, batch, by); err != nil {
				return err
			}
		}
		break
	}
	return r.layers(model, by)
}

func compareChunk(ctx context.Context, a, b engine.Session, names []string, batch *dataset.Batch, by map[string]*sums) error {
	want, err := a.Run(ctx, batch.Inputs, names)
	if err != nil {
		return &SideError{First, err}
	}
	got, err := b.Run(ctx, batch.Inputs, names)
	if err != nil {
		return &SideError{Second, err}
	}
	for _, name := range names {
		w, g := want[name], got[name]
		if w.Kind != ir.Dense || g.Kind != ir.Dense || !w.DType.IsFloat() || !g.DType.IsFloat() || !slices.Equal(w.Shape, g.Shape) {
			continue // a method put something else under this name
		}
		by[name] = &sums{}
		if err := by[name].add(w, g); err != nil {
			return fmt.Errorf("value %q: %w", name, err)
		}
	}
	return nil
}

// layers lists what was measured in the order of the nodes, and finds the layer that adds most noise, in
// relation to its signal, to what reaches it.
func (r *Result) layers(model *ir.Model, by map[string]*sums) error {
	nodes, err := model.Graph.Order()
	if err != nil {
		return err
	}
	noise := map[*ir.Value]float64{} // relative to the signal, of the value or of what it is made from
	most := 0.0
	r.Layers, r.Breaks = nil, ""
	for _, n := range nodes {
		reaches := 0.0
		for _, v := range n.Inputs() {
			if v != nil {
				reaches = max(reaches, noise[v])
			}
		}
		for _, v := range n.Outputs {
			if v == nil {
				continue
			}
			noise[v] = reaches
			s := by[v.Name]
			if s == nil {
				continue
			}
			e := s.errors()
			noise[v] = relative(e.SQNR)
			r.Layers = append(r.Layers, Layer{Value: v.Name, Node: n.Label(), Op: n.Op.String(), Errors: e})
			if added := noise[v] - reaches; added > most {
				most, r.Breaks = added, v.Name
			}
		}
	}
	return nil
}

// relative is noise power by signal power; everything that is not a number counts as much noise as can be.
func relative(sqnr DB) float64 {
	if math.IsInf(float64(sqnr), -1) {
		return math.MaxFloat64
	}
	return math.Pow(10, -float64(sqnr)/10)
}
