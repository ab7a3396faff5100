package grad_test

import (
	"context"
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// untrained are models without a training step, with the reason.
var untrained = map[string]string{
	"silero_vad":           "control flow",
	"mlperf_resnet8_int8":  "its weights are quantized",
	"mobilenetv2_qdq":      "its weights are quantized",
	"mlperf_kws_dscnn":     "its weights are quantized",
	"espcn_quant_qonnx":    "Quant is not an operator that the engine runs",
	"tfc_2w2a_qonnx":       "Quant is not an operator that the engine runs",
	"sklearn_randomforest": "trees",
	"lgbm_classifier":      "trees",
	"hand_history_lstm":    "its only output is ArgMax",
	"hand_keypoint":        "its only output is ArgMax",
	"qwen35_tiny":          "its weights are float16",
}

// unmeasured are models whose gradients are not compared with finite differences.
var unmeasured = map[string]string{
	"basic_pitch":      "logarithms of powers near zero are too inexact in float32 for finite differences",
	"godot_score_goal": "its tanh is 1 on random inputs",
	"style_candy":      "a step takes four seconds",
	"yolox_nano":       "a step takes a second",
}

// unread are parameters of which only the shapes of results are used.
var unread = []string{"actor.log_std.weight", "actor.log_std.bias"}

// Every parameter of every trainable model has a gradient, the outputs of the step are those of the model, and
// gradients agree with finite differences.
func TestGradientsOfRealModels(t *testing.T) {
	for _, path := range conform.RealModels(t) {
		name := filepath.Base(filepath.Dir(path))
		t.Run(name, func(t *testing.T) {
			if reason := untrained[name]; reason != "" {
				t.Skip(reason)
			}
			step(t, path)
		})
	}
}

func step(t *testing.T, path string) {
	f, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	args, err := sample(f.Model.Graph)
	if err != nil {
		t.Fatal(err)
	}
	specs := map[string]ir.Spec{}
	for name, a := range args {
		specs[name] = a.Spec()
	}
	tape, err := grad.New(t.Context(), f.Model, grad.Options{Inputs: specs})
	if err != nil {
		t.Fatal(err)
	}
	forward := slices.Clone(tape.Graph().Outputs)
	inputs := maps.Clone(args)
	seeds, weights := map[*ir.Value]*ir.Value{}, map[string]*ir.Array{}
	for i, y := range forward {
		if tape.Needs(y) {
			seeds[y] = tape.Input("seed", tape.DType(y), tape.Shape(y)...)
			weights[y.Name] = normal(uint64(i), tape.Shape(y)...)
			args[seeds[y].Name] = weights[y.Name]
		}
	}
	if err := tape.Backward(seeds); err != nil {
		t.Fatal(err)
	}
	for _, p := range tape.Params {
		data, err := ir.NewEval("").ReadAll(t.Context(), p.Tensor)
		if err != nil {
			t.Fatal(err)
		}
		args[p.Value.Name] = &ir.Array{DType: p.Tensor.DType, Shape: p.Tensor.Shape, Data: data}
		if p.Grad == nil && !slices.Contains(unread, p.Name) {
			t.Errorf("parameter %q has no gradient", p.Name)
		}
		if p.Grad != nil {
			tape.Graph().AddOutput(p.Grad)
		}
	}
	if unmeasured[filepath.Base(filepath.Dir(path))] != "" {
		return
	}
	want, err := open(t, f.Model).Run(t.Context(), inputs, nil)
	if err != nil {
		t.Fatal(err)
	}
	descends(t, tape, forward, args, weights, want)
}

// descends compares the directional derivative along the gradient with finite differences.
func descends(t *testing.T, tape *grad.Tape, forward []*ir.Value, args, weights, want map[string]*ir.Array) {
	out, err := open(t, tape.Model).Run(t.Context(), args, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name := range weights {
		same(t, name, out[name], want[name])
	}
	tape.Graph().Outputs = forward
	s, names := open(t, tape.Model), slices.Sorted(maps.Keys(weights))
	grads := map[string][]float32{}
	size, length := 0.0, 0.0
	for _, p := range tape.Params {
		if p.Grad != nil {
			g := ir.View[float32](out[p.Grad.Name])
			grads[p.Value.Name] = slices.Clone(g)
			for i, w := range ir.View[float32](args[p.Value.Name]) {
				size, length = size+float64(w)*float64(w), length+float64(g[i])*float64(g[i])
			}
		}
	}
	loss := func(by float64) (sum float64) {
		moved := map[string]*ir.Array{}
		for name, a := range args {
			moved[name] = a
			if g := grads[name]; g != nil {
				moved[name] = a.Clone()
				for i, v := range g {
					ir.View[float32](moved[name])[i] += float32(by * float64(v))
				}
			}
		}
		out, err := s.Run(t.Context(), moved, names)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			for i, w := range ir.View[float32](weights[name]) {
				sum += float64(w) * float64(ir.View[float32](out[name])[i])
			}
		}
		return sum
	}
	nearest := math.Inf(1)
	for by := 1e-3 * math.Sqrt(size/length); nearest > 0.02 && by > 1e-9*math.Sqrt(size/length); by /= 8 {
		got := (loss(by) - loss(-by)) / (2 * by)
		if off := math.Abs(got/length - 1); off < nearest {
			nearest = off
		}
	}
	if !(nearest <= 0.02) {
		t.Errorf("finite differences along the gradient have a relative error of %v, %v", nearest, length)
	}
}

// same compares an output of the step with that of the model, with a tolerance of 1e-4 of the largest element.
func same(t *testing.T, name string, got, want *ir.Array) {
	x, y, top := ir.View[float32](got), ir.View[float32](want), 0.0
	for _, v := range y {
		top = max(top, math.Abs(float64(v)))
	}
	for i, v := range y {
		if !(math.Abs(float64(x[i]-v)) <= 1e-4*top) {
			t.Fatalf("output %q: element %d is %v, the model computes %v", name, i, x[i], v)
		}
	}
}

func open(t *testing.T, m *ir.Model) *engine.Interpreter {
	s, err := engine.Open(t.Context(), m, engine.Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func normal(seed uint64, shape ...int64) *ir.Array {
	a := ir.NewArray(ir.Float, shape...)
	r := rand.New(rand.NewPCG(seed, 7))
	for i := range ir.View[float32](a) {
		ir.View[float32](a)[i] = float32(r.NormFloat64())
	}
	return a
}

// sample returns small random inputs, for which few functions have a zero gradient.
func sample(g *ir.Graph) (map[string]*ir.Array, error) {
	set, err := dataset.Generate(dataset.Inputs(g), dataset.Random{})
	if err != nil {
		return nil, err
	}
	defer set.Close()
	for b, err := range set.Batches(context.Background(), dataset.Order{Size: 1}) {
		if err != nil {
			return nil, err
		}
		for _, a := range b.Inputs {
			if a.DType == ir.Float {
				for i := range ir.View[float32](a) {
					ir.View[float32](a)[i] *= 0.3
				}
			}
		}
		return b.Inputs, nil
	}
	return nil, errors.New("no sample")
}
