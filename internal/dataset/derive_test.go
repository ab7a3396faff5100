package dataset

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// decoderGraph has inputs as exporters name them, with a cache that Concat extends by keys of 3 heads of 8 elements.
func decoderGraph() *ir.Graph {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 17}}
	g := m.Graph
	values := map[string]*ir.Value{}
	for _, in := range []Input{
		input("input_ids", "int64[batch,seq]"), input("attention_mask", "int64[batch,past_seq + 1]"),
		input("position_ids", "int64[batch,seq]"),
		input("past_key_values.0.key", "float[batch,kv_cache_heads,past_seq,kv_cache_dim]"),
		input("token_type_ids", "int32[batch,seq]"),
		input("causal_mask", "float[batch,1,seq,all]"), scalar("use_cache_branch", "bool"),
	} {
		v := g.AddValue(in.Name)
		v.Type = in.Type
		g.Inputs = append(g.Inputs, v)
		values[in.Name] = v
	}
	node := func(op, out string, in []*ir.Value, attrs ...*ir.Attr) *ir.Value {
		n := g.NewNode(ir.OpID{Type: op}, in, attrs...)
		v := g.AddValue(out)
		n.SetOutputs(v)
		g.Append(n)
		return v
	}
	table := g.AddConst("table", &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{50, 24}},
		Source: ir.Mem(make([]byte, 50*24*4))})
	to := g.AddConst("to", &ir.Tensor{Spec: ir.Spec{DType: ir.Int64, Shape: []int64{4}}, Source: ir.Ints(0, 0, 3, 8)})
	x := node("Gather", "x", []*ir.Value{table, values["input_ids"]})
	keys := node("Transpose", "keys", []*ir.Value{node("Reshape", "r", []*ir.Value{x, to})},
		ir.IntsAttr("perm", 0, 2, 1, 3))
	g.AddOutput(node("Concat", "present.0.key", []*ir.Value{values["past_key_values.0.key"], keys}, ir.IntAttr("axis", 2)))
	return g
}

// A cache that several Concats extend grows and continues as the first of them does, whenever it is asked.
func TestFirstExtensionOfACache(t *testing.T) {
	g := decoderGraph()
	past := g.Inputs[3]
	n := g.NewNode(ir.OpID{Type: "Concat"}, []*ir.Value{past, g.Outputs[0].Producer().Input(1)}, ir.IntAttr("axis", 3))
	past.Type.Shape[3] = ir.Dim{N: -1, Param: "width"}
	other := g.AddValue("other")
	n.SetOutputs(other)
	g.Append(n)
	g.AddOutput(other)
	in := Inputs(g)[3]
	for range 100 {
		if out, axis := in.continuation(), in.growth(); out != "present.0.key" || axis != 2 {
			t.Fatalf("continued by %s along axis %d", out, axis)
		}
	}
}

// A cache that a branch of an If extends, as in a decoder whose branches run with and without a cache, continues as the
// output of the If; one that the body of a Loop extends does not continue.
func TestExtensionInABranch(t *testing.T) {
	for _, c := range []struct {
		owner  string
		levels int
		want   string
	}{{"If", 1, "present"}, {"If", 2, "present"}, {"Loop", 1, ""}} {
		g := decoderGraph()
		past, keys := g.Inputs[3], g.Outputs[0].Producer().Input(1)
		past.ReplaceUses(g.AddConst("no cache", &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{0, 3, 0, 8}},
			Source: ir.Mem(nil)}))
		past.Name = "kv" // not by the name of an output
		within := g
		for range c.levels {
			n := within.NewNode(ir.OpID{Type: c.owner}, []*ir.Value{g.Inputs[6]})
			out := within.AddValue("present")
			n.SetOutputs(out)
			within.Append(n)
			within.AddOutput(out)
			within = ir.NewSubgraph(within, n)
			n.SetAttr(&ir.Attr{Name: "then_branch", Type: ir.AttrGraph, Graph: within})
		}
		n := within.NewNode(ir.OpID{Type: "Concat"}, []*ir.Value{past, keys}, ir.IntAttr("axis", 2))
		out := within.AddValue("joined")
		n.SetOutputs(out)
		within.Append(n)
		within.AddOutput(out)
		in := Inputs(g)[3]
		if got := in.continuation(); got != c.want {
			t.Errorf("%d %s: continued by %q, want %q", c.levels, c.owner, got, c.want)
		}
	}
}

// The inputs that token ids determine, in each of the runs that decode a sequence.
func TestInputsFollowFromTokens(t *testing.T) {
	g := decoderGraph()
	path := file(t, "ids.npy", npy(ir.ArrayOf([]int64{4, 8, 15, 16, 23, 42, 3, 1, 4, 1}, 2, 5)))
	s := mustOpen(t, path, Inputs(g), Outputs(g), Options{Step: 3})
	if got := fmt.Sprint(s.Carry()); got != "[{present.0.key past_key_values.0.key}]" {
		t.Errorf("carries %s", got)
	}
	var runs []*Batch
	for b, err := range s.Sequences(context.Background(), Order{Size: 2}) {
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, b)
	}
	want := []map[string]string{
		{
			"input_ids": "[2 3][4 8 15 42 3 1]", "attention_mask": "[2 3][1 1 1 1 1 1]", "position_ids": "[2 3][0 1 2 0 1 2]",
			"past_key_values.0.key": "[2 3 0 8][]", "token_type_ids": "[2 3][0 0 0 0 0 0]", "use_cache_branch": "[][0]",
			"causal_mask": "[2 1 3 3][0 -65504 -65504 0 0 -65504 0 0 0 0 -65504 -65504 0 0 -65504 0 0 0]",
		},
		{
			"input_ids": "[2 2][16 23 4 1]", "attention_mask": "[2 5][1 1 1 1 1 1 1 1 1 1]", "position_ids": "[2 2][3 4 3 4]",
			"token_type_ids": "[2 2][0 0 0 0]", "use_cache_branch": "[][0]",
			"causal_mask": "[2 1 2 5][0 0 0 0 -65504 0 0 0 0 0 0 0 0 0 -65504 0 0 0 0 0]",
		},
	}
	if len(runs) != len(want) || runs[0].Last || !runs[1].Last {
		t.Fatalf("%d runs, want %d, the last of them marked", len(runs), len(want))
	}
	for i, run := range runs {
		if len(run.Inputs) != len(want[i]) {
			t.Errorf("run %d: %d inputs, want %d", i, len(run.Inputs), len(want[i]))
		}
		for name, text := range want[i] {
			if a := run.Inputs[name]; a == nil || fmt.Sprint(a.Shape)+fmt.Sprint(wide(a)) != text {
				t.Errorf("run %d: %s is %v, want %s", i, name, a, text)
			}
		}
	}
	if got := fmt.Sprint(runs[0].Targets, runs[1].Targets); got != "[[8 15 16] [3 1 4]] [[23] [1]]" {
		t.Errorf("targets %s", got)
	}
	whole := all(t, s, Order{Size: 2})[0].Inputs
	if got := whole["position_ids"].Shape; !slices.Equal(got, []int64{2, 5}) ||
		whole["past_key_values.0.key"].Elems() != 0 {
		t.Errorf("a batch has %v positions and %s, want all and an empty cache", got, whole["past_key_values.0.key"])
	}
}

// wide are the elements of a as float64.
func wide(a *ir.Array) []float64 {
	out := make([]float64, a.Elems())
	reader[float64](a.DType)(out, a, 0)
	return out
}

// Random inputs of language models: positions continue those of the cache.
func TestRandomInputsOfLanguageModels(t *testing.T) {
	b := generated(t, Inputs(decoderGraph()), Random{Dims: map[string]int64{"seq": 2, "past_seq": 3, "all": 5}})[0].Inputs
	if got := fmt.Sprint(wide(b["position_ids"]), wide(b["causal_mask"])); got != "[3 4] [0 0 0 0 -65504 0 0 0 0 0]" {
		t.Errorf("got positions and mask %s", got)
	}
	if got := b["past_key_values.0.key"].Shape; !slices.Equal(got, []int64{1, 3, 3, 8}) {
		t.Errorf("the cache is %v", got)
	}
}

// The runs in which sequences are decoded.
func TestSteps(t *testing.T) {
	for _, c := range []struct {
		count, size int64
		want        []int64
	}{{20, 0, []int64{12, 13, 14, 15, 16, 17, 18, 19, 20}}, {5, 0, []int64{3, 4, 5}}, {1, 0, []int64{1}},
		{7, 3, []int64{3, 6, 7}}, {6, 3, []int64{3, 6}}, {4, 9, []int64{4}}} {
		if got := steps(c.count, c.size); !slices.Equal(got, c.want) {
			t.Errorf("steps(%d, %d) = %v, want %v", c.count, c.size, got, c.want)
		}
	}
}

// Attention whose lengths are inputs runs on random inputs that fit together: the new tokens, those in the cache, and
// where both are bounded by the cache or by the table of positions, as many as fit.
func TestLengthsOfRandomInputsFitTogether(t *testing.T) {
	for _, c := range []struct {
		past        string // size of the caches
		rows        int64  // of the tables of positions; 0 for none
		total, last int64  // of 16 new tokens
	}{{"p", 0, 32, 31}, {"24", 0, 24, 23}, {"p", 20, 20, 19}, {"8", 0, 16, 15}} {
		m := ir.NewModel()
		m.Opsets = []ir.Opset{{Version: 17}, {Domain: "com.microsoft", Version: 1}}
		g := m.Graph
		values := map[string]*ir.Value{}
		for _, in := range []Input{
			input("x", "float[2,s,64]"), input("kv", "float[2,s,32]"), input("k", "float[2,2,"+c.past+",16]"),
			input("v", "float[2,2,"+c.past+",16]"),
			input("n", "int32[2]"), input("all", "int32[1]"),
		} {
			v := g.AddValue(in.Name)
			v.Type = in.Type
			g.Inputs = append(g.Inputs, v)
			values[in.Name] = v
		}
		in := []*ir.Value{values["x"], values["kv"], values["kv"], values["k"], values["v"], values["n"], values["all"]}
		if c.rows > 0 {
			table := func(name string) *ir.Value {
				return g.AddConst(name, &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{c.rows, 8}},
					Source: ir.Mem(make([]byte, c.rows*8*4))})
			}
			in = append(in, table("cos"), table("sin"))
		}
		n := g.NewNode(ir.OpID{Domain: "com.microsoft", Type: "GroupQueryAttention"}, in, ir.IntAttr("num_heads", 4),
			ir.IntAttr("kv_num_heads", 2))
		y := g.AddValue("y")
		n.SetOutputs(y)
		g.Append(n)
		g.AddOutput(y)
		set, err := Generate(Inputs(g), Random{})
		if err != nil {
			t.Fatal(err)
		}
		for b, err := range set.Batches(context.Background(), Order{Size: 1}) {
			if err != nil {
				t.Fatal(err)
			}
			total, last := ir.View[int32](b.Inputs["all"])[0], ir.View[int32](b.Inputs["n"])
			if int64(total) != c.total || int64(last[0]) != c.last || int64(last[1]) != c.last || b.Inputs["x"].Shape[1] != 16 {
				t.Errorf("%+v: %v tokens, total %d, lengths %d", c, b.Inputs["x"].Shape, total, last)
			}
		}
	}
}
