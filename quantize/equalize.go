package quantize

import (
	"context"

	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/crosslayer"
)

// Equalize is cross-layer equalization: it rescales the channels between two layers such that the weights on both sides
// have equal ranges (Nagel et al., Data-Free Quantization Through Weight Equalization and Bias Correction, ICCV 2019).
type Equalize struct{ pass.Selection }

var equalizeMethod = &pass.Method{
	Name:    "equalize",
	Command: "quantize",
	Doc: "cross-layer equalization: channels between layers rescaled to equal weight ranges, for per-tensor scales; " +
		"weights are kept in float",
	Stage: pass.Prepare,
	New:   func() pass.Options { return &Equalize{} },
}

// Method describes the method.
func (Equalize) Method() *pass.Method { return equalizeMethod }

// Run implements pass.Options.
func (Equalize) Run(ctx context.Context, s *pass.Step) error { return crosslayer.Equalize(ctx, s) }
