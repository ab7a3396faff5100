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

// Fold folds all BatchNormalizations of the model: it adds ledger rows of changed weights and returns those that it did not fold.
func Fold(ctx context.Context, s *pass.Step) ([]Unfolded, error) {
	f := &folder{step: s, Editor: rescale.New(s)}
	for _, n := range slices.Collect(s.Model.Nodes()) {
		if err := f.node(ctx, n); err != nil {
			return nil, err
		}
	}
	f.Report(pass.FoldedIn, pass.FoldedAway)
	return f.unfolded, nil
}

type folder struct {
	*rescale.Editor
	step     *pass.Step
	unfolded []Unfolded
}

// node folds n if it multiplies and shifts channels.
func (f *folder) node(ctx context.Context, n *ir.Node) error {
	if !n.Op.Is("BatchNormalization") {
		return f.channelArithmetic(ctx, n)
	}
	a, why, err := f.normalization(ctx, n)
	if err != nil {
		return err
	}
	if why == "" {
		if why, err = f.normalize(ctx, n, a); err != nil || why == "" {
			return err
		}
	}
	f.keep(n, why)
	return nil
}

// normalize folds a BatchNormalization into the previous layer, else into the next one, or returns the reason why it cannot.
func (f *folder) normalize(ctx context.Context, n *ir.Node, a channelAffine) (why string, err error) {
	l, why := f.layerBefore(n, n.Input(0))
	if why == "" {
		if rank, ok := opset.Rank(n.Input(0)); !l.Spatial() && (!ok || rank != 2) {
			return "its channels are not known to be those of " + l.Node.Label(), nil
		}
		return f.foldIntoPrevious(ctx, n, l, a)
	}
	next, whyNot := f.layerAfter(n)
	if next == nil {
		return why, nil
	}
	if whyNot != "" {
		return whyNot, nil
	}
	return f.foldIntoNext(ctx, n, next, a)
}

// layerBefore is the layer that computes v for n alone.
func (f *folder) layerBefore(n *ir.Node, v *ir.Value) (*rescale.Layer, string) {
	if v == nil || v.Producer() == nil {
		return nil, "no layer makes its input"
	}
	p := v.Producer()
	l, why := f.Layer(p)
	switch {
	case why != "":
		return nil, why
	case l.Last() != p:
		return nil, p.Label() + " is no layer"
	case len(v.Uses()) != 1 || v.Graph() != n.Graph():
		return nil, "what " + p.Label() + " makes is read elsewhere, too"
	}
	return l, ""
}

// layerAfter is the only consumer of n's output, if it is a layer; nil if there is none.
func (f *folder) layerAfter(n *ir.Node) (*rescale.Layer, string) {
	uses := n.Outputs[0].Uses()
	if len(uses) != 1 || uses[0].Node == nil || uses[0].Index != 0 || uses[0].Node.Graph() != n.Graph() {
		return nil, ""
	}
	l, why := f.Layer(uses[0].Node)
	if why != "" || l.Node != uses[0].Node {
		return nil, ""
	}
	if rank, ok := opset.Rank(n.Input(0)); !l.Spatial() && (!ok || rank != 2) {
		return l, "its channels are not known to be those that " + l.Node.Label() + " reads"
	}
	return l, ""
}

// foldIntoPrevious folds n into the previous layer l.
func (f *folder) foldIntoPrevious(ctx context.Context, n *ir.Node, l *rescale.Layer, a channelAffine) (string, error) {
	if why := a.mismatch(l.Outputs); why != "" {
		return why, nil
	}
	if err := l.ScaleOutputs(ctx, a.scale); err != nil {
		return "", err
	}
	if err := l.AddBias(ctx, a.shift); err != nil {
		return "", err
	}
	f.replace(n, l.Output())
	return "", nil
}

// foldIntoNext folds n into the next layer l. Padding is zeros, which n would have shifted.
func (f *folder) foldIntoNext(ctx context.Context, n *ir.Node, l *rescale.Layer, a channelAffine) (string, error) {
	why := a.mismatch(l.Inputs)
	if why == "" && pads(l.Node) && slices.ContainsFunc(a.shift, func(x float64) bool { return x != 0 }) {
		why = l.Node.Label() + " pads with zeros, which it would have to shift"
	}
	if why != "" {
		return why, nil
	}
	shift, err := l.Response(ctx, l.Weight.Const, a.shift)
	if err != nil {
		return "", err
	}
	l.ScaleInputs(a.scale)
	if err := l.AddBias(ctx, shift); err != nil {
		return "", err
	}
	inputs := slices.Clone(n.Inputs())
	n.Outputs[0].ReplaceUses(n.Input(0))
	n.Remove()
	drop(inputs[1:])
	return "", nil
}

// pads reports whether a convolution reads, or may read, beyond its input. ConvTranspose has incomplete windows at its borders,
// too.
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
	n.Become(v)
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
func (f *folder) keep(n *ir.Node, why string) {
	l := Unfolded{Reason: pass.Reason{Code: pass.NotFolded, Node: pass.Labels([]*ir.Node{n})[0], Detail: why}}
	for _, v := range n.Inputs() {
		if o := pass.Trace(v); o != nil {
			l.Constants = append(l.Constants, o.Base)
		}
	}
	f.unfolded = append(f.unfolded, l)
}
