package memplan

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/report/inspection"
	"github.com/mcompress/mcompress/report/memoryplan"
)

// chain is x[batch,1024] → MatMul → Relu → MatMul: products of 1024 and 16 columns.
func chain() *builder {
	b := build("x", -1, 1024)
	b.node("MatMul:wide", []*ir.Value{b.weight(1024, 1024)}).node("Relu:positive", nil)
	return b.node("MatMul:narrow", []*ir.Value{b.weight(1024, 16)})
}

func TestRunsAreTheSumsOfTheirParts(t *testing.T) {
	f := chain().facts(t, Options{Workers: 1, Batches: []int64{1, 8}})
	if f.Fixed || len(f.Runs) != 2 {
		t.Fatalf("got fixed %t, %d runs", f.Fixed, len(f.Runs))
	}
	const weights = 4 * (1024*1024 + 1024*16)
	if f.Weights.Bytes != weights || f.Held.Bytes != weights {
		t.Errorf("weights of %d bytes, %d held, want %d", f.Weights.Bytes, f.Held.Bytes, weights)
	}
	for _, r := range f.Runs {
		if in, out := bytesOf(r.Inputs), bytesOf(r.Outputs); in != 4*1024*r.Batch || out != 4*16*r.Batch {
			t.Errorf("batch %d: inputs of %d bytes, outputs of %d", r.Batch, in, out)
		}
		if want := weights + 4*(1024+16)*r.Batch + r.Arena; r.Total != want {
			t.Errorf("batch %d: %d bytes in all, want %d", r.Batch, r.Total, want)
		}
		if values := 4 * (1024 + 16) * r.Batch; r.Peak < values || r.Arena < r.Peak || r.Arena < r.Bound {
			t.Errorf("batch %d: an arena of %d bytes, a peak of %d and a bound of %d for values of %d", r.Batch, r.Arena, r.Peak,
				r.Bound, values)
		}
	}
}

// The peak is the maximum of the timeline, and the sum of the blocks live at it.
func TestThePeakIsOnTheCurve(t *testing.T) {
	r := chain().facts(t, Options{Workers: 1, Plain: true}).Runs[0]
	if len(r.Steps) != 3 {
		t.Fatalf("got %d steps of three nodes without fusions", len(r.Steps))
	}
	most := slices.MaxFunc(r.Steps, func(a, b memoryplan.Step) int { return int(a.Bytes - b.Bytes) })
	if most.Bytes != r.Peak || r.Steps[r.AtStep] != most || r.AtNode != most.Node {
		t.Errorf("peak of %d bytes at %s, the curve has %+v", r.Peak, r.AtNode, most)
	}
	sum := int64(0)
	for _, b := range r.Live {
		sum += b.Bytes
	}
	if sum != r.Peak || !slices.IsSortedFunc(r.Live, func(a, b memoryplan.Block) int { return int(b.Bytes - a.Bytes) }) {
		t.Errorf("blocks of %d bytes for a peak of %d: %+v", sum, r.Peak, r.Live)
	}
}

func TestLiveBlocksNameProducerAndLastConsumer(t *testing.T) {
	r := chain().facts(t, Options{Workers: 1, Plain: true}).Runs[0]
	i := slices.IndexFunc(r.Live, func(b memoryplan.Block) bool { return b.Kind == "activation" })
	// Relu takes over the memory of what it reads.
	want := memoryplan.Block{Name: "wide", Kind: "activation", Type: "float[1,1024]", Bytes: 4096, From: "MatMul_wide",
		To: "MatMul_narrow"}
	if i < 0 || r.Live[i] != want {
		t.Errorf("got %+v, want %+v", r.Live, want)
	}
}

func TestTheLargestBatchFitsAndTheNextDoesNot(t *testing.T) {
	for _, budget := range []int64{5 << 20, 16 << 20} {
		b := chain().facts(t, Options{Workers: 1, Budget: budget}).Budget
		if b.Batch < 1 || b.Total > budget || b.Next <= budget {
			t.Errorf("%d bytes: got %+v", budget, b)
		}
		f := chain().facts(t, Options{Workers: 1, Batches: []int64{b.Batch, b.Batch + 1}})
		if f.Runs[0].Total != b.Total || f.Runs[1].Total != b.Next {
			t.Errorf("%d bytes: got %+v, the runs take %d and %d", budget, b, f.Runs[0].Total, f.Runs[1].Total)
		}
	}
}

func TestBudgetBelowABatchOf1(t *testing.T) {
	f := chain().facts(t, Options{Workers: 1, Budget: 1000})
	if want := (memoryplan.Budget{Bytes: 1000, Total: f.Runs[0].Total}); *f.Budget != want {
		t.Errorf("got %+v, want %+v", *f.Budget, want)
	}
}

func TestStaticBatch(t *testing.T) {
	b := build("x", 4, 32).node("Relu:y", nil)
	f := b.facts(t, Options{Batches: []int64{1, 8}, Budget: 1 << 20})
	if !f.Fixed || len(f.Runs) != 1 || bytesOf(f.Runs[0].Inputs) != 4*32*4 || f.Budget.Batch != 1 || f.Budget.Next != 0 {
		t.Errorf("got fixed %t, %d runs, %+v", f.Fixed, len(f.Runs), f.Budget)
	}
}

func TestSizesOfAxes(t *testing.T) {
	f := chain().facts(t, Options{Dims: map[string]int64{"batch": 5}})
	if !f.Fixed || f.Runs[0].Inputs[0].Type != "float[5,1024]" {
		t.Errorf("got %+v", f.Runs[0].Inputs)
	}
	_, err := chain().try(t, Options{Dims: map[string]int64{"time": 5}})
	if err == nil ||
		err.Error() != "dim time: the inputs have no axis of that name; the nearest of their dynamic axes: batch" {
		t.Errorf("got %v", err)
	}
	_, err = chain().try(t, Options{Batches: []int64{1, 1 << 62}})
	if err == nil || !strings.HasPrefix(err.Error(), `batch 4611686018427387904: input "x"`) {
		t.Errorf("got %v", err)
	}
}

// No weight is read, however many there are: a plan needs types alone.
func TestWeightsStayInTheFile(t *testing.T) {
	b := build("x", -1, 1<<20)
	spec := ir.Spec{DType: ir.Float, Shape: []int64{1 << 20, 1 << 20}}
	w := b.Graph.AddConst("w", &ir.Tensor{Spec: spec, Source: ir.Span{R: unread{}}})
	f := b.node("MatMul:y", []*ir.Value{w}).facts(t, Options{Layout: true, Budget: 8 << 40})
	if f.Held.Bytes != 4<<40 || f.Budget.Batch < 1 {
		t.Errorf("got %d bytes held, %+v", f.Held.Bytes, f.Budget)
	}
}

func TestWeightsAreInTheOrderOfTheEnum(t *testing.T) {
	w := sumByType([]ir.Spec{
		{DType: ir.Int8, Shape: []int64{3}}, {DType: ir.Float, Shape: []int64{2}}, {DType: ir.Int4, Shape: []int64{5}},
		{DType: ir.Int8},
	})
	want := []inspection.DType{{DType: "float", Tensors: 1, Bytes: 8}, {DType: "int8", Tensors: 2, Bytes: 4},
		{DType: "int4", Tensors: 1, Bytes: 3}}
	if w.Tensors != 4 || w.Bytes != 15 || !slices.Equal(w.DTypes, want) {
		t.Errorf("got %+v", w)
	}
}

// What the engine cannot plan has weights all the same.
func TestModelsThatCannotBePlanned(t *testing.T) {
	unknown := build("x", 1, 32).node("Frobnicate:y", nil)
	unranked := build("x").node("Relu:y", nil)
	unranked.Graph.Inputs[0].Type.Shape = nil
	untyped := build("x").node("Relu:y", nil)
	untyped.Graph.Inputs[0].Type = nil
	for _, c := range []struct {
		b   *builder
		why string
	}{
		{unknown, `node "Frobnicate_y" (Frobnicate): operator of opset 17 is not supported by the engine`},
		{unranked, `input "x": its rank is not declared: its memory cannot be planned`},
		{untyped, `input "x": its element type is not declared: its memory cannot be planned`},
	} {
		c.b.weight(10)
		f := c.b.facts(t, Options{})
		if f.Unplanned != c.why || f.Weights.Bytes != 40 || f.Held != nil || len(f.Runs) > 0 {
			t.Errorf("got %q, %+v, %d runs, want %q", f.Unplanned, f.Weights, len(f.Runs), c.why)
		}
	}
}

// A run takes what was planned, in a fixture of each kind of network.
func TestMeasuredAsPlanned(t *testing.T) {
	for _, name := range []string{"cnn", "transformer", "recurrent", "subgraph_loop"} {
		f, err := onnx.Open("../../fixtures/" + name + ".onnx")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		facts, err := Model(t.Context(), f, Options{Workers: 2, Batches: []int64{1, 3}, Measure: true})
		if err != nil {
			t.Fatal(err)
		}
		m, r := facts.Measured, facts.Runs[1]
		if !m.Exact || m.Batch != 3 || m.Arena != r.Arena || m.Peak != r.Peak || m.AtNode != r.AtNode ||
			m.Outputs != bytesOf(r.Outputs) {
			t.Errorf("%s: measured %+v, planned an arena of %d and a peak of %d at %s", name, m, r.Arena, r.Peak, r.AtNode)
		}
	}
}

func TestPageHasPersistentBlocks(t *testing.T) {
	f := chain().facts(t, Options{Batches: []int64{2, 8}})
	p := f.Page("chain.onnx")
	sum := p.Plan.Size
	for _, b := range p.Held {
		sum += b.Bytes
	}
	if r := f.Runs[1]; sum != r.Total || len(p.Steps) != len(r.Steps) || p.Run != "inference, batch 8" {
		t.Errorf("%d bytes in %d steps of %q, want %d in %d", sum, len(p.Steps), p.Run, r.Total, len(r.Steps))
	}
}
