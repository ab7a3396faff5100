package verify

import (
	"bytes"
	"context"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// sameNode reports whether two nodes compute the same function of values of the same names. Small constants,
// such as bounds, axes and shapes, are compared. Large ones are weights and count as different.
func sameNode(ctx context.Context, e *ir.Eval, a, b *ir.Node) bool {
	if a.Op != b.Op || len(a.Inputs()) != len(b.Inputs()) || len(a.Attrs) != len(b.Attrs) {
		return false
	}
	for i, v := range a.Inputs() {
		if !sameValue(ctx, e, v, b.Input(i)) {
			return false
		}
	}
	for _, attr := range a.Attrs {
		if !sameAttr(attr, b.Attr(attr.Name)) {
			return false
		}
	}
	return true
}

func sameValue(ctx context.Context, e *ir.Eval, v, w *ir.Value) bool {
	switch {
	case v == nil || w == nil:
		return v == w
	case v.Const != nil && w.Const != nil:
		return sameConst(ctx, e, v.Const, w.Const)
	}
	return v.Const == nil && w.Const == nil && v.Name == w.Name
}

// maxConstBytes is the size up to which constants are compared.
const maxConstBytes = 1 << 10

func sameConst(ctx context.Context, e *ir.Eval, v, w *ir.Tensor) bool {
	if v.DType != w.DType || !slices.Equal(v.Shape, w.Shape) || v.Bytes() > maxConstBytes || v.DType == ir.String {
		return false
	}
	read := func(t *ir.Tensor) []byte {
		buf := make([]byte, t.Bytes())
		r, err := e.Open(ctx, t)
		if err != nil || ir.ReadFull(r, buf, 0) != nil {
			return nil
		}
		return buf
	}
	// Constants that cannot be read count as different.
	x, y := read(v), read(w)
	return x != nil && bytes.Equal(x, y)
}

// sameAttr counts attributes with tensors or graphs as different.
func sameAttr(a, b *ir.Attr) bool {
	return b != nil && a.Type == b.Type && a.Type <= ir.AttrStrings && a.Tensor == nil && a.Graph == nil &&
		a.Ref == b.Ref && a.Elided == b.Elided &&
		a.I == b.I && a.F == b.F && a.S == b.S && slices.Equal(a.Ints, b.Ints) && slices.Equal(a.Floats, b.Floats) &&
		slices.Equal(a.Strings, b.Strings)
}
