package memplan

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

const mib = 1 << 20

// training returns the default options of these tests, with changes.
func training(change ...func(*TrainOptions)) TrainOptions {
	o := TrainOptions{Training: memory.Training{Optimizer: "adam", Precision: "float32"}}
	for _, c := range change {
		c(&o)
	}
	return o
}

func trained(t *testing.T, b *builder, o TrainOptions) *Training {
	t.Helper()
	if len(b.Graph.Outputs) == 0 {
		b.Graph.AddOutput(b.last)
	}
	got, err := Train(t.Context(), &onnx.File{Model: b.Model, Path: "built"}, o)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// A residual builds a residual network.
type residual struct {
	*builder
	channels int64
}

// vector is a constant of n numbers.
func (r *residual) vector(n int64) *ir.Value { return r.weight(n) }

// convNorm is a convolution without bias and its BatchNormalization.
func (r *residual) convNorm(name string, out, kernel, stride int64) {
	pad := kernel / 2
	r.conv(name, out, r.channels, kernel, ir.IntsAttr("strides", stride, stride), ir.IntsAttr("pads", pad, pad, pad, pad))
	r.node("BatchNormalization:"+name+"_bn", []*ir.Value{r.vector(out), r.vector(out), r.vector(out), r.vector(out)})
	r.channels = out
}

// block is torchvision's BasicBlock.
func (r *residual) block(name string, out, stride int64) {
	from, channels := r.last, r.channels
	r.convNorm(name+"_conv1", out, 3, stride)
	r.node("Relu:"+name+"_relu1", nil)
	r.convNorm(name+"_conv2", out, 3, 1)
	main := r.last
	if short := from; stride != 1 || channels != out {
		r.last, r.channels = from, channels
		r.convNorm(name+"_down", out, 1, stride)
		short, r.last = r.last, main
		r.node("Add:"+name+"_add", []*ir.Value{short})
	} else {
		r.node("Add:"+name+"_add", []*ir.Value{short})
	}
	r.node("Relu:"+name+"_relu2", nil)
}

// resnet18 is the network of He et al. (2016) as torchvision builds it, with weights that are never read.
func resnet18() *builder {
	r := &residual{build("x", -1, 3, 224, 224), 3}
	r.convNorm("conv1", 64, 7, 2)
	r.node("Relu:relu", nil)
	r.node("MaxPool:maxpool", nil, ir.IntsAttr("kernel_shape", 3, 3), ir.IntsAttr("strides", 2, 2), ir.IntsAttr("pads", 1, 1, 1, 1))
	for stage, width := range []int64{64, 128, 256, 512} {
		for i := range 2 {
			stride := int64(1)
			if stage > 0 && i == 0 {
				stride = 2
			}
			r.block(fmt.Sprintf("layer%d_%d", stage+1, i), width, stride)
		}
	}
	r.node("GlobalAveragePool:pool", nil)
	r.node("Flatten:flat", nil)
	r.node("Gemm:fc", []*ir.Value{r.weight(1000, 512), r.vector(1000)}, ir.IntAttr("transB", 1))
	return r.builder
}

func batchOf(n int64) func(*TrainOptions) { return func(o *TrainOptions) { o.Batches = []int64{n} } }

func layer(t *testing.T, r *TrainRun, name string) Layer {
	t.Helper()
	i := slices.IndexFunc(r.Layers, func(l Layer) bool { return strings.HasSuffix(l.Node, "_"+name) })
	if i < 0 {
		t.Fatalf("no layer %s", name)
	}
	return r.Layers[i]
}

// ResNet18 at 128×3×224×224: 11,689,512 parameters (torchvision), and the memory of each layer computed from shapes.
func TestResNet18LayerByLayer(t *testing.T) {
	got := trained(t, resnet18(), training(batchOf(128)))
	if got.Parameters != 11689512 {
		t.Errorf("%d parameters", got.Parameters)
	}
	r := got.Runs[0]
	sizes := map[string]float64{"conv1": 392, "conv1_bn": 392, "maxpool": 98}
	for stage, want := range []float64{98, 49, 24.5, 12.25} {
		for _, name := range []string{"0_conv1", "0_conv1_bn", "0_conv2", "0_conv2_bn", "1_conv1", "1_conv1_bn", "1_conv2", "1_conv2_bn"} {
			sizes[fmt.Sprintf("layer%d_%s", stage+1, name)] = want
		}
		if stage > 0 {
			sizes[fmt.Sprintf("layer%d_0_down", stage+1)] = want
			sizes[fmt.Sprintf("layer%d_0_down_bn", stage+1)] = want
		}
	}
	for name, want := range sizes {
		if l := layer(t, r, name); float64(l.Output) != want*mib {
			t.Errorf("%s: %.2f MiB, want %g", name, float64(l.Output)/mib, want)
		}
	}
	for _, name := range []string{"relu", "layer1_0_relu1", "layer4_1_relu2", "layer2_0_add"} {
		if l := layer(t, r, name); l.Output != 0 {
			t.Errorf("%s is not in place: %+v", name, l)
		}
	}
	if l := layer(t, r, "maxpool"); l.Kept != 98*mib+98*mib/4 || l.Gradient != 392*mib {
		t.Errorf("maxpool keeps a byte per output: %+v", l)
	}
	if l := layer(t, r, "conv1_bn"); l.Kept != 392*mib+2*64*4 {
		t.Errorf("BatchNormalization keeps two vectors: %+v", l)
	}
	if l := layer(t, r, "layer3_0_down_bn"); l.Kept != 2*256*4 {
		t.Errorf("a sum's second operand is not needed in the backward pass: %+v", l)
	}
	// Activations that PyTorch 2.15's autograd stores in the same step (torch.autograd.graph.saved_tensors_hooks, ReLU and sums in place,
	// each storage once), without the indices of its MaxPool, which have 64 bits.
	const autograd = 2512.67
	if values := float64(r.Activations-98*mib/4) / mib; math.Abs(values-autograd) > 1 {
		t.Errorf("%.2f MiB of values, PyTorch holds %.2f", values, autograd)
	}
}

// Mixed precision halves activations except indices; activation checkpointing then saves more than half.
func TestResNet18WithCheckpointing(t *testing.T) {
	run := func(precision, word string) *TrainRun {
		return trained(t, resnet18(), training(batchOf(128), func(o *TrainOptions) { o.Precision, o.Checkpoint = precision, word })).Runs[0]
	}
	plain, half, fifth := run("float32", "none"), run("mixed", "none"), run("mixed", "sqrt")
	if ratio(half.Activations, plain.Activations) < 0.5 || ratio(half.Activations, plain.Activations) > 0.51 {
		t.Errorf("%d bytes in 16 bits, %d in 32", half.Activations, plain.Activations)
	}
	if r := ratio(fifth.Activations, plain.Activations); math.Abs(r-0.2) > 0.02 {
		t.Errorf("%.3f of the activations with both, want a fifth", r)
	}
	if even := run("mixed", "every=8"); fifth.Activations >= even.Activations || fifth.Peak >= even.Peak || even.Segments != 9 {
		t.Errorf("sqrt: %d of %d, every eighth node in %d segments: %d of %d", fifth.Activations, fifth.Peak, even.Segments, even.Activations, even.Peak)
	}
}

func ratio(a, b int64) float64 { return float64(a) / float64(b) }

// The memory that a node with input x[2,8,6,6] stores, without the outputs of its inputs' producers.
func TestSavedTensorsOfOperators(t *testing.T) {
	const x = 2 * 8 * 6 * 6 * 4
	vectors := func(b *builder, n int) (vs []*ir.Value) {
		for range n {
			vs = append(vs, b.weight(8))
		}
		return vs
	}
	for _, c := range []struct {
		op            string
		weights       int
		attrs         []*ir.Attr
		before, after int64 // kept of its input, made by a convolution, and of its own
	}{
		{op: "Sigmoid", after: x},
		{op: "Softmax", after: x},
		{op: "Exp", after: x},
		{op: "Erf", before: x},
		{op: "HardSwish", before: x},
		{op: "Relu", before: x}, // in place: its output in its input's memory
		{op: "Dropout"},
		{op: "Neg"},
		{op: "Transpose"},
		{op: "InstanceNormalization", weights: 2, before: x, after: 2 * 8 * 2 * 4},
		{op: "BatchNormalization", weights: 4, before: x, after: 8 * 2 * 4},
		{op: "GlobalAveragePool"},
		{op: "MaxPool", attrs: []*ir.Attr{ir.IntsAttr("kernel_shape", 2, 2), ir.IntsAttr("strides", 2, 2)}, after: 2 * 8 * 3 * 3},
	} {
		b := build("x", 2, 8, 6, 6).conv("conv", 8, 8, 1)
		b.node(c.op+":node", vectors(b, c.weights), c.attrs...).node("Neg:end", nil)
		r := trained(t, b, training()).Runs[0]
		if got := layer(t, r, "conv").Kept; got != c.before {
			t.Errorf("%s: %d bytes of its input, want %d", c.op, got, c.before)
		}
		if got := layer(t, r, "node").Kept; got != c.after {
			t.Errorf("%s: %d bytes of its own, want %d", c.op, got, c.after)
		}
	}
}

// A factor is stored for the gradient of the other factor. Constants are in memory anyway.
func TestProductsSaveTheOtherFactor(t *testing.T) {
	const x = 4 * 16 * 4
	scaled := build("x", 4, 16).node("MatMul:a", []*ir.Value{nil})
	scaled.Graph.Last().SetInput(1, scaled.weight(16, 16))
	a := scaled.last
	scaled.node("Mul:two", []*ir.Value{scaled.Graph.AddConst("two", &ir.Tensor{Spec: ir.Spec{DType: ir.Float}, Source: ir.Floats(2)})})
	two := scaled.last
	scaled.node("Mul:square", []*ir.Value{a})
	r := trained(t, scaled, training()).Runs[0]
	if la, lt := layer(t, r, "a").Kept, layer(t, r, "two").Kept; la != x || lt != x || two == a {
		t.Errorf("a·2a keeps %d and %d bytes of its factors, want %d each", la, lt, x)
	}
	frozen := build("x", 4, 16)
	frozen.node("Relu:y", nil)
	if r := trained(t, frozen, training()).Runs[0]; r.Layers[0].Kept != 0 || r.Layers[0].Gradient != 0 || len(r.Steps) != 2 {
		t.Errorf("nothing is trained, %+v in %d steps", r.Layers, len(r.Steps))
	}
}

// Running statistics, scales and scalars are not parameters; a constant of two nodes is one parameter.
func TestParametersOfAModel(t *testing.T) {
	b := build("x", 4, 8, 6, 6).conv("conv", 8, 8, 1)
	w := b.weight(8)
	b.node("BatchNormalization:bn", []*ir.Value{w, w, b.weight(8), b.weight(8)})
	b.node("Mul:scaled", []*ir.Value{b.weight()})
	if got := trained(t, b, training()); got.Parameters != 8*8+8 {
		t.Errorf("%d parameters", got.Parameters)
	}
}

// Parameters in subgraphs and functions are trained, too.
func TestParametersOfSubgraphs(t *testing.T) {
	for name, least := range map[string]int64{"subgraph_if": 4000, "subgraph_nested": 4000, "function": 1000} {
		f, err := onnx.Open("../../fixtures/" + name + ".onnx")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		got, err := Train(t.Context(), f, training())
		if err != nil {
			t.Fatal(err)
		}
		if r := got.Runs[0]; got.Parameters < least || !strings.HasSuffix(r.Steps[len(r.Steps)-1].Name, " backward") {
			t.Errorf("%s: %d parameters, steps end with %+v", name, got.Parameters, r.Steps[len(r.Steps)-1])
		}
	}
}

func TestStatesAndStepsAddUp(t *testing.T) {
	got := trained(t, resnet18(), training(func(o *TrainOptions) { o.Batches = []int64{1, 8} }))
	if len(got.Runs) != 2 || got.States.Total().Device != 16*got.Parameters {
		t.Fatalf("%d runs, states %+v", len(got.Runs), got.States)
	}
	for _, r := range got.Runs {
		if r.Total != r.Peak+got.States.Total().Device || r.Steps[r.AtStep].Bytes != r.Peak || r.Steps[r.AtStep].Name != r.AtNode {
			t.Errorf("batch %d: %d in all, peak %d at %s", r.Batch, r.Total, r.Peak, r.AtNode)
		}
	}
	if a, b := got.Runs[0], got.Runs[1]; a.Batch != 1 || b.Batch != 8 || b.Peak <= 7*a.Peak || got.Total.Device != b.Total {
		t.Errorf("batches of %d and %d: %d and %d", a.Batch, b.Batch, a.Peak, b.Peak)
	}
	p, err := got.Page("resnet18.onnx")
	if err != nil || p.Run != "training, batch 8, adam, float32" || len(p.Held) != 3 || p.Plan.Bound < got.Runs[1].Peak {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestTrainingThatCannotBePlanned(t *testing.T) {
	b := build("x", 4, 16).node("Unheard:y", nil)
	b.node("MatMul:z", []*ir.Value{b.weight(16, 16)})
	got := trained(t, b, training())
	if got.Parameters != 256 || got.Unplanned == "" || got.Runs != nil {
		t.Errorf("%+v", got)
	}
	for _, word := range []string{"every=0", "every", "all", "every=x"} {
		_, err := Train(t.Context(), &onnx.File{Model: b.Model}, training(func(o *TrainOptions) { o.Checkpoint = word }))
		if err == nil || err.Error() != fmt.Sprintf("invalid checkpoint %q; use none, sqrt or every=N", word) {
			t.Errorf("%s: %v", word, err)
		}
	}
}

// For every model, the peak is at least the stored activations, mixed precision and activation checkpointing do not increase it, and the
// difference of a layer is that of its stored activations and gradients.
func TestTrainingOfModels(t *testing.T) {
	planned := 0
	for _, path := range append(conform.Fixtures(t), conform.RealModels(t)...) {
		f, err := onnx.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		train := func(precision, word string) *Training {
			got, err := Train(t.Context(), f, training(func(o *TrainOptions) { o.Precision, o.Checkpoint = precision, word }))
			if err != nil {
				t.Fatalf("%s: %v", label(path), err)
			}
			return got
		}
		plain := train("float32", "none")
		if plain.Unplanned != "" {
			continue
		}
		planned++
		r, half, less := plain.Runs[0], train("mixed", "none").Runs[0], train("float32", "sqrt").Runs[0]
		kept := int64(0)
		for _, l := range r.Layers {
			kept += l.Kept
			if l.Kept < 0 || l.Output < 0 || l.Gradient < 0 || l.Difference != l.Kept-l.Gradient {
				t.Errorf("%s: %+v", label(path), l)
			}
		}
		if r.Peak < r.Activations || r.Activations < kept || half.Peak > r.Peak || less.Peak > r.Peak {
			t.Errorf("%s: kept %d, activations %d, peak %d; in halves %d, with checkpoints %d", label(path), kept, r.Activations, r.Peak, half.Peak, less.Peak)
		}
	}
	if planned < 70 {
		t.Errorf("%d models were planned", planned)
	}
}
