package grad

import "github.com/mcompress/mcompress/ir"

// softmax is the gradient of Softmax and LogSoftmax. Below opset 13 the axes from attribute axis on are flattened.
func softmax(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error) {
	y, typ, shape := n.Outputs[0], n.Op.Type+"Grad", t.Shape(n.Outputs[0])
	if n.Op.Domain == newest || n.Graph().Opset("") >= 13 {
		return t.Own(typ, 1, []*ir.Value{y, dy[0]}, ir.IntAttr("axis", n.Int("axis", -1))), nil
	}
	axis := fromFront(n.Int("axis", 1), len(shape))
	rows := []int64{1, 1}
	for i, d := range shape {
		if int64(i) < axis {
			rows[0] *= d
		} else {
			rows[1] *= d
		}
	}
	dx := t.Own(typ, 1, []*ir.Value{t.Reshape(y, rows), t.Reshape(dy[0], rows)}, ir.IntAttr("axis", 1))
	return []*ir.Value{t.Reshape(dx[0], shape)}, nil
}
