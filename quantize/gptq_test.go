package quantize

import (
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
)

// tokens are samples of the transformer.
const tokens = "../fixtures/transformer_tokens.npz"

// gptqVariant is the method with GPTQ.
func gptqVariant(options ...string) variant {
	return variant{WeightInt4{}.Method(), append([]string{"algo=gptq"}, options...)}
}

// Every output is valid, smaller, of the same interface, and runs where the original does.
func TestGPTQOutputs(t *testing.T) {
	w := conform.Start(t)
	for _, path := range conform.Fixtures(t) {
		t.Run(label(path), func(t *testing.T) { try(t, w, gptqVariant(), path) })
	}
	for _, v := range []variant{gptqVariant("symmetric", "act-order=false"), gptqVariant("per-channel"),
		gptqVariant("weight-type=int4", "block=16"), {WeightInt2{}.Method(), []string{"algo=gptq"}},
		{WeightInt8{}.Method(), []string{"algo=gptq", "block=64"}}} {
		t.Run(v.String(), func(t *testing.T) { try(t, w, v, fixture("transformer")) })
	}
}
