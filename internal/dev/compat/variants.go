package main

// A variant is a way of compressing a model: command lines of mcompress, each for the output of the one before it. The argument
// DATA is the data of the model, and is left out with its flag where the model has none.
type variant struct {
	Name  string
	Steps [][]string
	// SQNR is the minimum of the outputs in decibels to be right.
	SQNR float64
}

const (
	// exact allows for another order of sums.
	exact = 40
	// rounded allows for activations that are quantized to 8 bits, by the model or by kernels for quantized weights.
	rounded = 20
)

// source is the variant without steps, the float model.
const source = "float"

// variants write each form of package pass, which a test asserts.
func variants() []variant {
	quantize := func(method string, args ...string) []string {
		return append([]string{"quantize", "--method", method}, args...)
	}
	pruned := []string{"prune", "--method", "l1", "--amount", "0.9"}
	sparse := func(format string) [][]string { return [][]string{pruned, {"sparse", "--format", format}} }
	one := func(step []string) [][]string { return [][]string{step} }
	return []variant{
		{source, nil, exact},
		{"dynamic-int8", one(quantize("dynamic-int8")), rounded},
		{"static-int8", one(quantize("static-int8", "--data", "DATA")), rounded},
		{"weight-int8", one(quantize("weight-int8")), rounded},
		{"weight-int8 --target ort", one(quantize("weight-int8", "--target", "ort")), rounded},
		{"weight-int8 --form matmulnbits", one(quantize("weight-int8", "--form", "matmulnbits")), rounded},
		{"weight-int4", one(quantize("weight-int4")), rounded},
		{"weight-int4 --target ort", one(quantize("weight-int4", "--target", "ort")), rounded},
		{"weight-int4 --form matmulnbits", one(quantize("weight-int4", "--form", "matmulnbits")), rounded},
		{"weight-int2", one(quantize("weight-int2")), rounded},
		{"weight-int2 --target ort", one(quantize("weight-int2", "--target", "ort")), rounded},
		{"float16", one(quantize("float16")), exact},
		{"float16 --compute float16", one(quantize("float16", "--compute", "float16")), exact},
		{"bfloat16", one(quantize("bfloat16")), exact},
		{"bfloat16 --compute bfloat16", one(quantize("bfloat16", "--compute", "bfloat16")), rounded},
		{"float8", one(quantize("float8")), exact},
		{"float4", one(quantize("float4", "--target", "embedded")), exact},
		{"fold-batchnorm", one(quantize("fold-batchnorm")), exact},
		{"equalize", one(quantize("equalize")), exact},
		{"l1", one(pruned), exact},
		{"channel", one([]string{"prune", "--method", "channel"}), exact},
		{"lowrank", one([]string{"prune", "--method", "lowrank"}), exact},
		{"l1, coo", sparse("coo"), exact},
		{"l1, csr", sparse("csr"), exact},
		{"l1, bsr", [][]string{pruned, {"sparse", "--format", "bsr", "--block", "2"}}, exact},
		{"l1, bitmask", sparse("bitmask"), exact},
		{"l1, delta", sparse("delta"), exact},
	}
}
