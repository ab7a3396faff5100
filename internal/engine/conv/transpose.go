package conv

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// transposed is ConvTranspose, whose semantics never changed.
func transposed() []op.Op {
	return wide(op.Op{
		Type: "ConvTranspose", Since: 1, Shape: transposedShape,
		Work: transposedWork, Run: transposedTypes().run,
	})
}

func transposedTypes() byType {
	return byType{
		ir.Float: func(c *op.Call) error {
			return transpose(c, func(s gemm.Shape, a, b gemm.Matrix[float32], to []float32, work []byte) {
				gemm.Float(c.Pool, s, work, gemm.FloatProduct{A: a, B: b, C: to, Stride: s.N})
			})
		},
		ir.Double: func(c *op.Call) error {
			return transpose(c, func(s gemm.Shape, a, b gemm.Matrix[float64], to []float64, _ []byte) {
				gemm.Plain(c.Pool, s, a, b, to, s.N)
			})
		},
	}
}

// transposedGeometry is that of the convolution that ConvTranspose transposes: X is its output, Y its input.
func transposedGeometry(n *op.Node, in []*ir.Array) (*Geometry, error) {
	x := in[0]
	w, err := op.Arg(in, 1, "W")
	if err != nil {
		return nil, err
	}
	groups := n.Int("group", 1)
	switch {
	case len(w.Shape) != len(x.Shape):
		return nil, fmt.Errorf("X has rank %d and W rank %d, want the same", len(x.Shape), len(w.Shape))
	case groups < 1 || x.Shape[1]%groups != 0 || w.Shape[0] != x.Shape[1]:
		return nil, fmt.Errorf("X has %d channels, W has %d and group is %d", x.Shape[1], w.Shape[0], groups)
	}
	win, err := transposedWindow(n, x.Shape[2:], w.Shape[2:])
	if err != nil {
		return nil, err
	}
	return &Geometry{win, int(x.Shape[0]), int(groups), int(w.Shape[1]), int(x.Shape[1] / groups)}, nil
}

func transposedWindow(n *op.Node, x, kernel []int64) (*window, error) {
	w, err := readWindow(n, x, kernel)
	if err != nil {
		return nil, err
	}
	rank := len(x)
	extra, err := sizes("output_padding", n.Ints("output_padding"), rank, 0, 0)
	if err != nil {
		return nil, err
	}
	given := n.Ints("output_shape")
	if len(given) == rank+2 { // with batch and channels, as older exporters write it
		given = given[2:]
	}
	want, err := sizes("output_shape", given, rank, unspecified, unspecified)
	if err != nil {
		return nil, err
	}
	// The window is that of the convolution that is transposed, whose output is X.
	w.in, w.out = w.out, w.in
	for i := range w.in {
		if err := w.unfold(i, extra[i], want[i], n.Text("auto_pad", notSet)); err != nil {
			return nil, err
		}
	}
	return w, nil
}

const unspecified = -1

// unfold computes the length of the output along axis i, and its padding.
func (w *window) unfold(i, extra, want int, auto string) error {
	all := (w.out[i]-1)*w.stride[i] + extra + w.span(i)
	switch auto {
	case notSet, "":
	case valid:
		w.begin[i], w.end[i] = 0, 0
	case sameUpper, sameLower:
		// The specification's default of SAME: the input's length times the stride.
		if want == unspecified {
			want = w.out[i] * w.stride[i]
		}
	default:
		return fmt.Errorf("auto_pad is %q, want %s, %s, %s or %s", auto, notSet, valid, sameUpper, sameLower)
	}
	if want != unspecified {
		// Given output lengths determine the padding; odd padding is larger at the end for SAME_UPPER and at the start
		// otherwise.
		total := max(all-want, 0)
		w.end[i] = total / 2
		if auto == sameUpper {
			w.end[i] = total - total/2
		}
		w.begin[i] = total - w.end[i]
	} else {
		want = all - w.begin[i] - w.end[i]
	}
	if want < 0 || want > most {
		return fmt.Errorf("axis %d of the output has size %d, out of range 0 to %d", i+2, want, most)
	}
	w.in[i] = want
	return nil
}

func transposedShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := transposedTypes().image(in)
	if err != nil {
		return nil, err
	}
	g, err := transposedGeometry(n, in)
	if err != nil {
		return nil, err
	}
	if err := sameType(in, "X", "W", "B"); err != nil {
		return nil, err
	}
	channels := int64(g.Groups * g.InC)
	if b := op.Opt(in, 2); b != nil && (len(b.Shape) != 1 || b.Shape[0] != channels) {
		return nil, fmt.Errorf("input B is %s, want one value for each of %d output channels", b, channels)
	}
	shape := spatial(x, g.in)
	shape[1] = channels
	return like(x, shape...)
}

// unfoldAtOnce bounds the memory of a product: chunks of channels are computed one after the other.
const unfoldAtOnce = 1 << 20 // elements

// chunk is the number of output channels computed at a time.
func (g *Geometry) chunk() int {
	return min(max(unfoldAtOnce/max(g.kernelSize()*g.OutArea(), 1), 1), g.InC)
}

func (g *Geometry) unfolding(channels int) gemm.Shape {
	return gemm.Shape{M: channels * g.kernelSize(), N: g.OutArea(), K: g.OutC}
}

func transposedWork(n *op.Node, in []*ir.Array, workers int) int64 {
	g, err := transposedGeometry(n, in)
	if err != nil || g.InC == 0 {
		return 0
	}
	s := g.unfolding(g.chunk())
	// The last chunk is smaller, but its shape may be packed in another way that needs more.
	size := aligned(in[0].DType.Bits() / 8 * int64(s.M) * int64(s.N))
	last := g.unfolding(g.InC % g.chunk())
	return size + max(gemm.FloatWork(s, 1, workers, false), gemm.FloatWork(last, 1, workers, false))
}

// transpose multiplies the weights with X, which gives the contribution of each position of X to the positions of Y
// under the window, and sums the contributions.
func transpose[T float](c *op.Call, multiply func(s gemm.Shape, a, b gemm.Matrix[T], to []T, work []byte)) error {
	g, err := transposedGeometry(c.Node, c.In)
	if err != nil || c.Out[0].Elems() == 0 {
		return err
	}
	x, w, y := ir.View[T](c.In[0]), ir.View[T](c.In[1]), ir.View[T](c.Out[0])
	// The bias is what contributions are added to.
	if b := c.Opt(2); b != nil {
		for i := range g.Batch * g.Groups * g.InC {
			fill(part(y, i, g.inLen()), ir.View[T](b)[i%(g.Groups*g.InC)])
		}
	} else {
		clear(y)
	}
	if len(x) == 0 {
		return nil
	}
	buf := scratch[T](c.Work)
	most := g.unfolding(g.chunk())
	sums := buf.take(most.M * most.N)
	for i := range g.Products() {
		b := gemm.Rows(Output(g, x, i), g.OutArea())
		weights := Weights(g, w, i)
		// A product has kernelSize rows for each channel, which may be far more than Y: so a chunk at a time.
		for m := 0; m < g.InC; m += g.chunk() {
			n := min(g.chunk(), g.InC-m)
			s := g.unfolding(n)
			a := gemm.Matrix[T]{Data: weights[m*g.kernelSize():], Row: 1, Col: g.Depth()}
			multiply(s, a, b, sums[:s.M*s.N], buf)
			c.Pool.For(n, func(j int) {
				addUnfolded(g, part(Input(g, y, i), m+j, g.inLen()), part(sums, j, g.kernelSize()*g.OutArea()))
			})
		}
	}
	return nil
}

// addUnfolded adds to a channel of Y the contributions of each kernel tap.
func addUnfolded[T float](g *Geometry, y, sums []T) {
	var rows []coveredRow
	last := g.last()
	width := g.out[last]
	for o := range g.OutArea() / width {
		rows = g.rows(rows, o)
		for _, r := range rows {
			to := y[r.off:][:g.in[last]]
			for k := range g.kernel[last] {
				lo, hi, from := g.taps(last, k)
				row := part(part(sums, r.tap*g.kernel[last]+k, g.OutArea()), o, width)
				spreadOver(to, row[lo:hi], from, g.stride[last])
			}
		}
	}
}

// spreadOver adds x to elements of y that are stride apart.
func spreadOver[T float](y, x []T, from, stride int) {
	if len(x) == 0 {
		return
	}
	if stride == 1 {
		add(y[from:][:len(x)], x)
		return
	}
	for i, v := range x {
		y[from+i*stride] += v
	}
}
