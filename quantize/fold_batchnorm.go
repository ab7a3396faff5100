package quantize

import (
	"context"

	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/batchnorm"
)

// FoldBatchNorm folds BatchNormalization into the adjacent layer, so that the output of a quantized layer is the input
// of the next one.
type FoldBatchNorm struct{ pass.Selection }

var foldBatchNormMethod = &pass.Method{
	Name:    "fold-batchnorm",
	Command: "quantize",
	Doc: "BatchNormalization, and Mul and Add by channel, folded into Conv, ConvTranspose, Gemm or MatMul; " +
		"still floats",
	Stage: pass.Prepare,
	New:   func() pass.Options { return &FoldBatchNorm{} },
}

// Method describes the method.
func (FoldBatchNorm) Method() *pass.Method { return foldBatchNormMethod }

// Run implements pass.Options.
func (FoldBatchNorm) Run(ctx context.Context, s *pass.Step) error {
	left, err := batchnorm.Fold(ctx, s)
	for _, l := range left {
		for _, v := range l.Constants {
			s.Ledger.Skip(v, pass.Consumers(v), l.Reason)
		}
	}
	return err
}
