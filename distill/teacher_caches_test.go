package distill

import (
	"fmt"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// decoderOf is a model with caches of layers: keys in another layout than values.
func decoderOf(layers int, heads int64) *ir.Model {
	m := ir.NewModel()
	add := func(name string, shape ...ir.Dim) *ir.Value {
		v := m.Graph.AddValue(name)
		v.Type = &ir.Type{Elem: ir.Float, Shape: shape}
		return v
	}
	batch, past, head, size := ir.Dim{Param: "batch"}, ir.Dim{Param: "past"}, ir.Dim{N: heads}, ir.Dim{N: 8}
	for i := range layers {
		for name, shape := range map[string][]ir.Dim{"key": {batch, head, size, past}, "value": {batch, head, past, size}} {
			v := add(fmt.Sprintf("past_key_values.%d.%s", i, name), shape...)
			m.Graph.Inputs = append(m.Graph.Inputs, v)
			y := m.Graph.Insert(nil, "Identity", []*ir.Value{v})
			y.Name, y.Type = fmt.Sprintf("present.%d.%s", i, name), v.Type
			m.Graph.AddOutput(y)
		}
	}
	return m
}

func TestCachesThatOnlyTheTeacherHas(t *testing.T) {
	l := &loader{environment: &environment{model: decoderOf(1, 2)}, sample: map[string]ir.Spec{
		"past_key_values.0.key":   {DType: ir.Float, Shape: []int64{1, 2, 8, 0}},
		"past_key_values.0.value": {DType: ir.Float, Shape: []int64{1, 2, 0, 8}},
	}}
	for _, c := range []struct {
		name   string
		layers int
		heads  int64
		cache  string
		shape  string
		caches int
	}{
		{"the same", 1, 2, "", "", 0},
		{"more layers", 2, 2, "past_key_values.1.value", "[5 2 0 8]", 2},
		{"more heads", 1, 4, "past_key_values.0.key", "[5 4 8 0]", 2},
	} {
		own := l.ownCaches(decoderOf(c.layers, c.heads))
		if len(own) != c.caches {
			t.Errorf("%s: got %v, want %d caches", c.name, own, c.caches)
		}
		if o, ok := own[c.cache]; c.cache != "" {
			like := l.specs(5)[o.like].Shape
			if !ok || fmt.Sprint(o.shape(like)) != c.shape {
				t.Errorf("%s: %s is %v like %q, want %s", c.name, c.cache, o.shape(like), o.like, c.shape)
			}
		}
	}
	if ys := uncached(l.model.Graph); len(ys) != 0 {
		t.Errorf("outputs %v are compared, but they are caches", ys)
	}
}
