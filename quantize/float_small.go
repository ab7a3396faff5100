package quantize

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
	"github.com/mcompress/mcompress/pass"
)

// A smallType is a float of at most 8 bits, and the first opset whose operators take it.
type smallType struct {
	dt     ir.DType
	format kernel.SmallFloat
	opset  int64
}

// A smallWeight is a weight as codes and scales.
type smallWeight interface {
	recipe() *ir.Recipe
	restore(parts []*ir.Tensor) *ir.Tensor
	bytes() int64
	// emit inserts the nodes that make floats of codes and scales in front of at.
	emit(g *ir.Graph, at *ir.Node, codes, scales *ir.Value) *ir.Value
}

// small stores weights in a small float.
type small struct {
	smallType
	form      pass.Form
	perTensor bool
	weight    func(t smallType, v *ir.Value, axes []int) smallWeight // nil where none can be
	note      string                                                 // of each weight
}

func (w *small) run(c *pass.Context) error {
	noteQuantized(c)
	if err := w.raise(c); err != nil {
		return err
	}
	var vs []*ir.Value
	planned := map[*ir.Value]smallWeight{}
	for _, v := range c.Weights() {
		p, reason := w.plan(c, v)
		if reason == "" && c.Precheck {
			var err error
			if reason, err = w.unfit(c, p); err != nil {
				return err
			}
		}
		if reason != "" {
			c.Skip(v, pass.Readers(v), reason)
			continue
		}
		vs, planned[v] = append(vs, v), p
	}
	first, err := c.Duplicates(vs)
	if err != nil {
		return err
	}
	stored := map[*ir.Value]*smallStored{}
	for _, v := range vs {
		if stored[first[v]] == nil {
			stored[first[v]] = store8(v, planned[v])
		}
		w.stand(c, v, stored[first[v]])
	}
	return nil
}

// raise brings the model to the opset of the type if some weight would be stored in it.
func (w *small) raise(c *pass.Context) error {
	wants := func(v *ir.Value) bool {
		_, reason := w.fits(c, v)
		return reason == ""
	}
	if !below(c.Model, w.opset) || !slices.ContainsFunc(c.Weights(), wants) {
		return nil
	}
	var no *opset.Unsupported
	if err := raise(c, w.opset); !errors.As(err, &no) {
		return err
	}
	c.Note("", "weights stay as they are: "+no.Error())
	return nil
}

func (w *small) plan(c *pass.Context, v *ir.Value) (smallWeight, string) {
	if have := v.Graph().Opset(""); have < w.opset && c.Select.Excludes(v, pass.Readers(v)) == "" {
		return nil, fmt.Sprintf("opset %d is below %d", have, w.opset)
	}
	return w.fits(c, v)
}

// fits is v in the type, whatever the opset is, or the reason why it is left alone.
func (w *small) fits(c *pass.Context, v *ir.Value) (smallWeight, string) {
	if r := c.Select.Excludes(v, pass.Readers(v)); r != "" {
		return nil, r
	}
	switch {
	case v.Ambiguous:
		return nil, "its name is produced twice"
	case v.Const.DType == ir.Double:
		return nil, "float64 is not taken: scales are float32"
	}
	us, reason := uses(c, v)
	if reason != "" {
		return nil, reason
	}
	axes := us[0].axes
	if w.perTensor {
		axes = nil
	}
	p := w.weight(w.smallType, v, axes)
	if p == nil {
		return nil, "it has no axis along which blocks can share a scale"
	}
	if before, after := v.Const.Bytes(), p.bytes()+graphBytes(floatBytes, 1, v); after >= before {
		return nil, fmt.Sprintf("it would grow: %d bytes now, %d with codes, scales and nodes", before, after)
	}
	return p, ""
}

// unfit reads the weight and says what rules it out.
func (w *small) unfit(c *pass.Context, p smallWeight) (string, error) {
	r := p.recipe()
	in, err := c.Eval.Open(c, r.In[0])
	if err != nil {
		return "", err
	}
	err = r.Run(c, []io.ReaderAt{in}, []io.Writer{io.Discard, io.Discard})
	if no := (*pass.Unfit)(nil); errors.As(err, &no) {
		return no.Reason, nil
	}
	return "", err
}

// noScale is why a channel with that largest magnitude has no scale, or "".
func noScale(bits uint32, largest float32) string {
	switch peak := math.Float32frombits(bits); {
	case bits > infBits:
		return "it holds NaN"
	case bits == infBits:
		return "it holds infinities"
	case bits > 0 && !normal(peak/largest):
		return fmt.Sprintf("its largest magnitude, %g, gives no scale of normal float32 size", peak)
	}
	return ""
}

// A smallStored is a weight whose codes and scales are constants of the model.
type smallStored struct {
	smallWeight
	of            string
	codes, scales *ir.Value
	dense         *ir.Value // what its readers take
}

func store8(v *ir.Value, p smallWeight) *smallStored {
	g, ts := v.Graph(), p.recipe().Derive()
	s := &smallStored{smallWeight: p, of: v.Name, codes: g.AddConst(v.Name+"_q", ts[outCodes]), scales: g.AddConst(v.Name+"_s", ts[outScales])}
	at := g.First()
	s.dense = p.emit(g, at, s.codes, s.scales)
	if v.Const.DType != ir.Float {
		s.dense = g.Insert(at, "Cast", []*ir.Value{s.dense}, ir.IntAttr("to", int64(v.Const.DType)))
	}
	return s
}

// stand puts s in the place of v, which has equal values.
func (w *small) stand(c *pass.Context, v *ir.Value, s *smallStored) {
	before, readers := v.Const, pass.Readers(v)
	r := pass.Row{
		Form:    w.form,
		Reason:  joined(noInput(v), w.note),
		Restore: s.restore,
		After: []pass.Part{
			{Role: pass.Payload, Value: s.codes, Tensor: s.codes.Const},
			{Role: pass.Scales, Value: s.scales, Tensor: s.scales.Const},
		},
	}
	if v.Name != s.of {
		r.SharedWith = s.of
	}
	v.ReplaceUses(s.dense)
	c.Changed(v, before, readers, r)
	v.Drop()
}
