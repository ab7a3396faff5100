package distill

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

const vocabulary = 128

// decoder is a language model of one block, with grouped-query attention, rotary positions and caches of past keys and
// values.
func decoder() *ir.Model {
	const width, heads, kvHeads, size, positions = 32, 4, 2, 8, 64
	r := rand.New(rand.NewPCG(3, 7))
	m := ir.NewModel()
	m.IRVersion, m.Opsets = 9, []ir.Opset{{Version: 17}, {Domain: "com.microsoft", Version: 1}}
	g := m.Graph
	input := func(name string, dt ir.DType, dims ...ir.Dim) *ir.Value {
		v := g.AddValue(name)
		v.Type = &ir.Type{Elem: dt, Shape: dims}
		g.Inputs = append(g.Inputs, v)
		return v
	}
	batch := ir.Dim{N: -1, Param: "batch"}
	cache := []ir.Dim{batch, {N: kvHeads}, {N: -1, Param: "past"}, {N: size}}
	ids := input("input_ids", ir.Int64, batch, ir.Dim{N: -1, Param: "tokens"})
	attended := input("attention_mask", ir.Int64, batch, ir.Dim{N: -1, Param: "total"})
	keys, values := input("past_key_values.0.key", ir.Float, cache...),
		input("past_key_values.0.value", ir.Float, cache...)
	ints := func(name string, is ...int64) *ir.Value {
		return g.AddConst(name, &ir.Tensor{Spec: ir.Spec{DType: ir.Int64, Shape: []int64{int64(len(is))}},
			Source: ir.Ints(is...)})
	}
	weight := func(name string, shape ...int64) *ir.Value { return g.AddConst(name, random(r, shape...)) }
	angle := func(f func(float64) float64) *ir.Value {
		x := make([]float32, positions*size/2)
		for i := range x {
			x[i] = float32(f(float64(i/(size/2)) * math.Pow(0.1, float64(i%(size/2)))))
		}
		return g.AddConst("angle", &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{positions, size / 2}},
			Source: ir.Floats(x...)})
	}
	norm := func(x *ir.Value, name string) *ir.Value {
		return g.Insert(nil, "LayerNormalization", []*ir.Value{x, weight(name, width)})
	}
	dense := func(x *ir.Value, name string, in, out int64) *ir.Value {
		return g.Insert(nil, "MatMul", []*ir.Value{x, weight(name, in, out)})
	}
	int32s := func(v *ir.Value) *ir.Value {
		return g.Insert(nil, "Cast", []*ir.Value{v}, ir.IntAttr("to", int64(ir.Int32)))
	}
	count := g.Insert(nil, "ReduceSum", []*ir.Value{attended, ints("axis", 1)}, ir.IntAttr("keepdims", 0))
	last := int32s(g.Insert(nil, "Sub", []*ir.Value{count, ints("one", 1)}))
	total := int32s(g.Insert(nil, "Gather", []*ir.Value{g.Insert(nil, "Shape", []*ir.Value{attended}), ints("second", 1)}))

	x := g.Insert(nil, "Gather", []*ir.Value{weight("embeddings", vocabulary, width), ids})
	n := norm(x, "norm.0")
	q, k, v := dense(n, "q", width, heads*size), dense(n, "k", width, kvHeads*size), dense(n, "v", width, kvHeads*size)
	in := []*ir.Value{q, k, v, keys, values, last, total, angle(math.Cos), angle(math.Sin)}
	a := g.NewNode(ir.OpID{Domain: "com.microsoft", Type: "GroupQueryAttention"}, in, ir.IntAttr("num_heads", heads),
		ir.IntAttr("kv_num_heads", kvHeads), ir.IntAttr("do_rotary", 1))
	a.SetOutputs(g.NewValue("attention"), g.NewValue("present.0.key"), g.NewValue("present.0.value"))
	g.Append(a)
	x = g.Insert(nil, "Add", []*ir.Value{x, dense(a.Outputs[0], "o", heads*size, width)})
	h := g.Insert(nil, "Relu", []*ir.Value{dense(norm(x, "norm.1"), "up", width, 2*width)})
	x = g.Insert(nil, "Add", []*ir.Value{x, dense(h, "down", 2*width, width)})
	logits := dense(norm(x, "norm.2"), "head", width, vocabulary)
	logits.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{batch, {N: -1, Param: "tokens"}, {N: vocabulary}}}
	g.AddOutput(logits)
	for _, y := range a.Outputs[1:] {
		y.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{batch, {N: kvHeads}, {N: -1, Param: "total"}, {N: size}}}
		g.AddOutput(y)
	}
	return m
}

// tokensOf writes the bytes of a text of the repository as token ids.
func tokensOf(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	var ids []byte
	for _, b := range text {
		ids = binary.LittleEndian.AppendUint16(ids, uint16(b)%vocabulary)
	}
	path := filepath.Join(t.TempDir(), "text.bin")
	if err := os.WriteFile(path, ids, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// A language model is trained on token ids alone: the perplexity of a held-out part of the text decreases below that of
// single characters, and is the exponential of the loss.
func TestNextTokenLossDecreasesPerplexity(t *testing.T) {
	res, err := tune(t, decoder(), 2, "data", tokensOf(t), "dim", "tokens=32", "loss", "next-token",
		"metric", "perplexity",
		"epochs", "3", "batch", "8", "lr", "0.01", "accumulate", "2")
	if err != nil {
		t.Fatal(err)
	}
	training := res.Trainings[0]
	first, last := training.ValidationMetric[1].Y, training.ValidationMetric[3].Y
	if !(last < 16 && first > 1.2*last) {
		t.Errorf("perplexity %v → %v", first, last)
	}
	for i, p := range training.ValidationMetric {
		if loss := math.Log(p.Y); !(math.Abs(loss-training.ValidationLoss[i].Y) < 1e-4*loss) {
			t.Errorf("the loss is %v, the logarithm of the perplexity %v", training.ValidationLoss[i].Y, loss)
		}
	}
}

func TestNextTokenLossNeedsALanguageModel(t *testing.T) {
	_, err := tune(t, network(1, features, 16, classes), 1, "data", samples(t, 64), "labels", "label",
		"loss", "next-token")
	if err == nil || !strings.Contains(err.Error(), "requires an output of shape [samples, tokens, vocabulary]") {
		t.Errorf("error %v", err)
	}
	_, err = tune(t, decoder(), 1, "data", tokensOf(t), "dim", "tokens=32")
	if err == nil || !strings.Contains(err.Error(), "loss next-token") {
		t.Errorf("error %v", err)
	}
}
