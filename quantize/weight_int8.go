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
		w := &weightOnly{scheme: scheme{symmetric: true}}
		w.scheme.bind(fs)
		o := &blockOptions{bits: 8}
		o.bindShared(fs)
		w.biases.bind(fs, &o.gptq.data)
		return func(c *pass.Context) error {
			if o.asked() && w.scheme.perTensor {
				return pass.OptionErrorf("--per-tensor has no blocks: leave out --block, --search, --algo and --form")
			}
			w.blocks = w.scheme.inBlocks(o)
			return w.run(c)
		}
	},
}

const (
	// dequantizeOpset is the first one whose DequantizeLinear has an axis.
	dequantizeOpset = 13
	// castOpset is the first one whose Mul broadcasts as it does today.
	castOpset = 7
)

type weightOnly struct {
	scheme  scheme
	blocks  *blockOptions // instead of scheme; may be nil
	buffers *buffers
	biases  biasCorrection
	// dense is why DequantizeLinear is out of reach: an operator that cannot be raised.
	dense string
}

func (w *weightOnly) run(c *pass.Context) error {
	noteQuantized(c)
	return w.store(c, c.Weights())
}

// store stores vs.
func (w *weightOnly) store(c *pass.Context, vs []*ir.Value) error {
	w.dense, w.buffers = "", newBuffers()
	if err := w.blocks.check(); err != nil {
		return err
	}
	if err := w.blocks.scaled(c); err != nil {
		return err
	}
	if to := w.opset(); below(c.Model, to) && w.blocks.bitsFormed() {
		w.dense = fmt.Sprintf("--form %s leaves the opset at %d", bitsForm, c.Model.Opset(""))
	} else if below(c.Model, to) && w.wants(c, vs) {
		var no *opset.Unsupported
		if err := raise(c, to); errors.As(err, &no) {
			w.dense = no.Error()
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
	plans, err := precheck(c, plans, func(p *plan) (*ir.Value, *coding) { return p.base, p.cd })
	if err != nil {
		return err
	}
	if err := w.blocks.solve(c, plans); err != nil {
		return err
	}
	codings := map[*ir.Value]*coding{}
	for _, p := range plans {
		codings[p.base] = p.cd
	}
	if err := w.biases.of(c, codings); err != nil {
		return err
	}
	return w.rewrite(c, plans)
}

// opset is the first one that has the form of products, or the type of codes.
func (w *weightOnly) opset() int64 {
	if w.blocks != nil {
		return blockTypes[w.blocks.bits].opset
	}
	return dequantizeOpset
}

// wants reports whether some weight would be stored behind DequantizeLinear, or in a type that is new.
func (w *weightOnly) wants(c *pass.Context, vs []*ir.Value) bool {
	for _, v := range vs {
		if p, reason := w.fits(c, v); reason == "" && (p.form.Name == pass.Dequantize.Name || w.blocks != nil && w.blocks.bits < 8) {
			return true
		}
	}
	return false
}

// A plan says how one weight will be stored.
type plan struct {
	*weight
	readers []*ir.Node
	uses    []*weightUse
	cd      *coding
	form    pass.Form
	notes   []string
}

func (p *plan) note(s string) {
	if s != "" {
		p.notes = append(p.notes, s)
	}
}

// plan chooses the form for v, or gives the reason why it is left alone.
func (w *weightOnly) plan(c *pass.Context, v *ir.Value) (*plan, string) {
	p, reason := w.fits(c, v)
	if have := v.Graph().Opset(""); reason == "" && have < castOpset {
		return nil, fmt.Sprintf("opset %d is below %d", have, castOpset)
	}
	return p, reason
}

// fits is plan whatever the opset is.
func (w *weightOnly) fits(c *pass.Context, v *ir.Value) (*plan, string) {
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
	us, reason := uses(c, v)
	if reason != "" {
		return nil, reason
	}
	p := w.choose(v, us)
	p.readers, p.uses = readers, us
	if reason := p.refuseBlocks(); reason != "" {
		return nil, reason
	}
	if before, after := v.Const.Bytes(), p.cd.bytes()+p.overhead(); after >= before {
		return nil, fmt.Sprintf("it would grow: %d bytes now, %d with codes, scales and nodes", before, after)
	}
	return p, ""
}

// overhead is the bytes of nodes and names, and of zero points that are written out.
func (p *plan) overhead() int64 {
	if p.cd.b != nil {
		return p.blockOverhead()
	}
	if p.form.Name == pass.Dequantize.Name {
		return graphBytes(floatBytes, len(p.sites), p.base) + p.cd.g.scales()
	}
	per := int64(floatBytes)
	if p.cd.s.zero() != 0 || !p.cd.s.symmetric {
		per += zeroBytes
	}
	return graphBytes(per, max(1, len(p.sites)), p.base)
}

// choose picks integers at run time where every reader allows it, else a form that
// runtimes fold.
func (w *weightOnly) choose(v *ir.Value, us []*weightUse) *plan {
	if w.blocks != nil {
		return w.chooseBlocks(v, us)
	}
	p := &plan{weight: &weight{base: v}, form: pass.Dequantize}
	gathers := 0
	for _, u := range us {
		if u.site == nil || !u.site.linear(v, ir.Float) || w.dense != "" && u.site.side != gather {
			return w.folded(v, us)
		}
		if u.site.side == gather {
			gathers++
		}
		p.sites = append(p.sites, u.site)
	}
	cd, reason := (&dynamic{scheme: w.scheme, buffers: w.buffers}).coding(p.weight)
	if reason != "" || slices.ContainsFunc(p.sites, func(s *site) bool { return cd.axis >= 0 && s.channelAxis() != cd.axis }) || !oneScope(v, p.sites) {
		return w.folded(v, us)
	}
	switch products := len(p.sites) - gathers; {
	case products == 0:
		p.form = pass.GatherCodes
	case products > 1 || gathers > 0 && cd.axis < 0:
		return w.folded(v, us) // see share
	}
	p.cd = cd
	return p
}

// linear reports whether s can stay integer at run time: a table, or a matrix on the right
// of one of types, which its product has too.
func (s *site) linear(v *ir.Value, types ...ir.DType) bool {
	if s.side == gather {
		return s.trouble == ""
	}
	return s.trouble == "" && s.side == right && len(s.shape) == 2 && s.elem == v.Const.DType && slices.Contains(types, s.elem)
}

// oneScope reports whether all products stand in one graph that can hold the codes:
// ONNX Runtime does not load those of DequantizeLinear from an outer scope.
func oneScope(v *ir.Value, ss []*site) bool {
	for _, s := range ss {
		if s.node.Graph() != ss[0].node.Graph() {
			return false
		}
		if s.side == gather && v.Graph() != s.node.Graph() {
			return false
		}
	}
	return true
}

// folded stores v behind Cast and Mul, which any reader can stand.
func (w *weightOnly) folded(v *ir.Value, us []*weightUse) *plan {
	if w.blocks != nil {
		return w.foldBlocks(v, us)
	}
	p := &plan{weight: &weight{base: v}, form: pass.CastMul}
	shape := v.Const.Shape
	axes := us[0].axes
	if w.scheme.perTensor {
		axes = nil
	}
	p.cd = &coding{buffers: w.buffers, t: v.Const, shape: shape, s: w.scheme, axis: -1}
	p.cd.g, p.cd.scales = keptAxes(shape, axes)
	if w.dense != "" && us[0].site != nil {
		p.note("dense at run time: " + w.dense)
	}
	return p
}

// keptAxes is the grid of one scale for each index of some axes, and the shape of the
// scales: they must be one axis, a leading run of axes, or leading ones and the last.
func keptAxes(shape []int64, axes []int) (grid, []int64) {
	n := (ir.Spec{Shape: shape}).Elems()
	if len(axes) == 0 {
		return whole(n), nil
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
		return onAxis(shape, last), scales
	case last == len(axes)-1:
		return alongRows(kept, n/max(1, kept)), scales
	default: // batched columns
		rows := shape[len(shape)-2]
		return alongCols(n/max(1, rows*shape[last]), rows, shape[last]), scales
	}
}

func (w *weightOnly) rewrite(c *pass.Context, plans []*plan) error {
	groups, err := samePlans(c, plans)
	if err != nil {
		return err
	}
	for _, g := range groups {
		w.share(g)
		st := w.emit(c, g)
		for _, p := range g {
			c.Changed(p.base, p.base.Const, p.readers, w.row(g[0], p, st))
		}
	}
	return nil
}

// share folds a group of plans that would have several DequantizeLinear read the same
// codes or scales: ONNX Runtime makes MatMulNBits of none of them, but would dequantize
// in every run. Folded, they are one dense weight.
func (w *weightOnly) share(g []*plan) {
	if len(g) == 1 || g[0].form.Name != pass.Dequantize.Name {
		return
	}
	for i, p := range g {
		readers, us := p.readers, p.uses
		g[i] = w.folded(p.base, us)
		g[i].readers, g[i].uses = readers, us
	}
}
