package weights

import (
	"fmt"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
	"github.com/mcompress/mcompress/pass"
)

// OpsetBelow reports whether m, or a function of it that uses the default domain, imports an opset lower than v.
func OpsetBelow(m *ir.Model, v int64) bool {
	if m.Opset("") < v {
		return true
	}
	for _, f := range m.Functions {
		if o := f.Body.Opset(""); o > 0 && o < v {
			return true
		}
	}
	return false
}

// RaiseOpset raises the model to an opset that a form requires, and notes it.
func RaiseOpset(c *pass.Context, to int64) error {
	from := c.Model.Opset("")
	if err := opset.Raise(c, c.Eval, c.Model, to); err != nil {
		return err
	}
	c.Note("", pass.Reason{Code: pass.OpsetRaised, Detail: fmt.Sprintf("%d to %d", from, to)})
	return nil
}

const (
	// DequantizeOpset is the first one whose DequantizeLinear has an axis.
	DequantizeOpset = 13
	// CastOpset is the first one whose Mul broadcasts in both directions.
	CastOpset = 7
)
