package quantize

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// static runs static-int8 on a built model, and returns the rows of the ledger and the number of nodes by operator.
func (s *builder) static(options ...string) (rows []pass.Row, ops map[string]int) {
	s.t.Helper()
	e := ir.NewEval(s.t.TempDir())
	defer e.Close()
	r, err := pass.Run(context.Background(), s.Model(), e, pass.Environment{Workers: 1},
		[]pass.Options{variant{StaticInt8{}.Method(), options}.step(s.t)})
	if err != nil {
		s.t.Fatal(err)
	}
	ops = map[string]int{}
	for n := range s.Nodes() {
		ops[n.Op.Type]++
	}
	return r.Rows, ops
}

// A Clip between quantized layers is replaced by the quantized range, which has zero, if its constant bounds are on
// both sides of zero.
func TestClipsWithinTheQuantizedRange(t *testing.T) {
	for _, c := range []struct {
		lo, hi float32
		want   int // Clips
	}{{0, 6, 0}, {-1, 1, 0}, {-6, 0, 0}, {0.5, 6, 1}, {-6, -1, 1}} {
		s := newBuilder(t, 17)
		x := s.node("Conv", []*ir.Value{s.input("x", 1, 4, 6, 6), s.weight("w", 8, 4, 3, 3)})
		bound := func(x float32) *ir.Value {
			return s.node("Identity",
				[]*ir.Value{s.AddConst("bound", &ir.Tensor{Spec: ir.Spec{DType: ir.Float}, Source: ir.Floats(x)})})
		}
		x = s.node("Clip", []*ir.Value{x, bound(c.lo), bound(c.hi)})
		s.output("y", s.node("Conv", []*ir.Value{x, s.weight("w", 8, 8, 3, 3)}), 1, 8, 2, 2)
		if _, ops := s.static("activation-sqnr=0"); ops["Clip"] != c.want || ops["QuantizeLinear"] == 0 {
			t.Errorf("bounds %g and %g: operators %v, want %d Clip", c.lo, c.hi, ops, c.want)
		}
	}
}

// No 8-bit activations have an output SQNR of 200 dB: convolutions compute in float, with weights of 8 bits.
func TestActivationsBelowTheSQNRStayFloat(t *testing.T) {
	s := newBuilder(t, 17)
	x := s.node("Relu", []*ir.Value{s.node("Conv", []*ir.Value{s.input("x", 1, 4, 6, 6), s.weight("w", 8, 4, 3, 3)})})
	s.output("y", s.node("Conv", []*ir.Value{x, s.weight("w", 8, 8, 3, 3)}), 1, 8, 2, 2)
	rows, ops := s.static("activation-sqnr=200")
	weights := 0
	for _, r := range rows {
		if r.Status == pass.Changed {
			if weights++; r.Form != pass.CastMul {
				t.Errorf("weight %q has form %q, want %q", r.Tensor, r.Form.Name, pass.CastMul.Name)
			}
		}
	}
	if weights != 2 || ops["QuantizeLinear"] > 0 || ops["Cast"] != 2 {
		t.Errorf("%d weights are quantized, operators %v", weights, ops)
	}
}

// Ranges are saved also if they leave no layer, and a run with them leaves none: a search measures single weights with
// those of all.
func TestSavedRangesThatLeaveNoLayer(t *testing.T) {
	static := func(options ...string) map[string]int {
		s := newBuilder(t, 17)
		s.output("y", s.node("Gemm", []*ir.Value{s.input("x", 1, 64), s.weight("w", 64, 8)}), 1, 8)
		_, ops := s.static(options...)
		return ops
	}
	ranges := filepath.Join(t.TempDir(), "ranges.json")
	if a, b := static("activation-sqnr=200", "save-ranges="+ranges), static("ranges="+ranges); a["QuantizeLinear"] > 0 ||
		!maps.Equal(a, b) {
		t.Errorf("operators %v, with the saved ranges %v", a, b)
	}
}

// A bias behind views is quantized with its layer, also one that two layers share.
func TestBiasesBehindViews(t *testing.T) {
	for _, view := range []string{"", "Identity", "Reshape", "Unsqueeze"} {
		s := newBuilder(t, 17)
		through := func(v *ir.Value) *ir.Value {
			switch view {
			case "Reshape":
				return s.node("Reshape", []*ir.Value{v, s.ints(-1)})
			case "Unsqueeze":
				return s.node("Squeeze", []*ir.Value{s.node("Unsqueeze", []*ir.Value{v, s.ints(0)}), s.ints(0)})
			case "Identity":
				return s.node("Identity", []*ir.Value{v})
			}
			return v
		}
		shared := s.weight("shared", 8)
		x := s.node("Conv", []*ir.Value{s.input("x", 1, 4, 6, 6), s.weight("w", 8, 4, 3, 3), through(shared)})
		x = s.node("Relu", []*ir.Value{x})
		x = s.node("Conv", []*ir.Value{x, s.weight("w", 8, 8, 3, 3), through(shared)})
		x = s.node("Flatten", []*ir.Value{x})
		x = s.node("Gemm", []*ir.Value{x, s.weight("w", 32, 16), through(s.weight("c", 16))})
		s.output("y", s.node("Add",
			[]*ir.Value{s.node("MatMul", []*ir.Value{x, s.weight("w", 16, 10)}), through(s.weight("d", 10))}), 1, 10)
		r := s.apply(variant{StaticInt8{}.Method(), []string{"activation-sqnr=0", "no-bias-correction"}}, 15)
		for _, row := range r.Report.Ledger {
			if row.Form != "qdq" && slices.Contains([]string{"w", "w1", "w2", "w3", "shared", "c", "d"}, row.Tensor) {
				t.Errorf("behind %q: %s has form %q, reason %s", view, row.Tensor, row.Form, row.Why())
			}
		}
	}
}

// Factors and a transposed input of Gemm matter to a quantized bias only: without one its weight is quantized.
func TestGemmWithoutBias(t *testing.T) {
	for name, attr := range map[string]*ir.Attr{"plain": nil, "alpha": ir.FloatAttr("alpha", 0.5),
		"beta": ir.FloatAttr("beta", 2), "transA": ir.IntAttr("transA", 1)} {
		for _, bias := range []bool{false, true} {
			s := newBuilder(t, 17)
			x := s.node("Relu", []*ir.Value{s.node("MatMul", []*ir.Value{s.input("x", 32, 48), s.weight("first", 48, 32)})})
			in := []*ir.Value{x, s.weight("w", 32, 32)}
			if bias {
				in = append(in, s.weight("c", 32))
			}
			var attrs []*ir.Attr
			if attr != nil {
				attrs = append(attrs, attr)
			}
			x = s.node("Relu", []*ir.Value{s.node("Gemm", in, attrs...)})
			s.output("y", s.node("MatMul", []*ir.Value{x, s.weight("last", 32, 16)}), 32, 16)
			r := s.apply(variant{StaticInt8{}.Method(), []string{"activation-sqnr=0"}}, 25)
			quantized := !bias || attr == nil
			for _, row := range r.Report.Ledger {
				if row.Tensor == "w" && (row.Form == "qdq") != quantized {
					t.Errorf("%s, bias %v: form %q, reason %s", name, bias, row.Form, row.Why())
				}
			}
		}
	}
}

// Layers that are kept in float stay so in ONNX Runtime, which quantizes float weights between quantized activations
// itself. Here 8 bits keep nothing of such a weight but the factor of a channel that is zero.
func TestFloatLayersStayFloatInTheRuntime(t *testing.T) {
	const n, in = 64, 16
	for _, op := range []string{"Conv", "ConvTranspose", "Gemm"} {
		s := newBuilder(t, 17)
		first, mid := make([]float32, n*in), make([]float32, n*n)
		for i := in; i < len(first); i++ {
			first[i] = float32(s.random.NormFloat64())
		}
		for i := range mid {
			mid[i] = float32(s.random.NormFloat64())
			if op == "ConvTranspose" && i < n || op != "ConvTranspose" && i%n == 0 {
				mid[i] = 3e4
			}
		}
		layer, x, out := "Conv", s.input("x", 1, in, 3, 3), []int64{1, n, 3, 3}
		shape := func(rows, columns int64) []int64 { return []int64{rows, columns, 1, 1} }
		var attrs []*ir.Attr
		if op == "Gemm" {
			layer, x, out = "Gemm", s.input("x", 3, in), []int64{3, n}
			shape = func(rows, columns int64) []int64 { return []int64{rows, columns} }
			attrs = []*ir.Attr{ir.IntAttr("transB", 1)}
		}
		x = s.node(layer, []*ir.Value{x, s.floats(shape(n, in), first...)}, attrs...)
		kept := s.floats(shape(n, n), mid...)
		kept.Name = "kept"
		x = s.node(op, []*ir.Value{x, kept, s.weight("bias", n)}, attrs...)
		s.output("y", s.node(layer, []*ir.Value{x, s.weight("w", shape(n, n)...)}, attrs...), out...)
		r := s.apply(variant{StaticInt8{}.Method(), []string{"activation-sqnr=0", "skip=kept"}}, 25)
		if row := r.row("w"); !strings.HasPrefix(row, "changed qdq") {
			t.Errorf("%s: the last weight is %q, want it quantized", op, row)
		}
	}
}
