package report

import (
	"encoding/binary"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// constant adds a constant without values.
func constant(g *ir.Graph, dt ir.DType, shape ...int64) *ir.Value {
	spec := ir.Spec{DType: dt, Shape: shape}
	return g.AddConst("c", &ir.Tensor{Spec: spec, Source: make(ir.Mem, spec.Bytes())})
}

func shapeOf(g *ir.Graph, dims ...int64) *ir.Value {
	var payload ir.Mem
	for _, d := range dims {
		payload = binary.LittleEndian.AppendUint64(payload, uint64(d))
	}
	return g.AddConst("shape", &ir.Tensor{Spec: ir.Spec{DType: ir.Int64, Shape: []int64{int64(len(dims))}},
		Source: payload})
}

func TestParameters(t *testing.T) {
	float := ir.IntAttr("to", int64(ir.Float))
	for name, c := range map[string]struct {
		want  int64
		build func(g *ir.Graph, x *ir.Value) []*ir.Value
	}{
		"float": {12 + 3, func(g *ir.Graph, x *ir.Value) []*ir.Value {
			return []*ir.Value{g.Insert(nil, "Gemm", []*ir.Value{x, constant(g, ir.Float, 4, 3), constant(g, ir.Float, 3)})}
		}},
		"shared by a transpose": {12, func(g *ir.Graph, x *ir.Value) []*ir.Value {
			w := constant(g, ir.Float16, 4, 3)
			return []*ir.Value{g.Insert(nil, "Gather", []*ir.Value{w, x}),
				g.Insert(nil, "MatMul", []*ir.Value{x, g.Insert(nil, "Transpose", []*ir.Value{w})})}
		}},
		"settings, scalars and integers": {0, func(g *ir.Graph, x *ir.Value) []*ir.Value {
			x = g.Insert(nil, "Resize", []*ir.Value{x, nil, constant(g, ir.Float, 4)})
			x = g.Insert(nil, "Mul", []*ir.Value{x, constant(g, ir.Float)})
			return []*ir.Value{g.Insert(nil, "Gather", []*ir.Value{x, constant(g, ir.Int64, 7)})}
		}},
		"unused": {5, func(g *ir.Graph, x *ir.Value) []*ir.Value { constant(g, ir.Float, 5); return []*ir.Value{x} }},
		"QDQ, tied": {12 + 3, func(g *ir.Graph, x *ir.Value) []*ir.Value {
			w, s, z := constant(g, ir.Int8, 4, 3), constant(g, ir.Float, 3), constant(g, ir.Int8, 3)
			x = g.Insert(nil, "DequantizeLinear",
				[]*ir.Value{g.Insert(nil, "QuantizeLinear", []*ir.Value{x, constant(g, ir.Float, 1), constant(g, ir.Uint8, 1)}),
					constant(g, ir.Float, 1), constant(g, ir.Uint8, 1)})
			first, second := g.Insert(nil, "DequantizeLinear", []*ir.Value{w, s, z}),
				g.Insert(nil, "DequantizeLinear", []*ir.Value{w, s, z})
			b := g.Insert(nil, "DequantizeLinear", []*ir.Value{constant(g, ir.Int32, 3), constant(g, ir.Float, 3)})
			return []*ir.Value{g.Insert(nil, "Gemm", []*ir.Value{x, first, b}), g.Insert(nil, "MatMul", []*ir.Value{x, second})}
		}},
		"int4": {12, func(g *ir.Graph, x *ir.Value) []*ir.Value {
			return []*ir.Value{g.Insert(nil, "MatMul",
				[]*ir.Value{x, g.Insert(nil, "DequantizeLinear",
					[]*ir.Value{constant(g, ir.Int4, 4, 3), constant(g, ir.Float, 2, 3)})})}
		}},
		"bytes of two weights": {24, func(g *ir.Graph, x *ir.Value) []*ir.Value {
			v := g.Insert(nil, "Reshape",
				[]*ir.Value{g.Insert(nil, "Cast", []*ir.Value{constant(g, ir.Uint8, 12)}, ir.IntAttr("to", int64(ir.Int32))),
					shapeOf(g, 12, 1)})
			v = g.Insert(nil, "Mod", []*ir.Value{g.Insert(nil, "Div", []*ir.Value{v, constant(g, ir.Int32, 2)}),
				constant(g, ir.Int32)})
			v = g.Insert(nil, "Reshape", []*ir.Value{g.Insert(nil, "Cast", []*ir.Value{v}, float), shapeOf(g, 8, 3)})
			return []*ir.Value{g.Insert(nil, "MatMul",
				[]*ir.Value{x, g.Insert(nil, "Mul", []*ir.Value{v, constant(g, ir.Float, 3)})})}
		}},
		"MatMulInteger": {12 + 3, func(g *ir.Graph, x *ir.Value) []*ir.Value {
			v := g.Insert(nil, "Cast", []*ir.Value{g.Insert(nil, "MatMulInteger", []*ir.Value{x, constant(g, ir.Int8, 4, 3)})},
				float)
			v = g.Insert(nil, "Mul", []*ir.Value{v, g.Insert(nil, "Mul", []*ir.Value{x, constant(g, ir.Float, 3)})})
			return []*ir.Value{g.Insert(nil, "Add", []*ir.Value{v, constant(g, ir.Float, 3)})}
		}},
		"rows of bytes": {40, func(g *ir.Graph, x *ir.Value) []*ir.Value {
			v := g.Insert(nil, "Cast", []*ir.Value{g.Insert(nil, "Gather", []*ir.Value{constant(g, ir.Int8, 10, 4), x})}, float)
			return []*ir.Value{g.Insert(nil, "Mul",
				[]*ir.Value{v, g.Insert(nil, "Gather", []*ir.Value{constant(g, ir.Float, 10, 1), x})})}
		}},
		"rows of packed bytes, with zero points": {80, func(g *ir.Graph, x *ir.Value) []*ir.Value {
			unpack := constant(g, ir.Uint8, 256, 2)
			unpacked := func(table *ir.Value) (rows, numbers *ir.Value) {
				rows = g.Insert(nil, "Gather", []*ir.Value{table, x})
				bytes := g.Insert(nil, "Gather", []*ir.Value{unpack,
					g.Insert(nil, "Cast", []*ir.Value{rows}, ir.IntAttr("to", int64(ir.Int32)))})
				return rows, g.Insert(nil, "Cast", []*ir.Value{bytes}, float)
			}
			rows, v := unpacked(constant(g, ir.Uint8, 10, 4))
			_, zero := unpacked(constant(g, ir.Uint8, 10, 1))
			v = g.Insert(nil, "Sub", []*ir.Value{v, zero})
			v = g.Insert(nil, "Mul", []*ir.Value{v, g.Insert(nil, "Gather", []*ir.Value{constant(g, ir.Float, 10, 1), x})})
			return []*ir.Value{g.Insert(nil, "Reshape", []*ir.Value{v, g.Insert(nil, "Shape", []*ir.Value{rows})})}
		}},
		"rows of packed bytes": {80, func(g *ir.Graph, x *ir.Value) []*ir.Value {
			rows := func(of *ir.Value) *ir.Value { return g.Insert(nil, "Gather", []*ir.Value{of, x}) }
			index := func(v *ir.Value) *ir.Value {
				return g.Insert(nil, "Cast", []*ir.Value{v}, ir.IntAttr("to", int64(ir.Int32)))
			}
			v := g.Insert(nil, "Gather", []*ir.Value{constant(g, ir.Uint8, 256, 2), index(rows(constant(g, ir.Uint8, 10, 4)))})
			v = g.Insert(nil, "Reshape", []*ir.Value{g.Insert(nil, "Cast", []*ir.Value{v}, float), shapeOf(g, -1, 2, 4)})
			return []*ir.Value{g.Insert(nil, "Mul",
				[]*ir.Value{v, g.Insert(nil, "Reshape", []*ir.Value{rows(constant(g, ir.Float, 10, 2)), shapeOf(g, -1, 2, 1)})})}
		}},
		"rows of entries of codebooks and of scales": {240, func(g *ir.Graph, x *ir.Value) []*ir.Value {
			look := func(table, of *ir.Value) *ir.Value {
				index := g.Insert(nil, "Cast", []*ir.Value{of}, ir.IntAttr("to", int64(ir.Int32)))
				return g.Insert(nil, "Gather", []*ir.Value{table, index})
			}
			rows := func(of *ir.Value) *ir.Value { return g.Insert(nil, "Gather", []*ir.Value{of, x}) }
			bytes := g.Insert(nil, "Cast", []*ir.Value{constant(g, ir.Uint8, 256, 2)}, ir.IntAttr("to", int64(ir.Int32)))
			v := look(constant(g, ir.Float, 16, 3), look(bytes, rows(constant(g, ir.Uint8, 10, 2, 2))))
			scales := look(g.Insert(nil, "Cast", []*ir.Value{constant(g, ir.Float16, 256)}, float),
				rows(constant(g, ir.Uint8, 10, 2, 1, 1, 1)))
			return []*ir.Value{g.Insert(nil, "Mul", []*ir.Value{v, scales})}
		}},
		"rows of three bytes for four": {40, func(g *ir.Graph, x *ir.Value) []*ir.Value {
			v := g.Insert(nil, "Cast", []*ir.Value{g.Insert(nil, "Gather", []*ir.Value{constant(g, ir.Uint8, 10, 1, 3), x})},
				ir.IntAttr("to", int64(ir.Int32)))
			v = g.Insert(nil, "Div", []*ir.Value{g.Insert(nil, "MatMul", []*ir.Value{v, constant(g, ir.Int32, 3, 1)}),
				constant(g, ir.Int32, 4)})
			return []*ir.Value{g.Insert(nil, "Gather",
				[]*ir.Value{constant(g, ir.Float, 64), g.Insert(nil, "Mod", []*ir.Value{v, constant(g, ir.Int32)})})}
		}},
		"coordinates": {20, func(g *ir.Graph, x *ir.Value) []*ir.Value {
			dense := g.Insert(nil, "ConstantOfShape", []*ir.Value{shapeOf(g, 20)})
			dense = g.Insert(nil, "ScatterElements", []*ir.Value{dense, constant(g, ir.Int32, 6), constant(g, ir.Float, 6)})
			return []*ir.Value{g.Insert(nil, "MatMul",
				[]*ir.Value{x, g.Insert(nil, "Reshape", []*ir.Value{dense, shapeOf(g, 4, 5)})})}
		}},
		"a constant expression of floats": {5, func(g *ir.Graph, x *ir.Value) []*ir.Value {
			table := g.Insert(nil, "Cos",
				[]*ir.Value{g.Insert(nil, "Mul",
					[]*ir.Value{constant(g, ir.Float, 5), g.Insert(nil, "Cast", []*ir.Value{constant(g, ir.Int64, 9, 1)}, float)})})
			return []*ir.Value{g.Insert(nil, "Mul", []*ir.Value{x, table})}
		}},
	} {
		m := ir.NewModel()
		m.Opsets = []ir.Opset{{Version: 21}}
		x := m.Graph.AddValue("x")
		m.Graph.Inputs = []*ir.Value{x}
		for _, v := range c.build(m.Graph, x) {
			m.Graph.AddOutput(v)
		}
		if got, err := countParameters(t.Context(), m); err != nil || got != c.want {
			t.Errorf("%s: %d parameters, %v; want %d", name, got, err, c.want)
		}
	}
}

// Nodes of a long chain are visited once.
func TestParametersOfALongChain(t *testing.T) {
	w := chainOfConstants("Mul", 100_000)
	if got, err := countParameters(t.Context(), w.Graph().Model()); err != nil || got < 4 {
		t.Errorf("%d parameters, %v", got, err)
	}
}
