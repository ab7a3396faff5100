package quantize

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
	"github.com/mcompress/mcompress/pass"
)

// DynamicInt8 stores the constant factors of MatMul and Gemm as 8-bit codes and
// multiplies in integers; activations are quantized as they come.
var DynamicInt8 = &pass.Method{
	Name:    "dynamic-int8",
	Command: "quantize",
	Doc:     "8-bit weights of MatMul and Gemm, activations quantized at run time; needs no data",
	Stage:   pass.Quantize,
	Shrinks: true,
	Bind: func(fs *flag.FlagSet) func(*pass.Context) error {
		d := &dynamic{scheme: scheme{symmetric: true}}
		d.scheme.bind(fs)
		fs.BoolVar(&d.embeddings, "embeddings", false, "take tables that Gather reads, too")
		d.data.Bind(fs, 128)
		d.biases.bind(fs, &d.data)
		return d.run
	},
}

// dynamicOpset is the first one that has DynamicQuantizeLinear.
const dynamicOpset = 11

type dynamic struct {
	scheme     scheme
	buffers    *buffers
	embeddings bool
	biases     biasCorrection
	data       calibrate.Data
}

func (d *dynamic) run(c *pass.Context) error {
	d.buffers = newBuffers()
	noteQuantized(c)
	taken, err := d.choose(c)
	if err != nil || len(taken) == 0 {
		return err
	}
	if below(c.Model, dynamicOpset) {
		var no *opset.Unsupported
		err := raise(c, dynamicOpset)
		if errors.As(err, &no) {
			for _, w := range taken {
				c.Skip(w.base, w.nodes(), "it needs opset 11: "+no.Error())
			}
			return nil
		}
		if err != nil {
			return err
		}
		// Raising may have replaced nodes that the sites point to.
		if taken, err = d.choose(c); err != nil {
			return err
		}
	}
	return d.rewrite(c, taken)
}

// rewrite stores the weights and replaces their sites in the order of nodes, so that
// what products share stands in front of the first.
func (d *dynamic) rewrite(c *pass.Context, ws []*weight) error {
	groups, err := d.merge(c, ws)
	if err != nil {
		return err
	}
	if err := d.biases.of(c, d.codings(groups)); err != nil {
		return err
	}
	at := map[*ir.Node]*stored{}
	by := map[*ir.Node]*site{}
	for _, w := range groups {
		cd, _ := d.coding(w.weight)
		st := store(w.base.Graph(), w.base, cd)
		for _, s := range w.sites {
			at[s.node], by[s.node] = st, s
		}
		for _, m := range w.members {
			c.Changed(m.base, m.base.Const, m.nodes(), d.row(w, m, st))
		}
	}
	r := newRewriter(c)
	for _, n := range slices.Collect(c.Model.Nodes()) {
		s, st := by[n], at[n]
		switch {
		case s == nil:
		case s.side == gather:
			r.gatherRows(s, st)
		default:
			r.product(s, st)
		}
	}
	return nil
}

// codings are those of all weights.
func (d *dynamic) codings(gs []*group) map[*ir.Value]*coding {
	all := map[*ir.Value]*coding{}
	for _, g := range gs {
		cd, _ := d.coding(g.weight)
		for _, m := range g.members {
			all[m.base] = cd
		}
	}
	return all
}

// A group is weights of equal content: they are stored once.
type group struct {
	*weight
	members []*weight
}

func (d *dynamic) merge(c *pass.Context, ws []*weight) ([]*group, error) {
	bases := make([]*ir.Value, len(ws))
	for i, w := range ws {
		bases[i] = w.base
	}
	first, err := c.Duplicates(bases)
	if err != nil {
		return nil, err
	}
	var groups []*group
	by := map[*ir.Value]*group{}
	for _, w := range ws {
		if g := by[first[w.base]]; g != nil {
			both := &weight{base: g.base, sites: slices.Concat(g.sites, w.sites)}
			if _, reason := d.coding(both); reason == "" {
				g.weight, g.members = both, append(g.members, w)
				continue
			}
		}
		g := &group{weight: w, members: []*weight{w}}
		if by[w.base] == nil {
			by[w.base] = g
		}
		groups = append(groups, g)
	}
	return groups, nil
}

// row is the ledger's line for m, one of the weights that st stands for.
func (d *dynamic) row(g *group, m *weight, st *stored) pass.Row {
	r := pass.Row{Form: pass.MatMulInteger, After: st.parts(), Restore: st.restore}
	if m.sites[0].side == gather {
		r.Form = pass.GatherCodes
	}
	if m.base != g.base {
		r.SharedWith = g.base.Name
	}
	var notes []string
	if st.s.symmetric != d.scheme.symmetric {
		notes = append(notes, "symmetric, as zero points have no place in one of its products")
	}
	if st.s.unsigned != d.scheme.unsigned {
		notes = append(notes, "uint8, as it stands on the left of a product, or several products read it")
	}
	if why := noInput(m.base); why != "" {
		notes = append(notes, why)
	}
	r.Reason = strings.Join(notes, "; ")
	return r
}

// below reports whether m, or a function of it that uses the default domain, imports an
// opset lower than v.
func below(m *ir.Model, v int64) bool {
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

// raise brings the model to an opset that a form needs, and says so.
func raise(c *pass.Context, to int64) error {
	from := c.Model.Opset("")
	if err := opset.Raise(c, c.Eval, c.Model, to); err != nil {
		return err
	}
	c.Note("", fmt.Sprintf("opset raised from %d to %d", from, to))
	return nil
}

// choose decides which weights are taken; the others get their rows.
func (d *dynamic) choose(c *pass.Context) ([]*weight, error) {
	var taken []*weight
	all := sites(c, d.embeddings)
	noteOthers(c, all)
	for _, w := range all {
		d.mirror(w)
		if reason := d.refuse(c, w); reason != "" {
			c.Skip(w.base, w.nodes(), reason)
			continue
		}
		taken = append(taken, w)
	}
	return precheck(c, taken, func(w *weight) (*ir.Value, *coding) {
		cd, _ := d.coding(w)
		return w.base, cd
	})
}

// mirror turns left-hand sites around where the weight is asymmetric, and where the
// other factor is a vector: ONNX Runtime fuses a bias as if it ran along B's columns.
func (d *dynamic) mirror(w *weight) {
	for _, s := range w.sites {
		if s.side != left || len(s.shape) != 2 {
			continue
		}
		rank, ok := opset.Rank(s.act())
		if ok && rank == 1 || !d.scheme.symmetric && !d.scheme.perTensor {
			s.mirror()
		}
	}
}

// refuse gives the reason why w is left alone, or "".
func (d *dynamic) refuse(c *pass.Context, w *weight) string {
	if r := c.Select.Excludes(w.base, w.nodes()); r != "" {
		return r
	}
	if w.base.Ambiguous {
		return "its name is produced twice"
	}
	if w.other != "" {
		return fmt.Sprintf("%s reads it too: the float weight would have to stay", w.other)
	}
	if t := w.trouble(); t != "" {
		return t
	}
	for _, s := range w.sites {
		if r := s.unknownRank(); r != "" {
			return r
		}
	}
	cd, reason := d.coding(w)
	if reason != "" {
		return reason
	}
	if before, after := w.base.Const.Bytes(), cd.bytes()+graphBytes(productBytes, len(w.sites), w.base); after >= before {
		return fmt.Sprintf("it would grow: %d bytes now, %d with codes, scales and nodes", before, after)
	}
	return ""
}

// unknownRank refuses products whose scales can only be placed if the activation's
// rank is known.
func (s *site) unknownRank() string {
	if s.side == gather || s.side == right && len(s.shape) <= 2 && !s.mirrored {
		return ""
	}
	if s.node.Op.Is("Gemm") {
		s.rank = 2
		return ""
	}
	rank, ok := opset.Rank(s.act())
	s.rank = rank
	switch {
	case !ok:
		return fmt.Sprintf("the rank of %s's other input is not known", s.node.Label())
	case rank < 2 && len(s.shape) > 2:
		return fmt.Sprintf("%s's other input is a vector", s.node.Label())
	}
	return ""
}

// coding says how w is stored so that all its sites can read it, or why it cannot be.
func (d *dynamic) coding(w *weight) (*coding, string) {
	first := w.sites[0]
	cd := &coding{buffers: d.buffers, t: w.base.Const, shape: first.view(), s: d.scheme, transpose: true}
	axis := first.channelAxis()
	for _, s := range w.sites {
		if !slices.Equal(s.view(), cd.shape) {
			return nil, "its readers see it in different shapes"
		}
		if len(s.shape) > 2 && s.side != first.side {
			return nil, "batched matrices on both sides of products cannot share scales"
		}
		cd.transpose = cd.transpose && s.transposed && s.side == right
		cd.s.unsigned = cd.s.unsigned || s.wantsUint8(w)
		// Zero points along a sum, or for each row on the left, have no place.
		if !d.scheme.perTensor && (s.channelAxis() != axis || s.side == left) {
			cd.s.symmetric = true
		}
	}
	cd.axis = axis
	cd.place(d.scheme.perTensor, w)
	return cd, ""
}

// wantsUint8 reports whether int8 codes would fail s in ONNX Runtime: on the left its
// fused node has no kernel for them; and codes that several products read, or one in
// another scope, cannot be converted for CPUs without VNNI, so that products saturate
// or the model does not load.
func (s *site) wantsUint8(w *weight) bool {
	if s.side == gather {
		return false
	}
	products := 0
	for _, o := range w.sites {
		if o.side != gather {
			products++
		}
	}
	return s.side == left || products > 1 || s.node.Graph() != w.base.Graph()
}

// place sets the grid and the shape of the scales, which lets them multiply what the
// first site's product keeps.
func (c *coding) place(perTensor bool, w *weight) {
	rank := len(c.shape)
	n := (ir.Spec{Shape: c.shape}).Elems()
	switch {
	case perTensor || c.axis < 0:
		c.g, c.axis = whole(n), -1
	case rank > 2 && c.axis == rank-1: // a column of each matrix
		c.g = alongCols(n/(c.shape[rank-2]*c.shape[rank-1]), c.shape[rank-2], c.shape[rank-1])
		c.scales = append(slices.Clone(c.shape[:rank-2]), 1, c.shape[rank-1])
	case rank > 2 && c.axis == rank-2: // a row of each matrix
		c.g = alongRows(n/c.shape[rank-1], c.shape[rank-1])
		c.scales = append(slices.Clone(c.shape[:rank-1]), 1)
	default:
		c.g = onAxis(c.shape, c.axis)
		c.scales = []int64{c.shape[c.axis]}
		if c.axis == 0 && slices.ContainsFunc(w.sites, func(s *site) bool { return s.side != right }) {
			for range rank - 1 {
				c.scales = append(c.scales, 1)
			}
		}
	}
}
