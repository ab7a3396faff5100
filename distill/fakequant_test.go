package distill

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize"
)

// quantizers returns the quantization steps to test, as command line options.
func quantizers() []string {
	list := []string{"dynamic-int8", "dynamic-int8 per-tensor", "weight-int8", "weight-int8 asymmetric", "float8",
		"weight-int4 algo=hqq", "weight-int4 search=minmax"}
	for _, method := range []string{"weight-int8", "weight-int4", "weight-int2"} {
		for _, block := range []int{16, 32, 64, 128, 256} {
			other := "symmetric" // weight-int8 is symmetric by default
			if method == "weight-int8" {
				other = "asymmetric"
			}
			list = append(list, fmt.Sprintf("%s block=%d", method, block), fmt.Sprintf("%s block=%d %s", method, block, other))
		}
	}
	return append(list, "weight-int4 per-channel", "weight-int2 per-channel symmetric", "weight-int4 weight-type=int4",
		"weight-int2 weight-type=int2")
}

// quantizer returns a step by its text in quantizers.
func quantizer(t *testing.T, text string) pass.Options {
	t.Helper()
	words := strings.Fields(text)
	known := quantize.Methods()
	i := slices.IndexFunc(known, func(m *pass.Method) bool { return m.Name == words[0] })
	step, err := pass.NewStep(known[i], func(fs *flag.FlagSet) error {
		for _, o := range words[1:] {
			name, value, given := strings.Cut(o, "=")
			if !given {
				value = "true"
			}
			if err := fs.Set(name, value); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return step
}

// varied returns a model with weights of MatMul and Gemm, transposed and not, Conv and Gather, some with incomplete
// blocks.
func varied() *ir.Model {
	r := rand.New(rand.NewPCG(4, 9))
	m := ir.NewModel()
	m.IRVersion, m.Opsets = 10, []ir.Opset{{Version: 21}}
	g := m.Graph
	x := g.AddValue("x")
	x.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: -1, Param: "N"}, {N: features}}}
	g.Inputs = []*ir.Value{x}
	weight := func(shape ...int64) *ir.Value { return g.AddConst("w", random(r, shape...)) }
	y := g.Insert(nil, "Relu", []*ir.Value{g.Insert(nil, "MatMul", []*ir.Value{x, weight(features, 400)})})
	shape := g.AddConst("shape", &ir.Tensor{Spec: ir.Spec{DType: ir.Int64, Shape: []int64{4}},
		Source: ir.Ints(-1, 16, 5, 5)})
	y = g.Insert(nil, "Reshape", []*ir.Value{y, shape})
	y = g.Insert(nil, "Relu", []*ir.Value{g.Insert(nil, "Conv", []*ir.Value{y, weight(24, 16, 3, 3), weight(24)},
		ir.IntsAttr("pads", 1, 1, 1, 1))})
	y = g.Insert(nil, "Flatten", []*ir.Value{y})
	y = g.Insert(nil, "Relu", []*ir.Value{g.Insert(nil, "Gemm", []*ir.Value{y, weight(40, 600), weight(40)},
		ir.IntAttr("transB", 1))})
	table := weight(36, 40)
	rows := g.Insert(nil, "Gather", []*ir.Value{table,
		g.Insert(nil, "Cast", []*ir.Value{g.Insert(nil, "Abs", []*ir.Value{x})}, ir.IntAttr("to", int64(ir.Int64)))})
	y = g.Insert(nil, "Add", []*ir.Value{y,
		g.Insert(nil, "ReduceMax", []*ir.Value{rows,
			g.AddConst("axis", &ir.Tensor{Spec: ir.Spec{DType: ir.Int64, Shape: []int64{1}}, Source: ir.Ints(1)})},
			ir.IntAttr("keepdims", 0))})
	y = g.Insert(nil, "MatMul", []*ir.Value{y, g.Insert(nil, "Transpose", []*ir.Value{table})})
	y = g.Insert(nil, "Gemm", []*ir.Value{g.Insert(nil, "Relu", []*ir.Value{y}), weight(36, classes), weight(classes)})
	y.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: -1, Param: "N"}, {N: classes}}}
	g.AddOutput(y)
	return m
}

// qatTrainer returns a trainer that is prepared for QAT with this quantization step.
func qatTrainer(t *testing.T, m *ir.Model, quantization pass.Options, o ...string) *trainer {
	t.Helper()
	e := ir.NewEval(t.TempDir())
	t.Cleanup(func() { e.Close() })
	s := parse(t, append(o, "qat", quantization.Method().Name)...)
	tr := newTrainer(m, e, 2, s)
	t.Cleanup(func() { tr.close() })
	var err error
	if tr.fakeQuant, err = newFakeQuant(&pass.Step{Later: []pass.Options{quantization}}, s); err != nil {
		t.Fatal(err)
	}
	if err := tr.prepare(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return tr
}

// The fake-quantized weights are the dequantized weights of the quantized model with the current weights.
func TestFakeQuantizedWeights(t *testing.T) {
	data := samples(t, 60)
	for i, text := range quantizers() {
		if testing.Short() && i%3 > 0 { // under the race detector
			continue
		}
		t.Run(text, func(t *testing.T) {
			tr := qatTrainer(t, varied(), quantizer(t, text), "data", data, "labels", "label", "batch", "8")
			r := rand.New(rand.NewPCG(1, 2))
			for _, v := range tr.params.weights {
				for i := range ir.View[float32](v.array) {
					ir.View[float32](v.array)[i] += float32(r.NormFloat64())
				}
			}
			if err := tr.fakeQuant.quantizeWeights(t.Context(), tr.environment, tr.params.weights); err != nil {
				t.Fatal(err)
			}
			want := stored(t, tr, quantizer(t, text))
			if len(want) < 3 || len(want) != len(tr.fakeQuant.weights) {
				t.Fatalf("the method quantizes %d weights, %d are fake-quantized", len(want), len(tr.fakeQuant.weights))
			}
			for name, b := range want {
				if w := tr.fakeQuant.weights[name]; w == nil || !slices.Equal(w.array.Data, b) {
					t.Errorf("fake-quantized weight %s differs from the stored one", name)
				}
			}
		})
	}
}

// stored returns the dequantized values of the current weights in the quantized model.
func stored(t *testing.T, tr *trainer, step pass.Options) map[string][]byte {
	t.Helper()
	m := varied()
	for _, v := range m.Graph.Consts() {
		if w := tr.params.byName[v.Name]; w != nil {
			v.SetConst(&ir.Tensor{Spec: v.Const.Spec, Source: w.payload()})
		}
	}
	e := ir.NewEval(t.TempDir())
	defer e.Close()
	res, err := pass.Run(t.Context(), m, e, pass.Environment{Workers: 1, NoTrials: true}, []pass.Options{step})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for _, row := range res.Rows {
		if row.Status != pass.Changed || row.Restore == nil {
			continue
		}
		if out[row.Tensor], err = e.ReadAll(t.Context(), dequantized(row)); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// A weight changes by the gradient of its fake-quantized value (straight-through estimator).
func TestStraightThroughEstimator(t *testing.T) {
	data := samples(t, 60)
	o := []string{"data", data, "labels", "label", "batch", "16", "steps", "1", "optimizer", "sgd", "schedule", "constant",
		"lr", "0.5", "validate", "0", "dropout", "0"}
	tr := qatTrainer(t, varied(), quantizer(t, "weight-int2"), o...)
	if err := tr.fakeQuant.quantizeWeights(t.Context(), tr.environment, tr.params.weights); err != nil {
		t.Fatal(err)
	}
	before := weights(t, varied())
	plain := qatTrainer(t, varied(), quantizer(t, "weight-int2"), o...)
	if err := errors.Join(plain.step.close(), plain.fakeQuant.quantizeWeights(t.Context(), plain.environment,
		plain.params.weights)); err != nil {
		t.Fatal(err)
	}
	for name, w := range plain.fakeQuant.weights {
		copy(plain.params.byName[name].array.Data, w.array.Data)
	}
	plain.fakeQuant, plain.graphs.fakeQuant = nil, nil
	if err := plain.openGraphs(t.Context()); err != nil {
		t.Fatal(err)
	}
	beforeFloat := map[string][]byte{}
	for name, v := range plain.params.byName {
		beforeFloat[name] = slices.Clone(v.array.Data)
	}
	if err := errors.Join(tr.train(t.Context()), plain.train(t.Context())); err != nil {
		t.Fatal(err)
	}
	largest := 0.0
	for name, v := range tr.params.byName {
		a, b := difference(v.array.Data, before[name]), difference(plain.params.byName[name].array.Data, beforeFloat[name])
		for i := range a {
			largest = max(largest, math.Abs(b[i]))
			if math.Abs(a[i]-b[i]) > 1e-5 {
				t.Fatalf("weight %s[%d] changes by %g, its fake-quantized value by %g", name, i, a[i], b[i])
			}
		}
	}
	if largest < 1e-3 {
		t.Errorf("the largest change is %g", largest)
	}
}

func difference(a, b []byte) []float64 {
	x, y := ir.View[float32](array(a)), ir.View[float32](array(b))
	d := make([]float64, len(x))
	for i := range d {
		d[i] = float64(x[i]) - float64(y[i])
	}
	return d
}

// Activations are quantized and dequantized; outside the clipping range gradients are 0.
func TestFakeQuantizedActivations(t *testing.T) {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 21}}
	spec := ir.Spec{DType: ir.Float, Shape: []int64{6}}
	x := m.Graph.AddValue("x")
	x.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: 6}}}
	m.Graph.Inputs = []*ir.Value{x}
	m.Graph.AddOutput(m.Graph.Insert(nil, "Mul",
		[]*ir.Value{x, m.Graph.AddConst("two", &ir.Tensor{Spec: ir.Spec{DType: ir.Float}, Source: ir.Floats(2)})}))
	f := &fakeQuant{activations: map[edge]*fakeQuantActivation{}}
	f.setActivation(edge{m.Graph.Outputs[0].Name, 0}, ir.Uint8, ir.Floats(0.5), []byte{10}) // from -5 to 122.5
	feeds := map[string]*ir.Array{"x": ir.ArrayOf([]float32{-7, -4.9, -0.3, 0.2, 122.4, 130}, 6)}
	tape, err := grad.New(t.Context(), m, grad.Options{Inputs: map[string]ir.Spec{"x": spec},
		Change: func(tape *grad.Tape) error {
			f.insert(tape, &parameters{}, feeds)
			return nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	in, out := tape.Graph().Inputs[0], tape.Graph().Outputs[0]
	tape.Want(in)
	tape.Close()
	seed := tape.Input("seed", ir.Float, 6)
	feeds["seed"] = ir.ArrayOf([]float32{1, 2, 3, 4, 5, 6}, 6)
	if err := tape.Backward(map[*ir.Value]*ir.Value{out: seed}); err != nil {
		t.Fatal(err)
	}
	tape.Graph().SetOutputs(out, tape.Grad(in))
	s, err := engine.Open(t.Context(), tape.Model, engine.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got, err := s.Run(t.Context(), feeds, nil)
	if err != nil {
		t.Fatal(err)
	}
	if y := ir.View[float32](got[out.Name]); !slices.Equal(y, []float32{-10, -10, -1, 0, 245, 245}) {
		t.Errorf("outputs are %v", y)
	}
	if dx := ir.View[float32](got[tape.Graph().Outputs[1].Name]); !slices.Equal(dx, []float32{0, 4, 6, 8, 10, 0}) {
		t.Errorf("gradients are %v", dx)
	}
}

// QAT is deterministic for any number of workers, and resumes bit-identically.
func TestQATIsDeterministic(t *testing.T) {
	data := samples(t, 240)
	for _, text := range []string{"weight-int4 block=16", "palette entries=4 block=16",
		"static-int8 no-bias-correction calibrate=16 data=" + data + " labels=label"} {
		o := []string{"data", data, "labels", "label", "epochs", "2", "batch", "16"}
		learned := func(workers int, stop int, o ...string) *trainer {
			tr := qatTrainer(t, network(1, features, 32, 16, classes), quantizer(t, text), o...)
			tr.workers = workers
			if err := tr.resume(t.Context()); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := stopper(t, tr, stop, func() {})
			defer cancel()
			if err := tr.train(ctx); (err != nil) != (stop > 0) {
				t.Fatal(err)
			}
			return tr
		}
		want := learned(2, 0, o...)
		checkpoint := filepath.Join(t.TempDir(), "checkpoint.zip")
		saved := append(slices.Clone(o), "save", checkpoint, "save-every", "3", "resume", "true")
		learned(2, 20, saved...)
		for what, got := range map[string]*trainer{"3 workers": learned(3, 0, o...), "resumed": learned(1, 0, saved...)} {
			for name, v := range want.params.byName {
				if !slices.Equal(v.array.Data, got.params.byName[name].array.Data) {
					t.Errorf("%s, %s: weight %s differs", text, what, name)
				}
			}
		}
	}
}

// A checkpoint belongs to the options of the quantization step.
func TestCheckpointOfOtherQuantization(t *testing.T) {
	data, checkpoint := samples(t, 60), filepath.Join(t.TempDir(), "checkpoint.zip")
	o := []string{"data", data, "labels", "label", "batch", "8", "steps", "2", "save", checkpoint, "resume", "true"}
	if err := qatTrainer(t, varied(), quantizer(t, "weight-int4 block=16"), o...).train(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := qatTrainer(t, varied(), quantizer(t, "weight-int4 block=16"), o...).resume(t.Context()); err != nil {
		t.Error(err)
	}
	err := qatTrainer(t, varied(), quantizer(t, "weight-int4 block=64"), o...).resume(t.Context())
	if err == nil || !strings.Contains(err.Error(), "other options") {
		t.Errorf("got %v", err)
	}
}

func TestInvalidQAT(t *testing.T) {
	data := samples(t, 60)
	for _, c := range []struct {
		want, qat string
		m         *ir.Model
		steps     []string
	}{
		{"no quantization step of that name follows this step", "weight-int4", varied(), nil},
		{"no quantization step of that name follows this step", "weight-int4", varied(), []string{"weight-int2"}},
		{"gptq and awq are not supported", "weight-int4", varied(), []string{"weight-int4 algo=gptq"}},
		{"by more than quantization", "static-int8", varied(),
			[]string{"static-int8 calibrate=8 data=" + data + " labels=label"}},
		{"by more than quantization", "static-int8", convolutional(),
			[]string{"static-int8 no-bias-correction calibrate=8 data=" + data + " labels=label"}},
	} {
		steps := []pass.Options{finetune(t, "data", data, "labels", "label", "batch", "8", "qat", c.qat)}
		for _, text := range c.steps {
			steps = append(steps, quantizer(t, text))
		}
		e := ir.NewEval(t.TempDir())
		defer e.Close()
		_, err := pass.Run(t.Context(), c.m, e, pass.Environment{Workers: 1}, steps)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s, then %v: got %v, want %q", c.qat, c.steps, err, c.want)
		}
	}
}
