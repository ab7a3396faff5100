package partition_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/partition"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	results "github.com/mcompress/mcompress/report/partition"
)

func sameEntry(a, b ir.Entry) bool { return a.Key == b.Key && a.Value == b.Value }

func open(t *testing.T, path string) *ir.Model {
	t.Helper()
	f, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f.Model
}

func plan(t *testing.T, path string, o partition.Options) *partition.Plan {
	t.Helper()
	p, err := partition.New(t.Context(), open(t, path), o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Each stage counts all constants that its nodes read; shared ones count in each stage.
func TestWeightsAreInTheStagesThatNeedThem(t *testing.T) {
	for _, path := range conform.Fixtures(t) {
		whole := plan(t, path, partition.Options{Stages: 1, By: "weights"})
		p, err := partition.New(t.Context(), open(t, path), partition.Options{Stages: 2, By: "weights"})
		if err != nil {
			continue // it has no cut
		}
		want := whole.Stages[0].Weights
		for _, s := range p.Shared {
			want += s.Bytes * int64(len(s.Stages)-1)
		}
		if got := p.Stages[0].Weights + p.Stages[1].Weights; got != want {
			t.Errorf("%s: %d bytes of weights, want %d", label(path), got, want)
		}
	}
}

// A value that crosses a cut is produced before it and consumed after it.
func TestCrossingsAreWhatLaterStagesAreGiven(t *testing.T) {
	for _, path := range conform.Fixtures(t) {
		for _, by := range partition.Costs() {
			p, err := partition.New(t.Context(), open(t, path), partition.Options{Stages: 3, By: by, Batch: 2})
			if err != nil {
				continue
			}
			for k, s := range p.Stages {
				want, sum := map[string]bool{}, int64(0)
				for _, later := range p.Stages[k+1:] {
					for _, in := range later.Inputs {
						if in.From > 0 && in.From <= k+1 && !want[in.Name] {
							want[in.Name] = true
							sum += in.Bytes
						}
					}
				}
				if len(s.Crosses) != len(want) || s.Handed != sum ||
					slices.ContainsFunc(s.Crosses, func(c results.Port) bool { return !want[c.Name] }) {
					t.Errorf("%s by %s: stage %d hands on %+v of %d bytes, later ones are given %v of %d", label(path), by, k+1,
						s.Crosses, s.Handed, want, sum)
				}
			}
		}
	}
}

// The outputs of a stage are what later stages are given from it, and the outputs of the model that it produces, each
// once and of the same type.
func TestOutputsOfStages(t *testing.T) {
	for _, path := range conform.Fixtures(t) {
		m := open(t, path)
		p, err := partition.New(t.Context(), m, partition.Options{Stages: 3, By: "weights"})
		if err != nil {
			continue
		}
		given := map[string]results.Port{}
		for _, s := range p.Stages {
			for _, in := range s.Inputs {
				if in.From > 0 {
					given[in.Name] = in
				}
			}
		}
		made := map[string]bool{}
		for k, s := range p.Stages {
			for _, out := range s.Outputs {
				in, later := given[out.Name]
				if made[out.Name] || later && in != out ||
					!later && !slices.ContainsFunc(m.Graph.Outputs, func(v *ir.Value) bool { return v.Name == out.Name }) {
					t.Errorf("%s: stage %d has the output %+v, given is %+v", label(path), k+1, out, in)
				}
				made[out.Name] = true
			}
		}
		for _, v := range m.Graph.Outputs {
			given[v.Name] = results.Port{}
		}
		for name := range given {
			if !made[name] {
				t.Errorf("%s: %s is an output of no stage", label(path), name)
			}
		}
	}
}

// Outputs of the model that are its inputs, constants, or depend on constants only are of the last stage.
func TestOutputsThatNoStageComputes(t *testing.T) {
	m := ir.NewModel()
	m.IRVersion, m.Opsets = 8, []ir.Opset{{Version: 17}}
	four := &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: 4}}}
	x, other := m.Graph.AddValue("x"), m.Graph.AddValue("other")
	x.Type, other.Type = four, four
	m.Graph.Inputs = []*ir.Value{x, other}
	c := m.Graph.AddConst("c", &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{4}},
		Source: ir.Floats(1, 2, 3, 4)})
	aside := m.Graph.Insert(nil, "Neg", []*ir.Value{c})
	aside.Name, aside.Type = "aside", four
	y := m.Graph.Insert(nil, "Relu", []*ir.Value{x})
	z := m.Graph.Insert(nil, "Relu", []*ir.Value{y})
	y.Name, z.Name, y.Type, z.Type = "y", "z", four, four
	m.Graph.SetOutputs(z, other, c, aside)
	p, err := partition.New(t.Context(), m, partition.Options{Stages: 2, By: "weights"})
	if err != nil {
		t.Fatal(err)
	}
	names := func(ports []results.Port) (list []string) {
		for _, p := range ports {
			list = append(list, p.Name)
		}
		slices.Sort(list)
		return list
	}
	first, last := p.Stages[0], p.Stages[1]
	if first.Nodes != 1 || first.Weights != 0 || !slices.Equal(names(first.Inputs), []string{"x"}) ||
		!slices.Equal(names(first.Outputs), []string{"y"}) {
		t.Errorf("the first stage is %+v", first)
	}
	if last.Nodes != 2 || last.Weights != 16 || !slices.Equal(names(last.Inputs), []string{"other", "y"}) ||
		!slices.Equal(names(last.Outputs), []string{"aside", "c", "other", "z"}) {
		t.Errorf("the last stage is %+v", last)
	}
}

// The transformer's embedding and its head are one initializer, which both ends need.
func TestTiedWeightsAreNamed(t *testing.T) {
	p := plan(t, fixture("transformer"), partition.Options{Stages: 3, By: "weights"})
	if i := slices.IndexFunc(p.Shared, func(s results.Shared) bool {
		return slices.Equal(s.Stages, []int{1, 3})
	}); i < 0 || p.Shared[i].Bytes < 64*64*4 {
		t.Errorf("got %+v", p.Shared)
	}
}

// Per transformer block: query, key and value column-parallel and the output projection row-parallel, then the two
// products of the feed-forward network.
func TestTensorParallelCutsOfATransformer(t *testing.T) {
	p := plan(t, fixture("transformer"), partition.Options{Stages: 2, By: "weights"})
	if len(p.Parallel) != 4 {
		t.Fatalf("%d pairs in two blocks: %+v", len(p.Parallel), p.Parallel)
	}
	for i, want := range []struct{ columns, row string }{
		{"query key value", "output"}, {"up", "down"}, {"query key value", "output"}, {"up", "down"},
	} {
		pair := p.Parallel[i]
		var columns []string
		for _, c := range pair.Columns {
			columns = append(columns, part(c.Weight))
			if c.Axis != 1 || c.PerDevice*2 != c.Bytes || !c.Even {
				t.Errorf("column-parallel: %+v", c)
			}
		}
		if got := strings.Join(columns, " "); got != want.columns || part(pair.Row.Weight) != want.row || pair.Row.Axis != 0 {
			t.Errorf("pair %d: %s then %+v", i, got, pair.Row)
		}
		if pair.AllReduce.Type != "float[1,16,64]" {
			t.Errorf("pair %d: the sum is %+v", i, pair.AllReduce)
		}
	}
}

// part is the last part of a weight's name before ".weight".
func part(weight string) string {
	words := strings.Split(weight, ".")
	return words[len(words)-2]
}

// Products split as planned have the same sum: Gemm's transposed weights are split along the other axis,
// and devices may have different sizes.
func TestUnevenCuts(t *testing.T) {
	p := plan(t, fixture("mlp"), partition.Options{Stages: 3, By: "weights"})
	if len(p.Parallel) != 1 {
		t.Fatalf("got %+v", p.Parallel)
	}
	c, r := p.Parallel[0].Columns[0], p.Parallel[0].Row
	if c.Axis != 0 || r.Axis != 1 || c.Even || r.Even || c.PerDevice != 86*400*4 || r.PerDevice != 86*128*4 {
		t.Errorf("256 columns over 3 devices, transposed: %+v, %+v", c, r)
	}
}

// A value that is not a tensor does not cross a cut: its type has no shape to declare.
func TestCutsAreWhereTensorsCross(t *testing.T) {
	m := ir.NewModel()
	m.IRVersion, m.Opsets = 8, []ir.Opset{{Version: 17}}
	x := m.Graph.AddValue("x")
	x.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: 4}}}
	m.Graph.Inputs = []*ir.Value{x}
	list := m.Graph.Insert(nil, "SequenceConstruct", []*ir.Value{x, x})
	y := m.Graph.Insert(nil, "ConcatFromSequence", []*ir.Value{list}, ir.IntAttr("axis", 0))
	y.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: 8}}}
	m.Graph.AddOutput(m.Graph.Insert(nil, "Relu", []*ir.Value{y}))
	_, err := partition.New(t.Context(), m, partition.Options{Stages: 3, By: "weights"})
	if err == nil || err.Error() != "3 stages: the graph can be partitioned into 1 to 2" {
		t.Errorf("got %v", err)
	}
	p, err := partition.New(t.Context(), m, partition.Options{Stages: 2, By: "weights"})
	if err != nil || p.Stages[0].Nodes != 2 {
		t.Errorf("got %+v, %v", p, err)
	}
}

// A value that is not a tensor cannot be handed on with a sum of products that are divided over devices either.
func TestProductsAreDividedWhereTensorsCross(t *testing.T) {
	for _, late := range []bool{false, true} {
		m := ir.NewModel()
		m.IRVersion, m.Opsets = 8, []ir.Opset{{Version: 17}}
		x := m.Graph.AddValue("x")
		x.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: 2}, {N: 4}}}
		m.Graph.Inputs = []*ir.Value{x}
		weight := func(name string, rows, cols int64) *ir.Value {
			return m.Graph.AddConst(name, &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{rows, cols}},
				Source: ir.Floats(make([]float32, rows*cols)...)})
		}
		joined := m.Graph.Insert(nil, "SequenceConstruct", []*ir.Value{x, x})
		join := func() {
			joined = m.Graph.Insert(nil, "ConcatFromSequence", []*ir.Value{joined}, ir.IntAttr("axis", 0))
			joined.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: 4}, {N: 4}}}
		}
		if !late {
			join()
		}
		y := m.Graph.Insert(nil, "MatMul", []*ir.Value{x, weight("up", 4, 8)})
		y = m.Graph.Insert(nil, "MatMul", []*ir.Value{m.Graph.Insert(nil, "Relu", []*ir.Value{y}), weight("down", 8, 4)})
		if late {
			join()
		}
		m.Graph.AddOutput(m.Graph.Insert(nil, "Concat", []*ir.Value{joined, y}, ir.IntAttr("axis", 0)))
		p, err := partition.New(t.Context(), m, partition.Options{Stages: 1, By: "weights"})
		if want := map[bool]int{false: 1, true: 0}[late]; err != nil || len(p.Parallel) != want {
			t.Errorf("the sequence is joined afterwards: %t: %d pairs, want %d, %v", late, len(p.Parallel), want, err)
		}
	}
}

// Of stages of equal costs those are chosen that hand on the fewest bytes.
func TestCutsAreWhereFewBytesCross(t *testing.T) {
	for narrow := range 4 {
		m := ir.NewModel()
		m.IRVersion, m.Opsets = 8, []ir.Opset{{Version: 17}}
		v := m.Graph.AddValue("x")
		v.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: 2}, {N: 8}}}
		m.Graph.Inputs = []*ir.Value{v}
		for i := range 5 {
			if i == narrow {
				v = m.Graph.Insert(nil, "ReduceMean", []*ir.Value{v}, ir.IntsAttr("axes", 1))
			} else if v = m.Graph.Insert(nil, "Relu", []*ir.Value{v}); i == narrow+1 {
				v = m.Graph.Insert(nil, "Concat", []*ir.Value{v, v, v, v, v, v, v, v}, ir.IntAttr("axis", 1))
			}
		}
		m.Graph.AddOutput(v)
		p, err := partition.New(t.Context(), m, partition.Options{Stages: 2, By: "weights"})
		if err != nil || p.Stages[0].Handed != 8 || p.Stages[0].Nodes != narrow+1 && p.Stages[0].Nodes != narrow+2 {
			t.Errorf("node %d makes 8 bytes: the first stage is %+v, %v", narrow, p.Stages[0], err)
		}
	}
}

func TestWhatCannotBeCut(t *testing.T) {
	m := open(t, fixture("mlp"))
	for n, want := range map[int]string{-1: "-1 stages: the graph can be partitioned into 1 to 6",
		0: "0 stages: the graph can be partitioned into 1 to 6", 7: "7 stages: the graph can be partitioned into 1 to 6"} {
		if _, err := partition.New(t.Context(), m, partition.Options{Stages: n, By: "weights"}); err == nil ||
			err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	empty := ir.NewModel()
	empty.Opsets = []ir.Opset{{Version: 17}}
	for want, o := range map[string]partition.Options{
		"no node depends on the inputs: the model cannot be partitioned": {Stages: 1, By: "weights"},
		`unknown balance criterion "size"`:                               {Stages: 1, By: "size"},
		"dim time: the inputs have no dynamic axes": {Stages: 1, By: "weights",
			Dims: map[string]int64{"time": 3}},
	} {
		if _, err := partition.New(t.Context(), empty, o); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestCostsThatNeedAPlan(t *testing.T) {
	m := open(t, fixture("mlp"))
	for n := range m.Graph.Nodes() {
		n.Op.Domain = "elsewhere"
	}
	m.Opsets = append(m.Opsets, ir.Opset{Domain: "elsewhere", Version: 1})
	_, err := partition.New(context.Background(), m, partition.Options{Stages: 2, By: "flops"})
	if err == nil || !strings.Contains(err.Error(), "only be balanced by weights") {
		t.Errorf("got %v", err)
	}
}
