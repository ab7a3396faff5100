package ir

import (
	"math"
	"testing"
)

func TestBytes(t *testing.T) {
	for _, tt := range []struct {
		dtype DType
		shape []int64
		want  int64
	}{
		{Float, nil, 4},
		{Float, []int64{2, 3}, 24},
		{Float, []int64{2, 0, 3}, 0},
		{Bool, []int64{5}, 5},
		{Complex128, []int64{3}, 48},
		{Int4, []int64{5}, 3},
		{Uint4, []int64{3, 3}, 5}, // packed over the whole tensor, not row by row
		{Float4E2M1, []int64{2}, 1},
		{Int2, []int64{5}, 2},
		{Uint2, []int64{4}, 1},
		{Float6E2M3, []int64{5}, 4},
		{Float6E3M2, []int64{4}, 3},
		{String, []int64{7}, 0},
		{Undefined, []int64{7}, 0},
	} {
		if got := (Spec{DType: tt.dtype, Shape: tt.shape}).Bytes(); got != tt.want {
			t.Errorf("%s%v has %d bytes, want %d", tt.dtype, tt.shape, got, tt.want)
		}
	}
}

// A shape that Valid lets pass has a size that does not overflow, whatever its type.
func TestValidShapes(t *testing.T) {
	const most = math.MaxInt64 / 128
	for _, tt := range []struct {
		shape []int64
		ok    bool
	}{
		{nil, true},
		{[]int64{0}, true},
		{[]int64{most}, true},
		{[]int64{most + 1}, false},
		{[]int64{math.MaxInt64}, false},
		{[]int64{1 << 32, 1 << 32}, false}, // wraps to 0
		{[]int64{1 << 31, 1 << 31, 1 << 31}, false},
		{[]int64{-1}, false},
		{[]int64{0, -1}, false},
		{[]int64{math.MinInt64}, false},
	} {
		s := Spec{DType: Complex128, Shape: tt.shape}
		err := s.Valid()
		if (err == nil) != tt.ok {
			t.Errorf("%v: got %v", tt.shape, err)
		}
		if err == nil && (s.Bytes() < 0 || s.Bytes() != s.Elems()*16) {
			t.Errorf("%v takes %d bytes", tt.shape, s.Bytes())
		}
	}
}

func TestSpecString(t *testing.T) {
	for _, tt := range []struct {
		spec Spec
		want string
	}{
		{Spec{DType: Float}, "float"},
		{Spec{DType: BFloat16, Shape: []int64{2, 3}}, "bfloat16[2,3]"},
		{Spec{DType: 200, Shape: []int64{1}}, "dtype(200)[1]"},
	} {
		if got := tt.spec.String(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

func TestDTypes(t *testing.T) {
	for d := range DType(255) {
		if d.Known() && d != String && d.Bits() == 0 {
			t.Errorf("%s has no width", d)
		}
		if !d.Known() && d.Bits() != 0 {
			t.Errorf("%s is not known and has a width", d)
		}
	}
}

func TestNames(t *testing.T) {
	for id, want := range map[OpID]string{
		{Type: "Relu"}:                                  "Relu",
		{Domain: "a.b", Type: "Op"}:                     "a.b.Op",
		{Domain: "d", Type: "Op", Overload: "positive"}: "d.Op:positive",
	} {
		if got := id.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	m, nodes := chain(1)
	if got := nodes[0].Label(); got != "Relu(t)" {
		t.Errorf("label %q", got)
	}
	nodes[0].Name = "first"
	if got := nodes[0].Label(); got != "first" {
		t.Errorf("label %q", got)
	}
	if !(OpID{Domain: "ai.onnx", Type: "Relu"}).Is("Relu") || (OpID{Domain: "d", Type: "Relu"}).Is("Relu") {
		t.Error("Is confuses domains")
	}
	if m.Opset("ai.onnx") != 21 || m.Opset("d") != 0 {
		t.Errorf("opsets %d and %d", m.Opset("ai.onnx"), m.Opset("d"))
	}
}

func TestOpsetOfAFunction(t *testing.T) {
	m, nodes := chain(1)
	f := m.AddFunction(OpID{Domain: "d", Type: "F"})
	f.Opsets = []Opset{{Version: 13}}
	sub := NewSubgraph(f.Body, f.Body.NewNode(OpID{Type: "If"}, nil))
	if got := sub.Opset(""); got != 13 {
		t.Errorf("inside the function opset %d is in force, want the function's own 13", got)
	}
	if got := nodes[0].Graph().Opset(""); got != 21 {
		t.Errorf("in the main graph opset %d is in force", got)
	}
}
