package quantize

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A setting is a method in one of its forms, at the opset of a file, for a target.
type setting struct {
	opset  int64
	method *pass.Method
	option []string
	target string // empty for the default
}

// settings are all methods that write weights in other forms than those of float arithmetic, with the options that
// choose a form.
func settings() (all []setting) {
	forms := [][]string{nil, {"form=dequantizelinear"}, {"form=matmulnbits"}}
	options := func(common ...string) (list [][]string) {
		for _, f := range forms {
			list = append(list, slices.Concat(common, f))
		}
		return list
	}
	methods := []struct {
		*pass.Method
		options [][]string
	}{
		{DynamicInt8{}.Method(), [][]string{nil, {"embeddings"}}},
		{StaticInt8{}.Method(), [][]string{nil, {"per-tensor", "asymmetric"}, {"activation-type=int8"},
			{"activation-type=uint16"}}},
		{WeightInt8{}.Method(), append(options("block=32"), nil, []string{"asymmetric"})},
		{WeightInt4{}.Method(), slices.Concat(options(), options("symmetric", "block=16"), [][]string{{"per-channel"}})},
		{WeightInt2{}.Method(), slices.Concat(options(), options("symmetric"))},
		{Palette{}.Method(), [][]string{nil, {"entries=64"}, {"vector=2", "entries=256"}}},
		{Float16{}.Method(), [][]string{nil, {"compute=float16"}}},
		{BFloat16{}.Method(), [][]string{nil}},
		{Float8{}.Method(), [][]string{nil, {"type=e5m2", "per-tensor"}}},
	}
	targets := []string{"", pass.StandardOps}
	for _, r := range pass.Runtimes {
		if r.Name != "embedded" && r.Name != "openvino" { // which take types that ONNX Runtime does not
			targets = append(targets, r.Name)
		}
	}
	for version := int64(7); version <= 26; version++ {
		for _, m := range methods {
			for _, o := range m.options {
				for _, name := range targets {
					all = append(all, setting{version, m.Method, o, name})
				}
			}
		}
	}
	return all
}

// Every method and form writes models that are valid and run, at the opset of the file and for each target: it inserts
// no operator that the opset lacks.
func TestFormsAtEveryOpset(t *testing.T) {
	for i, c := range settings() {
		if !conform.Exhaustive() && i%131 != 0 { // a prime, so that each value of each setting is met
			continue
		}
		t.Run(fmt.Sprintf("%d %s %s %s", c.opset, c.method.Name, c.option, c.target), func(t *testing.T) {
			v := variant{c.method, c.option}
			if c.target != "" {
				v = v.on(c.target)
			}
			s := newBuilder(t, c.opset)
			ids := s.AddConst("ids", &ir.Tensor{Spec: ir.Spec{DType: ir.Int64, Shape: []int64{4}}, Source: ir.Ints(0, 3, 99, 7)})
			row := s.node("Gather", []*ir.Value{s.weight("table", 100, 50), ids})
			h := s.node("MatMul", []*ir.Value{s.node("Add", []*ir.Value{s.input("x", 4, 50), row}), s.weight("w", 50, 96)})
			s.output("y", s.node("Gemm",
				[]*ir.Value{s.node("Relu", []*ir.Value{h}), s.weight("v", 96, 32), s.weight("bias", 32)}), 4, 32)
			_, err := job.Run(t.Context(), job.Options{Input: s.save(), Output: "out.onnx", Steps: []pass.Options{v.step(t)},
				Target: v.target(t), DryRun: true})
			if errors.As(err, new(*pass.OptionError)) {
				t.Skip(err) // what the target cannot do, or a newer opset than it loads
			}
			s.apply(v, -10)
		})
	}
}
