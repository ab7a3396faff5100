package report

import (
	"context"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
	"github.com/mcompress/mcompress/ir/opset"
)

// A resident is an estimate of the memory by which a process of the runtime grows while it loads a model: of weights,
// without its own code and activations. The runtime keeps what folded nodes compute until it has folded all of them,
// and then packs weights for its kernels, each next to the one it replaces. What it frees then stays in the process,
// and is used again where it fits.
type resident struct {
	loaded int64 // once the model is loaded
	peak   int64
}

// spare is what the heap of a process of the runtime has free when it loads a model, in bytes: models of 0.1 to 8 MB
// grow it by that much less than larger ones of the same layers.
const spare = 4 << 20

// largestKept is the size in bytes up to which glibc keeps freed buffers in the process: M_MMAP_THRESHOLD_MAX of
// mallopt(3).
const largestKept = 32 << 20

// A packer is a kind of layer, by how the runtime packs its weights for its kernels.
type packer int

const (
	notPacked packer = iota
	packedProduct
	packedConvolution
	packedRecurrence
	packedIntegers // products of quantized weights
)

// packers are the copies of weights, in buffers that the process keeps, as fractions of their bytes: those without
// folded nodes, at least, and by how much those of folded nodes lower them, per byte. Fitted to the measurements in
// docs/compatibility.md of the runtime's version.
var packers = [...]struct{ copies, least, reused float64 }{
	packedProduct:     {0.65, 0.35, 0.3},
	packedConvolution: {2, 0, 0.6},
	packedRecurrence:  {0.8, 0.1, 1},
	packedIntegers:    {0.9, 0.9, 0},
}

// packerOf is that of input i of n, a weight.
func packerOf(n *ir.Node, i int) packer {
	switch {
	case n == nil:
		return notPacked
	case operator.Of(n).HoldsQuantized():
		return packedIntegers
	case n.Op.Is("Conv") && i == 1:
		return packedConvolution
	case operator.Of(n).Product() && i == 1:
		return packedProduct
	case operator.Of(n).Precision == operator.RecurrentState && (i == 1 || i == 2):
		return packedRecurrence
	}
	return notPacked
}

// estimate is the resident memory of m, of whose constants the runtime holds the given bytes in its optimized graph.
func estimate(ctx context.Context, m *ir.Model, held int64) (resident, error) {
	all, shapes := newConstants(m), opset.NewShapes()
	var nodes []*ir.Node
	for n := range constantNodes(m, mayFold) {
		nodes = append(nodes, n)
	}
	var kept, read [len(packers)]int64
	folded, largest := int64(0), int64(0)
	packs := map[*ir.Value]packer{} // of folded values: consumers come before producers
	// Consumers first: how a value is packed follows from the last node that reads it.
	for _, n := range slices.Backward(nodes) {
		if err := ctx.Err(); err != nil {
			return resident{}, err
		}
		v := n.Outputs[0]
		bytes, known := sizeOf(shapes, v)
		packs[v] = all.packer(v, packs)
		switch {
		case !known:
		case all.isRead(v):
			read[packs[v]] += reusable(bytes)
		default:
			folded += bytes
			kept[packs[v]] += reusable(bytes)
		}
		largest = max(largest, bytes)
	}
	seen := map[*ir.Tensor]bool{}
	add := func(v *ir.Value, t *ir.Tensor, bytes int64) {
		if seen[t] {
			return
		}
		seen[t] = true
		largest = max(largest, bytes)
		if p := all.packer(v, packs); all.isRead(v) {
			if t.DType == ir.Float16 && p != packedIntegers {
				bytes *= 2 // the runtime widens it
			}
			read[p] += reusable(bytes)
		}
	}
	for g := range m.Graphs() {
		for _, v := range g.Consts() {
			add(v, v.Const, v.Const.Bytes())
		}
	}
	for n := range m.Nodes() {
		if len(n.Inputs()) > 0 || len(n.Outputs) != 1 || n.Outputs[0] == nil {
			continue
		}
		for _, a := range n.Attrs { // of Constant
			for _, e := range inAttr(a) {
				add(n.Outputs[0], e.Tensor, e.held)
			}
		}
	}
	copies := int64(0)
	for i, p := range packers {
		// Freed buffers of folded nodes are reused for packed copies, so that fewer new ones are allocated.
		of, reused := float64(read[i]), p.reused*float64(kept[i])
		copies += kept[i] + int64(max(p.least*of, p.copies*of-reused))
	}
	beyond := func(bytes int64) int64 { return held + max(0, bytes-spare) }
	// At the peak the largest weight is in memory twice, before and after it is packed or folded.
	return resident{loaded: beyond(copies), peak: beyond(max(folded, copies) + largest)}, nil
}

// reusable is bytes of a buffer that the process keeps when the runtime frees it; 0 for larger ones.
func reusable(bytes int64) int64 {
	if bytes > largestKept {
		return 0
	}
	return bytes
}

// packer is that by the consumers of the constant expression v, or of the folded nodes that read it.
func (c *constants) packer(v *ir.Value, packs map[*ir.Value]packer) packer {
	for _, u := range v.Uses() {
		p := packerOf(u.Node, u.Index)
		if u.Node != nil && c.folds(u.Node) {
			p = packs[u.Node.Outputs[0]]
		}
		if p != notPacked {
			return p
		}
	}
	return notPacked
}

// sizeOf is the bytes of v; false if its shape or type is not known.
func sizeOf(shapes opset.Shapes, v *ir.Value) (int64, bool) {
	dims, known := shapes.Of(v)
	elem := shapes.Elem(v)
	if !known || elem == ir.Undefined {
		return 0, false
	}
	n := int64(1)
	for _, d := range dims {
		if d.N < 0 || d.Param != "" {
			return 0, false
		}
		n *= d.N
	}
	return (n*elem.Bits() + 7) / 8, true
}
