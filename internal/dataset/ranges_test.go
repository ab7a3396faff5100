package dataset

import (
	"maps"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// lookup is a model that takes elements of a constant table of the given shape by its input "ids".
func lookup(op string, index int, shape []int64, attrs ...*ir.Attr) (*ir.Model, *ir.Value) {
	m := ir.NewModel()
	g := m.Graph
	ids := g.AddValue("ids")
	ids.Type = &ir.Type{Elem: ir.Int64}
	g.Inputs = append(g.Inputs, ids)
	table := g.AddConst("table", &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: shape}})
	in := make([]*ir.Value, index+1)
	in[0], in[index] = table, ids
	g.Insert(nil, op, in, attrs...)
	return m, ids
}

func TestRangesOfIndices(t *testing.T) {
	want := func(n int64) map[string][2]int64 { return map[string][2]int64{"ids": {0, n - 1}} }
	gather, _ := lookup("Gather", 1, []int64{7, 3})
	second, _ := lookup("Gather", 1, []int64{7, 3}, ir.IntAttr("axis", -1))
	elements, _ := lookup("GatherElements", 1, []int64{5})
	nowhere, _ := lookup("Gather", 1, []int64{7, 3}, ir.IntAttr("axis", 2))
	data, _ := lookup("Gather", 1, nil)
	deep, ids := lookup("Gather", 1, []int64{9, 2})
	moved := deep.Graph.Insert(deep.Graph.First(), "Cast", []*ir.Value{ids})
	deep.Graph.Insert(nil, "Gather", []*ir.Value{deep.Graph.AddConst("small",
		&ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{4, 2}}}), moved})
	summed, ids := lookup("Identity", 0, []int64{1})
	sum := summed.Graph.Insert(nil, "Add", []*ir.Value{ids, ids})
	summed.Graph.Insert(nil, "Gather", []*ir.Value{summed.Graph.AddConst("t",
		&ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{4}}}), sum})
	decoded, _ := lookup("Gather", 1, []int64{6})
	dense := decoded.Graph.Insert(decoded.Graph.First(), "DequantizeLinear", []*ir.Value{decoded.Graph.First().Input(0)})
	dense.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: 6}}}
	decoded.Graph.Last().SetInput(0, dense)
	for name, c := range map[string]struct {
		m    *ir.Model
		want map[string][2]int64
	}{
		"first axis":                {gather, want(7)},
		"last axis":                 {second, want(3)},
		"elements":                  {elements, want(5)},
		"an axis that is not there": {nowhere, map[string][2]int64{}},
		"a scalar table":            {data, map[string][2]int64{}},
		"the shorter of two tables": {deep, want(4)},
		"a table that is decoded":   {decoded, want(6)},
		"computed indices":          {summed, map[string][2]int64{}},
	} {
		if got := Ranges(c.m); !maps.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestEmbedLayerNormalizationTakesIdsAndSegments(t *testing.T) {
	m := ir.NewModel()
	g := m.Graph
	var in []*ir.Value
	for _, name := range []string{"ids", "segments"} {
		v := g.AddValue(name)
		v.Type = &ir.Type{Elem: ir.Int32}
		g.Inputs, in = append(g.Inputs, v), append(in, v)
	}
	for _, rows := range []int64{30, 20, 2} {
		in = append(in, g.AddConst("t", &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{rows, 8}}}))
	}
	n := g.NewNode(ir.OpID{Domain: "com.microsoft", Type: "EmbedLayerNormalization"}, in)
	n.SetOutputs(g.NewValue("out"))
	g.Append(n)
	if got, want := Ranges(m), map[string][2]int64{"ids": {0, 29}, "segments": {0, 1}}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
