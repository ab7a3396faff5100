package sparse

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
)

// A weight is a dense tensor of a test.
type weight struct {
	name string
	ir.Spec
	data []byte
}

// random has values where keep is true: any bits that are no signalling NaN.
func random(name string, dt ir.DType, shape []int64, keep func(i int64) bool) weight {
	s := ir.Spec{Name: name, DType: dt, Shape: shape}
	rng := rand.New(rand.NewPCG(uint64(dt), uint64(s.Elems())))
	var data []byte
	for i := range s.Elems() {
		x := 0.0
		if keep(i) {
			x = float64(1+rng.IntN(100)) * (float64(rng.IntN(2))*2 - 1)
		}
		data = appendFloat(data, dt, x)
	}
	return weight{name, s, data}
}

// appendFloat appends x, an integer of two digits, as an element of type dt.
func appendFloat(b []byte, dt ir.DType, x float64) []byte {
	switch dt {
	case ir.Double:
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	case ir.Float:
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(x)))
	case ir.BFloat16:
		return binary.LittleEndian.AppendUint16(b, uint16(math.Float32bits(float32(x))>>16))
	case ir.Float16:
		return binary.LittleEndian.AppendUint16(b, half(x))
	}
	return append(b, byte(int8(x)))
}

// half is x, 0 or at least 1 in magnitude and a short number, as a float16.
func half(x float64) uint16 {
	b := math.Float64bits(x)
	if b<<1 == 0 {
		return uint16(b >> 48)
	}
	return uint16(b>>48&0x8000 | (b>>52&0x7ff-1023+15)<<10 | b>>42&0x3ff)
}

// density keeps every element with the given probability.
func density(p float64) func(int64) bool {
	rng := rand.New(rand.NewPCG(1, uint64(p*1000)))
	return func(int64) bool { return rng.Float64() < p }
}

func only(positions ...int64) func(int64) bool {
	return func(i int64) bool {
		for _, p := range positions {
			if p == i {
				return true
			}
		}
		return false
	}
}

// modelOf reads each weight by a node that a runtime cannot fold: it is joined to an
// input of its type along the first axis.
func modelOf(version int64, ws ...weight) *ir.Model {
	m := ir.NewModel()
	m.IRVersion, m.Opsets = 8, []ir.Opset{{Version: version}}
	if version >= 21 {
		m.IRVersion = 10
	}
	m.Graph.Name = "g"
	for i, w := range ws {
		readWeight(m.Graph, fmt.Sprint(i), w)
	}
	return m
}

func readWeight(g *ir.Graph, suffix string, w weight) {
	v := g.AddConst(w.name, &ir.Tensor{Spec: w.Spec, Source: ir.Mem(w.data)})
	in := g.NewValue("x" + suffix)
	in.Type = typeOf(ir.Spec{DType: ir.Float, Shape: append([]int64{1}, w.Shape[1:]...)})
	g.Inputs = append(g.Inputs, in)
	x := g.Insert(nil, "Cast", []*ir.Value{in}, ir.IntAttr("to", int64(w.DType)))
	y := g.Insert(nil, "Concat", []*ir.Value{v, x}, ir.IntAttr("axis", 0))
	out := g.Insert(nil, "Cast", []*ir.Value{y}, ir.IntAttr("to", int64(outType(w.DType))))
	out.Name = "y" + suffix
	out.Type = typeOf(ir.Spec{DType: outType(w.DType), Shape: append([]int64{w.Shape[0] + 1}, w.Shape[1:]...)})
	g.AddOutput(out)
}

// outType holds every value of dt, and NumPy supports it.
func outType(dt ir.DType) ir.DType {
	if dt == ir.BFloat16 {
		return ir.Float
	}
	return dt
}

// options set a step's options.
type options map[string]string

func stepOf(t testing.TB, m *pass.Method, o options) pass.Options {
	t.Helper()
	fs := pass.Flags(m)
	for k := range o {
		if fs.Lookup(k) == nil {
			t.Fatalf("%s has no option %s", m.Name, k)
		}
	}
	s, err := pass.NewStep(m, func(fs *flag.FlagSet) error {
		for k, v := range o {
			if err := fs.Set(k, v); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// apply runs methods over m and returns the ledger and what evaluates m's tensors.
func apply(t testing.TB, m *ir.Model, workers int, steps ...pass.Options) ([]pass.Row, *ir.Eval) {
	t.Helper()
	return applyFor(t, m, pass.Environment{Workers: workers}, steps...)
}

func applyFor(t testing.TB, m *ir.Model, env pass.Environment, steps ...pass.Options) ([]pass.Row, *ir.Eval) {
	t.Helper()
	e := ir.NewEval(t.TempDir())
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	res, err := pass.Run(context.Background(), m, e, env, steps)
	if err != nil {
		t.Fatal(err)
	}
	return res.Rows, e
}

func save(t testing.TB, m *ir.Model, e *ir.Eval, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if _, err := onnx.Save(context.Background(), m, path, onnx.SaveOptions{Workers: 2, Memory: 64 << 20,
		Eval: e}); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t testing.TB, path string) *ir.Model {
	t.Helper()
	f, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f.Model
}

// payload reads a tensor whole.
func payload(t testing.TB, e *ir.Eval, x *ir.Tensor) []byte {
	t.Helper()
	b, err := e.ReadAll(context.Background(), x)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// weightNamed is the constant of that name in the main graph.
func weightNamed(t testing.TB, m *ir.Model, name string) *ir.Tensor {
	t.Helper()
	for _, v := range m.Graph.Consts() {
		if v.Name == name {
			return v.Const
		}
	}
	t.Fatalf("no constant %q", name)
	return nil
}

// rowOf is the row of a tensor.
func rowOf(t testing.TB, rows []pass.Row, name string) pass.Row {
	t.Helper()
	for _, r := range rows {
		if r.Tensor == name {
			return r
		}
	}
	t.Fatalf("no row of %q", name)
	return pass.Row{}
}

// sameOutputs holds two models against each other in ONNX Runtime, bit for bit.
func sameOutputs(t *testing.T, w *conform.Worker, a, b string, o conform.Options) {
	t.Helper()
	outs, err := w.Compare(a, b, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range outs {
		if !x.Equal {
			t.Errorf("output %s is not the same: %+v", x.Name, x)
		}
	}
}

// codesOf writes 1 for each float that is not zero.
func codesOf(_ context.Context, in []io.ReaderAt, out []io.Writer) error {
	var b [4096]byte
	for off := int64(0); ; off += int64(len(b)) {
		n, err := in[0].ReadAt(b[:], off)
		var codes []byte
		for i := 0; i < n; i += 4 {
			c := byte(0)
			if binary.LittleEndian.Uint32(b[i:]) != 0 {
				c = 1
			}
			codes = append(codes, c)
		}
		if _, err := out[0].Write(codes); err != nil {
			return err
		}
		if err != nil {
			return nil
		}
	}
}
