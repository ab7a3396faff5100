package quantize

import (
	"errors"
	"flag"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
	"github.com/mcompress/mcompress/pass"
)

// WeightInt8 stores weights of any operator as 8-bit codes and computes in float.
var WeightInt8 = &pass.Method{
	Name:    "weight-int8",
	Command: "quantize",
	Doc:     "8-bit weights of MatMul, Gemm, Conv, ConvTranspose, LSTM, GRU, RNN and embeddings, float arithmetic; needs no data",
	Stage:   pass.Quantize,
	Shrinks: true,
	Bind: func(fs *flag.FlagSet) func(*pass.Context) error {
		w := &Quantizer{Spec: QuantSpec{Symmetric: true}}
		bindScheme(fs, &w.Spec)
		o := &BlockOptions{Bits: 8}
		bindShared(fs, o)
		bindBiasCorrection(fs, &w.Bias, &o.GPTQ.Data)
		return func(c *pass.Context) error {
			if o.Given() && w.Spec.PerTensor {
				return pass.OptionErrorf("--per-tensor has no blocks: leave out --block, --search, --algo and --form")
			}
			w.Blocks = blockOptionsOf(w.Spec, o)
			return w.Run(c)
		}
	},
}

const (
	// dequantizeOpset is the first one whose DequantizeLinear has an axis.
	dequantizeOpset = 13
	// castOpset is the first one whose Mul broadcasts as it does today.
	castOpset = 7
)

type Quantizer struct {
	Spec    QuantSpec
	Blocks  *BlockOptions // instead of scheme; may be nil
	buffers *BufferPool
	Bias    Correction
	// dense is why DequantizeLinear is out of reach: an operator that cannot be raised.
	denseReason string
}

func (w *Quantizer) Run(c *pass.Context) error {
	SkipQuantized(c)
	return w.Store(c, c.Weights())
}

// store stores vs.
func (w *Quantizer) Store(c *pass.Context, vs []*ir.Value) error {
	w.denseReason, w.buffers = "", NewBufferPool()
	if err := w.Blocks.check(); err != nil {
		return err
	}
	if err := w.Blocks.applyAWQ(c); err != nil {
		return err
	}
	if to := w.opset(); OpsetBelow(c.Model, to) && w.Blocks.usesNBits() {
		w.denseReason = fmt.Sprintf("--form %s leaves the opset at %d", NBitsForm, c.Model.Opset(""))
	} else if OpsetBelow(c.Model, to) && w.raisesOpset(c, vs) {
		var no *opset.Unsupported
		if err := RaiseOpset(c, to); errors.As(err, &no) {
			w.denseReason = no.Error()
		} else if err != nil {
			return err
		}
	}
	var plans []*plan
	for _, v := range vs {
		p, reason := w.plan(c, v)
		if reason != "" {
			c.Skip(v, pass.Readers(v), reason)
			continue
		}
		plans = append(plans, p)
	}
	plans, err := Precheck(c, plans, func(p *plan) (*ir.Value, *Encoding) { return p.Base, p.encoding })
	if err != nil {
		return err
	}
	if err := w.Blocks.applyGPTQ(c, plans); err != nil {
		return err
	}
	codings := map[*ir.Value]*Encoding{}
	for _, p := range plans {
		codings[p.Base] = p.encoding
	}
	if err := w.Bias.Apply(c, codings); err != nil {
		return err
	}
	return w.rewrite(c, plans)
}

// opset is the first one that has the form of products, or the type of codes.
func (w *Quantizer) opset() int64 {
	if w.Blocks != nil {
		return blockTypes[w.Blocks.Bits].opset
	}
	return dequantizeOpset
}

// wants reports whether some weight would be stored behind DequantizeLinear, or in a type that is new.
func (w *Quantizer) raisesOpset(c *pass.Context, vs []*ir.Value) bool {
	for _, v := range vs {
		if p, reason := w.planAnyOpset(c, v); reason == "" && (p.form.Name == pass.Dequantize.Name || w.Blocks != nil && w.Blocks.Bits < 8) {
			return true
		}
	}
	return false
}

// A plan says how one weight will be stored.
type plan struct {
	*Weight
	consumers []*ir.Node
	uses      []*Use
	encoding  *Encoding
	form      pass.Form
	notes     []string
}

func (p *plan) note(s string) {
	if s != "" {
		p.notes = append(p.notes, s)
	}
}

// plan chooses the form for v, or gives the reason why it is left alone.
func (w *Quantizer) plan(c *pass.Context, v *ir.Value) (*plan, string) {
	p, reason := w.planAnyOpset(c, v)
	if have := v.Graph().Opset(""); reason == "" && have < castOpset {
		return nil, fmt.Sprintf("opset %d is below %d", have, castOpset)
	}
	return p, reason
}

// fits is plan whatever the opset is.
func (w *Quantizer) planAnyOpset(c *pass.Context, v *ir.Value) (*plan, string) {
	readers := pass.Readers(v)
	if r := c.Select.Excludes(v, readers); r != "" {
		return nil, r
	}
	if v.Ambiguous {
		return nil, "its name is produced twice"
	}
	if v.Const.DType == ir.Double {
		return nil, "float64 is not taken: scales are float32"
	}
	us, reason := Uses(c, v)
	if reason != "" {
		return nil, reason
	}
	p := w.choose(v, us)
	p.consumers, p.uses = readers, us
	if reason := p.refusesBytePacking(); reason != "" {
		return nil, reason
	}
	if before, after := v.Const.Bytes(), p.encoding.Bytes()+p.overhead(); after >= before {
		return nil, fmt.Sprintf("it would grow: %d bytes now, %d with codes, scales and nodes", before, after)
	}
	return p, ""
}

// overhead is the bytes of nodes and names, and of zero points that are written out.
func (p *plan) overhead() int64 {
	if p.encoding.Blocks != nil {
		return p.blockOverhead()
	}
	if p.form.Name == pass.Dequantize.Name {
		return GraphBytes(DequantizeBytes, len(p.Consumers), p.Base) + p.encoding.Layout.NumScales()
	}
	per := int64(DequantizeBytes)
	if p.encoding.Spec.ZeroPoint() != 0 || !p.encoding.Spec.Symmetric {
		per += ZeroPointBytes
	}
	return GraphBytes(per, max(1, len(p.Consumers)), p.Base)
}

// choose picks integers at run time where every reader allows it, else a form that
// runtimes fold.
func (w *Quantizer) choose(v *ir.Value, us []*Use) *plan {
	if w.Blocks != nil {
		return w.chooseBlocks(v, us)
	}
	p := &plan{Weight: &Weight{Base: v}, form: pass.Dequantize}
	gathers := 0
	for _, u := range us {
		if u.Consumer == nil || !u.Consumer.StaysQuantized(v, ir.Float) || w.denseReason != "" && u.Consumer.Side != Lookup {
			return w.foldedPlan(v, us)
		}
		if u.Consumer.Side == Lookup {
			gathers++
		}
		p.Consumers = append(p.Consumers, u.Consumer)
	}
	cd, reason := PerChannelEncoding(p.Weight, w.Spec, w.buffers)
	if reason != "" || slices.ContainsFunc(p.Consumers, func(s *Consumer) bool { return cd.Axis >= 0 && s.ChannelAxis() != cd.Axis }) || !SameScope(v, p.Consumers) {
		return w.foldedPlan(v, us)
	}
	switch products := len(p.Consumers) - gathers; {
	case products == 0:
		p.form = pass.GatherCodes
	case products > 1 || gathers > 0 && cd.Axis < 0:
		return w.foldedPlan(v, us) // see share
	}
	p.encoding = cd
	return p
}

// linear reports whether s can stay integer at run time: a table, or a matrix on the right
// of one of types, which its product has too.
func (s *Consumer) StaysQuantized(v *ir.Value, types ...ir.DType) bool {
	if s.Side == Lookup {
		return s.Unsupported == ""
	}
	return s.Unsupported == "" && s.Side == Right && len(s.Shape) == 2 && s.Elem == v.Const.DType && slices.Contains(types, s.Elem)
}

// oneScope reports whether all products stand in one graph that can hold the codes:
// ONNX Runtime does not load those of DequantizeLinear from an outer scope.
func SameScope(v *ir.Value, ss []*Consumer) bool {
	for _, s := range ss {
		if s.Node.Graph() != ss[0].Node.Graph() {
			return false
		}
		if s.Side == Lookup && v.Graph() != s.Node.Graph() {
			return false
		}
	}
	return true
}

// folded stores v behind Cast and Mul, which any reader can stand.
func (w *Quantizer) foldedPlan(v *ir.Value, us []*Use) *plan {
	if w.Blocks != nil {
		return w.foldBlocks(v, us)
	}
	p := &plan{Weight: &Weight{Base: v}, form: pass.CastMul}
	shape := v.Const.Shape
	axes := us[0].ScaleAxes
	if w.Spec.PerTensor {
		axes = nil
	}
	p.encoding = &Encoding{Buffers: w.buffers, Weight: v.Const, Shape: shape, Spec: w.Spec, Axis: -1}
	p.encoding.Layout, p.encoding.ScaleShape = LayoutOfAxes(shape, axes)
	if w.denseReason != "" && us[0].Consumer != nil {
		p.note("dense at run time: " + w.denseReason)
	}
	return p
}

// keptAxes is the grid of one scale for each index of some axes, and the shape of the
// scales: they must be one axis, a leading run of axes, or leading ones and the last.
func LayoutOfAxes(shape []int64, axes []int) (ScaleLayout, []int64) {
	n := (ir.Spec{Shape: shape}).Elems()
	if len(axes) == 0 {
		return PerTensorLayout(n), nil
	}
	scales := make([]int64, len(shape))
	kept := int64(1)
	for i := range shape {
		scales[i] = 1
		if slices.Contains(axes, i) {
			scales[i] = shape[i]
			kept *= shape[i]
		}
	}
	last := axes[len(axes)-1]
	switch {
	case len(axes) == 1:
		return PerAxisLayout(shape, last), scales
	case last == len(axes)-1:
		return PerRowLayout(kept, n/max(1, kept)), scales
	default: // batched columns
		rows := shape[len(shape)-2]
		return PerColumnLayout(n/max(1, rows*shape[last]), rows, shape[last]), scales
	}
}

func (w *Quantizer) rewrite(c *pass.Context, plans []*plan) error {
	groups, err := groupPlans(c, plans)
	if err != nil {
		return err
	}
	for _, g := range groups {
		w.foldShared(g)
		st := w.emit(c, g)
		for _, p := range g {
			c.Changed(p.Base, p.Base.Const, p.consumers, w.row(g[0], p, st))
		}
	}
	return nil
}

// share folds a group of plans that would have several DequantizeLinear read the same
// codes or scales: ONNX Runtime makes MatMulNBits of none of them, but would dequantize
// in every run. Folded, they are one dense weight.
func (w *Quantizer) foldShared(g []*plan) {
	if len(g) == 1 || g[0].form.Name != pass.Dequantize.Name {
		return
	}
	for i, p := range g {
		readers, us := p.consumers, p.uses
		g[i] = w.foldedPlan(p.Base, us)
		g[i].consumers, g[i].uses = readers, us
	}
}
