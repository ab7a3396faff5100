package weights

import (
	"context"
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
		// Functions have opsets of their own; 0 is one without operators of ONNX.
		if o := f.Body.Opset(""); o > 0 && o < v {
			return true
		}
	}
	return false
}

// RaiseOpset raises the model to an opset that a form requires, and notes it.
func RaiseOpset(ctx context.Context, s *pass.Step, to int64) error {
	from := s.Model.Opset("")
	if err := opset.Raise(ctx, s.Eval, s.Model, to); err != nil {
		return err
	}
	s.Ledger.Note("", pass.Reason{Code: pass.OpsetRaised, Detail: fmt.Sprintf("%d to %d", from, to)})
	return nil
}

// NotRaised is the reason of a model that cannot be raised because of a node.
func NotRaised(u *opset.Unsupported) pass.Reason {
	return pass.Reason{Code: pass.OpsetNotRaised, Operator: u.Op, Node: u.Node,
		Detail: fmt.Sprintf("%d to %d", u.From, u.To)}
}

const (
	// DequantizeOpset is the first one whose DequantizeLinear has an axis.
	DequantizeOpset = 13
	// CastOpset is the first one whose Mul broadcasts in both directions.
	CastOpset = 7
	// UnpackOpset is the first one whose Slice has inputs.
	UnpackOpset = 10
)
