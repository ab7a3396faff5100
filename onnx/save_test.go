package onnx

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
)

// recipes is a model of n constants, made by recipes of two outputs from one input.
func recipes(n int, work int64, run func(ctx context.Context, in []io.ReaderAt, out []io.Writer) error) *ir.Model {
	m := ir.NewModel()
	m.IRVersion, m.Opsets = 10, []ir.Opset{{Version: 21}}
	m.Graph.Name = "g"
	for i := range n {
		size := int64(3000 + 70001*i)
		seed := bytes.Repeat([]byte{byte(i), byte(i >> 8), 0x5a}, int(size))
		r := &ir.Recipe{
			Name: "double",
			In:   []*ir.Tensor{{Spec: ir.Spec{Name: "in", DType: ir.Uint8, Shape: []int64{3 * size}}, Source: ir.Mem(seed)}},
			Out:  []ir.Spec{{DType: ir.Uint8, Shape: []int64{size}}, {DType: ir.Uint8, Shape: []int64{2 * size}}},
			Work: work,
			Run:  run,
		}
		for j, t := range r.Derive() {
			v := m.Graph.AddConst(fmt.Sprintf("c%d_%d", i, j), t)
			m.Graph.AddOutput(m.Graph.Insert(nil, "Identity", []*ir.Value{v}))
		}
	}
	return m
}

// double writes its input's first third to one output and the rest to the other.
func double(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
	r := in[0].(io.Seeker)
	size, err := r.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if err := ir.Copy(ctx, out[0], in[0], size/3); err != nil {
		return err
	}
	return ir.Copy(ctx, out[1], io.NewSectionReader(in[0], size/3, size-size/3), size-size/3)
}

func TestBytesDoNotDependOnWorkers(t *testing.T) {
	for _, external := range []bool{false, true} {
		var want [][]byte
		for _, workers := range []int{1, 2, 8} {
			o := options(t)
			o.Workers, o.External, o.Digest, o.Memory = workers, external, true, int64(workers)<<20
			path := filepath.Join(t.TempDir(), "model.onnx")
			var got [][]byte
			for _, w := range mustSave(t, recipes(12, 1<<16, double), path, o) {
				got = append(got, readFile(t, filepath.Join(filepath.Dir(path), w.Name)))
			}
			if want == nil {
				want = got
			}
			if !slices.EqualFunc(got, want, bytes.Equal) {
				t.Errorf("external %v: bytes differ at %d workers", external, workers)
			}
		}
		if wantFiles := map[bool]int{false: 1, true: 2}[external]; len(want) != wantFiles {
			t.Errorf("external %v: %d files", external, len(want))
		}
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestWrittenIsWhatWasPlanned(t *testing.T) {
	for _, external := range []bool{false, true} {
		for _, path := range conform.Fixtures(t) {
			f := mustOpen(t, path)
			out := filepath.Join(t.TempDir(), "out.onnx")
			o := options(t)
			o.External, o.Digest, o.Sync = external, true, true
			size := int64(0)
			for _, w := range mustSave(t, f.Model, out, o) {
				b := readFile(t, filepath.Join(filepath.Dir(out), w.Name))
				sum := sha256.Sum256(b)
				if w.Size != int64(len(b)) || w.SHA256 != hex.EncodeToString(sum[:]) {
					t.Errorf("%s: %s has %d bytes of digest %x, Written has %d, %s", filepath.Base(path), w.Name, len(b), sum, w.Size,
						w.SHA256)
				}
				size += w.Size
			}
			if plan := Layout(f.Model, "out.onnx", LayoutOptions{External: external}); plan.Size() != size {
				t.Errorf("%s: planned %d bytes, wrote %d", filepath.Base(path), plan.Size(), size)
			}
			if again := mustOpen(t, out); again.Size() != size {
				t.Errorf("%s: opened, it has %d bytes of %d", filepath.Base(path), again.Size(), size)
			}
		}
	}
}

func TestPartsDigestLikeTheFiles(t *testing.T) {
	f := mustOpen(t, fixture(t, "external.onnx"))
	var names, sums []string
	var lines strings.Builder
	for _, p := range f.Parts() {
		got, err := p.SHA256(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		want := sha256.Sum256(readFile(t, fixture(t, p.Name)))
		if got != hex.EncodeToString(want[:]) {
			t.Errorf("%s: digest %s, want %x", p.Name, got, want)
		}
		names, sums = append(names, p.Name), append(sums, got)
		fmt.Fprintf(&lines, "%x  %s\n", want, p.Name) // as sha256sum prints it
	}
	want := sha256.Sum256([]byte(lines.String()))
	if got := Combined(names, sums); got != hex.EncodeToString(want[:]) {
		t.Errorf("Combined of three files is %s, want %x", got, want)
	}
	if got := Combined(names[:1], sums[:1]); got != sums[0] {
		t.Errorf("Combined of one file is %s, want the file's own %s", got, sums[0])
	}
}

var errRecipe = errors.New("the recipe cannot go on")

// A Save that fails leaves the folder as it was.
func TestFailedSavesLeaveNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	for _, tt := range []struct {
		name string
		ctx  context.Context
		run  func(context.Context, []io.ReaderAt, []io.Writer) error
		want string
	}{
		{"an error", context.Background(), func(_ context.Context, _ []io.ReaderAt, out []io.Writer) error {
			_, err := out[0].Write(make([]byte, 100))
			return errors.Join(err, errRecipe)
		}, errRecipe.Error()},
		{"too few bytes", context.Background(), func(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
			return ir.Copy(ctx, out[0], in[0], 2999)
		}, "declared"},
		{"too many bytes", context.Background(), func(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
			return ir.Copy(ctx, out[0], in[0], 3001)
		}, "longer than its place"},
		{"a context that ends", ctx, func(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
			cancel()
			return double(ctx, in, out)
		}, "canceled"},
		{"a context that has ended", ctx, double, "canceled"},
	} {
		for _, external := range []bool{false, true} {
			t.Run(fmt.Sprint(tt.name, " external ", external), func(t *testing.T) {
				dir := t.TempDir()
				path := filepath.Join(dir, "model.onnx")
				for _, name := range []string{path, path + ".data"} {
					if err := os.WriteFile(name, []byte("old "+name), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				o := options(t)
				o.External, o.Digest = external, true
				_, err := Save(tt.ctx, recipes(1, 1<<10, tt.run), path, o)
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("got %v, want %q", err, tt.want)
				}
				untouched(t, path, path+".data")
			})
		}
	}
}

// untouched checks that files hold "old " and their path, and that there are no others.
func untouched(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if got := string(readFile(t, path)); got != "old "+path {
			t.Errorf("%s holds %.40q now", path, got)
		}
	}
	entries, err := os.ReadDir(filepath.Dir(paths[0]))
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(paths) {
		t.Errorf("the folder holds %v", entries)
	}
}

func TestSaveOntoTheModelItself(t *testing.T) {
	for _, external := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "model.onnx")
		o := options(t)
		o.External = external
		mustSave(t, mustOpen(t, fixture(t, "mlp.onnx")).Model, path, o)
		before := readFile(t, path)
		mustSave(t, mustOpen(t, path).Model, path, o)
		if !bytes.Equal(readFile(t, path), before) {
			t.Errorf("external %v: the model changed", external)
		}
	}
}

// zeros is a payload of any size without storage.
type zeros struct{}

func (zeros) ReadAt(b []byte, _ int64) (int, error) {
	clear(b)
	return len(b), nil
}

// zeroModel has one constant of n bytes.
func zeroModel(n int64) *ir.Model {
	m := ir.NewModel()
	m.Graph.AddConst("w", &ir.Tensor{Spec: ir.Spec{DType: ir.Uint8, Shape: []int64{n}}, Source: ir.Span{R: zeros{}}})
	return m
}

func TestLargeModelsGetExternalData(t *testing.T) {
	// The payload that just fills what one message may hold.
	fits := int64(2_000_000_000)
	fits += inlineLimit - Layout(zeroModel(fits), "m.onnx", LayoutOptions{}).Size()
	if p := Layout(zeroModel(fits), "m.onnx", LayoutOptions{}); p.data != nil || p.Size() != 1<<31-1 {
		t.Errorf("a model of %d bytes has a data file: %v", p.Size(), p.data != nil)
	}
	for _, n := range []int64{fits + 1, 5_000_000_000, 1 << 40} {
		p := Layout(zeroModel(n), "m.onnx", LayoutOptions{})
		if p.data == nil {
			t.Fatalf("%d bytes stay in the model", n)
		}
		if p.data[0].size != n || p.skel.n > 200 || p.data[0].name != "m.onnx.data" {
			t.Errorf("%d bytes: %d in %q, %d in the model", n, p.data[0].size, p.data[0].name, p.skel.n)
		}
	}
}

func TestExternalPayloadsAreAlignedAndStoredOnce(t *testing.T) {
	m := ir.NewModel()
	for _, n := range []int64{5000, 1 << 20, 1023, 1<<20 + 1, 2000} {
		tensor := &ir.Tensor{Spec: ir.Spec{DType: ir.Uint8, Shape: []int64{n}}, Source: ir.Span{R: zeros{}}}
		m.Graph.AddConst("a", tensor)
		m.Graph.AddConst("b", tensor)
	}
	p := Layout(m, "m.onnx", LayoutOptions{External: true})
	var sizes []int64
	end := int64(0)
	for _, q := range p.data[0].parts {
		n := q.tensor.Bytes()
		sizes = append(sizes, n)
		if align := map[bool]int64{false: 64, true: 4096}[n >= 1<<20]; q.off%align != 0 {
			t.Errorf("%d bytes are at %d, not a multiple of %d", n, q.off, align)
		}
		if q.off < end {
			t.Errorf("%d bytes at %d overlap what ends at %d", n, q.off, end)
		}
		end = q.off + n
	}
	if !slices.Equal(sizes, []int64{5000, 1 << 20, 1<<20 + 1, 2000}) {
		t.Errorf("payloads outside have %v bytes", sizes)
	}
}

// Recipes that run at the same time hold no more than the budget; one that alone
// holds more runs alone.
func TestMemoryBudget(t *testing.T) {
	var held, most atomic.Int64
	for _, tt := range []struct{ work, want int64 }{{30, 3 * 30}, {100, 100}, {1000, 1000}} {
		held.Store(0)
		most.Store(0)
		m := recipes(8, tt.work, func(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
			now := held.Add(tt.work)
			for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
			}
			time.Sleep(2 * time.Millisecond)
			defer held.Add(-tt.work)
			return double(ctx, in, out)
		})
		o := options(t)
		o.Workers, o.Memory = 8, 100
		mustSave(t, m, filepath.Join(t.TempDir(), "m.onnx"), o)
		if most.Load() > tt.want {
			t.Errorf("recipes of %d bytes held %d, at most %d may be", tt.work, most.Load(), tt.want)
		}
	}
}

func TestProgressEndsAtTheTotal(t *testing.T) {
	for _, external := range []bool{false, true} {
		var done, total atomic.Int64
		o := options(t)
		o.External = external
		o.Progress = func(d, n int64) {
			done.Store(max(done.Load(), d))
			total.Store(n)
		}
		o.Workers = 1
		mustSave(t, recipes(4, 1<<10, double), filepath.Join(t.TempDir(), "m.onnx"), o)
		if done.Load() != total.Load() || total.Load() == 0 {
			t.Errorf("external %v: ended at %d of %d", external, done.Load(), total.Load())
		}
	}
}

// sparseModel is a Constant node that holds n values in ONNX's coordinate form.
func sparseModel(n int64) *ir.Model {
	zeros := func(dt ir.DType, shape ...int64) *ir.Tensor {
		spec := ir.Spec{DType: dt, Shape: shape}
		r := &ir.Recipe{Name: "zeros", Out: []ir.Spec{spec}, View: func([]io.ReaderAt) io.ReaderAt { return endless{} }}
		return r.Derive()[0]
	}
	m := ir.NewModel()
	m.IRVersion, m.Opsets = 10, []ir.Opset{{Version: 21}}
	m.Graph.Name = "g"
	s := &ir.Sparse{Values: zeros(ir.Float, n), Indices: zeros(ir.Int64, n), Shape: []int64{n}}
	v := m.Graph.Insert(nil, "Constant", nil, &ir.Attr{Name: "sparse_value", Type: ir.AttrSparse, Sparse: s})
	m.Graph.AddOutput(v)
	return m
}

type endless struct{}

func (endless) ReadAt(b []byte, _ int64) (int, error) {
	clear(b)
	return len(b), nil
}

func TestSparseTensorsStayInTheModelFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sparse.onnx")
	o := SaveOptions{Workers: 1, Memory: 1 << 20, External: true, Eval: ir.NewEval("")}
	written, err := Save(t.Context(), sparseModel(1000), path, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(written) != 1 {
		t.Errorf("%d files, want 1", len(written))
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
}

func TestNoMessageIsTooLong(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sparse.onnx")
	_, err := Save(t.Context(), sparseModel(1<<28), path, SaveOptions{Workers: 1, Memory: 1 << 20, Eval: ir.NewEval("")})
	if err == nil || !strings.Contains(err.Error(), "cannot go into a data file") {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is there: %v", err)
	}
}

// Payloads are divided into files of about equal cost, the outputs of a recipe together, and the model is the same.
func TestSeveralDataFiles(t *testing.T) {
	const n = 4
	dir := t.TempDir()
	save := func(name string, files int) *File {
		path := filepath.Join(dir, name)
		p := Layout(recipes(12, 0, double), name, LayoutOptions{DataFiles: files})
		if files > 1 && len(p.Paths(path)) != 1+files {
			t.Fatalf("%d files: %v", files, p.Paths(path))
		}
		ws, err := p.Write(t.Context(), path, SaveOptions{})
		if err != nil {
			t.Fatal(err)
		}
		total, most := int64(0), int64(0)
		for i, w := range ws {
			st, err := os.Stat(filepath.Join(dir, w.Name))
			if err != nil || st.Size() != w.Size {
				t.Errorf("%s has %d bytes, %v", w.Name, w.Size, err)
			}
			if i > 0 {
				total, most = total+w.Size, max(most, w.Size)
				if want := fmt.Sprintf("%s.data-%05d-of-%05d", name, i, files); w.Name != want {
					t.Errorf("%s, want %s", w.Name, want)
				}
			}
		}
		if largest := int64(3 * (3000 + 70001*11)); most > total/int64(max(1, files))+largest {
			t.Errorf("a file has %d of %d bytes", most, total)
		}
		f := mustOpen(t, path)
		cs := f.Model.Graph.Consts()
		for i := 0; i < len(cs); i += 2 {
			if cs[i].Const.Source.(ir.Span).R != cs[i+1].Const.Source.(ir.Span).R {
				t.Errorf("the outputs of a recipe are in two files: %s", cs[i].Name)
			}
		}
		return f
	}
	whole, divided := save("a.onnx", 0), save("b.onnx", n)
	e := ir.NewEval(dir)
	defer e.Close()
	for i, v := range whole.Model.Graph.Consts() {
		want, err := e.ReadAll(t.Context(), v.Const)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := e.ReadAll(t.Context(), divided.Model.Graph.Consts()[i].Const); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s differs: %v", v.Name, err)
		}
	}
	if got := len(Layout(recipes(2, 0, double), "m.onnx", LayoutOptions{DataFiles: n}).Paths("m.onnx")); got != 3 {
		t.Errorf("%d files for two recipes", got)
	}
}

// A model that breaks a rule is not written into a set, and nothing is computed for it.
func TestStagedModelsHoldRules(t *testing.T) {
	m := ir.NewModel()
	m.IRVersion, m.Opsets = 8, []ir.Opset{{Version: 9}}
	x := m.Graph.NewValue("x")
	x.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: 2}}}
	m.Graph.Inputs = append(m.Graph.Inputs, x)
	relu := m.Graph.Insert(nil, "Relu", []*ir.Value{x})
	m.Graph.AddOutput(relu)
	valid := opset.BrokenBy(m)
	path := filepath.Join(t.TempDir(), "m.onnx")
	stage := func(rules Rules) error {
		set := &atomicfile.Set{}
		_, err := Layout(m, "m.onnx", LayoutOptions{}).Stage(t.Context(), set, path, rules, SaveOptions{})
		if err == nil {
			err = set.Publish(path)
		}
		return errors.Join(err, set.Close())
	}
	relu.Producer().Op.Type = "Mish" // of opset 18
	if err := stage(valid); err == nil ||
		!strings.Contains(err.Error(), "Mish: no operator of the opset that the model imports") {
		t.Errorf("%v", err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
	if err := stage(opset.BrokenBy(m)); err != nil {
		t.Errorf("a rule that the source breaks: %v", err)
	}
}
