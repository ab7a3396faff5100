package opset

import (
	"encoding/binary"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
)

// Inferred shapes and types have to be those of ONNX Runtime, with no
// types to start from but those of the inputs.
func TestInferenceAgreesWithTheRuntime(t *testing.T) {
	w := conform.Start(t)
	all, known := 0, 0
	for name, path := range sharedModels(t) {
		if strings.Contains(path, "custom_domain") {
			continue // runs nowhere
		}
		t.Run(name, func(t *testing.T) {
			m := openModel(t, path)
			probes := exposed(m)
			out := filepath.Join(t.TempDir(), "exposed.onnx")
			save(t, m, out)
			inputs, err := filepath.Glob(filepath.Join(filepath.Dir(path), "test_data_set_0", "input_*.pb"))
			if err != nil {
				t.Fatal(err)
			}
			arrays, err := w.Run(out, conform.Options{Level: "none", Inputs: inputs})
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]conform.Array{}
			for _, a := range arrays {
				got[a.Name] = a
			}
			values := untyped(openModel(t, path))
			for _, p := range probes {
				all++
				v := values[p.of].value
				if _, ok := Rank(v); ok {
					known++
				}
				wantShape(t, v, int64s(got[p.shape].Data), got[p.element].DType)
			}
		})
	}
	t.Logf("%d of %d ranks known", known, all)
	if known < all*9/10 {
		t.Error("inference finds too few values")
	}
}

// ONNX's own tests of single operators state the shapes of their outputs; without
// these, inference must not say anything else.
func TestInferenceAgreesWithTheArchives(t *testing.T) {
	dir := t.TempDir()
	for _, archive := range []string{"onnx_node_tests", "onnx_backend_other"} {
		unpack(t, filepath.Join(conform.Shared(t), "fixtures", "conformance", archive+".zip"), dir)
	}
	known := 0
	for _, path := range modelsBelow(t, dir) {
		m := openModel(t, path)
		for name, stated := range untyped(m) {
			if stated.Type == nil || stated.Shape == nil {
				continue
			}
			v := stated.value
			if e := Elem(v); e != ir.Undefined && e != stated.Elem {
				t.Errorf("%s: %s of %s: element type %v, is %v", path, name, v.Producer().Op, e, stated.Elem)
			}
			shape, ok := Shape(v)
			if !ok {
				continue
			}
			known++
			if !agree(shape, stated.Shape) {
				t.Errorf("%s: %s of %s: shape %v, is %v", path, name, v.Producer().Op, shape, stated.Shape)
			}
		}
	}
	if known < 1000 {
		t.Errorf("only %d shapes known", known)
	}
}

// agree compares what both know.
func agree(a, b []ir.Dim) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Known() && b[i].Known() && a[i] != b[i] {
			return false
		}
	}
	return true
}

// A probe names two small outputs that describe a value: its shape, and one
// element.
type probe struct{ of, shape, element string }

// exposed adds probes of all that default operators make in m's main graph.
func exposed(m *ir.Model) (ps []probe) {
	m.IRVersion = max(m.IRVersion, 4) // before it, the constants here would have to be inputs
	g := m.Graph
	flat := g.AddConst("flat", intTensor([]int64{1}, []int64{-1}))
	zero := g.AddConst("zero", intTensor([]int64{1}, []int64{0}))
	one := g.AddConst("one", intTensor([]int64{1}, []int64{1}))
	var vs []*ir.Value
	for n := range g.Nodes() {
		if ir.DefaultDomain(n.Op.Domain) {
			vs = append(vs, n.Outputs...)
		}
	}
	for _, v := range vs {
		if v == nil {
			continue
		}
		shape := g.Insert(nil, "Shape", []*ir.Value{v})
		line := g.Insert(nil, "Reshape", []*ir.Value{v, flat})
		var element *ir.Value
		if m.Opset("") < 10 {
			element = g.Insert(nil, "Slice", []*ir.Value{line}, ir.IntsAttr("starts", 0), ir.IntsAttr("ends", 1))
		} else {
			element = g.Insert(nil, "Slice", []*ir.Value{line, zero, one})
		}
		g.AddOutput(shape)
		g.AddOutput(element)
		ps = append(ps, probe{v.Name, shape.Name, element.Name})
	}
	return ps
}

func int64s(b []byte) (is []int64) {
	for ; len(b) >= 8; b = b[8:] {
		is = append(is, int64(binary.LittleEndian.Uint64(b)))
	}
	return is
}

// A statedValue is a value without its type, and the type that the model states.
type statedValue struct {
	value *ir.Value
	*ir.Type
}

// untyped takes the types from the values that m's nodes make, by name.
func untyped(m *ir.Model) map[string]statedValue {
	values := map[string]statedValue{}
	for n := range m.Graph.Nodes() {
		for _, v := range n.Outputs {
			if v != nil {
				values[v.Name] = statedValue{v, v.Type}
				v.Type = nil
			}
		}
	}
	return values
}

func wantShape(t *testing.T, v *ir.Value, is []int64, dtype string) {
	t.Helper()
	if e := Elem(v); e != ir.Undefined && e.String() != onnxName(dtype) {
		t.Errorf("%s of %s: element type %v, is %s", v.Name, v.Producer().Op, e, dtype)
	}
	shape, ok := Shape(v)
	if !ok {
		return
	}
	fits := len(shape) == len(is)
	for i := 0; fits && i < len(shape); i++ {
		fits = !shape[i].Known() || shape[i].N == is[i]
	}
	if !fits {
		t.Errorf("%s of %s: shape %v, is %v", v.Name, v.Producer().Op, shape, is)
	}
}

// onnxName is ONNX's name of a NumPy type.
func onnxName(numpy string) string {
	switch numpy {
	case "float32":
		return "float"
	case "float64":
		return "double"
	}
	return numpy
}
