package sparse

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

// A runtimeForm is a form and the lowest opset of its operators.
type runtimeForm struct {
	method  *pass.Method
	opset   int64
	half    int64 // the lowest opset for bfloat16
	options options
}

var runtimeForms = []runtimeForm{
	{cooMethod, 11, 20, nil},
	{csrMethod, 16, 20, nil},
	{bsrMethod, 11, 20, options{"block": "4"}},
	{bitmaskMethod, 11, 13, nil},
	{deltaMethod, 11, 20, nil},
	{deltaMethod, 21, 21, nil},
}

// TestFormsInONNXRuntime compares each form, for every type of values, with the dense model: the file is valid, the
// runtime folds the form, and outputs are bit-identical.
func TestFormsInONNXRuntime(t *testing.T) {
	w := conform.Start(t)
	for _, f := range runtimeForms {
		for _, dt := range []ir.DType{ir.Int8, ir.Uint8, ir.Float16, ir.BFloat16, ir.Float, ir.Double} {
			version := f.opset
			if dt == ir.BFloat16 {
				version = f.half
			}
			t.Run(fmt.Sprintf("%s/%s/opset%d", f.method.Name, dt, version), func(t *testing.T) {
				m := modelOf(version,
					random("square", dt, []int64{64, 48}, blocks(48, .05)),
					random("conv", dt, []int64{32, 16, 3, 4}, blocks(192, .05)),
					random("flat", dt, []int64{4096}, blocks(4096, .05)),
					random("edge", dt, []int64{70, 45}, blocks(45, .05)),
					random("cube", dt, []int64{4, 24, 28}, blocks(672, .05)),
				)
				folds(t, w, m, stepOf(t, f.method, f.options), version)
			})
		}
	}
}

// blocks keeps some of the 4x4 blocks of rows of the given length.
func blocks(cols int64, p float64) func(int64) bool {
	keep, known := density(p), map[int64]bool{}
	return func(i int64) bool {
		k := i/cols/4*cols + i%cols/4
		if _, ok := known[k]; !ok {
			known[k] = keep(i)
		}
		return known[k]
	}
}

// folds runs step over m, all of whose weights it must take.
func folds(t *testing.T, w *conform.Worker, m *ir.Model, step pass.Options, version int64) {
	t.Helper()
	before := save(t, m, ir.NewEval(""), "dense.onnx")
	rows, e := apply(t, m, 2, step)
	for _, r := range rows {
		if r.Status != pass.Changed && r.Tensor != "flat" {
			t.Errorf("%s: %s: %s", r.Tensor, r.Status, report.Why(r))
		}
	}
	if got := m.Opset(""); got != version {
		t.Errorf("opset is %d, want %d", got, version)
	}
	after := save(t, m, e, "sparse.onnx")
	if err := w.Check(after, true); err != nil {
		t.Error(err)
	}
	sameOutputs(t, w, before, after, conform.Options{})
	ops, err := w.OptimizedOps(after, conform.Options{})
	if err != nil {
		t.Fatal(err)
	}
	dense, err := w.OptimizedOps(before, conform.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(ops) != fmt.Sprint(dense) {
		t.Errorf("the runtime makes %v of it, of the dense model %v", ops, dense)
	}
	smaller(t, before, after, rows)
	undone(t, before, after)
}

// smaller holds the arithmetic of the rows against the files.
func smaller(t *testing.T, before, after string, rows []pass.Row) {
	t.Helper()
	a, b := fileSize(t, before), fileSize(t, after)
	if b >= a {
		t.Errorf("%d B became %d B: %v", a, b, rows)
	}
}

func fileSize(t *testing.T, path string) int64 {
	t.Helper()
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return st.Size()
}

// undone runs the method dense over the file after and compares with before.
func undone(t *testing.T, before, after string) {
	t.Helper()
	want, got := open(t, before), open(t, after)
	_, e := apply(t, got, 2, stepOf(t, denseMethod, nil))
	back := open(t, save(t, got, e, "back.onnx"))
	for n := range back.Nodes() {
		if n.Op.Is("Reshape") || n.Op.Is("ConstantOfShape") {
			t.Errorf("node %s is left", n.Label())
		}
	}
	if a, b := len(want.Graph.Consts()), len(back.Graph.Consts()); a != b {
		t.Errorf("%d constants became %d", a, b)
	}
	for _, v := range want.Graph.Consts() {
		if !bytes.Equal(payload(t, e, v.Const), payload(t, e, weightNamed(t, back, v.Name))) {
			t.Errorf("%s came back different", v.Name)
		}
	}
}

// TestOddWeightsInONNXRuntime holds the corners of each form against the runtime: where
// values are, and their bytes.
func TestOddWeightsInONNXRuntime(t *testing.T) {
	w := conform.Start(t)
	odd := random("odd", ir.Float, []int64{30, 40}, only(3, 700))
	for i, bits := range []uint32{1<<31 | 1, 0x7fc00001, 0xffc12345, 0x7f800000, 1} {
		binary.LittleEndian.PutUint32(odd.data[4*(100+7*i):], bits)
	}
	for _, m := range formMethods() {
		o := options{}
		if pass.Flags(m).Lookup("block") != nil {
			o["block"] = "1"
		}
		for _, version := range []int64{16, 21} {
			t.Run(fmt.Sprint(m.Name, version), func(t *testing.T) {
				folds(t, w, modelOf(version, odd,
					random("zeros", ir.Float, []int64{37, 53}, only()),
					random("first", ir.Float, []int64{3, 7, 11, 5}, only(0)),
					random("last", ir.Float, []int64{1153}, only(1152)),
					random("rows", ir.Float, []int64{50, 31}, func(i int64) bool { return i/31 == 7 || i/31 == 48 }),
					random("row", ir.Float, []int64{1, 4096}, density(.02)),
					random("column", ir.Float, []int64{513, 2}, density(.02)),
					random("far", ir.Float, []int64{3, 70001}, only(5, 70000, 70001, 209999)),
				), stepOf(t, m, o), version)
			})
		}
	}
}
