package quantize

import (
	"fmt"
	"math"
	"strconv"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/biascorrection"
	"github.com/mcompress/mcompress/quantize/internal/weightonly"
)

// blockwise is the group of options about weights of which blocks share a scale.
type blockwise struct {
	// Block is the number of elements along the reduction axis that share a scale: a power of two from 16 to 256.
	Block BlockSize `flag:"block" usage:"block size: 'number' of elements along the reduction axis that share a scale, a power of two from 16 to 256"`
	// Search is the rule for scales: auto, mse or minmax.
	Search string `flag:"search" enum:"auto,mse,minmax" usage:"'rule' for scales: mse (MSE-optimal clipping range, rounded such that the errors of a channel cancel), minmax (the range of the weights, round to nearest) or auto (mse, but minmax for models of up to 8 MiB where mse has no higher output SQNR on random inputs)"`
	// Algo is the rounding algorithm: rtn, hqq, gptq or awq.
	Algo string `flag:"algo" enum:"rtn,hqq,gptq,awq" usage:"rounding 'algorithm': rtn (round to nearest), hqq (half-quadratic zero points), or with calibration samples: gptq (error feedback), awq (activation-aware scaling)"`
	// Form is the form of matrix products: auto, dequantizelinear or matmulnbits.
	Form string `flag:"form" enum:"auto,dequantizelinear,matmulnbits" usage:"'form' of matrix products: auto (the first one that the target runs, not slower than float), dequantizelinear (standard) or matmulnbits (com.microsoft, at any opset)"`
	// AccuracyLevel is MatMulNBits' attribute: 0 (float32) to 4 (8-bit activations). The default is 4 for 8-bit
	// weights, for which no other level has a fast kernel, and 0 for others.
	AccuracyLevel *int64 `flag:"accuracy-level" usage:"accuracy 'level' of matmulnbits: 0 (float32) to 4 (8-bit activations: faster, less exact); default 4 for 8-bit weights, else 0"`
	// NoActOrder turns activation order of GPTQ off.
	NoActOrder bool `flag:"act-order,not" usage:"gptq quantizes blocks, and rows in them, by descending activations (desc_act)"`
	// NoSequential takes the Hessians of GPTQ from the source model, so that matrices do not depend on each other.
	NoSequential bool `flag:"sequential,not" usage:"gptq takes the Hessian of a layer from the model whose earlier layers are quantized; =false: from the source, so that workers of a plan divide the layers"`
	// Damp is the dampening of GPTQ as a fraction of the mean diagonal of the Hessian.
	Damp *float64 `flag:"damp" default:"0.01" usage:"minimum dampening of gptq, as a 'fraction' of the mean diagonal of the Hessian; more with few samples"`
	// BiasCorrection subtracts the mean quantization error of each output channel, measured on calibration samples,
	// from biases.
	BiasCorrection bool `flag:"bias-correction" usage:"subtract the mean quantization error of each output channel, measured on calibration samples, from biases"`
}

// given reports whether an option was given that selects blockwise quantization.
func (o blockwise) given() bool {
	return o.Block > 0 || o.Search != "" || o.Algo != "" || o.Form != "" && o.Form != weightonly.AutoForm
}

// check reports options that exclude one another.
func (o blockwise) check(perChannel bool) error {
	damp := 0.0
	if o.Damp != nil {
		damp = *o.Damp
	}
	switch {
	case o.AccuracyLevel != nil && (*o.AccuracyLevel < 0 || *o.AccuracyLevel > 4):
		return pass.OptionErrorf("--accuracy-level %d: must be from 0 to 4", *o.AccuracyLevel)
	case o.Form != weightonly.NBitsForm && o.AccuracyLevel != nil && *o.AccuracyLevel != 0:
		return pass.OptionErrorf("--accuracy-level requires --form matmulnbits")
	case o.Form == weightonly.NBitsForm && perChannel:
		return pass.OptionErrorf("--form matmulnbits is blockwise: leave out --per-channel")
	case !(damp >= 0 && damp <= math.MaxFloat32):
		return pass.OptionErrorf("--damp %g: must not be negative", damp)
	case o.Block != 0 && !o.Block.valid():
		return pass.OptionErrorf("--block %d: must be a power of two from 16 to 256", o.Block)
	}
	return nil
}

// options are those of the implementation.
func (o blockwise) options(bits int, weightType string, symmetric bool, samples Calibration) *weightonly.BlockOptions {
	b := &weightonly.BlockOptions{Bits: bits, Block: int(o.Block), WeightType: weightType, Symmetric: symmetric,
		Search: o.Search, Algo: o.Algo}
	b.Form = weightonly.Form{Name: o.Form}
	switch {
	case o.AccuracyLevel != nil:
		b.Form.AccuracyLevel = *o.AccuracyLevel
	// No other level has a fast kernel for 8 bits.
	case bits == 8:
		b.Form.AccuracyLevel = quantizedActivations
	}
	b.GPTQ = weightonly.GPTQ{Data: calibrate.NewData(samples, true), ActOrder: !o.NoActOrder, Sequential: !o.NoSequential}
	if o.Damp != nil {
		b.GPTQ.Damp = *o.Damp
	}
	return b
}

// quantizedActivations is the accuracy level of products with 8-bit activations.
const quantizedActivations = 4

// requires returns the capability of runtimes that the form of weights of some bits needs, if it is requested.
func (o blockwise) requires(bits int) []pass.Requirement {
	need := map[string]map[int]pass.Capability{
		weightonly.NBitsForm:    {2: pass.NBits2, 4: pass.NBits4, 8: pass.NBits8},
		weightonly.StandardForm: {2: pass.Cast2, 4: pass.Dequantize4},
	}
	return []pass.Requirement{{Capability: need[o.Form][bits], Option: "--form " + o.Form,
		Nearest: "--form " + weightonly.AutoForm}}
}

// correction is that of biases.
func (o blockwise) correction(samples Calibration) biascorrection.Correction {
	d := calibrate.NewData(samples, true)
	return biascorrection.Correction{Enabled: o.BiasCorrection, Data: &d}
}

// A BlockSize is a number of elements that share a scale: a power of two from 16 to 256.
type BlockSize int

// String is the number, empty for none.
func (b *BlockSize) String() string {
	if *b == 0 {
		return ""
	}
	return strconv.Itoa(int(*b))
}

// Set parses a block size.
func (b *BlockSize) Set(v string) error {
	n, err := strconv.Atoi(v)
	if err != nil || !BlockSize(n).valid() {
		return fmt.Errorf("%q is not a power of two from 16 to 256", v)
	}
	*b = BlockSize(n)
	return nil
}

func (b BlockSize) valid() bool { return b >= 16 && b <= 256 && b&(b-1) == 0 }
