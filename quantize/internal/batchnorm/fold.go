package batchnorm

import (
	"context"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/rescale"
)

// An Unfolded is a BatchNormalization that is not folded: its constants, and the reason.
type Unfolded struct {
	Constants []*ir.Value
	Reason    pass.Reason
}

// Fold folds all BatchNormalizations of the model, and Mul and Add by channel: it adds ledger rows of changed weights
// and returns the BatchNormalizations that it did not fold.
func Fold(ctx context.Context, s *pass.Step) ([]Unfolded, error) {
	f := &folder{step: s, Editor: rescale.New(s)}
	err := f.each(ctx, f.node)
	return f.unfolded, err
}

// FoldNormalizations is Fold without Mul and Add.
func FoldNormalizations(ctx context.Context, s *pass.Step) error {
	f := &folder{step: s, Editor: rescale.New(s)}
	return f.each(ctx, func(ctx context.Context, n *ir.Node) error {
		if !n.Op.Is("BatchNormalization") {
			return nil
		}
		return f.node(ctx, n)
	})
}

type folder struct {
	*rescale.Editor
	step     *pass.Step
	unfolded []Unfolded
}

// each folds the nodes of the model.
func (f *folder) each(ctx context.Context, fold func(context.Context, *ir.Node) error) error {
	// Collected, as folding removes nodes.
	for _, n := range slices.Collect(f.step.Model.Nodes()) {
		if err := fold(ctx, n); err != nil {
			return err
		}
	}
	f.Report(pass.FoldedIn, pass.FoldedAway)
	return nil
}

// node folds n if it multiplies and shifts channels.
func (f *folder) node(ctx context.Context, n *ir.Node) error {
	if !n.Op.Is("BatchNormalization") {
		return f.channelArithmetic(ctx, n)
	}
	a, reason, err := f.normalization(ctx, n)
	if err != nil {
		return err
	}
	if reason.None() {
		if reason, err = f.normalize(ctx, n, a); err != nil || reason.None() {
			return err
		}
	}
	f.keep(n, reason)
	return nil
}

// normalize folds a BatchNormalization into the previous layer, else into the next one, or returns the reason why it
// cannot.
func (f *folder) normalize(ctx context.Context, n *ir.Node, a channelAffine) (reason pass.Reason, err error) {
	// The layer before comes first: the one after may pad with zeros, and a shift before it would change these.
	l, reason := f.layerBefore(n, n.Input(0))
	if reason.None() {
		if rank, ok := opset.Rank(n.Input(0)); !l.Spatial() && (!ok || rank != 2) {
			return reasonAt(l.Node, pass.FoldChannels, "unknown rank"), nil
		}
		return f.foldIntoPrevious(ctx, n, l, a)
	}
	next, reasonAfter := f.layerAfter(n)
	if next == nil {
		return reason, nil
	}
	if !reasonAfter.None() {
		return reasonAfter, nil
	}
	return f.foldIntoNext(ctx, n, next, a)
}

// layerBefore is the layer that computes v for n alone.
func (f *folder) layerBefore(n *ir.Node, v *ir.Value) (*rescale.Layer, pass.Reason) {
	if v == nil || v.Producer() == nil {
		return nil, pass.Reason{Code: pass.NoLayer}
	}
	p := v.Producer()
	l, reason := f.Layer(p)
	switch {
	case !reason.None():
		return nil, reason
	case l.Last() != p:
		return nil, reasonAt(p, pass.NoLayer, "")
	// Another consumer reads the output before the normalization.
	case len(v.Uses()) != 1 || v.Graph() != n.Graph():
		return nil, reasonAt(p, pass.FoldOutput, "")
	}
	return l, pass.Reason{}
}

// layerAfter is the only consumer of n's output, if it is a layer; nil if there is none.
func (f *folder) layerAfter(n *ir.Node) (*rescale.Layer, pass.Reason) {
	uses := n.Outputs[0].Uses()
	if len(uses) != 1 || uses[0].Node == nil || uses[0].Index != 0 || uses[0].Node.Graph() != n.Graph() {
		return nil, pass.Reason{}
	}
	l, reason := f.Layer(uses[0].Node)
	if !reason.None() || l.Node != uses[0].Node {
		return nil, pass.Reason{}
	}
	if rank, ok := opset.Rank(n.Input(0)); !l.Spatial() && (!ok || rank != 2) {
		return l, reasonAt(l.Node, pass.FoldChannels, "unknown rank")
	}
	return l, pass.Reason{}
}

// foldIntoPrevious folds n into the previous layer l.
func (f *folder) foldIntoPrevious(ctx context.Context, n *ir.Node, l *rescale.Layer,
	a channelAffine) (none pass.Reason, err error) {
	if reason := a.mismatch(n, l, l.Outputs); !reason.None() {
		return reason, nil
	}
	// Before anything changes: a weight near the end of its range would be written as infinities.
	if reason, err := l.Overflow(ctx, a.scale); err != nil || !reason.None() {
		return reason, err
	}
	if err := l.ScaleOutputs(ctx, a.scale); err != nil {
		return none, err
	}
	if err := l.AddBias(ctx, a.shift); err != nil {
		return none, err
	}
	f.replace(n, l.Output())
	return none, nil
}

// foldIntoNext folds n into the next layer l. Padding is zeros, which n would have shifted.
func (f *folder) foldIntoNext(ctx context.Context, n *ir.Node, l *rescale.Layer,
	a channelAffine) (none pass.Reason, err error) {
	reason := a.mismatch(n, l, l.Inputs)
	if reason.None() && pads(l.Node) && slices.ContainsFunc(a.shift, func(x float64) bool { return x != 0 }) {
		reason = reasonAt(l.Node, pass.FoldPadding, "")
	}
	if !reason.None() {
		return reason, nil
	}
	if reason, err := l.Overflow(ctx, a.scale); err != nil || !reason.None() {
		return reason, err
	}
	// What the layer makes of the shift, by the weight before it is scaled.
	shift, err := l.Response(ctx, l.Weight.Const, a.shift)
	if err != nil {
		return none, err
	}
	l.ScaleInputs(a.scale)
	if err := l.AddBias(ctx, shift); err != nil {
		return none, err
	}
	inputs := slices.Clone(n.Inputs())
	n.Outputs[0].ReplaceUses(n.Input(0))
	n.Remove()
	drop(inputs[1:])
	return none, nil
}

// pads reports whether a convolution reads, or may read, beyond its input. ConvTranspose has incomplete windows at its
// borders, too.
func pads(n *ir.Node) bool {
	auto := n.Attr("auto_pad")
	switch {
	case n.Op.Is("ConvTranspose"):
		return true
	case auto != nil && auto.S != "NOTSET":
		return auto.S != "VALID"
	}
	p := n.Attr("pads")
	return p != nil && slices.ContainsFunc(p.Ints, func(i int64) bool { return i != 0 })
}

// replace replaces the output of n by v.
func (f *folder) replace(n *ir.Node, v *ir.Value) {
	inputs := slices.Clone(n.Inputs())
	n.ReplaceBy(v)
	drop(inputs)
}

// drop removes unused constants; IR 3 lists them among the inputs, too.
func drop(vs []*ir.Value) {
	for _, v := range vs {
		if v == nil || v.Removed() || len(v.Uses()) > 0 {
			continue
		}
		if v.Const != nil {
			v.Graph().RemoveInput(v)
		}
		v.Drop()
	}
}

// keep records why a BatchNormalization is not folded.
func (f *folder) keep(n *ir.Node, reason pass.Reason) {
	l := Unfolded{Reason: reason}
	for _, v := range n.Inputs() {
		if o := pass.Trace(v); o != nil {
			l.Constants = append(l.Constants, o.Base)
		}
	}
	f.unfolded = append(f.unfolded, l)
}

// reasonAt is a reason about n.
func reasonAt(n *ir.Node, reason pass.Code, detail string) pass.Reason {
	return pass.Reason{Code: reason, Detail: detail}.At(n)
}
