package float

import (
	"context"
	"errors"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/ir/opset"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/batchnorm"
	"github.com/mcompress/mcompress/quantize/internal/weights"
)

// A Converter converts a model to float16 or bfloat16.
type Converter struct {
	*HalfType
	Compute     bool       // 16-bit arithmetic, too
	KeepIO      bool       // inputs and outputs of the model stay float32
	KeepFloat32 pass.Globs // nodes that stay float32
	Clamp       bool       // weights beyond the range become the largest number
	Data        *calibrate.Data
}

// Run implements pass.Options.
func (w *Converter) Run(ctx context.Context, s *pass.Step) error {
	need := w.opset
	if w.Compute {
		need = w.computeOpset
		// ONNX Runtime would fold them into weights that are rounded already, and round again.
		if err := batchnorm.FoldNormalizations(ctx, s); err != nil {
			return err
		}
	}
	if err := raiseIfBelow(ctx, s, need, w.opset); err != nil {
		return err
	}
	if w.Compute {
		return w.convert(ctx, s)
	}
	return w.store(ctx, s, pass.Weights(s.Model))
}

// raiseIfBelow raises the opset to want, or else to need, if possible. Without it, weights are skipped one by one.
func raiseIfBelow(ctx context.Context, s *pass.Step, want, need int64) error {
	var no *opset.Unsupported
	for _, to := range []int64{want, need} {
		if !weights.OpsetBelow(s.Model, to) {
			continue
		}
		err := weights.RaiseOpset(ctx, s, to)
		if err == nil {
			return nil
		}
		if !errors.As(err, &no) {
			return err
		}
	}
	return nil
}
