package opset

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
)

// Models that ONNX Runtime runs break no rule: real ones, and ONNX's own tests of single operators of all versions.
func TestValidModelsBreakNoRule(t *testing.T) {
	dir := t.TempDir()
	for _, archive := range []string{"onnx_node_tests", "onnx_backend_other"} {
		unpack(t, filepath.Join(conform.Shared(t), "fixtures", "conformance", archive+".zip"), dir)
	}
	paths := modelsBelow(t, dir)
	for _, path := range sharedModels(t) {
		paths = append(paths, path)
	}
	experimental := regexp.MustCompile(`^(Affine|Crop|ImageScaler): no operator`) // of ONNX Runtime, in the default domain
	for _, path := range append(paths, conform.Fixtures(t)...) {
		for _, v := range Check(openModel(t, path)) {
			if experimental.MatchString(v.Rule) {
				continue
			}
			t.Errorf("%s: %s", path, v)
		}
	}
}

// A broken is a model of one node that breaks a rule.
type broken struct {
	name    string
	version int64
	build   func(g *ir.Graph, x *ir.Value) *ir.Value
	want    string // the beginning of the rule; empty for a valid model
}

func declaredAs(g *ir.Graph, dt ir.DType, v *ir.Value) *ir.Value {
	v.Type = &ir.Type{Elem: dt, Shape: unknown(2)}
	return v
}

func half(g *ir.Graph) *ir.Value {
	return g.AddConst("half", &ir.Tensor{Spec: ir.Spec{DType: ir.Float16, Shape: []int64{1, 1}}, Source: make(ir.Mem, 2)})
}

func integers(g *ir.Graph, dt ir.DType, shape ...int64) *ir.Value {
	spec := ir.Spec{DType: dt, Shape: shape}
	return g.AddConst("integers", &ir.Tensor{Spec: spec, Source: make(ir.Mem, spec.Bytes())})
}

// body is a subgraph of n with inputs and outputs of these types, which returns its first inputs after casting them.
func body(g *ir.Graph, n *ir.Node, in, out []ir.DType, attr string) {
	b := ir.NewSubgraph(g, n)
	for _, dt := range in {
		v := b.NewValue("in")
		v.Type = &ir.Type{Elem: dt}
		b.Inputs = append(b.Inputs, v)
	}
	for i, dt := range out {
		v := b.Insert(nil, "Cast", []*ir.Value{b.Inputs[min(i, len(b.Inputs)-1)]}, ir.IntAttr("to", int64(dt)))
		v.Type = &ir.Type{Elem: dt}
		b.AddOutput(v)
	}
	n.SetAttr(&ir.Attr{Name: attr, Type: ir.AttrGraph, Graph: b})
}

var brokens = []broken{
	{"valid", 13, func(g *ir.Graph, x *ir.Value) *ir.Value { return g.Insert(nil, "Relu", []*ir.Value{x}) }, ""},
	{"newer operator", 9, func(g *ir.Graph, x *ir.Value) *ir.Value {
		return g.Insert(nil, "Mod", []*ir.Value{x, x}, ir.IntAttr("fmod", 1))
	}, "Mod: no operator"},
	{"the operator's first opset", 10, func(g *ir.Graph, x *ir.Value) *ir.Value {
		return g.Insert(nil, "Mod", []*ir.Value{x, x}, ir.IntAttr("fmod", 1))
	}, ""},
	{"older operator", 10, func(g *ir.Graph, x *ir.Value) *ir.Value {
		return g.Insert(nil, "Upsample", []*ir.Value{x, integers(g, ir.Float, 2)})
	}, "Upsample: not an operator"},
	{"newer attribute", 20, func(g *ir.Graph, x *ir.Value) *ir.Value {
		return g.Insert(nil, "DequantizeLinear", []*ir.Value{integers(g, ir.Int8, 4, 2), integers(g, ir.Float, 2, 2)},
			ir.IntAttr("axis", 0), ir.IntAttr("block_size", 2))
	}, "DequantizeLinear: no attribute block_size"},
	{"kind of an attribute", 13, func(g *ir.Graph, x *ir.Value) *ir.Value {
		return g.Insert(nil, "LeakyRelu", []*ir.Value{x}, ir.IntAttr("alpha", 1))
	}, "LeakyRelu: attribute alpha"},
	{"missing attribute", 13, func(g *ir.Graph, x *ir.Value) *ir.Value {
		return g.Insert(nil, "Cast", []*ir.Value{x})
	}, "Cast: attribute to"},
	{"inputs of a newer version", 9, func(g *ir.Graph, x *ir.Value) *ir.Value {
		return g.Insert(nil, "Slice", []*ir.Value{x, integers(g, ir.Int64, 1), integers(g, ir.Int64, 1)},
			ir.IntsAttr("starts", 0), ir.IntsAttr("ends", 1))
	}, "Slice: more than 1 inputs"},
	{"too few inputs", 13, func(g *ir.Graph, x *ir.Value) *ir.Value {
		return g.Insert(nil, "Add", []*ir.Value{x})
	}, "Add: fewer than 2 inputs"},
	{"absent input", 13, func(g *ir.Graph, x *ir.Value) *ir.Value {
		return g.Insert(nil, "Add", []*ir.Value{nil, x})
	}, "Add: input 0 is absent"},
	{"absent optional input", 13, func(g *ir.Graph, x *ir.Value) *ir.Value {
		return g.Insert(nil, "Clip", []*ir.Value{x, nil, x})
	}, ""},
	{"type of a newer version", 12, func(g *ir.Graph, x *ir.Value) *ir.Value {
		return g.Insert(nil, "Cast", []*ir.Value{x}, ir.IntAttr("to", int64(ir.BFloat16)))
	}, "Cast: output 0 is bfloat16"},
	{"inputs of different types", 13, func(g *ir.Graph, x *ir.Value) *ir.Value {
		return g.Insert(nil, "Add", []*ir.Value{x, half(g)})
	}, "Add: inputs of type T are float and float16"},
	{"declared type", 13, func(g *ir.Graph, x *ir.Value) *ir.Value {
		return declaredAs(g, ir.Float16, g.Insert(nil, "Relu", []*ir.Value{x}))
	}, "Relu: a value is float, and declared as float16"},
	{"type of ONNX Runtime's operator", 13, func(g *ir.Graph, x *ir.Value) *ir.Value {
		y := g.Insert(nil, "BiasGelu", []*ir.Value{x, half(g)})
		y.Producer().Op.Domain = Contributed
		return y
	}, "com.microsoft.BiasGelu: inputs of type T are float and float16"},
	{"attribute of ONNX Runtime's operator", 13, func(g *ir.Graph, x *ir.Value) *ir.Value {
		y := g.Insert(nil, "BiasGelu", []*ir.Value{x, x}, ir.IntAttr("approximate", 1))
		y.Producer().Op.Domain = Contributed
		return y
	}, "com.microsoft.BiasGelu: no attribute approximate"},
	{"branches", 13, func(g *ir.Graph, x *ir.Value) *ir.Value {
		y := g.Insert(nil, "If", []*ir.Value{integers(g, ir.Bool)})
		for attr, dt := range map[string]ir.DType{"then_branch": ir.Float, "else_branch": ir.Float16} {
			b := ir.NewSubgraph(g, y.Producer())
			v := b.Insert(nil, "Cast", []*ir.Value{x}, ir.IntAttr("to", int64(dt)))
			b.AddOutput(v)
			y.Producer().SetAttr(&ir.Attr{Name: attr, Type: ir.AttrGraph, Graph: b})
		}
		return y
	}, "If: the branches return float"},
	{"state of Scan", 13, func(g *ir.Graph, x *ir.Value) *ir.Value {
		y := g.InsertN(nil, "Scan", 2, []*ir.Value{x, x}, ir.IntAttr("num_scan_inputs", 1))[0]
		body(g, y.Producer(), []ir.DType{ir.Float, ir.Float}, []ir.DType{ir.Float16, ir.Float}, "body")
		return y
	}, "Scan: a state is float at first, and float16"},
	{"input of a body", 13, func(g *ir.Graph, x *ir.Value) *ir.Value {
		y := g.InsertN(nil, "Scan", 2, []*ir.Value{x, x}, ir.IntAttr("num_scan_inputs", 1))[0]
		body(g, y.Producer(), []ir.DType{ir.Float, ir.Float16}, []ir.DType{ir.Float, ir.Float16}, "body")
		return y
	}, "Scan: a value is float, and declared as float16"},
	{"element of Scan", 13, func(g *ir.Graph, x *ir.Value) *ir.Value {
		ys := g.InsertN(nil, "Scan", 2, []*ir.Value{x, x}, ir.IntAttr("num_scan_inputs", 1))
		body(g, ys[0].Producer(), []ir.DType{ir.Float, ir.Float}, []ir.DType{ir.Float, ir.Float16}, "body")
		return declaredAs(g, ir.Float, ys[1])
	}, "Scan: a value is float16, and declared as float"},
	{"state of Loop", 13, func(g *ir.Graph, x *ir.Value) *ir.Value {
		y := g.Insert(nil, "Loop", []*ir.Value{integers(g, ir.Int64), integers(g, ir.Bool), x})
		body(g, y.Producer(), []ir.DType{ir.Int64, ir.Bool, ir.Float}, []ir.DType{ir.Bool, ir.Float16}, "body")
		return y
	}, "Loop: a state is float at first, and float16"},
	{"function", 13, func(g *ir.Graph, x *ir.Value) *ir.Value {
		m := g.Model()
		fn := m.AddFunction(ir.OpID{Domain: "local", Type: "Sum"})
		fn.Opsets = []ir.Opset{{Version: 13}}
		in := fn.Body.NewValue("in")
		fn.Body.Inputs = append(fn.Body.Inputs, in)
		fn.Body.AddOutput(fn.Body.Insert(nil, "Add", []*ir.Value{in, half(fn.Body)}))
		m.Opsets = append(m.Opsets, ir.Opset{Domain: "local", Version: 1})
		y := g.Insert(nil, "Sum", []*ir.Value{x})
		y.Producer().Op = fn.ID
		return y
	}, "Add: inputs of type T are float and float16"},
}

// A model that breaks a rule is also refused by onnx.checker or by ONNX Runtime, and a valid one is not.
func TestBrokenRules(t *testing.T) {
	w := conform.Start(t)
	for _, c := range brokens {
		t.Run(c.name, func(t *testing.T) {
			m := ir.NewModel()
			m.IRVersion, m.Opsets = 8, []ir.Opset{{Version: c.version}, {Domain: Contributed, Version: 1}}
			g := m.Graph
			g.Name = "g"
			x := g.NewValue("x")
			x.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: 2}, {N: 2}}}
			g.Inputs = append(g.Inputs, x)
			y := c.build(g, x)
			if y.Type == nil {
				y.Type = &ir.Type{Elem: ir.Float, Shape: unknown(2)}
			}
			g.AddOutput(y)
			found := Check(m)
			switch {
			case c.want == "" && len(found) > 0:
				t.Error(found)
			case c.want != "" && (len(found) == 0 || !strings.HasPrefix(found[0].Rule, c.want)):
				t.Errorf("%v, want %s…", found, c.want)
			}
			path := filepath.Join(t.TempDir(), "m.onnx")
			save(t, m, path)
			err := w.Check(path, true)
			if err == nil {
				_, err = w.OptimizedOps(path, conform.Options{Level: "none"})
			}
			if (err != nil) != (c.want != "") {
				t.Errorf("onnx.checker and ONNX Runtime: %v", err)
			}
		})
	}
}

func TestNamesAreUnique(t *testing.T) {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 13}}
	x := m.Graph.NewValue("x")
	m.Graph.Inputs = append(m.Graph.Inputs, x)
	y := m.Graph.Insert(nil, "Relu", []*ir.Value{x})
	y.Name = "x"
	m.Graph.AddOutput(y)
	if found := Check(m); len(found) != 1 || found[0].Rule != `two values are named "x"` {
		t.Error(found)
	}
}
