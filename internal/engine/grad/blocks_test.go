package grad

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// named returns the tape of a chain of nodes with these names; those after a space are modules.
func named(t *testing.T, names ...string) *Activations {
	t.Helper()
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 22}}
	x := m.Graph.AddValue("x")
	x.Type = typeOf(ir.Spec{DType: ir.Float, Shape: []int64{2}})
	m.Graph.Inputs = []*ir.Value{x}
	for _, name := range names {
		x = m.Graph.Insert(nil, "Neg", []*ir.Value{x})
		x.Producer().Name, x.Producer().Module, _ = strings.Cut(name, " ")
	}
	m.Graph.AddOutput(x)
	tape, err := New(t.Context(), m, Options{Inputs: map[string]ir.Spec{"x": {DType: ir.Float, Shape: []int64{2}}}})
	if err != nil {
		t.Fatal(err)
	}
	return tape.Activations()
}

func TestBlocks(t *testing.T) {
	bert := []string{"/embeddings/Add", "/encoder/layer.0/attention/MatMul", "", "/encoder/layer.0/output/Add",
		"/encoder/layer.1/attention/MatMul", "/encoder/layer.10/Add", "/pooler/Tanh"}
	modules := []string{"node_add m.embeddings", "node_1 m.encoder.layer.0.query", "node_2 m.encoder.layer.0",
		"node_3 m.encoder.layer.1.output", "node_4"}
	resnet := []string{"/conv1/Conv", "/layer1/layer1.0/conv1/Conv", "/layer1/layer1.0/Relu", "/layer1/layer1.1/Relu",
		"/layer2/layer2.0/Relu"}
	for _, c := range []struct {
		pattern string
		names   []string
		want    []Segment
	}{
		{"encoder.layer.*", bert, []Segment{{1, 4}, {4, 5}, {5, 6}}},
		{"/encoder/layer.*", bert, []Segment{{1, 4}, {4, 5}, {5, 6}}},
		{"layer.1*", bert, []Segment{{4, 5}, {5, 6}}},
		{"encoder", bert, []Segment{{1, 6}}},
		{"encoder.layer.*", modules, []Segment{{1, 3}, {3, 4}}},
		{"layer*.*", resnet, []Segment{{1, 3}, {3, 4}, {4, 5}}},
		{"layer[12]", resnet, []Segment{{1, 4}, {4, 5}}},
		{"a.*", []string{"a.0", "b", "a.0", "a.1", "a.0"}, []Segment{{0, 3}, {3, 4}, {4, 5}}},
		{"neg*", []string{"", "x"}, nil},
	} {
		got, err := named(t, c.names...).Blocks(c.pattern)
		if !slices.Equal(got, c.want) || (err == nil) != (c.want != nil) {
			t.Errorf("%s: %v, want %v; %v", c.pattern, got, c.want, err)
		}
	}
	for pattern, want := range map[string]string{"decoder.*": "encoder.layer.*", "[a": "syntax error"} {
		if _, err := named(t, bert...).Blocks(pattern); !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: %v, want %q", pattern, err, want)
		}
	}
}
