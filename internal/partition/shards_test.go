package partition_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/x448/float16"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/engine/ort"
	"github.com/mcompress/mcompress/internal/partition"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	results "github.com/mcompress/mcompress/report/partition"
)

// followShards runs shards by their manifest.
func followShards(ctx context.Context, dir string, m *results.ShardManifest, in map[string]*ir.Array,
	run runner) (map[string]*ir.Array, error) {
	made := map[string]map[string]*ir.Array{"": in}
	sums := map[string]*ir.Array{}
	for _, seg := range m.Segments {
		for _, s := range seg.Shards {
			given := map[string]*ir.Array{}
			for _, o := range s.Inputs {
				if given[o.Name] = made[o.From][o.Name]; o.Reduced {
					given[o.Name] = sums[o.Name]
				}
			}
			out, err := run(ctx, filepath.Join(dir, s.File), given)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.File, err)
			}
			made[s.File] = out
		}
		for _, r := range seg.Reductions {
			for _, s := range seg.Shards {
				sums[r.Name] = added(sums[r.Name], made[s.File][r.Name])
			}
		}
	}
	outs := map[string]*ir.Array{}
	for _, o := range m.Outputs {
		switch {
		case o.Reduced:
			outs[o.Name] = sums[o.Name]
		case o.Concat != nil:
			var parts []*ir.Array
			for _, file := range o.Concat {
				parts = append(parts, made[file][o.Name])
			}
			outs[o.Name] = concatenated(parts, o.Axis)
		default:
			outs[o.Name] = made[o.From][o.Name]
		}
	}
	return outs, nil
}

func numbers(a *ir.Array) []float64 {
	var list []float64
	for i := 0; i < len(a.Data); i += int(a.DType.Bits() / 8) {
		switch a.DType {
		case ir.Float16:
			list = append(list, float64(float16.Frombits(binary.LittleEndian.Uint16(a.Data[i:])).Float32()))
		case ir.Float:
			list = append(list, float64(math.Float32frombits(binary.LittleEndian.Uint32(a.Data[i:]))))
		default:
			list = append(list, float64(a.Data[i]))
		}
	}
	return list
}

func added(sum, a *ir.Array) *ir.Array {
	if sum == nil {
		return a
	}
	out, x, y := ir.NewArray(a.DType, a.Shape...), numbers(sum), numbers(a)
	for i := range x {
		if a.DType == ir.Float16 {
			binary.LittleEndian.PutUint16(out.Data[2*i:], float16.Fromfloat32(float32(x[i]+y[i])).Bits())
		} else {
			binary.LittleEndian.PutUint32(out.Data[4*i:], math.Float32bits(float32(x[i]+y[i])))
		}
	}
	return out
}

func concatenated(parts []*ir.Array, axis int) *ir.Array {
	shape := append([]int64(nil), parts[0].Shape...)
	rows := ir.Spec{Shape: shape[:axis]}.Elems()
	shape[axis] = 0
	for _, p := range parts {
		shape[axis] += p.Shape[axis]
	}
	out := ir.NewArray(parts[0].DType, shape...)
	out.Data = out.Data[:0]
	for r := range rows {
		for _, p := range parts {
			n := int64(len(p.Data)) / max(1, rows)
			out.Data = append(out.Data, p.Data[r*n:(r+1)*n]...)
		}
	}
	return out
}

// almost reports outputs that differ by more than rounding errors of sums in another order.
func almost(got, want map[string]*ir.Array) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d outputs, want %d", len(got), len(want))
	}
	for name, w := range want {
		g := got[name]
		if g == nil || g.String() != w.String() {
			return fmt.Errorf("output %q is %v, want %v", name, g, w)
		}
		if bytes.Equal(g.Data, w.Data) {
			continue
		}
		tolerance := map[ir.DType]float64{ir.Float: 2e-5, ir.Float16: 8. / 1024}[w.DType]
		var most, off float64
		x, y := numbers(g), numbers(w)
		for i := range y {
			most, off = max(most, math.Abs(y[i])), max(off, math.Abs(x[i]-y[i]))
		}
		if off > tolerance*max(most, 1e-3) || math.IsNaN(off) {
			return fmt.Errorf("output %q differs by %g, of at most %g", name, off, most)
		}
	}
	return nil
}

// Shards combined by the manifest compute the outputs of the whole model up to the order of sums; onnx.checker accepts
// them.
func TestShardsComputeTheModel(t *testing.T) {
	w := conform.Start(t)
	lib, err := ort.Load(conform.ORTLibrary(t))
	if err != nil {
		t.Fatal(err)
	}
	divided := 0
	for _, path := range append(conform.Fixtures(t), conform.QuickModels(t)...) {
		for _, ranks := range []int{2, 3, 4} {
			dir := t.TempDir()
			written, err := partition.WriteShards(t.Context(), path, dir, ranks, save())
			if err != nil {
				if !strings.Contains(err.Error(), "cannot be divided") {
					t.Errorf("%s: %v", label(path), err)
				}
				continue
			}
			divided++
			t.Run(fmt.Sprintf("%s/%d", label(path), ranks), func(t *testing.T) {
				f, err := onnx.Open(path)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				full := w.Check(path, true) == nil
				for _, seg := range written.Shards.Segments {
					for _, s := range seg.Shards {
						if err := w.Check(filepath.Join(dir, s.File), full); err != nil {
							t.Errorf("%s, full check %t: %v", s.File, full, err)
						}
					}
				}
				accounted(t, dir, written.Shards)
				in := sample(t, f.Model.Graph)
				for name, run := range map[string]runner{"engine": embedded, "ONNX Runtime": unoptimised(lib)} {
					want, err := run(t.Context(), path, in)
					if err != nil {
						t.Errorf("%s does not run the whole: %v", name, err)
						continue
					}
					got, err := followShards(t.Context(), dir, written.Shards, in, run)
					if err == nil {
						err = almost(got, want)
					}
					if err != nil {
						t.Errorf("%s: %v", name, err)
					}
				}
			})
		}
	}
	if divided < 60 {
		t.Errorf("%d models were divided", divided)
	}
}

// accounted compares the bytes of weights in the manifest with those of the files.
func accounted(t *testing.T, dir string, m *results.ShardManifest) {
	t.Helper()
	stored := int64(0)
	for _, seg := range m.Segments {
		for _, s := range seg.Shards {
			f, err := onnx.Open(filepath.Join(dir, s.File))
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range f.Model.Graph.Consts() {
				stored += v.Const.Bytes()
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	w := m.Weights
	if stored != w.Stored || w.Model+w.Replicated+w.Added != stored || w.Divided == 0 || w.Replicated < 0 {
		t.Errorf("the files have %d bytes of weights, the manifest has %+v", stored, w)
	}
	for _, d := range m.Divided {
		blocks, lengths := int64(0), int64(0)
		for _, b := range d.Blocks {
			blocks += b
		}
		for _, n := range d.Lengths {
			lengths += n
		}
		if blocks != lengths || slices.Contains(d.Lengths, 0) {
			t.Errorf("%s: %v is divided into %v", d.Name, d.Blocks, d.Lengths)
		}
	}
}

// A Python program runs shards in ONNX Runtime by the manifest alone.
func TestShardsInPython(t *testing.T) {
	python := conform.Python(t)
	for _, c := range []struct {
		path  string
		ranks int
	}{
		{fixture("transformer"), 3},
		{filepath.Join(conform.Shared(t), "fixtures/models/transformer/qwen35_tiny/model.onnx"), 2},
	} {
		dir := t.TempDir()
		w, err := partition.WriteShards(t.Context(), c.path, dir, c.ranks, save())
		if err != nil {
			t.Fatal(err)
		}
		f, err := onnx.Open(c.path)
		if err != nil {
			t.Fatal(err)
		}
		npz := filepath.Join(dir, "inputs.npz")
		writeNPZ(t, npz, sample(t, f.Model.Graph))
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), python, "testdata/run_shards.py", c.path, w.Manifest,
			npz).CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), "ok ") {
			t.Errorf("%s: %v\n%s", c.path, err, out)
		}
	}
}

func writeNPZ(t *testing.T, path string, arrays map[string]*ir.Array) {
	t.Helper()
	var file bytes.Buffer
	z := zip.NewWriter(&file)
	for name, a := range arrays {
		descr := map[ir.DType]string{ir.Int64: "<i8", ir.Int32: "<i4", ir.Float: "<f4", ir.Float16: "<f2"}[a.DType]
		w, err := z.Create(name + ".npy")
		if err == nil {
			_, err = w.Write(append(dataset.NPYHeader(descr, a.Shape), a.Data...))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(z.Close(), os.WriteFile(path, file.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// Pairs that cannot be divided are named with the reason; others are divided.
func TestRefusedPairs(t *testing.T) {
	dir := t.TempDir()
	w, err := partition.WriteShards(t.Context(), fixture("transformer"), dir, 5, save())
	if err != nil {
		t.Fatal(err)
	}
	want := results.Refusal{Weight: "blocks.0.attention.output.weight",
		Reason: "4 heads or columns cannot be divided over 5 devices"}
	if len(w.Shards.Refused) != 2 || w.Shards.Refused[0] != want || len(w.Shards.Segments) != 3 {
		t.Errorf("refused %+v, %d segments", w.Shards.Refused, len(w.Shards.Segments))
	}
	for path, want := range map[string]string{
		"recurrent": "no pairs of products with column-parallel and row-parallel weights: the model cannot be divided",
		"shared":    "w: 48 heads or columns cannot be divided over 49 devices",
	} {
		_, err := partition.WriteShards(t.Context(), fixture(path), t.TempDir(), 49, save())
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: got %v", path, err)
		}
	}
}

// GPT-2 and others pack queries, keys and values in one product, as three blocks of columns.
func TestPackedProjectionsAreDividedByBlocks(t *testing.T) {
	m := ir.NewModel()
	m.IRVersion, m.Opsets = 8, []ir.Opset{{Version: 17}}
	g := m.Graph
	r := rand.New(rand.NewPCG(1, 2))
	weight := func(name string, shape ...int64) *ir.Value {
		x := make([]float32, ir.Spec{Shape: shape}.Elems())
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		return g.AddConst(name, &ir.Tensor{Spec: ir.Spec{Name: name, DType: ir.Float, Shape: shape}, Source: ir.Floats(x...)})
	}
	ints := func(is ...int64) *ir.Value {
		return g.AddConst("shape", &ir.Tensor{Spec: ir.Spec{DType: ir.Int64, Shape: []int64{int64(len(is))}},
			Source: ir.Ints(is...)})
	}
	x := g.AddValue("x")
	x.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{Param: "batch"}, {Param: "positions"}, {N: 12}}}
	g.Inputs = []*ir.Value{x}
	packed := g.Insert(nil, "Add", []*ir.Value{g.Insert(nil, "MatMul", []*ir.Value{x, weight("qkv", 12, 36)}),
		weight("qkv.bias", 36)})
	// The shape is that of the values at run time, by which exporters keep axes dynamic.
	size := g.Insert(nil, "Slice", []*ir.Value{g.Insert(nil, "Shape", []*ir.Value{packed}), ints(0), ints(2), ints(0)})
	parts := g.InsertN(nil, "Split", 3, []*ir.Value{packed, ints(12, 12, 12)}, ir.IntAttr("axis", -1))
	heads := func(v *ir.Value, perm ...int64) *ir.Value {
		shape := g.Insert(nil, "Concat", []*ir.Value{size, ints(3, 4)}, ir.IntAttr("axis", 0))
		return g.Insert(nil, "Transpose", []*ir.Value{g.Insert(nil, "Reshape", []*ir.Value{v, shape})},
			ir.IntsAttr("perm", perm...))
	}
	q, k, v := heads(parts[0], 0, 2, 1, 3), heads(parts[1], 0, 2, 3, 1), heads(parts[2], 0, 2, 1, 3)
	p := g.Insert(nil, "Softmax", []*ir.Value{g.Insert(nil, "MatMul", []*ir.Value{q, k})}, ir.IntAttr("axis", -1))
	y := g.Insert(nil, "Transpose", []*ir.Value{g.Insert(nil, "MatMul", []*ir.Value{p, v})},
		ir.IntsAttr("perm", 0, 2, 1, 3))
	y = g.Insert(nil, "Reshape", []*ir.Value{y,
		g.Insert(nil, "Concat", []*ir.Value{size, ints(12)}, ir.IntAttr("axis", 0))})
	y = g.Insert(nil, "Add", []*ir.Value{g.Insert(nil, "MatMul", []*ir.Value{y, weight("out", 12, 12)}), x})
	// the shape of the whole value, read after the sum
	y = g.Insert(nil, "Reshape", []*ir.Value{y, g.Insert(nil, "Shape", []*ir.Value{parts[0]})})
	y.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{Param: "batch"}, {Param: "positions"}, {N: 12}}}
	g.AddOutput(y)
	dir := t.TempDir()
	path := filepath.Join(dir, "packed.onnx")
	if _, err := onnx.Save(t.Context(), m, path, save()); err != nil {
		t.Fatal(err)
	}
	for _, ranks := range []int{2, 3} {
		w, err := partition.WriteShards(t.Context(), path, dir, ranks, save())
		if err != nil {
			t.Fatal(err)
		}
		if d := w.Shards.Divided[len(w.Shards.Divided)-1]; !slices.Equal(d.Blocks, []int64{12, 12, 12}) || d.Name != "qkv" {
			t.Errorf("divided %+v", w.Shards.Divided)
		}
		in := sample(t, g)
		want, err := embedded(t.Context(), path, in)
		if err != nil {
			t.Fatal(err)
		}
		got, err := followShards(t.Context(), dir, w.Shards, in, embedded)
		if err == nil {
			err = almost(got, want)
		}
		if err != nil {
			t.Errorf("%d ranks: %v", ranks, err)
		}
	}
}

// The shape of a divided value is that of the whole, also where only some of its axes are read.
func TestShapesOfDividedValues(t *testing.T) {
	m := ir.NewModel()
	m.IRVersion, m.Opsets = 8, []ir.Opset{{Version: 17}}
	g := m.Graph
	x := g.AddValue("x")
	x.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: 2}, {N: 3}, {N: 4}}}
	g.Inputs = []*ir.Value{x}
	weight := func(name string, rows, cols int64) *ir.Value {
		return g.AddConst(name, &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{rows, cols}},
			Source: ir.Floats(slices.Repeat([]float32{0.5}, int(rows*cols))...)})
	}
	hidden := g.Insert(nil, "Relu", []*ir.Value{g.Insert(nil, "MatMul", []*ir.Value{x, weight("up", 4, 8)})})
	var want [][]int64
	whole := []int64{2, 3, 8}
	for _, bounds := range [][]int64{{}, {0, 3}, {1}, {2}, {-1}, {1, 9}, {0, 2}, {0, -1}, {-9, 1}, {3}} {
		var attrs []*ir.Attr
		start, end := 0, len(whole)
		for i, b := range bounds {
			attrs = append(attrs, ir.IntAttr([]string{"start", "end"}[i], b))
			if b < 0 {
				b += 3
			}
			*[]*int{&start, &end}[i] = int(min(max(0, b), 3))
		}
		v := g.Insert(nil, "Shape", []*ir.Value{hidden}, attrs...)
		v.Type = &ir.Type{Elem: ir.Int64, Shape: []ir.Dim{{N: int64(end - start)}}}
		g.AddOutput(v)
		want = append(want, whole[start:end])
	}
	y := g.Insert(nil, "MatMul", []*ir.Value{hidden, weight("down", 8, 4)})
	y.Type = x.Type
	g.AddOutput(y)
	dir := t.TempDir()
	path := filepath.Join(dir, "shapes.onnx")
	if _, err := onnx.Save(t.Context(), m, path, save()); err != nil {
		t.Fatal(err)
	}
	w, err := partition.WriteShards(t.Context(), path, dir, 3, save())
	if err != nil {
		t.Fatal(err)
	}
	got, err := followShards(t.Context(), dir, w.Shards, sample(t, g), embedded)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range g.Outputs[:len(want)] {
		if shape := ir.View[int64](got[v.Name]); !slices.Equal(shape, want[i]) {
			t.Errorf("%s of a divided value is %v, want %v", v.Producer().Label(), shape, want[i])
		}
	}
}
