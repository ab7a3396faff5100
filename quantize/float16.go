package quantize

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/kernel"
	"github.com/mcompress/mcompress/pass"
)

// Float16 stores float32 weights in half precision; a Cast in front of their readers
// keeps the arithmetic in float32.
var Float16 = &pass.Method{
	Name:    "float16",
	Command: "quantize",
	Doc:     "half-precision storage of float32 weights, float32 arithmetic; needs no data",
	Stage:   pass.Quantize,
	Shrinks: true,
	Bind: func(*flag.FlagSet) func(*pass.Context) error {
		return runFloat16
	},
}

// castBytes is what a Cast node and the longer names take.
const castBytes = 80

// maxHalfBits is the largest float32 that rounds to a finite float16: 65519.99…
const maxHalfBits = 0x477fefff

// castByNumber is the first opset whose Cast names its type by number.
const castByNumber = 6

func runFloat16(c *pass.Context) error {
	var vs []*ir.Value
	for _, v := range c.Weights() {
		reason := refuseFloat16(c, v)
		if reason == "" && c.Precheck {
			var err error
			if reason, err = halfTrouble(c, v.Const); err != nil {
				return err
			}
		}
		if reason != "" {
			c.Skip(v, pass.Readers(v), reason)
			continue
		}
		vs = append(vs, v)
	}
	first, err := c.Duplicates(vs)
	if err != nil {
		return err
	}
	halves := map[*ir.Value]*half{}
	for _, v := range vs {
		if halves[first[v]] == nil {
			halves[first[v]] = storeHalf(v)
		}
		halves[first[v]].stand(c, v)
	}
	return nil
}

func refuseFloat16(c *pass.Context, v *ir.Value) string {
	readers := pass.Readers(v)
	if r := c.Select.Excludes(v, readers); r != "" {
		return r
	}
	t := v.Const
	switch {
	case t.DType != ir.Float:
		return fmt.Sprintf("it is %s, not float", t.DType)
	case v.Ambiguous:
		return "its name is produced twice"
	case len(v.Uses()) == 0:
		return "no node reads it"
	case v.Graph().Opset("") < castByNumber:
		return fmt.Sprintf("opset %d is below %d", v.Graph().Opset(""), castByNumber)
	case t.Bytes()/2 <= castBytes:
		return fmt.Sprintf("it would grow: %d bytes now, %d with a Cast", t.Bytes(), t.Bytes()/2+castBytes)
	}
	for _, u := range v.Uses() {
		if u.Node == nil {
			return "a graph output reads it"
		}
	}
	for _, n := range readers {
		if !ir.DefaultDomain(n.Op.Domain) && !calls(c.Model, n) || takesCodes[n.Op.Type] {
			return fmt.Sprintf("%s may want a constant of its exact type", pass.Labels([]*ir.Node{n})[0])
		}
	}
	return ""
}

// halfTrouble reads t for values that float16 does not hold.
func halfTrouble(c *pass.Context, t *ir.Tensor) (string, error) {
	var bits uint32
	err := c.Scan(t, func(x []float32, _ int64) error {
		bits = max(bits, kernel.AbsMaxBits(x))
		return nil
	})
	return halfRange(bits), err
}

func halfRange(bits uint32) string {
	switch {
	case bits > infBits:
		return "it holds NaN"
	case bits == infBits:
		return "it holds infinities"
	case bits > maxHalfBits:
		return fmt.Sprintf("its largest magnitude, %g, is beyond float16's range", math.Float32frombits(bits))
	}
	return ""
}

// A half is a weight stored in half precision, with the Cast that makes it float again.
type half struct {
	of     string
	stored *ir.Value
	cast   *ir.Value
}

func storeHalf(v *ir.Value) *half {
	g := v.Graph()
	h := &half{of: v.Name, stored: g.AddConst(v.Name+"_h", halfRecipe(v.Const).Derive()[0])}
	h.cast = g.Insert(g.First(), "Cast", []*ir.Value{h.stored}, ir.IntAttr("to", int64(ir.Float)))
	return h
}

// stand puts h in the place of v, which has equal values.
func (h *half) stand(c *pass.Context, v *ir.Value) {
	before, readers := v.Const, pass.Readers(v)
	r := pass.Row{
		Form:    pass.CastFloat16,
		Reason:  noInput(v),
		After:   []pass.Part{{Role: pass.Payload, Value: h.stored, Tensor: h.stored.Const}},
		Restore: func(parts []*ir.Tensor) *ir.Tensor { return widen(before.Spec, parts[0]) },
	}
	if v.Name != h.of {
		r.SharedWith = h.of
	}
	v.ReplaceUses(h.cast)
	c.Changed(v, before, readers, r)
	v.Drop()
}

func halfRecipe(t *ir.Tensor) *ir.Recipe {
	return &ir.Recipe{
		Name: "float16",
		In:   []*ir.Tensor{t},
		Out:  []ir.Spec{{Name: t.Name, DType: ir.Float16, Shape: t.Shape}},
		Work: ir.CopyBuffer * 3 / 2,
		Run: func(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
			x := make([]float32, min(t.Elems(), pass.Block))
			half := make([]uint16, len(x))
			f := pass.NewFloats(in[0], t.DType)
			for i := int64(0); i < t.Elems(); i += pass.Block {
				n := min(pass.Block, t.Elems()-i)
				if err := f.Read(x[:n], i); err != nil {
					return err
				}
				if why := halfRange(kernel.AbsMaxBits(x[:n])); why != "" {
					return &pass.Unfit{Tensor: t.Name, Reason: why}
				}
				kernel.F16FromF32(half[:n], x[:n])
				if _, err := out[0].Write(kernel.Bytes(half[:n])); err != nil {
					return err
				}
				if err := ctx.Err(); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// widen is a view of half-precision values as a float type.
func widen(s ir.Spec, half *ir.Tensor) *ir.Tensor {
	r := &ir.Recipe{Name: "widen", In: []*ir.Tensor{half}, Out: []ir.Spec{s}, Work: ir.CopyBuffer * 3 / 2}
	r.Run = func(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
		f := pass.NewFloats(in[0], ir.Float16)
		buf := make([]float32, 0, min(s.Elems(), pass.Block))
		w := &floatWriter{w: out[0], dt: s.DType}
		for i := int64(0); i < s.Elems(); i += int64(cap(buf)) {
			buf = buf[:min(int64(cap(buf)), s.Elems()-i)]
			if err := f.Read(buf, i); err != nil {
				return err
			}
			if err := w.flush(ctx, &buf); err != nil {
				return err
			}
		}
		return nil
	}
	return r.Derive()[0]
}
