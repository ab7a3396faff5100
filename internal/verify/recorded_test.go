package verify

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/report/verification"
)

// npy writes an array of floats into a folder of arrays.
func npy(t *testing.T, dir, name string, values []float32, shape ...int) {
	t.Helper()
	npyOf(t, dir, name, "<f4", func(i int) uint32 { return math.Float32bits(values[i]) }, shape...)
}

// npyOf writes an array of words of four bytes.
func npyOf(t *testing.T, dir, name, descr string, word func(i int) uint32, shape ...int) {
	t.Helper()
	dims, n := "", 1
	for _, d := range shape {
		dims, n = dims+fmt.Sprintf("%d, ", d), n*d
	}
	head := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, dims)
	head += strings.Repeat(" ", 63-(10+len(head))%64) + "\n"
	b := append([]byte("\x93NUMPY\x01\x00"), byte(len(head)), byte(len(head)>>8))
	b = append(b, head...)
	for i := range n {
		b = binary.LittleEndian.AppendUint32(b, word(i))
	}
	if err := os.WriteFile(filepath.Join(dir, name+".npy"), b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func folder(t *testing.T, m *ir.Model, dir string) *dataset.Set {
	t.Helper()
	set, err := dataset.Open(dir, dataset.Inputs(m.Graph), dataset.Outputs(m.Graph), dataset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	return set
}

// recorded compares chain(2, 1) with the recorded outputs of two samples.
func recorded(t *testing.T, y []float32, tol Tolerance) *verification.Result {
	t.Helper()
	m, dir := chain(2, 1), t.TempDir()
	npy(t, dir, "x", []float32{0, 1, 2, 3, 4, 5, 6, 7}, 2, 4)
	npy(t, dir, "y", y, 2, 4)
	r, err := Recorded(t.Context(), open(t, m, nil), folder(t, m, dir), tol, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRecordedOutputsAreReproduced(t *testing.T) {
	r := recorded(t, []float32{1, 3, 5, 7, 9, 11, 13, 15}, exactTolerance())
	if e := r.Outputs[0].Errors; r.Beyond != "" || !e.Exact || e.Elements != 8 || r.Accuracy != nil {
		t.Errorf("got %q, %+v, %+v", r.Beyond, e, r.Accuracy)
	}
}

func TestTheFirstNumberBeyondTheToleranceIsNamed(t *testing.T) {
	off := []float32{1, 3, 5, 7, 9, 11.5, 13, 16}
	r := recorded(t, off, Tolerance{})
	if want := `sample 1: output "y": element 1 is 11, but 11.5 was recorded`; r.Beyond != want {
		t.Errorf("got %q, want %q", r.Beyond, want)
	}
	// 0.5 of 11.5 and 1 of 16 are within 0.1 of each.
	if r := recorded(t, off, within(0.1)); r.Beyond != "" || *r.Outputs[0].Errors.Max != 1 {
		t.Errorf("got %q, %+v", r.Beyond, r.Outputs[0].Errors)
	}
}

func TestDataWithoutOutputsIsAnError(t *testing.T) {
	m, dir := chain(2, 1), t.TempDir()
	npy(t, dir, "x", make([]float32, 4), 1, 4)
	_, err := Recorded(t.Context(), open(t, m, nil), folder(t, m, dir), Tolerance{}, Options{})
	if err == nil || !strings.Contains(err.Error(), "no recorded outputs and no labels") {
		t.Errorf("got %v", err)
	}
}

// Of chain(2, 1) the largest score of rising inputs is the last one, of falling ones the first.
func TestLabelsWithoutOutputs(t *testing.T) {
	m, dir := chain(2, 1), t.TempDir()
	npy(t, dir, "x", []float32{1, 2, 3, 4, 8, 7, 6, 5, 1, 2, 3, 4}, 3, 4)
	npyOf(t, dir, "labels", "<i4", func(i int) uint32 { return []uint32{3, 0, 0}[i] }, 3)
	r, err := Recorded(t.Context(), open(t, m, nil), folder(t, m, dir), Tolerance{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if a := r.Accuracy; a == nil || a.Before != nil || math.Abs(a.After-2.0/3) > 1e-9 {
		t.Errorf("got %+v, want 2/3", a)
	}
	both, err := Compare(t.Context(), open(t, m, nil), open(t, chain(-2, 100), nil), folder(t, m, dir), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if a := both.Accuracy; a == nil || math.Abs(*a.Before-2.0/3) > 1e-9 || math.Abs(a.After-1.0/3) > 1e-9 {
		t.Errorf("got %+v, want 2/3 and, as the order is reversed, 1/3", a)
	}
}

func TestToleranceOfNonNumericTypes(t *testing.T) {
	text := func(s string) *ir.Array { return ir.TextOf([]string{s}, 1) }
	float8 := func(b byte) *ir.Array { return &ir.Array{DType: ir.Float8E5M2, Shape: []int64{1}, Data: []byte{b}} }
	seq := func(a *ir.Array) *ir.Array { return &ir.Array{Kind: ir.Sequence, Items: []*ir.Array{a}} }
	dict := func(key int64) *ir.Array {
		return &ir.Array{Kind: ir.Map, Keys: ir.ArrayOf([]int64{key}, 1), Items: []*ir.Array{ir.NewArray(ir.Float, 1)}}
	}
	nan, inf := math.NaN(), math.Inf(1)
	double := func(x float64) *ir.Array { return ir.ArrayOf([]float64{x}, 1) }
	for _, c := range []struct {
		want, got *ir.Array
		miss      string
	}{
		{text("a"), text("a"), ""},
		{text("a"), text("b"), `element 0 is "b", but "a" was recorded`},
		{float8(1), float8(1), ""},
		{float8(1), float8(2), "the bytes of float8e5m2[1] differ from the recorded ones"},
		{seq(text("a")), seq(text("b")), `item 0: element 0 is "b", but "a" was recorded`},
		{seq(text("a")), text("a"), "string[1], but seq of 1 was recorded"},
		{dict(1), dict(1), ""},
		{dict(1), dict(2), "element 0 is 2, but 1 was recorded"},
		{double(nan), double(nan), ""},
		{double(inf), double(-inf), "element 0 is -Inf, but +Inf was recorded"},
		{double(1), double(nan), "element 0 is NaN, but 1 was recorded"},
		{nil, double(1), ""},
	} {
		miss := ""
		if err := within(0.5).checkValue(c.want, c.got); err != nil {
			miss = err.Error()
		}
		if miss != c.miss {
			t.Errorf("got %q, want %q", miss, c.miss)
		}
	}
}

// within is a relative tolerance.
func within(relative float64) Tolerance { return Tolerance{Relative: &relative} }

func TestDefaultTolerancesGoByElementType(t *testing.T) {
	one := func(dt ir.DType, x float64) *ir.Array {
		a := ir.NewArray(dt, 1)
		number.Write(a, 0, []float64{x})
		return a
	}
	for _, c := range []struct {
		dt        ir.DType
		want, got float64
		near      bool
	}{
		{ir.Float, 100, 100.05, true},
		{ir.Float, 100, 100.2, false},
		{ir.Double, 100, 100.2, false},
		{ir.Float16, 1, 1 + 0x1p-10, true},
		{ir.Float16, 100, 100.25, true},
		{ir.Float16, 100, 101, false},
		{ir.Float16, 0, 0x1p-11, true},
		{ir.BFloat16, 100, 102, true},
		{ir.BFloat16, 100, 106, false},
		{ir.Int64, 50_000, 50_001, false},
		{ir.Uint8, 7, 8, false},
	} {
		if err := (Tolerance{}).checkValue(one(c.dt, c.want), one(c.dt, c.got)); (err == nil) != c.near {
			t.Errorf("%s: %v for %v: %v", c.dt, c.got, c.want, err)
		}
	}
}
