package grad

import (
	"fmt"
	"testing"
	"time"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/ir"
)

// Forward and backward pass of a small classifier of 32×32 images at batch 64, and of ResNet-18 at batch 8 with batch
// statistics.
func BenchmarkTraining(b *testing.B) {
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprintf("CNN by %d", workers), func(b *testing.B) { benchTraining(b, smallNet(), 64, 32, workers) })
		b.Run(fmt.Sprintf("ResNet18 by %d", workers),
			func(b *testing.B) { benchTraining(b, resNet(), 8, 224, workers) })
	}
}

func benchTraining(b *testing.B, m *ir.Model, batch, side int64, workers int) {
	in := map[string]*ir.Array{"x": noise(1, batch, 3, side, side)}
	tape, err := New(b.Context(), m, Options{Inputs: map[string]ir.Spec{"x": in["x"].Spec()}, BatchStatistics: true})
	if err != nil {
		b.Fatal(err)
	}
	y := tape.Graph().Outputs[0]
	dy := tape.Input("dy", ir.Float, tape.Shape(y)...)
	in[dy.Name] = noise(2, tape.Shape(y)...)
	if err := tape.Backward(map[*ir.Value]*ir.Value{y: dy}); err != nil {
		b.Fatal(err)
	}
	for i, p := range tape.Params {
		in[p.Value.Name] = noise(uint64(3+i), p.Tensor.Shape...)
		tape.Graph().AddOutput(p.Grad)
	}
	for _, r := range tape.Running {
		in[r.Value.Name] = noise(2, r.Tensor.Shape...)
		tape.Graph().AddOutput(r.New)
	}
	s, err := engine.Open(b.Context(), tape.Model, engine.Options{Workers: workers})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	best := time.Hour
	for b.Loop() {
		start := time.Now()
		if _, err := s.Run(b.Context(), in, nil); err != nil {
			b.Fatal(err)
		}
		best = min(best, time.Since(start))
	}
	b.ReportMetric(best.Seconds()*1e3, "ms") // the fastest run
}

// noise returns positive normally distributed numbers, scaled by 0.1.
func noise(seed uint64, shape ...int64) *ir.Array {
	a := ir.NewArray(ir.Float, shape...)
	for i, v := range ir.View[float64](values(seed, shape...)) {
		ir.View[float32](a)[i] = float32(0.1 * v)
	}
	return a
}

// A net builds a model.
type net struct {
	*ir.Graph
	channels int64 // of the last layer
}

func newNet(x ...int64) (*ir.Model, *net, *ir.Value) {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 21}}
	v := m.Graph.AddValue("x")
	v.Type = typeOf(ir.Spec{DType: ir.Float, Shape: x})
	m.Graph.Inputs = []*ir.Value{v}
	return m, &net{m.Graph, 3}, v
}

func (n *net) weight(shape ...int64) *ir.Value {
	size := int64(4)
	for _, d := range shape {
		size *= d
	}
	return n.AddConst("w", &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: shape}, Source: make(ir.Mem, size)})
}

func (n *net) conv(x *ir.Value, in, out, kernel, stride int64, bias bool) *ir.Value {
	pad := kernel / 2
	inputs := []*ir.Value{x, n.weight(out, in, kernel, kernel)}
	if bias {
		inputs = append(inputs, n.weight(out))
	}
	n.channels = out
	return n.Insert(nil, "Conv", inputs, ir.IntsAttr("strides", stride, stride),
		ir.IntsAttr("pads", pad, pad, pad, pad))
}

func (n *net) norm(x *ir.Value) *ir.Value {
	c := n.channels
	return n.Insert(nil, "BatchNormalization", []*ir.Value{x, n.weight(c), n.weight(c), n.weight(c), n.weight(c)})
}

func (n *net) relu(x *ir.Value) *ir.Value { return n.Insert(nil, "Relu", []*ir.Value{x}) }

func (n *net) maxPool(x *ir.Value, kernel, stride, pad int64) *ir.Value {
	return n.Insert(nil, "MaxPool", []*ir.Value{x}, ir.IntsAttr("kernel_shape", kernel, kernel),
		ir.IntsAttr("strides", stride, stride), ir.IntsAttr("pads", pad, pad, pad, pad))
}

func (n *net) linear(x *ir.Value, in, out int64) *ir.Value {
	flat := n.Insert(nil, "Flatten", []*ir.Value{x})
	return n.Insert(nil, "Gemm", []*ir.Value{flat, n.weight(out, in), n.weight(out)}, ir.IntAttr("transB", 1))
}

func smallNet() *ir.Model {
	m, n, x := newNet(64, 3, 32, 32)
	for _, c := range []int64{32, 64, 128} {
		x = n.maxPool(n.relu(n.conv(x, n.channels, c, 3, 1, true)), 2, 2, 0)
	}
	n.AddOutput(n.linear(x, 128*4*4, 10))
	return m
}

// resNet is ResNet-18 (He et al., Deep Residual Learning for Image Recognition, 2015, table 1).
func resNet() *ir.Model {
	m, n, x := newNet(8, 3, 224, 224)
	x = n.maxPool(n.relu(n.norm(n.conv(x, 3, 64, 7, 2, false))), 3, 2, 1)
	for i, c := range []int64{64, 64, 128, 128, 256, 256, 512, 512} {
		in, stride := n.channels, int64(1)
		if i > 0 && i%2 == 0 {
			stride = 2
		}
		y := n.relu(n.norm(n.conv(x, in, c, 3, stride, false)))
		y = n.norm(n.conv(y, c, c, 3, 1, false))
		if stride > 1 {
			x = n.norm(n.conv(x, in, c, 1, stride, false))
		}
		x = n.relu(n.Insert(nil, "Add", []*ir.Value{x, y}))
	}
	n.AddOutput(n.linear(n.Insert(nil, "GlobalAveragePool", []*ir.Value{x}), 512, 1000))
	return m
}
