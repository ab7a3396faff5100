package prune

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

func TestWhatIsLeftAloneHasItsReason(t *testing.T) {
	b := newBench(t)
	four := []float64{1, 2, 3, 4}
	weight := func(name string, shape ...int64) *ir.Value { return b.weight(name, ir.Float, shape, four...) }
	b.node("Gemm", []*ir.Value{nil, weight("taken", 2, 2), weight("bias", 4)})
	b.node("Gather", []*ir.Value{weight("table", 2, 2), nil})
	tied := weight("tied", 2, 2)
	b.node("Gather", []*ir.Value{tied, nil})
	b.node("MatMul", []*ir.Value{nil, tied})
	b.node("Gather", []*ir.Value{weight("lookup", 4), nil})
	b.node("Add", []*ir.Value{nil, weight("added", 2, 2)})
	b.node("MatMul", []*ir.Value{nil, weight("skipped", 2, 2)})
	b.node("MatMul", []*ir.Value{nil, b.weight("none", ir.Float, []int64{0, 2})})
	weight("unread", 2, 2)
	quantized := b.weight("quantized", ir.Int8, []int64{2, 2}, four...)
	b.node("MatMul", []*ir.Value{nil, b.node("DequantizeLinear", []*ir.Value{quantized, nil})})
	b.node("MatMulInteger", []*ir.Value{nil, b.weight("integers", ir.Int8, []int64{2, 2}, four...)})
	sparse := weight("sparse", 2, 2)
	sparse.SetConst(expanded(sparse.Const))
	b.node("MatMul", []*ir.Value{nil, sparse})

	rows := b.run(l1Method, "skip", "skip*")
	for name, want := range map[string]string{
		"taken":     "pruned: 2 of 4 elements, the largest 2",
		"bias":      "bias of Gemm, kept in float",
		"table":     "embedding of Gather, pruned with --embeddings",
		"tied":      "embedding of Gather, pruned with --embeddings",
		"lookup":    "not supported: weight of Gather: input 0",
		"skipped":   "excluded by --skip",
		"none":      "shape not supported: no elements",
		"unread":    "not used by any node",
		"quantized": "already quantized: int8",
		"integers":  "already quantized: int8",
		"sparse":    "already stored sparse",
	} {
		r := rowOf(t, rows, name)
		if report.Why(r) != want || (r.Status == pass.Changed) != (name == "taken") {
			t.Errorf("%s: %v, %q, want %q", name, r.Status, report.Why(r), want)
		}
	}
	if r := rowOf(t, rows, "added"); r.Status != pass.Skipped || report.Why(r) == "" {
		t.Errorf("added: %v, %q", r.Status, report.Why(r))
	}
	if r := rowOf(t, rows, "taken"); len(r.After) != 1 || r.After[0].Bytes() != r.Before.Bytes() ||
		r.After[0].String() != "float[2,2]" {
		t.Errorf("taken: %+v", r)
	}
}

// expanded is t as if it were stored in half as many bytes.
func expanded(t *ir.Tensor) *ir.Tensor {
	stored := &ir.Tensor{Spec: ir.Spec{Name: t.Name, DType: ir.Float, Shape: []int64{2}}, Source: ir.Mem(make([]byte, 8))}
	r := &ir.Recipe{Name: "dense", In: []*ir.Tensor{stored}, Out: []ir.Spec{t.Spec}}
	r.Run = func(context.Context, []io.ReaderAt, []io.Writer) error {
		return errors.New("the dense payload is not to be read")
	}
	return r.Derive()[0]
}

// Values in a typed field of the file, such as float16 in int32_data, are decoded from no other tensor: they are not
// stored sparse.
func TestTypedFieldsAreNotSparse(t *testing.T) {
	decoded := &ir.Recipe{Name: "decode", Out: []ir.Spec{{DType: ir.Float16, Shape: []int64{2, 2}}}}
	if pass.StoredSmaller(decoded.Derive()[0]) {
		t.Error("decoded values are taken for a sparse tensor")
	}
}

func TestEmbeddingsOnRequest(t *testing.T) {
	b := newBench(t)
	w := b.weight("w", ir.Float, []int64{4, 2}, 8, 7, 1, 1, 6, 5, 2, 2)
	b.node("Gather", []*ir.Value{w, nil})
	b.node("MatMul", []*ir.Value{nil, b.node("Transpose", []*ir.Value{w})})
	rows := b.run(l2Method, "embeddings", "true")
	if got, want := b.values(w), []float64{8, 7, 0, 0, 6, 5, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := rowOf(t, rows, "w").Consumers; len(got) != 2 {
		t.Errorf("consumers %v, want the Gather and the MatMul after the Transpose", got)
	}
}

func TestSharedInTwoOrientations(t *testing.T) {
	for _, m := range []*pass.Method{nmMethod, l2Method} {
		b := newBench(t)
		w := b.weight("w", ir.Float, []int64{3, 3}, 1, 2, 3, 4, 5, 6, 7, 8, 9)
		b.node("MatMul", []*ir.Value{nil, w})
		b.node("Gemm", []*ir.Value{nil, w}, ir.IntAttr("transB", 1))
		if r := rowOf(t, b.run(m), "w"); report.Why(r) != "shape not supported: different axes at consumers" {
			t.Errorf("%s: %q", m.Name, report.Why(r))
		}
		rows := b.run(l1Method)
		if got := b.values(w); !slices.Equal(got, []float64{0, 0, 0, 0, 5, 6, 7, 8, 9}) ||
			rows[len(rows)-1].Status != pass.Changed {
			t.Errorf("l1 is not applied once: %v", got)
		}
	}
}

func TestAxesThatCannotBeKnown(t *testing.T) {
	b := newBench(t)
	w := b.weight("w", ir.Float, []int64{2, 2, 2}, 1, 2, 3, 4, 5, 6, 7, 8)
	b.node("MatMul", []*ir.Value{nil, b.node("Transpose", []*ir.Value{w}, ir.IntsAttr("perm", 0, 2, 1))})
	v := b.weight("v", ir.Float, []int64{4, 1}, 1, 2, 3, 4)
	b.node("Gemm", []*ir.Value{nil, v}, &ir.Attr{Name: "transB", Type: ir.AttrInt, Ref: "t"})
	short := b.weight("short", ir.Float, []int64{2, 4}, 1, 2, 3, 4, 5, 6, 7, 8)
	b.node("MatMul", []*ir.Value{nil, short})
	rows := b.run(nmMethod)
	for name, want := range map[string]string{
		"w":     "not supported through Transpose: permutation of more than two axes",
		"v":     "attribute of Gemm set by the caller of its function: transB",
		"short": "shape not supported: reduction axis of 2 elements, all kept by 2:4",
	} {
		if r := rowOf(t, rows, name); report.Why(r) != want {
			t.Errorf("%s: %q, want %q", name, report.Why(r), want)
		}
	}
}

// NaN and infinities have no rank: the weight is not changed, and the fraction applies to the others.
func TestNaNAndInfinitiesAreSkipped(t *testing.T) {
	for _, m := range methods {
		for _, dt := range floatTypes {
			for _, odd := range []float64{math.NaN(), math.Inf(-1)} {
				b := newBench(t)
				b.step.Env.Precheck = true
				bad := b.weight("bad", dt, []int64{4, 1}, 1, odd, 2, 3)
				good := b.weight("good", dt, []int64{4, 1}, 1, 4, 2, 3)
				b.node("MatMul", []*ir.Value{nil, bad})
				b.node("MatMul", []*ir.Value{nil, good})
				before := bad.Const
				rows := b.run(m, map[bool][]string{true: nil, false: {"amount", "1"}}[m == nmMethod]...)
				if r := rowOf(t, rows, "bad"); r.Reason.Code != pass.NotFinite || r.Status != pass.Skipped || bad.Const != before {
					t.Errorf("%s of %s with %v: %v, %q", m.Name, dt, odd, r.Status, report.Why(r))
				}
				if r := rowOf(t, rows, "good"); r.Status != pass.Changed || zeros(b.values(good)) < 2 {
					t.Errorf("%s of %s with %v: %v, %q", m.Name, dt, odd, r.Status, report.Why(r))
				}
			}
		}
	}
}

// Methods that read no weight beforehand find out when the writer reads.
func TestViewsReportNaN(t *testing.T) {
	for _, m := range []*pass.Method{randomMethod, nmMethod} {
		b := newBench(t)
		w := b.weight("w", ir.Float16, []int64{4, 1}, 1, 2, math.NaN(), 3)
		b.node("MatMul", []*ir.Value{nil, w})
		b.run(m)
		_, err := b.step.Eval.ReadAll(t.Context(), w.Const)
		var u *pass.Unfit
		if !errors.As(err, &u) || u.Tensor != "w" {
			t.Errorf("%s: got %v, want *pass.Unfit", m.Name, err)
		}
	}
}

func TestShortPayloadsAreErrors(t *testing.T) {
	for _, m := range []*pass.Method{l1Method, l1GlobalMethod, l2Method} {
		b := newBench(t)
		w := b.weight("w", ir.Float, []int64{4, 4}, 1, 2, 3)
		b.node("MatMul", []*ir.Value{nil, w})
		want := fmt.Sprintf(`%s: tensor "w": payload ends 52 bytes early: unexpected EOF`, m.Name)
		if _, err := b.try(m); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
