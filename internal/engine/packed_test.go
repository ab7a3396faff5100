package engine_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/ir"
)

// A sharedWeight is a weight as indices into a codebook, and scales of blocks as indices into a table of float16.
type sharedWeight struct {
	shape   []int64
	entries int
	block   int64 // 0 without scales
	floats  bool  // scales are stored as floats
}

func (w sharedWeight) dims() []int64 { return w.shape }

// value adds the nodes that compute the weight.
func (w sharedWeight) value(g *ir.Graph, r *rand.Rand) *ir.Value {
	constant := func(name string, dt ir.DType, src ir.Mem, shape ...int64) *ir.Value {
		return g.AddConst(name, &ir.Tensor{Spec: ir.Spec{DType: dt, Shape: shape}, Source: src})
	}
	indices := func(n int64, entries int) *ir.Value {
		at := make([]int32, n)
		for i := range at {
			at[i] = int32(r.IntN(entries))
		}
		return constant("indices", ir.Int32, ir.Int32s(at...), n)
	}
	elems := (ir.Spec{Shape: w.shape}).Elems()
	n := elems
	if w.block > 0 {
		n = (elems + w.block - 1) / w.block * w.block
	}
	table := make([]float32, w.entries)
	for i := range table {
		table[i] = float32(r.NormFloat64())
	}
	x := g.Insert(nil, "Gather", []*ir.Value{constant("codebook", ir.Float, ir.Floats(table...), int64(w.entries)),
		indices(n, w.entries)})
	if w.block > 0 {
		x = g.Insert(nil, "Reshape", []*ir.Value{x, constant("blocks", ir.Int64, ir.Ints(-1, w.block), 2)})
		steps, halves := make([]float32, 256), make([]uint16, 256)
		for i := range steps {
			steps[i] = float32(r.NormFloat64())
		}
		kernel.F16FromF32(halves, steps)
		kernel.F32FromF16(steps, halves)
		at := g.Insert(nil, "Reshape", []*ir.Value{indices(n/w.block, 256),
			constant("column", ir.Int64, ir.Ints(-1, 1), 2)})
		if w.floats {
			of := make([]float32, n/w.block)
			for i := range of {
				of[i] = float32(r.NormFloat64())
			}
			x = g.Insert(nil, "Mul", []*ir.Value{x, constant("scales", ir.Float, ir.Floats(of...), n/w.block, 1)})
		} else {
			s := g.Insert(nil, "Gather", []*ir.Value{constant("steps", ir.Float16, ir.Mem(kernel.Bytes(halves)), 256),
				at})
			x = g.Insert(nil, "Mul", []*ir.Value{x,
				g.Insert(nil, "Cast", []*ir.Value{s}, ir.IntAttr("to", int64(ir.Float)))})
		}
	}
	if n != elems {
		x = g.Insert(nil, "Reshape", []*ir.Value{x, constant("vector", ir.Int64, ir.Ints(-1), 1)})
		x = g.Insert(nil, "Slice", []*ir.Value{x, constant("start", ir.Int64, ir.Ints(0), 1),
			constant("end", ir.Int64, ir.Ints(elems), 1)})
	}
	return g.Insert(nil, "Reshape", []*ir.Value{x,
		constant("shape", ir.Int64, ir.Ints(w.shape...), int64(len(w.shape)))})
}

// A dequantizedWeight is the output of DequantizeLinear.
type dequantizedWeight struct {
	dt    ir.DType
	shape []int64
	axis  int64 // -1 for one scale
	block int64 // 0 for a scale for each index of the axis
	zeros bool
}

func (w dequantizedWeight) dims() []int64 { return w.shape }

// value adds DequantizeLinear on random constants.
func (w dequantizedWeight) value(g *ir.Graph, r *rand.Rand) *ir.Value {
	bytes := func(name string, shape []int64) *ir.Value {
		a := ir.NewArray(w.dt, shape...)
		for i := range a.Data {
			if a.Data[i] = byte(r.Uint32()); w.dt == ir.Float8E4M3FN && a.Data[i]&0x7f == 0x7f { // NaN
				a.Data[i] = 0
			}
		}
		return g.AddConst(name, &ir.Tensor{Spec: a.Spec(), Source: ir.Mem(a.Data)})
	}
	var scales []int64
	var attrs []*ir.Attr
	if w.axis >= 0 {
		attrs, scales = []*ir.Attr{ir.IntAttr("axis", w.axis)}, []int64{w.shape[w.axis]}
	}
	if w.block > 0 {
		scales = slices.Clone(w.shape)
		scales[w.axis] = (w.shape[w.axis] + w.block - 1) / w.block
		attrs = append(attrs, ir.IntAttr("block_size", w.block))
	}
	of := make([]float32, (ir.Spec{Shape: scales}).Elems())
	for i := range of {
		of[i] = float32(r.NormFloat64())
	}
	in := []*ir.Value{bytes("q", w.shape), g.AddConst("scale",
		&ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: scales}, Source: ir.Floats(of...)})}
	if w.zeros {
		in = append(in, bytes("zero", scales))
	}
	return g.Insert(nil, "DequantizeLinear", in, attrs...)
}

// A chainWeight is integers that elementary operators dequantize: in bytes of several values if bits are below 8.
type chainWeight struct {
	shape []int64 // a matrix
	bits  int64
	block int64 // along axis 0; 0 for a scale for each column
	zeros string
}

func (w chainWeight) dims() []int64 { return w.shape }

// value adds Cast, Div and Mod, Sub, and Mul.
func (w chainWeight) value(g *ir.Graph, r *rand.Rand) *ir.Value {
	ints := func(dt ir.DType, src ir.Mem, shape ...int64) *ir.Value {
		return g.AddConst("", &ir.Tensor{Spec: ir.Spec{DType: dt, Shape: shape}, Source: src})
	}
	reshape := func(x *ir.Value, dims ...int64) *ir.Value {
		return g.Insert(nil, "Reshape", []*ir.Value{x, ints(ir.Int64, ir.Ints(dims...), int64(len(dims)))})
	}
	cast := func(x *ir.Value, to ir.DType) *ir.Value {
		return g.Insert(nil, "Cast", []*ir.Value{x}, ir.IntAttr("to", int64(to)))
	}
	values := func(n int64) *ir.Value {
		bytes := make([]byte, n*w.bits/8)
		for i := range bytes {
			bytes[i] = byte(r.Uint32())
		}
		x, per := ints(ir.Uint8, bytes, int64(len(bytes))), 8/w.bits
		if per == 1 {
			return cast(x, ir.Float)
		}
		units := make([]int32, per)
		for i := range units {
			units[i] = 1 << (int64(i) * w.bits)
		}
		x = g.Insert(nil, "Div", []*ir.Value{reshape(cast(x, ir.Int32), -1, 1),
			ints(ir.Int32, ir.Int32s(units...), per)})
		return cast(g.Insert(nil, "Mod", []*ir.Value{x, ints(ir.Int32, ir.Int32s(1<<w.bits))}), ir.Float)
	}
	k, n := w.shape[0], w.shape[1]
	blocks := int64(1)
	if w.block > 0 {
		blocks = k / w.block
	}
	x := reshape(values(k*n), blocks, -1, n)
	switch w.zeros {
	case "one":
		x = g.Insert(nil, "Sub", []*ir.Value{x, ints(ir.Float, ir.Floats(float32(int(1)<<(w.bits-1))))})
	case "each":
		x = g.Insert(nil, "Sub", []*ir.Value{x, reshape(values(blocks*n), blocks, 1, n)})
	}
	scales := make([]float32, blocks*n)
	for i := range scales {
		scales[i] = float32(r.NormFloat64())
	}
	return reshape(g.Insert(nil, "Mul", []*ir.Value{x, ints(ir.Float, ir.Floats(scales...), blocks, 1, n)}), k, n)
}

// Weights with codebooks, and quantized ones, stay packed in memory, and results are those of the dense weights, bit by
// bit.
func TestPackedWeights(t *testing.T) {
	for i, c := range []struct {
		weight interface {
			dims() []int64
			value(g *ir.Graph, r *rand.Rand) *ir.Value
		}
		apply func(g *ir.Graph, x, w *ir.Value) *ir.Value
		x     []int64
		most  float64 // of the dense size
	}{
		{sharedWeight{[]int64{300, 130}, 16, 8, false}, matMul, []int64{7, 300}, 0.27},
		{sharedWeight{[]int64{300, 129}, 16, 8, false}, matMul, []int64{2, 3, 300}, 0.27}, // blocks across rows
		{sharedWeight{[]int64{300, 131}, 4, 0, false}, matMul, []int64{1, 300}, 0.13},
		{sharedWeight{[]int64{333, 131}, 16, 10, false}, matMul, []int64{3, 333}, 0.26}, // an incomplete block
		{sharedWeight{[]int64{300, 130}, 200, 16, true}, matMul, []int64{7, 300}, 0.34},
		{sharedWeight{[]int64{300, 130}, 700, 0, false}, matMul, []int64{7, 300}, 0.54},
		{sharedWeight{[]int64{130, 300}, 16, 8, false}, gemmTransposed, []int64{7, 300}, 0.27},
		{sharedWeight{[]int64{2, 300, 70}, 16, 8, false}, matMul, []int64{2, 5, 300}, 0.27},
		{sharedWeight{[]int64{900, 50}, 16, 8, false}, embedding, []int64{4, 6}, 0.27},
		{sharedWeight{[]int64{900, 50}, 16, 8, false}, tied, []int64{4, 50}, 0.27},
		{dequantizedWeight{ir.Int4, []int64{300, 130}, 0, 32, false}, matMul, []int64{7, 300}, 0.19},
		{dequantizedWeight{ir.Int4, []int64{300, 130}, 0, 32, true}, matMul, []int64{1, 300}, 0.2},
		{dequantizedWeight{ir.Uint4, []int64{300, 129}, 0, 16, true}, matMul, []int64{1, 300}, 0.25},
		{dequantizedWeight{ir.Uint4, []int64{300, 130}, 0, 20, true}, matMul, []int64{2, 300}, 0.21}, // not whole words
		// along the other axis
		{dequantizedWeight{ir.Int4, []int64{300, 130}, 1, 16, false}, matMul, []int64{1, 300}, 0.2},
		{dequantizedWeight{ir.Int4, []int64{130, 300}, 1, 32, true}, gemmTransposed, []int64{1, 300}, 0.2},
		{dequantizedWeight{ir.Int4, []int64{130, 301}, 1, 32, false}, transposed, []int64{3, 301}, 0.2},
		{dequantizedWeight{ir.Uint2, []int64{300, 200}, 0, 32, true}, matMul, []int64{1, 300}, 0.13},
		{dequantizedWeight{ir.Int8, []int64{300, 130}, 1, 0, true}, matMul, []int64{1, 300}, 0.29},
		{dequantizedWeight{ir.Uint8, []int64{130, 300}, 0, 0, true}, gemmTransposed, []int64{5, 300}, 0.29},
		{dequantizedWeight{ir.Int8, []int64{300, 130}, -1, 0, false}, matMul, []int64{1, 300}, 0.29},
		{dequantizedWeight{ir.Int8, []int64{2, 300, 70}, 1, 0, true}, matMul, []int64{2, 5, 300}, 0.29},
		{dequantizedWeight{ir.Float8E4M3FN, []int64{300, 130}, 1, 0, false}, matMul, []int64{1, 300}, 0.29},
		{dequantizedWeight{ir.Float4E2M1, []int64{300, 130}, 0, 32, false}, matMul, []int64{1, 300}, 0.19},
		{chainWeight{[]int64{320, 130}, 4, 32, ""}, matMul, []int64{1, 320}, 0.2},
		{chainWeight{[]int64{320, 130}, 4, 32, "one"}, matMul, []int64{7, 320}, 0.2},
		{chainWeight{[]int64{320, 2048}, 4, 32, "each"}, matMul, []int64{1, 320}, 0.2},
		{chainWeight{[]int64{320, 256}, 2, 16, "each"}, matMul, []int64{3, 320}, 0.16},
		{chainWeight{[]int64{320, 130}, 8, 0, "each"}, matMul, []int64{1, 320}, 0.29},
		{chainWeight{[]int64{320, 130}, 8, 0, "one"}, embedding, []int64{4, 6}, 0.29},
		{chainWeight{[]int64{130, 320}, 4, 0, "each"}, tied, []int64{4, 320}, 0.2},
		{dequantizedWeight{ir.Int4, []int64{900, 50}, 1, 0, true}, embedding, []int64{4, 6}, 0.14},
		{dequantizedWeight{ir.Int4, []int64{900, 64}, 1, 32, true}, tied, []int64{4, 64}, 0.2},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			m := ir.NewModel()
			m.IRVersion, m.Opsets = 13, []ir.Opset{{Version: 25}}
			r := rand.New(rand.NewPCG(1, uint64(i)))
			x := m.Graph.AddValue("x")
			x.Type = &ir.Type{Elem: ir.Float, Shape: make([]ir.Dim, len(c.x))}
			a := ir.NewArray(ir.Float, c.x...)
			for k := range a.Shape {
				x.Type.Shape[k] = ir.Dim{N: a.Shape[k]}
			}
			for k := range ir.View[float32](a) {
				ir.View[float32](a)[k] = float32(100 * r.Float64())
			}
			m.Graph.Inputs = []*ir.Value{x}
			w := c.weight.value(m.Graph, r)
			m.Graph.AddOutput(c.apply(m.Graph, x, w))
			in := map[string]*ir.Array{"x": a}
			want, dense := runPacked(t, m, in, engine.Options{Workers: 1, Keep: []string{w.Name}})
			got, held := runPacked(t, m, in, engine.Options{Workers: 3})
			if !slices.Equal(got.Data, want.Data) {
				t.Error("the results differ from those of the dense weight")
			}
			data, _ := written(t, m, in)
			if got, err := stored(t, m, in, &engine.Store{Key: "key", Data: data}); err != nil ||
				!slices.Equal(got[m.Graph.Outputs[0].Name].Data, want.Data) {
				t.Errorf("the results of stored weights differ: %v", err)
			}
			if size := float64((ir.Spec{DType: ir.Float, Shape: c.weight.dims()}).Bytes()); float64(dense) < size ||
				float64(held) > c.most*size {
				t.Errorf("%d bytes are held, %d dense, want at most %.0f", held, dense, c.most*size)
			}
			planned, err := engine.Open(t.Context(), m, engine.Options{PlanOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			defer planned.Close()
			if p := float64(planned.ConstantBytes()); p < 0.95*float64(held) || p > 1.1*float64(held)+4096 {
				t.Errorf("%.0f bytes are planned, %d held", p, held)
			}
		})
	}
}

// runPacked runs m, and returns its output and the memory of its weights.
func runPacked(t *testing.T, m *ir.Model, in map[string]*ir.Array, o engine.Options) (*ir.Array, int64) {
	t.Helper()
	s, err := engine.Open(t.Context(), m, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	out, err := s.Run(t.Context(), in, nil)
	if err != nil {
		t.Fatal(err)
	}
	held, _ := s.Weights()
	return out[m.Graph.Outputs[0].Name], held
}

func matMul(g *ir.Graph, x, w *ir.Value) *ir.Value { return g.Insert(nil, "MatMul", []*ir.Value{x, w}) }

func transposed(g *ir.Graph, x, w *ir.Value) *ir.Value {
	return matMul(g, x, g.Insert(nil, "Transpose", []*ir.Value{w}, ir.IntsAttr("perm", 1, 0)))
}

func gemmTransposed(g *ir.Graph, x, w *ir.Value) *ir.Value {
	return g.Insert(nil, "Gemm", []*ir.Value{x, w}, ir.IntAttr("transB", 1), ir.FloatAttr("alpha", 0.5))
}

func embedding(g *ir.Graph, x, w *ir.Value) *ir.Value {
	return g.Insert(nil, "Gather", []*ir.Value{w, g.Insert(nil, "Cast", []*ir.Value{x},
		ir.IntAttr("to", int64(ir.Int64)))})
}

// tied uses the weight as an embedding and as a matrix.
func tied(g *ir.Graph, x, w *ir.Value) *ir.Value {
	y := g.Insert(nil, "Gemm", []*ir.Value{x, w}, ir.IntAttr("transB", 1))
	row := g.Insert(nil, "ArgMax", []*ir.Value{y}, ir.IntAttr("axis", 1), ir.IntAttr("keepdims", 0))
	return g.Insert(nil, "Gather", []*ir.Value{w, row})
}

// convolution inserts a Conv of this number of groups and axes, and of stride 2: computed weights are not transformed
// (Winograd).
func convolution(groups int64, axes int) func(g *ir.Graph, x, w *ir.Value) *ir.Value {
	return func(g *ir.Graph, x, w *ir.Value) *ir.Value {
		return g.Insert(nil, "Conv", []*ir.Value{x, w}, ir.IntAttr("group", groups),
			ir.IntsAttr("strides", slices.Repeat([]int64{2}, axes)...))
	}
}

// Operators that do not accept packed constants receive dense ones.
func TestPackedConstantsAreDecoded(t *testing.T) {
	m := ir.NewModel()
	m.IRVersion, m.Opsets = 10, []ir.Opset{{Version: 21}}
	x := m.Graph.AddValue("x")
	x.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: 50}}}
	m.Graph.Inputs = []*ir.Value{x}
	w := sharedWeight{[]int64{900, 50}, 16, 8, false}.value(m.Graph, rand.New(rand.NewPCG(1, 2)))
	// Mul may pack its result, but x is no constant.
	m.Graph.AddOutput(matMul(m.Graph, x, m.Graph.Insert(nil, "Transpose",
		[]*ir.Value{m.Graph.Insert(nil, "Mul", []*ir.Value{w, x})})))
	a := ir.NewArray(ir.Float, 50)
	for i := range ir.View[float32](a) {
		ir.View[float32](a)[i] = float32(i)
	}
	in := map[string]*ir.Array{"x": a}
	want, _ := runPacked(t, m, in, engine.Options{Workers: 1, Keep: []string{w.Name}})
	if got, _ := runPacked(t, m, in, engine.Options{Workers: 1}); !slices.Equal(got.Data, want.Data) {
		t.Error("results differ")
	}
}

// Quantized weights most of whose values are zero points are in memory as sparse matrices, of two bytes per element.
func TestSparseQuantizedWeights(t *testing.T) {
	for i, c := range []struct {
		dims  []int64
		axis  int64
		apply func(g *ir.Graph, x, w *ir.Value) *ir.Value
		x     []int64
		zero  byte // 0 for int8
	}{
		{[]int64{300, 130}, 1, matMul, []int64{7, 300}, 0},
		{[]int64{300, 130}, 1, matMul, []int64{1, 300}, 128},
		{[]int64{300, 130}, 1, matMul, []int64{40, 300}, 113},
		{[]int64{130, 300}, 0, gemmTransposed, []int64{2, 300}, 0},
		{[]int64{900, 64}, 0, tied, []int64{4, 64}, 0},
		{[]int64{130, 150, 1, 1}, 0, convolution(1, 2), []int64{2, 150, 7, 7}, 0},
		{[]int64{130, 40, 3, 3}, 0, convolution(1, 2), []int64{1, 40, 9, 8}, 128},
		{[]int64{64, 40, 3, 3}, 0, convolution(2, 2), []int64{1, 80, 9, 8}, 113},
		{[]int64{130, 40, 5}, 0, convolution(1, 1), []int64{2, 40, 30}, 0},
	} {
		m := ir.NewModel()
		m.IRVersion, m.Opsets = 10, []ir.Opset{{Version: 21}}
		r := rand.New(rand.NewPCG(1, uint64(i)))
		x := m.Graph.AddValue("x")
		a := ir.NewArray(ir.Float, c.x...)
		x.Type = &ir.Type{Elem: ir.Float}
		for _, n := range a.Shape {
			x.Type.Shape = append(x.Type.Shape, ir.Dim{N: n})
		}
		for k := range ir.View[float32](a) {
			ir.View[float32](a)[k] = float32(r.NormFloat64())
		}
		m.Graph.Inputs = []*ir.Value{x}
		dt, scales, values := ir.Int8, make([]float32, c.dims[c.axis]), make([]byte, ir.Spec{Shape: c.dims}.Elems())
		if c.zero != 0 {
			dt = ir.Uint8
		}
		for k := range values {
			values[k] = c.zero
			if k%8 == 0 {
				values[k] = byte(r.Uint32())
			}
		}
		zeros := bytes.Repeat([]byte{c.zero}, len(scales))
		for k := range scales {
			scales[k] = float32(r.ExpFloat64())
		}
		constant := func(name string, dt ir.DType, source ir.Source, shape ...int64) *ir.Value {
			return m.Graph.AddConst(name, &ir.Tensor{Spec: ir.Spec{DType: dt, Shape: shape}, Source: source})
		}
		w := m.Graph.Insert(nil, "DequantizeLinear", []*ir.Value{
			constant("q", dt, ir.Mem(values), c.dims...),
			constant("scale", ir.Float, ir.Floats(scales...), int64(len(scales))),
			constant("zero", dt, ir.Mem(zeros), int64(len(scales))),
		}, ir.IntAttr("axis", c.axis))
		m.Graph.AddOutput(c.apply(m.Graph, x, w))
		in := map[string]*ir.Array{"x": a}
		want, _ := runPacked(t, m, in, engine.Options{Workers: 1, Keep: []string{w.Name}})
		got, held := runPacked(t, m, in, engine.Options{Workers: 3})
		if !slices.Equal(got.Data, want.Data) {
			t.Errorf("%d: the results differ from those of the dense weight", i)
		}
		data, all := written(t, m, in)
		if again, err := stored(t, m, in, &engine.Store{Key: "key", Data: data}); err != nil ||
			!reflect.DeepEqual(again, all) {
			t.Errorf("%d: the results with stored weights differ, %v", i, err)
		}
		size := float64(2*len(values)/8 + 4*len(scales))
		if c.zero == 113 { // not in the middle of the range
			size *= 1.5
		}
		if float64(held) > 1.15*size+2048 { // padding and structures of a small matrix
			t.Errorf("%d: %d bytes are held, want %.0f", i, held, size)
		}
	}
}

// Quantized weights of a convolution are sparse in memory if those that are read in each run are, whatever their
// scales: the algorithm of dense ones (Winograd) rounds in another order.
func TestStreamedQuantizedConvIsBitIdentical(t *testing.T) {
	const inC, outC, kernelArea = 32, 64, 9
	for name, scale := range map[string]float32{
		"positive": 0.5, "zero": 0, "negative": -0.5, "negative zero": float32(math.Copysign(0, -1)),
		"subnormal": 1e-44, "infinite": float32(math.Inf(1)),
		"NaN": float32(math.NaN()),
	} {
		// one of so many values of the channels with this scale is not 0; half of the channels have another scale
		for _, density := range []int{1, 7} {
			m := ir.NewModel()
			m.Opsets = []ir.Opset{{Version: 21}}
			b := &builder{m.Graph}
			r := rand.New(rand.NewPCG(1, 2))
			values, scales := make([]byte, outC*inC*kernelArea), make([]float32, outC)
			for i := range scales {
				scales[i] = []float32{0.25, scale}[i%2]
			}
			for i := range values {
				if odd := i/(inC*kernelArea)%2 == 1; !odd && i%7 == 0 || odd && i%density == 0 {
					values[i] = byte(1 + r.IntN(255))
				}
			}
			q := b.AddConst("q", &ir.Tensor{Spec: ir.Spec{DType: ir.Int8, Shape: []int64{outC, inC, 3, 3}},
				Source: ir.Mem(values)})
			w := b.Insert(nil, "DequantizeLinear", []*ir.Value{q, b.floats([]int64{outC}, scales...)},
				ir.IntAttr("axis", 0))
			b.output(b.op("Conv", b.input("x", ir.Float, "n", "c", "h", "w"), w))
			x := ir.NewArray(ir.Float, 1, inC, 19, 17)
			for i := range ir.View[float32](x) {
				ir.View[float32](x)[i] = float32(r.NormFloat64())
			}
			in := map[string]*ir.Array{"x": x}
			want, _ := runPacked(t, m, in, engine.Options{Workers: 1, Limits: memory.Limits{Weights: 1}})
			if got, _ := runPacked(t, m, in, engine.Options{Workers: 2}); !bytes.Equal(got.Data, want.Data) {
				t.Errorf("%s scales, one of %d values is not 0: weights in memory give other "+
					"results than streamed ones", name, density)
			}
		}
	}
}
