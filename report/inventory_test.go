package report

import (
	"maps"
	"testing"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A sparse tensor is stored as values and indices and held dense.
func TestSizesOfSparseTensors(t *testing.T) {
	m := open(t, "../fixtures/sparse_initializer.onnx").Model
	var values, indices, dense int64
	for _, v := range m.Graph.Consts() {
		o, ok := v.Const.Source.(ir.Output)
		if !ok {
			continue
		}
		values += o.Of.In[0].Bytes()
		indices += o.Of.In[1].Bytes()
		dense += v.Const.Bytes()
	}
	if dense == 0 {
		t.Fatal("the fixture holds no sparse tensor")
	}
	stored, held, err := sizes(t.Context(), Model{IR: m})
	if err != nil {
		t.Fatal(err)
	}
	var others int64
	for _, v := range m.Graph.Consts() {
		if _, sparse := v.Const.Source.(ir.Output); !sparse {
			others += v.Const.Bytes()
		}
	}
	if got, want := sum(stored), others+values+indices; got != want {
		t.Errorf("stored: got %d, want %d", got, want)
	}
	if want := others + dense; held != want {
		t.Errorf("held: got %d, want %d", held, want)
	}
}

// Tensors that lie on the same bytes of a file are stored once and held each.
func TestSizesOfSharedRegions(t *testing.T) {
	m := network(odd())
	at := ir.Span{R: &section{}, Off: 64}
	for _, name := range []string{"a", "b"} {
		m.Graph.AddConst(name, &ir.Tensor{Spec: ir.Spec{DType: ir.Float16, Shape: []int64{10}}, Source: at})
	}
	stored, held, err := sizes(t.Context(), Model{IR: m})
	if err != nil {
		t.Fatal(err)
	}
	if want := map[ir.DType]int64{ir.Float: 24, ir.Float16: 20}; !maps.Equal(stored, want) || held != 64 {
		t.Errorf("got %v stored, %d held", stored, held)
	}
}

type section struct{ _ byte }

func (*section) ReadAt([]byte, int64) (int, error) { return 0, nil }

// Constants of subgraphs and functions are found by their graph's place in the model.
func TestIndexFindsConstantsOfEveryGraph(t *testing.T) {
	for _, name := range []string{"subgraph_if", "subgraph_nested", "subgraph_scan", "function"} {
		path := "../fixtures/" + name + ".onnx"
		memory := open(t, path).Model
		x, err := newIndex(t.Context(), open(t, path).Model)
		if err != nil {
			t.Fatal(err)
		}
		graphs := 0
		for g := range memory.Graphs() {
			graphs++
			for _, v := range g.Consts() {
				got := x.find(pass.Part{Value: v, Tensor: v.Const})
				if got == nil || got == v.Const || offset(got) != offset(v.Const) {
					t.Errorf("%s: %q was not found", name, v.Name)
				}
			}
		}
		if graphs < 2 {
			t.Errorf("%s: the fixture has %d graphs", name, graphs)
		}
	}
}

// offset is the offset of a payload in its file, -1 for a decoded one.
func offset(t *ir.Tensor) int64 {
	if s, ok := t.Source.(ir.Span); ok {
		return s.Off
	}
	return -1
}
