package signal

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

func filters() []op.Op {
	return []op.Op{{Type: "MelWeightMatrix", Since: 17, Shape: melShape, Run: runMel}}
}

// A bank is triangular filters whose corners are equidistant on the mel scale, mel(f) = 2595 log10(1 + f/700).
type bank struct {
	filters, dft, rate int64
	low, high          float64 // hertz
}

func newBank(in []*ir.Array) (b bank, err error) {
	for i, p := range []*int64{&b.filters, &b.dft, &b.rate} {
		if *p, err = length(in, i, []string{"num_mel_bins", "dft_length", "sample_rate"}[i]); err != nil {
			return b, err
		}
	}
	if b.low, err = scalar(in, 3, "lower_edge_hertz"); err != nil {
		return b, err
	}
	if b.high, err = scalar(in, 4, "upper_edge_hertz"); err != nil {
		return b, err
	}
	if !(b.low >= 0 && b.high >= b.low && b.high <= maxLength) {
		return b, fmt.Errorf("invalid band from %v to %v hertz", b.low, b.high)
	}
	return b, nil
}

func melShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	b, err := newBank(in)
	if err != nil {
		return nil, err
	}
	return one(n.Int("output_datatype", int64(ir.Float)), b.dft/2+1, b.filters)
}

// corner is the bin of corner i. ONNX divides the band by the number of corners, not of the intervals between them.
func (b bank) corner(i int64) int64 {
	mel := func(f float64) float64 { return 2595 * math.Log10(1+f/700) }
	at := mel(b.low) + float64(i)*(mel(b.high)-mel(b.low))/float64(b.filters+2)
	hertz := 700 * (math.Pow(10, at/2595) - 1)
	return int64(math.Floor(float64(b.dft+1) * hertz / float64(b.rate)))
}

func runMel(c *op.Call) error {
	b, err := newBank(c.In)
	if err != nil {
		return err
	}
	bins := b.dft/2 + 1
	clear(c.Out[0].Data)
	for i := range b.filters {
		left, top, right := b.corner(i), b.corner(i+1), b.corner(i+2)
		// Corners may coincide for narrow filters: the top bin has the weight 1 in any case.
		for bin := left; bin < min(max(right, top+1), bins); bin++ {
			y := 1.0
			if bin < top {
				y = float64(bin-left) / float64(top-left)
			} else if bin > top {
				y = float64(right-bin) / float64(right-top)
			}
			number.Write(c.Out[0], int(bin*b.filters+i), []float64{y})
		}
	}
	return nil
}
