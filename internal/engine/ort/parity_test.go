//go:build !noort

package ort_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/engine/ort"
	"github.com/mcompress/mcompress/ir"
)

// The binding and Python use the same library: outputs must be bit-identical, and errors must have the same text.
func TestOutputsAreBitIdenticalToPython(t *testing.T) {
	lib := library(t)
	for _, path := range slices.Concat(conform.RealModels(t), conform.Fixtures(t), graphs(t)) {
		t.Run(filepath.Base(filepath.Dir(path))+"/"+filepath.Base(path), func(t *testing.T) {
			// Like the worker: 8-bit products without saturation where supported.
			err := compare(t, lib, path, "1")
			if err != nil {
				err = compare(t, lib, path, "0")
			}
			if err == nil {
				return
			}
			_, refusal := conform.Start(t).Run(path, conform.Options{})
			if refusal == nil || !strings.Contains(refusal.Error(), strings.TrimPrefix(err.Error(), "onnxruntime: ")) {
				t.Errorf("got %v, Python %v", err, refusal)
			}
		})
	}
}

// graphs are models of operators and types that are rare in the other models.
func graphs(t *testing.T) []string {
	t.Helper()
	var paths []string
	for _, graph := range []string{
		`g (string[N] x, string[N] z) => (string[N] y, string[N,M] parts, int64[N] n) { y = StringConcat(x, z) parts, n ` +
			`= StringSplit(y) }`,
		`g (string[2,3] x) => (seq(string[M,3]) y) { y = SplitToSequence<axis = 0>(x) }`,
		`g (float[N,3] x) => (int64[2,M] at, float[K] y) { at = NonZero(x) mask = Cast<to = 9>(x) y = Compress(x, mask) }`,
		`g (float16[N,3] x) => (float16[N,3] y, bool[N,3] c) { y = Softmax(x) c = Less(x, y) }`,
		`g (float[32] x) => (float[32] y) { s = Constant<value = float {0.25}>() q = Cast<to = 22>(x) y = ` +
			`DequantizeLinear(q, s) }`,
		`g (double[N] x) => (optional(double[N]) y) { y = Optional(x) }`,
		`g (uint64[N] x) => (uint64[N] y, int32 n) { y = BitwiseNot(x) n = Constant<value = int32 {7}>() }`,
	} {
		paths = append(paths, written(t, graph))
	}
	return paths
}

// compare returns the reason why ONNX Runtime does not run the model.
func compare(t *testing.T, lib *ort.Library, path, precise string) error {
	t.Helper()
	s, err := ort.Open(lib, path, ort.Options{Threads: 1,
		Config: map[string]string{"session.x64quantprecision": precise}})
	if err != nil {
		return err
	}
	defer s.Close()
	in, got, err := firstThatRuns(s)
	if err != nil {
		return err
	}
	npz := filepath.Join(t.TempDir(), "in.npz")
	writeNPZ(t, npz, in)
	want, err := conform.Start(t).Run(path, conform.Options{Inputs: []string{npz}})
	if err != nil {
		t.Fatal(err)
	}
	same(t, flattened(s, got), want)
	return nil
}

// firstThatRuns tries sizes of symbolic axes until the model accepts them.
func firstThatRuns(s *ort.Session) (in, out map[string]*ir.Array, err error) {
	for _, size := range []int64{1, 4, 16, 64, 224} {
		in = random(s, size)
		if out, err = s.Run(context.Background(), in, nil); err == nil {
			return in, out, nil
		}
	}
	return nil, nil, err
}

func random(s *ort.Session, size int64) map[string]*ir.Array {
	r := rand.New(rand.NewPCG(1, 2))
	in := map[string]*ir.Array{}
	for _, p := range s.Inputs() {
		var shape []int64
		for _, d := range p.Type.Shape {
			shape = append(shape, d.N)
			if !d.Known() {
				shape[len(shape)-1] = size
			}
		}
		in[p.Name] = randomArray(r, p.Type.Elem, shape)
	}
	return in
}

func randomArray(r *rand.Rand, dt ir.DType, shape []int64) *ir.Array {
	a := ir.NewArray(dt, shape...)
	switch dt {
	case ir.String:
		for i := range a.Text {
			a.Text[i] = fmt.Sprint(r.IntN(3))
		}
	case ir.Float:
		for i := range a.Elems() {
			ir.View[float32](a)[i] = float32(r.NormFloat64())
		}
	case ir.Double:
		for i := range a.Elems() {
			ir.View[float64](a)[i] = r.NormFloat64()
		}
	case ir.Float16:
		for i := range a.Elems() {
			ir.View[uint16](a)[i] = 0x3800 | uint16(r.IntN(1<<10)) // 0.5 to 1
		}
	default: // 0 and 1 are valid indices and flags of any type
		width := int(dt.Bits() / 8)
		for i := 0; i < len(a.Data); i += width {
			a.Data[i] = byte(r.IntN(2))
		}
	}
	return a
}

// flattened is the outputs in the worker's format: a sequence or map is several.
func flattened(s *ort.Session, out map[string]*ir.Array) []conform.Array {
	var flat []conform.Array
	for _, p := range s.Outputs() {
		flat = flatten(flat, p.Name, out[p.Name])
	}
	return flat
}

func flatten(flat []conform.Array, name string, a *ir.Array) []conform.Array {
	switch a.Kind {
	case ir.Sequence:
		for i, item := range a.Items {
			flat = flatten(flat, fmt.Sprintf("%s[%d]", name, i), item)
		}
	case ir.Map:
		flat = flatten(flat, name+".keys", a.Keys)
		flat = flatten(flat, name+".values", widened(a.Items[0]))
	case ir.Dense:
		dtype := map[ir.DType]string{ir.Float: "float32", ir.Double: "float64"}[a.DType]
		if dtype == "" {
			dtype = a.DType.String()
		}
		c := conform.Array{Name: name, DType: dtype, Data: a.Data}
		for _, d := range a.Shape {
			c.Shape = append(c.Shape, int(d))
		}
		if a.DType == ir.String {
			c.Data = []byte(strings.Join(a.Text, "\x00"))
		}
		flat = append(flat, c)
	}
	return flat
}

// widened is the values of a map in Python's types, whose floats are doubles.
func widened(a *ir.Array) *ir.Array {
	if a.DType != ir.Float {
		return a
	}
	var wide []float64
	for _, v := range ir.View[float32](a) {
		wide = append(wide, float64(v))
	}
	return ir.ArrayOf(wide, a.Shape...)
}

func same(t *testing.T, got, want []conform.Array) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d tensors, want %d", len(got), len(want))
	}
	for i, g := range got {
		w := want[i]
		if g.Name != w.Name || g.DType != w.DType || !slices.Equal(g.Shape, w.Shape) {
			t.Errorf("got %s %s%v, want %s %s%v", g.Name, g.DType, g.Shape, w.Name, w.DType, w.Shape)
		} else if !bytes.Equal(g.Data, w.Data) {
			t.Errorf("%s: not bit-identical to Python's", g.Name)
		}
	}
}
