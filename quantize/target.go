package quantize

import (
	"github.com/mcompress/mcompress/pass"
)

// The reasons for choices, from the kernels of ONNX Runtime. docs/decisions/cpus.md has the sources and the
// measurements.
const (
	saturates = "without VNNI, ONNX Runtime adds pairs of products of uint8 activations with int8 weights in 16 bits, " +
		"which saturate; " +
		"with uint8 weights they are exact. --reduce-range is faster, and loses a bit of each weight"
	dotProducts = "VNNI adds products of uint8 activations with int8 weights in 32 bits: the full range is exact, and " +
		"faster than uint8 weights"
	signedDots = "SDOT, UDOT and the kernels of matrices add in 32 bits: the full range is exact; symmetric int8 " +
		"weights have the fastest kernels"
	signedBoth  = "kernels of int8 activations with int8 weights need no correction for unsigned values"
	unsignedIn  = "kernels for x86 require uint8 activations: ONNX Runtime converts int8 to uint8"
	everywhere  = "exact on every CPU: int8 weights would saturate on x86 without VNNI, other CPUs lose only some speed"
	wholeBlocks = "kernels support block sizes 16, 32, 64, 128 and 256; at 32 scales are few and quantization errors small"
	packedFours = "KleidiAI kernels for 4-bit weights require block sizes that are multiples of 32"
)

// CPUs are the kinds of CPUs that models are prepared for; the last one is any of them. weight-int8 has no choice:
// per-channel scales suit all of them.
var CPUs = []pass.Target{
	{Name: "cpu-avx2", CPU: "x86 with AVX2 or AVX-512, without VNNI",
		Choices: choices("uint8", saturates, "uint8", unsignedIn, wholeBlocks)},
	{Name: "cpu-vnni", CPU: "x86 with AVX-VNNI or AVX-512 VNNI",
		Choices: choices("int8", dotProducts, "uint8", unsignedIn, wholeBlocks)},
	{Name: "arm64", CPU: "64-bit ARM with dot products",
		Choices: choices("int8", signedDots, "int8", signedBoth, packedFours)},
	{Name: "any", CPU: "any CPU", Choices: choices("uint8", everywhere, "uint8", unsignedIn, wholeBlocks)},
}

// choices are those about the data types of weights and activations, and about block sizes, each with its reason.
func choices(weights, why, activations, whyActivations, whyBlocks string) []pass.Choice {
	weightType := func(method string) pass.Choice {
		return pass.Choice{Method: method, Option: "weight-type", Value: weights, Why: why, Unless: []string{"reduce-range"}}
	}
	block := func(method string) pass.Choice {
		return pass.Choice{Method: method, Option: "block", Value: "32", Why: whyBlocks, Unless: []string{"per-channel"}}
	}
	return []pass.Choice{
		weightType(DynamicInt8{}.Method().Name),
		weightType(StaticInt8{}.Method().Name),
		{Method: StaticInt8{}.Method().Name, Option: "activation-type", Value: activations, Why: whyActivations},
		block(WeightInt4{}.Method().Name),
		block(WeightInt2{}.Method().Name),
	}
}
