package weights

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// Supported are the uses of v, a weight that s may quantize, or the reason why it is skipped.
func Supported(s *pass.Step, v *ir.Value) ([]*Use, pass.Reason) {
	switch {
	case s.Select.Excludes(v, pass.Consumers(v)):
		return nil, pass.Reason{Code: pass.NotSelected}
	case v.Ambiguous:
		return nil, pass.Reason{Code: pass.Ambiguous}
	case v.Const.DType == ir.Double:
		return nil, pass.Reason{Code: pass.DType, Detail: "float64"}
	}
	return Uses(v)
}
