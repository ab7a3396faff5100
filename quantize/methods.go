package quantize

import (
	"github.com/mcompress/mcompress/pass"
)

// Methods are the methods of this package, in the order of help and documentation.
func Methods() []*pass.Method {
	return []*pass.Method{
		DynamicInt8{}.Method(),
		StaticInt8{}.Method(),
		WeightInt8{}.Method(),
		WeightInt4{}.Method(),
		WeightInt2{}.Method(),
		Palette{}.Method(),
		Float16{}.Method(),
		BFloat16{}.Method(),
		Float8{}.Method(),
		Float4{}.Method(),
		FoldBatchNorm{}.Method(),
		Equalize{}.Method(),
		Smooth{}.Method(),
	}
}
