package engine_test

import (
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// Rules accept any graph: missing or swapped inputs, weights of another rank and invalid attributes may cause errors,
// but no panic.
func TestFusionAcceptsAnyGraph(t *testing.T) {
	for _, p := range patterns() {
		t.Run(p.name, func(t *testing.T) { disturb(t, 100, func() *ir.Model { return p.model() }) })
	}
	for _, path := range conform.Fixtures(t) {
		t.Run(modelName(path), func(t *testing.T) {
			disturb(t, 50, func() *ir.Model {
				f, err := onnx.Open(path)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { f.Close() })
				return f.Model
			})
		})
	}
}

func TestMalformedModelsDoNotPanic(t *testing.T) {
	for _, path := range conform.ModelsBelow(t, filepath.Join(conform.Shared(t), "fixtures", "malformed")) {
		f, err := onnx.Open(path)
		if err != nil {
			continue
		}
		defer f.Close()
		checkPlan(t, modelName(path), f.Model)
	}
}

// disturb opens the models that build returns, each with one to three random changes.
func disturb(t *testing.T, seeds uint64, build func() *ir.Model) {
	t.Helper()
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 7))
		m := build()
		for range 1 + rng.IntN(3) {
			change(rng, m.Graph)
		}
		checkPlan(t, seed, m)
	}
}

// change changes one node of g, or one of its inputs.
func change(rng *rand.Rand, g *ir.Graph) {
	var nodes []*ir.Node
	for n := range g.Nodes() {
		nodes = append(nodes, n)
	}
	n := nodes[rng.IntN(len(nodes))]
	if len(n.Inputs()) == 0 {
		return
	}
	i := rng.IntN(len(n.Inputs()))
	switch v := n.Input(i); rng.IntN(5) {
	case 0:
		n.SetInput(i, nil)
	case 1:
		n.TrimInputs(i)
	case 2:
		n.SetInput(i, nodes[rng.IntN(len(nodes))].Outputs[0])
	case 3:
		n.SetAttr(ir.IntsAttr([]string{"perm", "axes", "strides", "kernel_shape"}[rng.IntN(4)],
			[][]int64{{}, {0}, {1, 0}, {2, 7, -1}, {0, 2, 1}}[rng.IntN(5)]...))
	default:
		if v != nil && v.Const != nil {
			v.Const = &ir.Tensor{Spec: ir.Spec{Name: v.Name, DType: v.Const.DType}, Source: ir.Mem(make([]byte, 16))}
		}
	}
}

// checkPlan opens m and plans a run.
func checkPlan(t *testing.T, what any, m *ir.Model) {
	t.Helper()
	e, err := engine.Open(t.Context(), m, engine.Options{Workers: 1})
	if err == nil {
		defer e.Close()
		in := map[string]ir.Spec{}
		for _, p := range e.Inputs() {
			spec := ir.Spec{}
			if p.Type != nil {
				spec.DType = p.Type.Elem
				for _, d := range p.Type.Shape {
					spec.Shape = append(spec.Shape, max(d.N, 1))
				}
			}
			in[p.Name] = spec
		}
		_, err = e.Usage(in)
	}
	if err != nil && strings.Contains(err.Error(), "a bug") {
		t.Errorf("%v: %v", what, err)
	}
}
