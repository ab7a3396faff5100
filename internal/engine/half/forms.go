package half

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// Domain is the domain of chunked forms of operators. Their types are those of the operators themselves.
const Domain = "mcompress.half"

// A Form states which inputs and outputs of an operator may be Float16.
type Form struct {
	In, Out []int
	// operator of the engine's domain that accepts Float16, with the same attributes; empty for a chunked form
	Mixed string

	flat bool // computed element by element if all of In and Out have one shape
}

// Of is the form of the operator of this type, of ONNX or of the engine.
func Of(typ string) (Form, bool) {
	f, ok := forms[typ]
	return f, ok
}

var (
	unary   = Form{In: []int{0}, Out: []int{0}, flat: true}
	binary  = Form{In: []int{0, 1}, Out: []int{0}, flat: true}
	byImage = Form{In: []int{0}, Out: []int{0}}
)

var forms = func() map[string]Form {
	all := map[string]Form{
		"Conv":              {In: []int{0}, Out: []int{0}, Mixed: "MixedConv"},
		"ConvTranspose":     byImage,
		"ConvGrad":          {In: []int{0, 2}, Out: []int{0}, Mixed: "ConvGrad"},
		"ConvTransposeGrad": {In: []int{0, 2}, Out: []int{0}, Mixed: "ConvTransposeGrad"},

		"BatchNormalization": {In: []int{0}, Out: []int{0}, Mixed: "MixedBatchNorm"},
		"BatchNormTrain":     {In: []int{0}, Out: []int{0}, Mixed: "BatchNormTrain"},
		"BatchNormGrad":      {In: []int{0, 4}, Out: []int{0}, Mixed: "BatchNormGrad"},
		"BatchNormPoolTrain": {In: []int{0}, Out: []int{0}, Mixed: "BatchNormPoolTrain"},
		"BatchNormPoolGrad":  {In: []int{0, 4}, Out: []int{0}, Mixed: "BatchNormPoolGrad"},

		"ActivationMask": {In: []int{0}, Mixed: "ActivationMask"},
		"MaskedGrad":     {In: []int{0}, Out: []int{0}, Mixed: "MaskedGrad"},

		"MaxPoolKeep":       {In: []int{0}, Out: []int{0}, Mixed: "MaxPoolKeep"},
		"MaxPoolGrad":       {In: []int{0}, Out: []int{0}, Mixed: "MaxPoolGrad"},
		"AveragePoolGrad":   {In: []int{0}, Out: []int{0}, Mixed: "AveragePoolGrad"},
		"AveragePool":       byImage,
		"GlobalAveragePool": byImage,
	}
	for _, typ := range []string{"Add", "Mul", "Sub"} {
		all[typ] = binary
	}
	for _, typ := range []string{"Elu", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Mish", "Relu", "Selu",
		"Sigmoid", "Softplus", "Swish", "Tanh"} {
		all[typ], all[typ+"Grad"] = unary, binary
	}
	return all
}()

// Fits reports whether an input or output of this shape is chunked together with an output 0 of shape y.
func (f Form) Fits(shape, y []int64) bool {
	return len(y) > 1 && len(shape) == len(y) && shape[0] == y[0]
}

// Stored returns the outputs of a node with the type of attribute halves, which supports the first output only.
func Stored(n *op.Node, out []ir.Spec) ([]ir.Spec, error) {
	for _, i := range n.Ints("halves") {
		if i != 0 || out[0].DType != ir.Float {
			return nil, fmt.Errorf("attribute halves: output %d cannot be %s", i, ir.Float16)
		}
		out[0].DType = ir.Float16
	}
	return out, nil
}

// IsStored reports whether the first output of a node is Float16.
func IsStored(n *op.Node) bool { return slices.Contains(n.Ints("halves"), 0) }

// Attributes are those of a node whose outputs with these numbers are Float16. With exceeds, values beyond the range
// become infinite, as gradients should, otherwise the largest finite value.
func Attributes(outputs []int64, exceeds bool) []*ir.Attr {
	slices.Sort(outputs)
	attrs := []*ir.Attr{ir.IntsAttr("halves", outputs...)}
	if exceeds {
		attrs = append(attrs, ir.IntAttr("exceeds", 1))
	}
	return attrs
}
