package conv

import (
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
)

// Images whose channels are adjacent (NHWC) are rows of pixels: the pixels of a row under a window are contiguous,
// unless the window is dilated or the channels are in groups.

// Channels is the number of channels of the input.
func (g *Geometry) Channels() int { return g.Groups * g.InC }

// PixelPatch writes the elements of a patch from element from on: the taps under the window at an output position, each
// with the channels of a group. x is an image whose channels are adjacent.
func (g *Geometry) PixelPatch(dst, x []byte, group, place, from int, padding byte) {
	channels := g.Channels()
	wide, pixels := g.kernel[1], g.in[1]*channels
	run := g.InC
	if g.Groups == 1 && g.dilation[1] == 1 {
		run, wide = run*wide, 1 // taps of a row are contiguous
	}
	row, column := place/g.out[1]*g.stride[0]-g.begin[0], place%g.out[1]*g.stride[1]-g.begin[1]
	at, step := column*channels+group*g.InC, g.dilation[1]*channels
	if wide == 1 && len(dst) == g.kernel[0]*run && row >= 0 && row+g.span(0) <= g.in[0] && at >= 0 && at+run <= pixels {
		for i := 0; i < len(dst); i += run { // a whole patch inside the image
			copy(dst[i:i+run], x[row*pixels+at:])
			row += g.dilation[0]
		}
		return
	}
	for row := row; ; row += g.dilation[0] {
		for j := range wide {
			if from >= run {
				from -= run
				continue
			}
			n := min(run-from, len(dst))
			switch at := at + j*step + from; {
			case row < 0 || row >= g.in[0]:
				fill(dst[:n], padding)
			case at >= 0 && at+n <= pixels:
				copy(dst[:n], x[row*pixels+at:])
			default:
				paddedCopy(dst[:n], x[row*pixels:][:pixels], at, padding)
			}
			if dst, from = dst[n:], 0; len(dst) == 0 {
				return
			}
		}
	}
}

// paddedCopy copies elements of row from at on, and padding for those outside.
func paddedCopy(dst, row []byte, at int, padding byte) {
	before := min(max(-at, 0), len(dst))
	inside := min(max(len(row)-max(at, 0), 0), len(dst)-before)
	fill(dst[:before], padding)
	copy(dst[before:before+inside], row[max(min(at, len(row)), 0):])
	fill(dst[before+inside:], padding)
}

// A PixelBand is some output rows of a convolution of an image whose channels are adjacent, and the input rows that
// they depend on, with padding.
type PixelBand struct {
	*Geometry
	Rows int // of the output
	line int // bytes of an input row
}

// bandsStep divides the number of bands of an image, if it has enough rows, so that few workers have equally many.
const bandsStep = 4

// NewPixelBand returns bands that fit the cache.
func NewPixelBand(g *Geometry) *PixelBand {
	b := &PixelBand{Geometry: g, line: ((g.out[1]-1)*g.stride[1] + g.span(1)) * g.Channels()}
	rows := max((4*bandSize/max(b.line, 1)-g.span(0))/g.stride[0]+1, 1)
	bands := ceilDiv(ceilDiv(g.out[0], rows), bandsStep) * bandsStep
	b.Rows = max(ceilDiv(g.out[0], max(bands, 1)), 1)
	return b
}

// PixelBandOf is nil if the convolution is not depthwise, or has several output channels per group.
func PixelBandOf(g *Geometry) *PixelBand {
	if g.InC != 1 || g.OutC != 1 {
		return nil
	}
	return NewPixelBand(g)
}

// Bands is the number of bands of an image.
func (b *PixelBand) Bands() int { return ceilDiv(b.out[0], b.Rows) }

// Bytes is the size of a band.
func (b *PixelBand) Bytes() int { return ((b.Rows-1)*b.stride[0] + b.span(0)) * b.line }

// Fill writes band i of image x, and returns the rows of its output.
func (b *PixelBand) Fill(band, x []byte, i int, padding byte) (from, to int) {
	from, to = i*b.Rows, min((i+1)*b.Rows, b.out[0])
	pixels := b.in[1] * b.Channels()
	for r := range (to-from-1)*b.stride[0] + b.span(0) {
		dst, row := part(band, r, b.line), from*b.stride[0]-b.begin[0]+r
		if row < 0 || row >= b.in[0] {
			fill(dst, padding)
		} else {
			paddedCopy(dst, x[row*pixels:][:pixels], -b.begin[1]*b.Channels(), padding)
		}
	}
	return from, to
}

// Row is the input of output row r of the band, the number of output positions, and the distance of their inputs.
func (b *PixelBand) Row(band []byte, r int) (x []byte, positions, step int) {
	return band[r*b.stride[0]*b.line:], b.out[1], b.stride[1] * b.Channels()
}

// Taps are the offsets of the taps of a depthwise convolution, a multiple of step: the last one is repeated.
func (b *PixelBand) Taps(step int) []int64 {
	var at []int64
	for i := range b.kernel[0] {
		for j := range b.kernel[1] {
			at = append(at, int64(i*b.dilation[0]*b.line+j*b.dilation[1]*b.Groups))
		}
	}
	for len(at)%step > 0 {
		at = append(at, at[len(at)-1])
	}
	return at
}

// PoolOf is the geometry of a pool of images of shape x, (N, C, D1, D2), without ceil_mode: each channel is a group.
func PoolOf(n *op.Node, x []int64) (*Geometry, error) {
	w, err := windowOf(n, x[2:], nil, floorExtent)
	if err != nil {
		return nil, err
	}
	return &Geometry{w, int(x[0]), int(x[1]), 1, 1}, nil
}

// Runs are the contiguous bytes under a window: the taps of a row, or each tap.
func (b *PixelBand) Runs() []kernel.Run {
	taps := 1
	if b.Groups == 1 && b.dilation[1] == 1 {
		taps = b.kernel[1]
	}
	var runs []kernel.Run
	quads := int64(ceilDiv(taps*b.InC, kernel.GemmQuad))
	for i := range b.kernel[0] {
		for j := 0; j < b.kernel[1]; j += taps {
			runs = append(runs, kernel.Run{At: int64(i*b.dilation[0]*b.line + j*b.dilation[1]*b.Channels()),
				Quads: quads})
		}
	}
	return runs
}

// TapsOfRun is the number of taps in each of the Runs of a convolution with weights of this shape.
func TapsOfRun(n *op.Node, w []int64) int {
	if dilations := n.Ints("dilations"); n.Int("group", 1) > 1 || len(dilations) > 1 && dilations[1] != 1 {
		return 1
	}
	return int(w[3])
}
