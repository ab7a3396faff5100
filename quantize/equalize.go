package quantize

import (
	"flag"

	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/crosslayer"
)

// Equalize gives the channels between two layers ranges that are alike on both sides (Nagel
// et al., Data-Free Quantization Through Weight Equalization and Bias Correction, ICCV 2019).
var Equalize = &pass.Method{
	Name:    "equalize",
	Command: "quantize",
	Doc:     "channels between layers scaled so that weights on both sides have equal ranges, for one scale a tensor; still floats",
	Stage:   pass.Prepare,
	Bind:    func(*flag.FlagSet) func(*pass.Context) error { return crosslayer.Equalize },
}
