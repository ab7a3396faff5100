package main

// A variant is a way of compressing a model: command lines of mcompress, each for the output of the one before it. The
// argument DATA is the data of the model, and is left out with its flag where the model has none.
type variant struct {
	Name  string
	Steps [][]string
	// SQNR is the minimum of the outputs in decibels to be right.
	SQNR float64
	// Saturates marks products of uint8 with int8, which are wrong on CPUs where they saturate.
	Saturates bool
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
		{Name: source, SQNR: exact},
		{Name: "dynamic-int8", Steps: one(quantize("dynamic-int8")), SQNR: rounded, Saturates: true},
		{Name: "dynamic-int8 --target any", Steps: one(quantize("dynamic-int8", "--target", "any")), SQNR: rounded},
		{Name: "static-int8", Steps: one(quantize("static-int8", "--data", "DATA")), SQNR: rounded, Saturates: true},
		{Name: "static-int8 --target any", Steps: one(quantize("static-int8", "--data", "DATA", "--target", "any")),
			SQNR: rounded},
		{Name: "weight-int8", Steps: one(quantize("weight-int8")), SQNR: rounded},
		{Name: "weight-int8 --target ort", Steps: one(quantize("weight-int8", "--target", "ort")), SQNR: rounded},
		{Name: "weight-int8 --form matmulnbits", Steps: one(quantize("weight-int8", "--form", "matmulnbits")),
			SQNR: rounded},
		{Name: "weight-int4", Steps: one(quantize("weight-int4")), SQNR: rounded},
		{Name: "weight-int4 --target ort", Steps: one(quantize("weight-int4", "--target", "ort")), SQNR: rounded},
		{Name: "weight-int4 --form matmulnbits", Steps: one(quantize("weight-int4", "--form", "matmulnbits")),
			SQNR: rounded},
		{Name: "weight-int2", Steps: one(quantize("weight-int2")), SQNR: rounded},
		{Name: "weight-int2 --target ort", Steps: one(quantize("weight-int2", "--target", "ort")), SQNR: rounded},
		{Name: "float16", Steps: one(quantize("float16")), SQNR: exact},
		{Name: "float16 --compute float16", Steps: one(quantize("float16", "--compute", "float16")), SQNR: exact},
		{Name: "bfloat16", Steps: one(quantize("bfloat16")), SQNR: exact},
		{Name: "bfloat16 --compute bfloat16", Steps: one(quantize("bfloat16", "--compute", "bfloat16")), SQNR: rounded},
		{Name: "float8", Steps: one(quantize("float8")), SQNR: exact},
		{Name: "float4", Steps: one(quantize("float4", "--target", "embedded")), SQNR: exact},
		{Name: "fold-batchnorm", Steps: one(quantize("fold-batchnorm")), SQNR: exact},
		{Name: "equalize", Steps: one(quantize("equalize")), SQNR: exact},
		{Name: "l1", Steps: one(pruned), SQNR: exact},
		{Name: "channel", Steps: one([]string{"prune", "--method", "channel"}), SQNR: exact},
		{Name: "lowrank", Steps: one([]string{"prune", "--method", "lowrank"}), SQNR: exact},
		{Name: "l1, coo", Steps: sparse("coo"), SQNR: exact},
		{Name: "l1, csr", Steps: sparse("csr"), SQNR: exact},
		{Name: "l1, bsr", Steps: [][]string{pruned, {"sparse", "--format", "bsr", "--block", "2"}}, SQNR: exact},
		{Name: "l1, bitmask", Steps: sparse("bitmask"), SQNR: exact},
		{Name: "l1, delta", Steps: sparse("delta"), SQNR: exact},
	}
}

// memoryVariants are those whose memory is measured: also forms that the others have for other weights.
func memoryVariants() []variant {
	return append(variants(),
		variant{Name: "weight-int4 --standard-ops",
			Steps: [][]string{{"quantize", "--method", "weight-int4", "--standard-ops"}}, SQNR: rounded},
		variant{Name: "palette", Steps: [][]string{{"quantize", "--method", "palette"}}, SQNR: exact},
	)
}
