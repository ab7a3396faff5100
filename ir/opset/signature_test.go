package opset

import (
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// What ONNX's operator pages say.
func TestSignaturesOfOperators(t *testing.T) {
	for _, c := range []struct {
		op      string
		version int64
		input   int
		variant string
		takes   []ir.DType
		not     []ir.DType
	}{
		{"Conv", 11, 1, "T", []ir.DType{ir.Float, ir.Float16}, []ir.DType{ir.BFloat16}},
		{"Conv", 22, 1, "T", []ir.DType{ir.Float, ir.Float16, ir.BFloat16}, nil},
		{"Resize", 13, 2, "", []ir.DType{ir.Float}, []ir.DType{ir.Float16, ir.BFloat16}},
		{"Concat", 13, 7, "T", []ir.DType{ir.Float, ir.Float16, ir.BFloat16}, nil},
		{"NonMaxSuppression", 11, 1, "", []ir.DType{ir.Float}, []ir.DType{ir.Float16}},
		{"Gather", 13, 1, "Tind", nil, []ir.DType{ir.Float, ir.Float16, ir.BFloat16}},
	} {
		in, _, ok := Signature(ir.OpID{Type: c.op}, c.version)
		p, found := in.At(c.input)
		if !ok || !found || p.Var != c.variant {
			t.Errorf("%s-%d: input %d is %+v, want variable %q", c.op, c.version, c.input, p, c.variant)
			continue
		}
		for _, dt := range c.takes {
			if !p.Takes(dt) {
				t.Errorf("%s-%d: input %d does not take %s", c.op, c.version, c.input, dt)
			}
		}
		for _, dt := range c.not {
			if p.Takes(dt) {
				t.Errorf("%s-%d: input %d takes %s", c.op, c.version, c.input, dt)
			}
		}
	}
}

func TestSignatureEnds(t *testing.T) {
	if _, _, ok := Signature(ir.OpID{Type: "Conv"}, 0); ok {
		t.Error("there is no Conv in opset 0")
	}
	if _, _, ok := Signature(ir.OpID{Type: "Convolution"}, 13); ok {
		t.Error("there is no Convolution")
	}
	in, _, _ := Signature(ir.OpID{Type: "Relu"}, 13)
	if _, ok := in.At(1); ok {
		t.Error("Relu has one input")
	}
}

// Every operator of the history has a signature from its first version on.
func TestEveryOperatorHasASignature(t *testing.T) {
	for _, o := range operators {
		if _, _, ok := Signature(ir.OpID{Type: o.name}, o.since[0]); !ok {
			t.Errorf("%s-%d has no signature", o.name, o.since[0])
		}
	}
}
