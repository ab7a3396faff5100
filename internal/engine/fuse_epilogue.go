package engine

import (
	"maps"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// Operators that apply the following operators as an epilogue: first bias, then residual as inputs 2 and 3, then
// activation. Conv and Gemm have a bias input of their own.
var (
	linearID = ir.OpID{Domain: "mcompress", Type: "MatMul"}
	convID   = ir.OpID{Domain: "mcompress", Type: "FusedConv"}

	fusedMatMulID = ir.OpID{Domain: "com.microsoft", Type: "FusedMatMul"}
)

// fuseBias fuses the addition of a constant of rank 1 into a MatMul. i is the MatMul.
func fuseBias(f *fusion, i int) bool {
	mm := f.p.steps[i]
	if !mm.is("MatMul") && !mm.isOf(fusedMatMulID) || len(mm.in) != 2 {
		return false
	}
	add, iAdd := f.onlyConsumer(mm.out[0])
	if !add.is("Add") {
		return false
	}
	bias, _ := add.otherInput(mm.out[0])
	w := f.weight(mm.in[1])
	// Of one matrix: the bias of a stack would be added to each of its matrices, or broadcast along another axis.
	if !f.isRow(bias) || w == nil || len(w.Shape) != 2 || w.DType != ir.Float {
		return false
	}
	cols := w.Shape[1]
	if mm.Bool("transB", false) {
		cols = w.Shape[0]
	}
	// A single element would be broadcast.
	if f.constant(bias).Elems() != cols {
		return false
	}
	s := mm.with(linearID, []int{mm.in[0], mm.in[1], bias}, add.out)
	if s == nil {
		return false
	}
	f.replace(iAdd, s, i, iAdd)
	return true
}

// takesMore reports whether s accepts a fused activation, as Gemm and MatMul do.
func takesMore(s *step) bool {
	return s.is("Conv") || s.isOf(linearID) || s.isOf(convID) || isDynamic(s)
}

// isDynamic reports whether s is a fused dynamic int8 product, whose result is float.
func isDynamic(s *step) bool { return s.isOf(quantizedMatMulID) || s.isOf(integerToFloatID) }

// fuseActivation fuses an elementwise operator into the preceding product. i is the MatMul, Gemm or Conv.
func fuseActivation(f *fusion, i int) bool {
	s := f.p.steps[i]
	if !takesMore(s) && !s.is("MatMul", "Gemm") || s.Has("activation") {
		return false
	}
	act, iAct := f.onlyConsumer(s.out[0])
	attrs := f.activationAttrs(act)
	// Epilogues compute in float32; dynamic int8 products are converted before theirs.
	if attrs == nil || !isDynamic(s) && !f.isFloat(s) {
		return false
	}
	var made *step
	switch {
	case s.is("Gemm"):
		made = fused(s.ID, s.Version, s, s.in, act.out, append(slices.Collect(maps.Values(s.Attrs())), attrs...)...)
	case s.is("MatMul"):
		made = s.with(linearID, s.in, act.out, attrs...)
	case s.is("Conv"):
		made = s.with(convID, s.in, act.out, attrs...)
	default:
		made = s.with(s.ID, s.in, act.out, attrs...)
	}
	if made == nil {
		return false
	}
	f.replace(iAct, made, i, iAct)
	return true
}

// activationAttrs are the attributes for an elementwise step in a fused operator, nil if it cannot be fused.
func (f *fusion) activationAttrs(s *step) []*ir.Attr {
	name, params := f.activation(s)
	if name == "" {
		return nil
	}
	return []*ir.Attr{textAttr("activation", name), {Name: "activation_params", Type: ir.AttrFloats, Floats: params}}
}

// isFloat reports whether s multiplies by a float32 constant, as fused operators do.
func (f *fusion) isFloat(s *step) bool {
	w := f.weight(s.in[1])
	return w != nil && w.DType == ir.Float
}

// activation is the name and the parameters of an elementwise step, "" if it cannot be fused.
func (f *fusion) activation(s *step) (string, []float32) {
	if s == nil || len(s.out) != 1 {
		return "", nil
	}
	switch {
	case s.is("Relu", "Sigmoid", "Tanh", "HardSwish"):
		return s.ID.Type, nil
	// Silu has no factor.
	case s.is("Swish") && s.Float("alpha", 1) == 1:
		return "Silu", nil
	case s.is("LeakyRelu"):
		return "LeakyRelu", []float32{s.Float("alpha", 0.01)}
	case s.is("HardSigmoid"):
		return "HardSigmoid", []float32{s.Float("alpha", 0.2), s.Float("beta", 0.5)}
	case s.is("Gelu"):
		if s.Text("approximate", "none") == "tanh" {
			return "FastGelu", nil
		}
		return "Gelu", nil
	case s.isOf(ir.OpID{Domain: "com.microsoft", Type: "Gelu"}):
		return "Gelu", nil
	case s.is("Clip"):
		return f.clip(s)
	}
	return "", nil
}

func (f *fusion) clip(s *step) (string, []float32) {
	// Below opset 11 the bounds are attributes.
	if len(s.in) == 1 && s.Has("min") && s.Has("max") {
		return "Clip", []float32{s.Float("min", 0), s.Float("max", 0)}
	}
	if len(s.in) != 3 {
		return "", nil
	}
	lo, ok := f.scalar(s.in[1])
	hi, ok2 := f.scalar(s.in[2])
	if !ok || !ok2 {
		return "", nil
	}
	return "Clip", []float32{lo, hi}
}
