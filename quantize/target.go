package quantize

import (
	"github.com/mcompress/mcompress/pass"
)

// Why a target wants something: of the kernels of ONNX Runtime. docs/decisions/targets.md has the sources and the measurements.
const (
	saturates = "without VNNI, ONNX Runtime adds pairs of products of uint8 activations with int8 weights in 16 bits, where they saturate; " +
		"those with uint8 weights are exact. --reduce-range is faster, and loses a bit of each weight"
	dotProducts = "VNNI adds products of uint8 activations with int8 weights in 32 bits: the full range is exact, and faster than uint8 weights"
	signedDots  = "SDOT, UDOT and the kernels of matrices add in 32 bits: the full range is exact; int8 weights around zero have the fastest kernels"
	signedBoth  = "kernels of int8 activations with int8 weights need no correction for what is unsigned"
	unsignedIn  = "kernels for x86 take uint8 activations: ONNX Runtime turns int8 ones into those"
	everywhere  = "exact on every CPU: int8 weights would saturate on x86 without VNNI, others lose some speed only"
	wholeBlocks = "kernels take blocks of 16, 32, 64, 128 or 256 rows; at 32 the scales are few enough to cost little, and codes fine enough"
	packedFours = "the kernels for 4-bit weights of KleidiAI take blocks of multiples of 32 rows"
)

// Targets are the kinds of CPUs that models are prepared for. weight-int8 has no choice: scales for whole channels suit all of them.
var Targets = []pass.Target{
	{Name: "cpu-avx2", CPU: "x86 with AVX2 or AVX-512, without VNNI", Choices: choices("uint8", saturates, "uint8", unsignedIn, wholeBlocks)},
	{Name: "cpu-vnni", CPU: "x86 with AVX-VNNI or AVX-512 VNNI", Choices: choices("int8", dotProducts, "uint8", unsignedIn, wholeBlocks)},
	{Name: "arm64", CPU: "64-bit ARM with dot products", Choices: choices("int8", signedDots, "int8", signedBoth, packedFours)},
	{Name: "any", CPU: "any CPU", Choices: choices("uint8", everywhere, "uint8", unsignedIn, wholeBlocks)},
}

// choices are those about the types of weights and activations, and about blocks, each with its reason.
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
