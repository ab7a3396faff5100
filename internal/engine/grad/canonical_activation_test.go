package grad

import (
	"math"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

func (m maker) relu6(x *ir.Value) *ir.Value {
	return m.Insert(nil, "Clip", []*ir.Value{x}, ir.FloatAttr("min", 0), ir.FloatAttr("max", 6))
}

// activation is a function written out in an opset, on numbers between -4.4 and 4.5 of which none is next to a kink.
func activation(tell string, opset int64, build func(m maker, x *ir.Value) *ir.Value) probe {
	return probe{tell: tell, opset: opset, in: []*ir.Array{separated(1, 9, 10)},
		build: func(g *ir.Graph, in []*ir.Value) *ir.Value {
			return build(maker{g}, in[0])
		}}
}

// activationForms are activations as exporters write them.
var activationForms = []form{
	{"Swish", activation("x·σ", 13, func(m maker, x *ir.Value) *ir.Value {
		return m.op("Mul", x,
			m.op("Sigmoid", x))
	})},
	{"Swish", activation("σ·x", 9, func(m maker, x *ir.Value) *ir.Value { return m.op("Mul", m.op("Sigmoid", x), x) })},
	{"Swish", activation("σ(βx)", 13, func(m maker, x *ir.Value) *ir.Value {
		return m.op("Mul", x, m.op("Sigmoid", m.op("Mul", m.number(1.702), x)))
	})},
	{"Swish", activation("σ(x/c)", 13, func(m maker, x *ir.Value) *ir.Value {
		return m.op("Mul", m.op("Sigmoid", m.op("Div", x, m.number(0.7))), x)
	})},
	{"Swish", activation("x/(1+e⁻ˣ)", 13, func(m maker, x *ir.Value) *ir.Value {
		return m.op("Div", x, m.op("Add", m.op("Exp", m.op("Neg", x)), m.number(1)))
	})},
	{"Swish", activation("1/(1+e⁻ˣ)·x", 13, func(m maker, x *ir.Value) *ir.Value {
		return m.op("Mul", m.op("Div", m.number(1), m.op("Add", m.number(1), m.op("Exp", m.op("Neg", x)))), x)
	})},
	{"Swish", activation("x·Reciprocal(1+e⁻ˣ)", 13, func(m maker, x *ir.Value) *ir.Value {
		return m.op("Mul", x, m.op("Reciprocal", m.op("Add", m.op("Exp", m.op("Neg", x)), m.number(1))))
	})},
	{"Mish", activation("Softplus", 13, func(m maker, x *ir.Value) *ir.Value {
		return m.op("Mul", x, m.op("Tanh", m.op("Softplus", x)))
	})},
	{"Mish", activation("ln(1+eˣ)", 9, func(m maker, x *ir.Value) *ir.Value {
		return m.op("Mul", m.op("Tanh", m.op("Log", m.op("Add", m.op("Exp", x), m.number(1)))), x)
	})},
	{"HardSwish", activation("x·(Clip/6), attributes", 9, func(m maker, x *ir.Value) *ir.Value {
		return m.op("Mul", x, m.op("Div", m.relu6(m.op("Add", x, m.number(3))), m.number(6)))
	})},
	{"HardSwish", activation("(x·Clip)/6, inputs", 13, func(m maker, x *ir.Value) *ir.Value {
		return m.op("Div", m.op("Mul", x, m.op("Clip", m.op("Add", m.number(3), x), m.number(0), m.number(6))),
			m.number(6))
	})},
	{"HardSwish", activation("(Clip·x)·⅙", 9, func(m maker, x *ir.Value) *ir.Value {
		return m.op("Mul", m.op("Mul", m.relu6(m.op("Add", x, m.number(3))), x), m.number(1./6))
	})},
	{"HardSwish", activation("⅙·x·Clip", 9, func(m maker, x *ir.Value) *ir.Value {
		return m.op("Mul", m.op("Mul", m.number(1./6), x), m.relu6(m.op("Sub", x, m.number(-3))))
	})},
	{"HardSwish", activation("Relu and Min", 9, func(m maker, x *ir.Value) *ir.Value {
		return m.op("Mul", x, m.op("Mul", m.op("Min", m.op("Relu", m.op("Add", x, m.number(3))), m.number(6)),
			m.number(1./6)))
	})},
	{"HardSwish", activation("Max and Min, of x/6+½", 13, func(m maker, x *ir.Value) *ir.Value {
		linear := m.op("Add", m.op("Div", x, m.number(6)), m.number(0.5))
		return m.op("Mul", m.op("Max", m.number(0), m.op("Min", m.number(1), linear)), x)
	})},
	{"HardSwish", activation("HardSigmoid", 9, func(m maker, x *ir.Value) *ir.Value {
		return m.op("Mul", x, m.Insert(nil, "HardSigmoid", []*ir.Value{x}, ir.FloatAttr("alpha", 1./6)))
	})},
}

// count returns the number of nodes of a type.
func count(tape *Tape, typ string) (k int) {
	for n := range tape.Graph().Nodes() {
		if n.Op.Type == typ {
			k++
		}
	}
	return k
}

// Functions of which a constant, an operand or a shape differs are unchanged, and so are those with intermediate
// results that other nodes consume or that are outputs of the graph. Their gradients are correct.
func TestOtherFunctionsAreNoActivations(t *testing.T) {
	for _, p := range []probe{
		activation("sum with its factor", 13, func(m maker, x *ir.Value) *ir.Value {
			s := m.op("Sigmoid", x)
			return m.op("Add", m.op("Mul", x, s), s)
		}),
		activation("factor is an output", 13, func(m maker, x *ir.Value) *ir.Value {
			s := m.op("Sigmoid", x)
			m.AddOutput(s)
			return m.op("Mul", x, s)
		}),
		activation("bounds are an output", 9, func(m maker, x *ir.Value) *ir.Value {
			c := m.relu6(m.op("Add", x, m.number(3)))
			m.AddOutput(c)
			return m.op("Mul", x, m.op("Div", c, m.number(6)))
		}),
		activation("sum is an output", 13, func(m maker, x *ir.Value) *ir.Value {
			sum := m.op("Add", x, m.number(3))
			m.AddOutput(sum)
			return m.op("Mul", x, m.op("Div", m.op("Clip", sum, m.number(0), m.number(6)), m.number(6)))
		}),
		activation("product has another consumer", 13, func(m maker, x *ir.Value) *ir.Value {
			p := m.op("Mul", x, m.op("Clip", m.op("Add", x, m.number(3)), m.number(0), m.number(6)))
			return m.op("Add", p, m.op("Div", p, m.number(6)))
		}),
		activation("logarithm has another consumer", 13, func(m maker, x *ir.Value) *ir.Value {
			soft := m.op("Softplus", x)
			return m.op("Add", soft, m.op("Mul", x, m.op("Tanh", soft)))
		}),
		activation("sigmoid of another value", 13, func(m maker, x *ir.Value) *ir.Value {
			return m.op("Mul", x, m.op("Sigmoid", m.op("Tanh", x)))
		}),
		activation("shifted sigmoid", 13, func(m maker, x *ir.Value) *ir.Value {
			return m.op("Mul", x, m.op("Sigmoid", m.op("Add", x, m.number(1))))
		}),
		activation("sigmoid of bounds", 13, func(m maker, x *ir.Value) *ir.Value {
			return m.op("Mul", x, m.op("Sigmoid", m.op("Relu", x)))
		}),
		activation("quotient", 13, func(m maker, x *ir.Value) *ir.Value { return m.op("Div", x, m.op("Sigmoid", x)) }),
		activation("upper bound", 13, func(m maker, x *ir.Value) *ir.Value {
			return m.op("Div", m.op("Mul", x, m.op("Clip", m.op("Add", x, m.number(3)), m.number(0), m.number(5.06))),
				m.number(6))
		}),
		activation("no lower bound", 13, func(m maker, x *ir.Value) *ir.Value {
			return m.op("Div", m.op("Mul", x, m.op("Clip", m.op("Add", x, m.number(3)), nil, m.number(6))), m.number(6))
		}),
		activation("factor", 13, func(m maker, x *ir.Value) *ir.Value {
			return m.op("Div", m.op("Mul", x, m.op("Clip", m.op("Add", x, m.number(3)), m.number(0), m.number(6))),
				m.number(5))
		}),
		activation("default HardSigmoid", 9, func(m maker,
			x *ir.Value) *ir.Value {
			return m.op("Mul", x, m.op("HardSigmoid", x))
		}),
		activation("ln(2+eˣ)", 9, func(m maker, x *ir.Value) *ir.Value {
			return m.op("Mul", x, m.op("Tanh", m.op("Log", m.op("Add", m.op("Exp", x), m.number(2)))))
		}),
	} {
		t.Run(p.tell, func(t *testing.T) {
			tape := p.tape(t)
			for _, typ := range []string{"Swish", "Mish", "HardSwish"} {
				if count(tape, typ) > 0 {
					t.Errorf("there is %s", typ)
				}
			}
			p.check(t)
		})
	}
}

// A constant with more axes than x adds them to the result.
func TestActivationKeepsItsShape(t *testing.T) {
	p := activation("", 13, func(m maker, x *ir.Value) *ir.Value {
		six := m.AddConst("c", &ir.Tensor{Spec: ir.Spec{DType: ir.Double, Shape: []int64{1, 1, 1}},
			Source: scalarPayload(ir.Double, 6)})
		return m.op("Mul", x, m.op("Div", m.relu6(m.op("Add", x, m.number(3))), six))
	})
	p.opset = 9
	tape := p.tape(t)
	if shape := tape.Shape(tape.Graph().Outputs[0]); !slices.Equal(shape, []int64{1, 9, 10}) {
		t.Errorf("shape %v", shape)
	}
}

// stepOf returns the last result and the gradient of x of a training graph in float32.
func (p probe) stepOf(t *testing.T) (y, dx []float32) {
	t.Helper()
	p.single = true
	tape := p.tape(t)
	x, out := tape.Graph().Inputs[0], tape.Graph().Outputs[len(tape.Graph().Outputs)-1]
	tape.Want(x)
	seed := tape.Input("r", ir.Float, tape.Shape(out)...)
	if err := tape.Backward(map[*ir.Value]*ir.Value{out: seed}); err != nil {
		t.Fatal(err)
	}
	args := p.inputs()
	args[seed.Name] = rounded(values(3, tape.Shape(out)...))
	tape.Graph().AddOutput(tape.Grad(x))
	got := run(t, tape.Model, args)
	return ir.View[float32](got[out.Name]), ir.View[float32](got[tape.Grad(x).Name])
}

// written is the form without its replacement: all results are outputs.
func (p probe) written() probe {
	build := p.build
	p.build = func(g *ir.Graph, in []*ir.Value) *ir.Value {
		y := build(g, in)
		for n := range g.Nodes() {
			if n != y.Producer() {
				g.AddOutput(n.Outputs[0])
			}
		}
		return y
	}
	return p
}

// Results and gradients in float32 are those of the nodes that exporters write, but for rounding.
func TestActivationsEqualTheirWrittenForm(t *testing.T) {
	for _, f := range activationForms {
		w := f.written()
		w.single = true
		if count(w.tape(t), f.to) > 0 {
			t.Fatalf("%s: the written form is replaced", f.tell)
		}
		y, dx := f.stepOf(t)
		want, wantGrad := w.stepOf(t)
		for i := range y {
			if math.Abs(float64(y[i]-want[i])) > 2e-6 || math.Abs(float64(dx[i]-wantGrad[i])) > 4e-6 {
				t.Fatalf("%s %s: element %d is %v with gradient %v, want %v and %v", f.to, f.tell, i, y[i], dx[i],
					want[i], wantGrad[i])
			}
		}
	}
}

// Activations store their input alone.
func TestActivationsStoreTheirInput(t *testing.T) {
	for _, f := range activationForms {
		if f.opset < 13 { // chain has a newer operator set
			continue
		}
		tape, bytes := chain(t, func(g *ir.Graph, v *ir.Value) *ir.Value { return f.build(g, []*ir.Value{v}) })
		stored := int64(0)
		for _, v := range tape.Activations().Stored() {
			stored += tape.Bytes(v)
		}
		if stored != bytes || plannedStored(t, tape) != bytes {
			t.Errorf("%s %s: %d bytes are stored, %d in the plan, want %d", f.to, f.tell, stored,
				plannedStored(t, tape), bytes)
		}
	}
}
