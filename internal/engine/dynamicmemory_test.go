package engine_test

import (
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/ir"
)

// zeros creates a tensor whose shape is the value of an input: its size is known at run time only.
func zeros(b *builder, name string) *ir.Value {
	v := b.op("ConstantOfShape", b.input(name, ir.Int64, "1"))
	v.Producer().Name = "zeros of " + name
	return v
}

// Dynamically sized results stay within the memory limit: the error names the node, and is returned before allocation
// where the shape is known by then.
func TestDynamicallySizedResultsRespectMemoryLimit(t *testing.T) {
	const limit, part = 1 << 20, 150_000 // elements of four bytes; two such tensors exceed the limit
	for name, c := range map[string]struct {
		build func(b *builder)
		sizes map[string]int64
		node  string // the node that exceeds the limit, "" for none
	}{
		"small":           {func(b *builder) { b.output(zeros(b, "n")) }, map[string]int64{"n": part / 2}, ""},
		"a copied output": {func(b *builder) { b.output(zeros(b, "n")) }, map[string]int64{"n": part}, "zeros of n"},
		"large":           {func(b *builder) { b.output(zeros(b, "n")) }, map[string]int64{"n": 1 << 45}, "zeros of n"},
		"both live": {func(b *builder) { b.output(b.op("Concat", zeros(b, "n"), zeros(b, "m"))) },
			map[string]int64{"n": part, "m": part}, "zeros of m"},
		"one after the other": {func(b *builder) {
			b.output(b.op("ReduceMax", zeros(b, "n")))
			b.output(b.op("ReduceMax", zeros(b, "m")))
		}, map[string]int64{"n": part, "m": part}, ""},
		"a sequence": {func(b *builder) {
			b.output(b.op("SequenceConstruct", zeros(b, "n"),
				b.floats([]int64{1}, 1)))
		}, map[string]int64{"n": part}, "the sequence"},
		"a loop": {func(b *builder) {
			b.output(collecting(b, b.input("n", ir.Int64, "1"),
				1<<10))
		}, map[string]int64{"n": 1 << 40}, "the loop"},
		"a loop with small scan outputs": {func(b *builder) {
			b.output(collecting(b, b.input("n", ir.Int64, "1"),
				1))
		}, map[string]int64{"n": 20_000}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := ir.NewModel()
			m.Opsets = []ir.Opset{{Version: 17}}
			c.build(&builder{m.Graph})
			for n := range m.Graph.Nodes() {
				switch {
				case n.Op.Type == "SequenceConstruct":
					n.Name = "the sequence"
				case n.Op.Type == "Concat":
					n.SetAttr(ir.IntAttr("axis", 0))
				}
			}
			in := map[string]*ir.Array{}
			for name, n := range c.sizes {
				in[name] = ir.ArrayOf([]int64{n}, 1)
			}
			e, err := engine.Open(t.Context(), m, engine.Options{Workers: 1, Limits: memory.Limits{Memory: limit}})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			for range 2 { // a run does not affect the next
				_, err = e.Run(t.Context(), in, nil)
				if (err == nil) != (c.node == "") {
					t.Fatalf("got %v", err)
				}
				if err != nil && (!strings.HasPrefix(err.Error(), `node "`+c.node+`" (`) ||
					!strings.Contains(err.Error(), "memory limit") || strings.Contains(err.Error(), "\n")) {
					t.Errorf("got %v", err)
				}
			}
		})
	}
}

// collecting is a loop whose scan output has a row of this width for each of n iterations.
func collecting(b *builder, n *ir.Value, width int64) *ir.Value {
	loop := b.NewNode(ir.OpID{Type: "Loop"}, []*ir.Value{n, nil})
	loop.Name = "the loop"
	body := &builder{ir.NewSubgraph(b.Graph, loop)}
	body.input("iteration", ir.Int64)
	going := body.input("going", ir.Bool)
	body.output(body.op("Identity", going))
	body.output(body.op("Expand", body.cast(going, ir.Float), body.ints(width)))
	loop.SetAttr(&ir.Attr{Name: "body", Type: ir.AttrGraph, Graph: body.Graph})
	loop.SetOutputs(b.NewValue("collected"))
	b.Append(loop)
	return loop.Outputs[0]
}
