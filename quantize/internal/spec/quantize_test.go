package spec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/dev/quanttest"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A layout is an encoding and the axes of its tensor with a scale for each index.
type layout struct {
	name string
	kept []int
	PerChannel
}

func matrixEncoding(rows, cols int64, axis int, transpose bool) PerChannel {
	shape := []int64{rows, cols}
	g := PerTensorLayout(rows * cols)
	if axis >= 0 {
		g = PerAxisLayout(shape, axis)
	}
	return PerChannel{Shape: shape, Layout: g, Axis: axis, Transpose: transpose}
}

func kept(shape []int64, axes ...int) PerChannel {
	g, _ := LayoutOfAxes(shape, axes)
	return PerChannel{Shape: shape, Layout: g}
}

func layouts() []layout {
	long := int64(pass.Block + 77)
	return []layout{
		{"rows", []int{0}, matrixEncoding(13, 37, 0, false)},
		{"columns", []int{1}, matrixEncoding(13, 37, 1, false)},
		{"whole", nil, matrixEncoding(13, 37, -1, false)},
		{"vector", nil, PerChannel{Shape: []int64{301}, Layout: PerTensorLayout(301)}},
		{"one column", []int{1}, matrixEncoding(300, 1, 1, false)},
		{"one row", []int{1}, matrixEncoding(1, 300, 1, false)},
		{"rows of one", []int{0}, matrixEncoding(300, 1, 0, false)},
		{"long rows", []int{0}, matrixEncoding(2, long, 0, false)},
		{"long columns", []int{1}, matrixEncoding(3, long, 1, false)},
		{"long whole", nil, matrixEncoding(3, long, -1, false)},
		{"more than is held", []int{1}, matrixEncoding(1600, 2048, 1, false)},
		{"turned", []int{0}, matrixEncoding(45, 70, 0, true)},
		{"turned, one scale", nil, matrixEncoding(45, 70, -1, true)},
		{"turned in panels", []int{0}, matrixEncoding(1030, 2500, 0, true)},
		{"turned in panels, one scale", nil, matrixEncoding(1030, 2500, -1, true)},
		{"batched columns", []int{0, 2}, kept([]int64{3, 5, 7}, 0, 2)},
		{"batched rows", []int{0, 1}, kept([]int64{3, 5, 7}, 0, 1)},
		{"batched single rows", []int{0, 2}, kept([]int64{3, 1, 7}, 0, 2)},
		{"batches of batches", []int{0, 1, 3}, kept([]int64{2, 3, 5, 7}, 0, 1, 3)},
		{"convolution", []int{0}, kept([]int64{8, 3, 3, 3}, 0)},
		{"transposed convolution", []int{1}, kept([]int64{6, 5, 3, 3}, 1)},
		{"recurrent", []int{0, 1}, kept([]int64{2, 20, 9}, 0, 1)},
	}
}

// group is the scale of the element at index i.
func (l *layout) group(i int64) int64 {
	at := make([]int64, len(l.Shape))
	for d := len(l.Shape) - 1; d >= 0; d-- {
		at[d], i = i%l.Shape[d], i/l.Shape[d]
	}
	n := int64(0)
	for _, d := range l.kept {
		n = n*l.Shape[d] + at[d]
	}
	return n
}

// A definition is scales and zero points by the definition, element by element.
type definition struct {
	scale     []float32
	zero      []int32
	quantized kernel.IntRange
}

func (l *layout) define(x []float32) definition {
	groups := int64(1)
	for _, d := range l.kept {
		groups *= l.Shape[d]
	}
	lo, hi := make([]float32, groups), make([]float32, groups)
	for i, v := range x {
		g := l.group(int64(i))
		lo[g], hi[g] = min(lo[g], v), max(hi[g], v)
	}
	d := definition{scale: make([]float32, groups), zero: make([]int32, groups), quantized: l.Spec.Levels()}
	for g := range groups {
		d.scale[g], d.zero[g] = l.Spec.define(lo[g], hi[g])
	}
	return d
}

// define is the table of the documentation: maximum magnitude / 127, or the range over all levels.
func (s QuantSpec) define(lo, hi float32) (float32, int32) {
	bottom, top, half, middle := float32(-128), float32(127), float32(127), int32(0)
	switch {
	case s.Unsigned && s.ReduceRange:
		bottom, top, half, middle = 0, 127, 64, 64
	case s.Unsigned:
		bottom, top, middle = 0, 255, 128
	case s.ReduceRange:
		bottom, top, half = -64, 64, 64
	}
	switch {
	case s.Symmetric && lo == 0 && hi == 0:
		return 1, middle
	case s.Symmetric:
		return max(-lo, hi) / half, middle
	case lo == 0 && hi == 0:
		return 1, 0
	}
	scale := (hi - lo) / (top - bottom)
	zero := float32(math.RoundToEven(float64(bottom - lo/scale)))
	return scale, int32(min(max(zero, bottom), top))
}

// code is QuantizeLinear, saturating at the levels.
func (d definition) quantize(x float32, g int64) byte {
	q := math.RoundToEven(float64(x/d.scale[g])) + float64(d.zero[g])
	return byte(int32(min(max(q, float64(d.quantized.Lo)), float64(d.quantized.Hi))))
}

// values are random weights with ties, zeros of both signs and, in some groups, only zeros.
func values(l *layout, r *rand.Rand) []float32 {
	n := (ir.Spec{Shape: l.Shape}).Elems()
	x := make([]float32, n)
	for i := range x {
		g := l.group(int64(i))
		switch k := r.IntN(8); {
		case g%5 == 4:
			x[i] = float32(math.Copysign(0, float64(k)-4))
		case k < 3: // halves of a scale of 1/16
			x[i] = (float32(r.IntN(254)-127) + 0.5) / 16
		case k == 3:
			x[i] = 127. / 16
		default:
			x[i] = float32(r.NormFloat64()) * float32(g%3+1)
		}
	}
	return x
}

func schemes() []QuantSpec {
	var ss []QuantSpec
	for i := range 8 {
		ss = append(ss, QuantSpec{Unsigned: i&1 > 0, Symmetric: i&2 > 0, ReduceRange: i&4 > 0})
	}
	return ss
}

// outputs runs c's recipe.
func (c *PerChannel) outputs(t testing.TB) ([][]byte, error) {
	t.Helper()
	e := ir.NewEval(t.TempDir())
	defer e.Close()
	r := c.Recipe()
	out := make([]bytes.Buffer, len(r.Out))
	ws := make([]io.Writer, len(out))
	for i := range out {
		ws[i] = &out[i]
	}
	err := e.Run(context.Background(), r, ws)
	bs := make([][]byte, len(out))
	for i := range out {
		bs[i] = out[i].Bytes()
	}
	return bs, err
}

// isLarge reports whether l has enough elements for several blocks or panels.
func (l *layout) isLarge() bool { return l.Layout.Elems() > pass.Block }

func TestQuantizedValuesAndScalesAreTheDefinitions(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, l := range layouts() {
		if !l.isLarge() {
			l.holdsForSchemes(t, r, schemes())
		}
	}
}

// Edges of blocks are the same for all schemes.
func TestQuantizedValuesOfLargeWeightsAreTheDefinitions(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, l := range layouts() {
		if l.isLarge() {
			l.holdsForSchemes(t, r, []QuantSpec{{}, {Symmetric: true}})
		}
	}
}

func (l *layout) holdsForSchemes(t *testing.T, r *rand.Rand, schemes []QuantSpec) {
	x := values(l, r)
	for _, s := range schemes {
		t.Run(fmt.Sprintf("%s %+v", l.name, s), func(t *testing.T) {
			l.Spec, l.Weight = s, quanttest.TensorOf(ir.Float, l.Shape, x)
			l.holds(t, x)
		})
	}
}

func TestQuantizedHalves(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, dt := range []ir.DType{ir.Float16, ir.BFloat16} {
		for _, l := range layouts()[:6] {
			x := values(&l, r)
			for i, v := range x {
				x[i] = quanttest.Wide(dt, quanttest.Narrow(dt, v))
			}
			t.Run(fmt.Sprintf("%s %s", dt, l.name), func(t *testing.T) {
				l.Spec, l.Weight = QuantSpec{}, quanttest.TensorOf(dt, l.Shape, x)
				l.holds(t, x)
			})
		}
	}
}

// holds compares the outputs of l's recipe, and the restored weight, with the definition. The shape of the scales is
// not checked.
func (l *layout) holds(t *testing.T, x []float32) {
	t.Helper()
	want := l.define(x)
	l.ScaleShape = []int64{int64(len(want.scale))}
	out, err := l.outputs(t)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out[OutScales], kernel.Bytes(want.scale)) {
		t.Fatal("the scales differ")
	}
	if !l.Spec.Symmetric && !bytes.Equal(out[OutZeroPoints], zeroPointBytes(want.zero)) {
		t.Fatal("the zero points differ")
	}
	dense := l.restored(t, out)
	for i, v := range x {
		g := l.group(int64(i))
		level := want.quantize(v, g)
		if got := out[OutQuantized][l.place(int64(i))]; got != level {
			t.Fatalf("element %d, %g by %g: quantized to %d, want %d", i, v, want.scale[g], got, level)
		}
		q := int32(level)
		if !l.Spec.Unsigned {
			q = int32(int8(level))
		}
		if got, exact := dense[i], float32(q-want.zero[g])*want.scale[g]; !same(l.Weight.DType, got, exact) {
			t.Fatalf("element %d comes back as %g, want %g", i, got, exact)
		}
	}
}

func same(dt ir.DType, got, exact float32) bool {
	if dt != ir.Float {
		exact = quanttest.Wide(dt, quanttest.Narrow(dt, exact))
	}
	return got == exact
}

// place is the index of the quantized value of element i.
func (l *layout) place(i int64) int64 {
	if !l.Transpose {
		return i
	}
	rows, cols := l.Shape[0], l.Shape[1]
	return i%cols*rows + i/cols
}

func (l *layout) restored(t *testing.T, out [][]byte) []float32 {
	t.Helper()
	r := l.Recipe()
	parts := make([]*ir.Tensor, len(out))
	for i, b := range out {
		parts[i] = &ir.Tensor{Spec: r.Out[i], Source: ir.Mem(b)}
	}
	e := ir.NewEval(t.TempDir())
	defer e.Close()
	b, err := e.ReadAll(context.Background(), l.PerChannel.Restore(parts))
	if err != nil {
		t.Fatal(err)
	}
	x := make([]float32, l.Weight.Elems())
	if err := pass.NewFloats(bytes.NewReader(b), l.Weight.DType).Read(x, 0); err != nil {
		t.Fatal(err)
	}
	return x
}

// Values without a scale end the recipe with an error that names the weight.
func TestUnfitValuesAreNamed(t *testing.T) {
	inf, tiny := float32(math.Inf(1)), math.Float32frombits(5)
	for _, c := range []struct {
		value  float32
		reason pass.Code
	}{
		{float32(math.NaN()), pass.NotFinite}, {inf, pass.NotFinite}, {-inf, pass.NotFinite}, {tiny, pass.NoScale},
	} {
		for _, l := range layouts()[:13] {
			if l.Layout.Elems() > 1e6 {
				continue
			}
			for _, s := range schemes()[:4] {
				x := make([]float32, l.Layout.Elems())
				x[len(x)-1] = c.value
				l.Spec, l.Weight = s, quanttest.TensorOf(ir.Float, l.Shape, x)
				l.ScaleShape = []int64{l.Layout.NumScales()}
				_, err := l.outputs(t)
				var unfit *pass.Unfit
				if !errors.As(err, &unfit) || unfit.Tensor != "w" || unfit.Reason.Code != c.reason {
					t.Errorf("%s %+v with %g: %v", l.name, s, c.value, err)
				}
			}
		}
	}
}

// Levels are within their type, and zero is representable.
func TestLevels(t *testing.T) {
	for _, s := range schemes() {
		c := s.Levels()
		lo, hi := int32(-128), int32(127)
		if s.Unsigned {
			lo, hi = 0, 255
		}
		if c.Lo < lo || c.Hi > hi || s.Symmetric && (s.ZeroPoint() < c.Lo || s.ZeroPoint() > c.Hi) {
			t.Errorf("%+v: quantized values %d to %d around %d", s, c.Lo, c.Hi, s.ZeroPoint())
		}
		if s.Symmetric && c.Hi-s.ZeroPoint() != s.ZeroPoint()-c.Lo {
			t.Errorf("%+v: quantized values %d to %d are not even around %d", s, c.Lo, c.Hi, s.ZeroPoint())
		}
	}
}

// The reference implementation of quantized values is ONNX Runtime's QuantizeLinear.
func TestTheDefinitionIsQuantizeLinear(t *testing.T) {
	w := conform.Start(t)
	r := rand.New(rand.NewPCG(5, 6))
	for _, s := range schemes()[:4] {
		for _, l := range layouts() {
			if l.Layout.Elems() > 1e6 || len(l.kept) > 1 {
				continue // QuantizeLinear has one axis
			}
			x := values(&l, r)
			l.Spec = s
			d := l.define(x)
			got, err := w.Run(quantizeLinear(t, &l, x, d), conform.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for i, b := range got[0].Data {
				if want := d.quantize(x[i], l.group(int64(i))); b != want {
					t.Fatalf("%s %+v: element %d: %d, the definition has %d", l.name, s, i, b, want)
				}
			}
		}
	}
}

// quantizeLinear is a model of one QuantizeLinear of constants.
func quantizeLinear(t *testing.T, l *layout, x []float32, d definition) string {
	m := ir.NewModel()
	m.Graph.Name = "quantize"
	m.Opsets = []ir.Opset{{Version: 13}}
	m.IRVersion = 7
	axis, shape := ir.IntAttr("axis", 0), []int64{}
	if len(l.kept) == 1 {
		axis, shape = ir.IntAttr("axis", int64(l.kept[0])), []int64{int64(len(d.scale))}
	}
	scale := m.Graph.AddConst("s", quanttest.TensorOf(ir.Float, shape, d.scale))
	zero := m.Graph.AddConst("z", &ir.Tensor{Spec: ir.Spec{DType: l.Spec.DType(), Shape: shape},
		Source: ir.Mem(zeroPointBytes(d.zero))})
	y := m.Graph.Insert(nil, "QuantizeLinear",
		[]*ir.Value{m.Graph.AddConst("x", quanttest.TensorOf(ir.Float, l.Shape, x)), scale, zero}, axis)
	y.Name, y.Type = "y", &ir.Type{Elem: l.Spec.DType()}
	for _, n := range l.Shape {
		y.Type.Shape = append(y.Type.Shape, ir.Dim{N: n})
	}
	m.Graph.AddOutput(y)
	e := ir.NewEval(t.TempDir())
	defer e.Close()
	return quanttest.Save(t, m, e)
}
