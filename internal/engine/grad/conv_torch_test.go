package grad

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// A recorded is a case of testdata/torch/conv.json, which make_conv.py writes.
type recorded struct {
	Op         string
	Attrs      map[string]any
	Inputs     []tensor
	DY, Y      tensor
	Grads      []tensor
	Running    []tensor // of BatchNormalization
	NewRunning []tensor `json:"new_running"`
}

type tensor struct {
	Shape []int64
	Data  []float32
}

func (n tensor) array() *ir.Array { return ir.ArrayOf(n.Data, n.Shape...) }

// attrs returns the node's attributes: floats, integers and lists of integers.
func (r recorded) attrs() []*ir.Attr {
	var list []*ir.Attr
	for name, v := range r.Attrs {
		switch v := v.(type) {
		case []any:
			a := ir.IntsAttr(name)
			for _, i := range v {
				a.Ints = append(a.Ints, int64(i.(float64)))
			}
			list = append(list, a)
		case float64:
			if name == "epsilon" || name == "momentum" {
				list = append(list, ir.FloatAttr(name, float32(v)))
			} else {
				list = append(list, ir.IntAttr(name, int64(v)))
			}
		}
	}
	return list
}

// model is the recorded node, with its running statistics as constants.
func (r recorded) model() *ir.Model {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 22}}
	g := m.Graph
	for i, x := range r.Inputs {
		v := g.AddValue(fmt.Sprintf("x%d", i))
		v.Type = typeOf(x.array().Spec())
		g.Inputs = append(g.Inputs, v)
	}
	in := slices.Clone(g.Inputs)
	for i, x := range r.Running {
		in = append(in, g.AddConst(fmt.Sprintf("running%d", i),
			&ir.Tensor{Spec: x.array().Spec(), Source: ir.Floats(x.Data...)}))
	}
	g.AddOutput(g.Insert(nil, r.Op, in, r.attrs()...))
	return m
}

func TestGradientsEqualPyTorch(t *testing.T) {
	text, err := os.ReadFile("testdata/torch/conv.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []recorded
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	for i, r := range all {
		t.Run(fmt.Sprintf("%s_%d", r.Op, i), r.check)
	}
}

func (r recorded) check(t *testing.T) {
	args, specs := map[string]*ir.Array{}, map[string]ir.Spec{}
	for i, x := range r.Inputs {
		name := fmt.Sprintf("x%d", i)
		args[name], specs[name] = x.array(), x.array().Spec()
	}
	tape, err := New(t.Context(), r.model(), Options{Inputs: specs, BatchStatistics: true})
	if err != nil {
		t.Fatal(err)
	}
	g := tape.Graph()
	inputs, y := slices.Clone(g.Inputs[:len(r.Inputs)]), g.Outputs[0]
	for _, v := range inputs {
		tape.Want(v)
	}
	dy := tape.Input("dy", ir.Float, r.DY.Shape...)
	args[dy.Name] = r.DY.array()
	if err := tape.Backward(map[*ir.Value]*ir.Value{y: dy}); err != nil {
		t.Fatal(err)
	}
	for _, v := range inputs {
		g.AddOutput(tape.Grad(v))
	}
	for i, s := range tape.Running {
		args[s.Value.Name] = r.Running[i].array()
		g.AddOutput(s.New)
	}
	got := run(t, tape.Model, args)
	nearly(t, "Y", got[y.Name], r.Y.Data)
	for i, v := range inputs {
		nearly(t, "the gradient of "+v.Name, got[tape.Grad(v).Name], r.Grads[i].Data)
	}
	for i, s := range tape.Running {
		nearly(t, s.Name, got[s.New.Name], r.statistic(i))
	}
}

// statistic returns the running mean or variance after the step. PyTorch divides the batch variance by n-1, ONNX's
// specification by n.
func (r recorded) statistic(i int) []float32 {
	want := slices.Clone(r.NewRunning[i].Data)
	if i == 0 {
		return want
	}
	momentum, n := r.Attrs["momentum"].(float64), float64(len(r.DY.Data)/len(want))
	for k, v := range want {
		before := momentum * float64(r.Running[i].Data[k])
		want[k] = float32(before + (float64(v)-before)*(n-1)/n)
	}
	return want
}

// nearly compares with a tolerance of 1e-5 of the largest element.
func nearly(t *testing.T, what string, got *ir.Array, want []float32) {
	t.Helper()
	x := ir.View[float32](got)
	if len(x) != len(want) {
		t.Fatalf("%s has %d elements, want %d", what, len(x), len(want))
	}
	top := float32(0)
	for _, v := range want {
		top = max(top, float32(math.Abs(float64(v))))
	}
	for i := range want {
		if !(math.Abs(float64(x[i]-want[i])) <= 1e-5*float64(top)) {
			t.Fatalf("%s: element %d is %v, want %v", what, i, x[i], want[i])
		}
	}
}
