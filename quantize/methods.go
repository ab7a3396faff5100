package quantize

import (
	"github.com/mcompress/mcompress/pass"
)

// Methods are the methods of this package, in the order of help and documentation.
func Methods() []*pass.Method {
	return []*pass.Method{
		DynamicInt8,
		StaticInt8,
		WeightInt8,
		WeightInt4,
		WeightInt2,
		Float16,
		BFloat16,
		Float8,
		Float4,
		FoldBatchNorm{}.Method(),
		Equalize,
		Smooth,
	}
}
