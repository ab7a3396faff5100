package tune

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/pass"
)

// A layer is a weight, or several that one payload stands for, with the ways to store it.
type layer struct {
	names     []string
	consumers []string
	bytes     int64
	variants  []variant        // as it was is not among them
	riders    map[int][]string // by candidate, weights that it takes along and that do not become smaller: biases as codes
	small     bool             // too small for runs of its own
}

// taken are the weights that candidate i is to take.
func (l *layer) taken(i int) []string { return slices.Concat(l.names, l.riders[i]) }

// A variant is a candidate, by its number, and what the layer comes to with it. Nodes and names count among the bytes.
type variant struct {
	candidate int
	bytes     int64
	damage    float64
}

// layers finds what candidates take, and measures each. What is negligible is measured together, unless each is to be told.
func (t *tuner) layers(ctx context.Context, together bool) ([]*layer, error) {
	found := &finder{of: map[string]*layer{}}
	for i, c := range t.Candidates {
		if err := t.takes(ctx, found, i, c); err != nil {
			return nil, err
		}
	}
	found.seat()
	if len(found.list) == 0 {
		return nil, &Unreachable{"no candidate takes any of the weights"}
	}
	list := found.list
	if together {
		list = lump(list)
	}
	if err := t.measured(ctx, list); err != nil {
		return nil, err
	}
	t.search.Measure, t.search.Samples = measures[t.byScores()], len(t.few)*t.batch()
	t.search.Layers = t.told(list)
	return list, nil
}

// measured runs each variant of each layer.
func (t *tuner) measured(ctx context.Context, layers []*layer) error {
	plain, err := t.build(ctx, t.Prefix)
	if err != nil {
		return err
	}
	bytes := plain.size()
	if err := plain.close(); err != nil {
		return err
	}
	t.few = t.spread(t.samples(layers))
	for _, l := range layers {
		t.all += len(l.variants)
	}
	k, err := t.related(ctx)
	if err != nil {
		return err
	}
	for _, l := range layers {
		k.forget(t.Memory / valuesOfKin)
		for i := range l.variants {
			if err := t.variant(ctx, k, l, &l.variants[i], bytes); err != nil {
				return errors.Join(err, k.close())
			}
		}
	}
	return k.close()
}

var measures = map[bool]string{false: "noise", true: "divergence"}

// byScores reports whether gates are about classes alone.
func (t *tuner) byScores() bool {
	for _, g := range t.Gates {
		if g.Name == "min-sqnr" || g.Name == "min-cosine" {
			return false
		}
	}
	return len(t.Gates) > 0
}

// Damage is measured on few samples where there is much to measure: so many bytes are read and made in all, of which those that are
// made count more.
const (
	fewest, most = 2, 128
	measurable   = 128 << 30
	madeCost     = 8 // what computing a value takes, by what reading a weight does
)

// samples are those that damage is measured on.
func (t *tuner) samples(layers []*layer) int {
	weights, runs := int64(0), 0
	for _, l := range layers {
		weights += l.bytes
		runs += len(l.variants)
	}
	n := int64(measurable) / max(1, (weights+madeCost*t.perRun)*int64(max(1, runs)))
	return int(min(most, max(fewest, n)))
}

// finder collects layers by the names of weights.
type finder struct {
	list   []*layer
	of     map[string]*layer
	riders []rider
}

// A rider is a weight that a candidate takes along without making it smaller.
type rider struct {
	name      string
	consumers []string
	candidate int
}

// takes adds what candidate number i takes of the whole model.
func (t *tuner) takes(ctx context.Context, found *finder, i int, c Candidate) error {
	step, err := c.Step(nil, First, t.calibrate)
	if err != nil {
		return err
	}
	b, err := t.build(ctx, append(slices.Clone(t.Prefix), step))
	if err != nil {
		return err
	}
	defer b.close()
	t.opset = max(t.opset, b.Model.Opset(""))
	for _, row := range b.rows {
		if row.Status == pass.Changed && row.Method == step.Method().Name && row.Scope == "" && row.Tensor != "" {
			found.add(row, i)
		}
	}
	return nil
}

// add takes note of a row of candidate i. Weights of one payload are one layer for all candidates.
func (f *finder) add(row pass.Row, i int) {
	bytes := int64(0)
	for _, p := range row.After {
		bytes += p.Bytes()
	}
	if bytes >= row.Before.Bytes() {
		f.riders = append(f.riders, rider{row.Tensor, row.Consumers, i})
		return
	}
	l := f.of[row.Tensor]
	if l == nil {
		l = &layer{names: []string{row.Tensor}, consumers: row.Consumers, bytes: row.Before.Bytes()}
		f.of[row.Tensor] = l
		f.list = append(f.list, l)
	}
	if with := f.of[row.SharedWith]; row.SharedWith != "" && with != nil && with != l {
		f.join(with, l)
		l = with
	}
	if k := slices.IndexFunc(l.variants, func(v variant) bool { return v.candidate == i }); k >= 0 {
		return // its payload was counted
	}
	l.variants = append(l.variants, variant{candidate: i, bytes: bytes})
}

// seat lets riders go with the first layer that they have a consumer in common with.
func (f *finder) seat() {
	for _, r := range f.riders {
		for _, l := range f.list {
			if f.of[r.name] == nil && slices.ContainsFunc(r.consumers, func(c string) bool { return slices.Contains(l.consumers, c) }) {
				if l.riders == nil {
					l.riders = map[int][]string{}
				}
				l.riders[r.candidate] = append(l.riders[r.candidate], r.name)
				break
			}
		}
	}
}

// join makes one layer of two.
func (f *finder) join(to, from *layer) {
	to.names = append(to.names, from.names...)
	to.consumers = append(to.consumers, from.consumers...)
	for _, v := range from.variants {
		if !slices.ContainsFunc(to.variants, func(w variant) bool { return w.candidate == v.candidate }) {
			to.variants = append(to.variants, v)
		}
	}
	for _, name := range from.names {
		f.of[name] = to
	}
	f.list = slices.DeleteFunc(f.list, func(l *layer) bool { return l == from })
}

// variant stores one layer in one way, and measures what that does to a file of so many bytes.
func (t *tuner) variant(ctx context.Context, k *kin, l *layer, v *variant, bytes int64) error {
	c := t.Candidates[v.candidate]
	step, err := c.Step(only(l.taken(v.candidate)), Measuring, t.calibrate)
	if err != nil {
		return err
	}
	b, err := t.build(ctx, append(slices.Clone(t.Prefix), step))
	if err != nil {
		return err
	}
	defer b.close()
	v.bytes = l.bytes + b.size() - bytes
	d, err := t.damaged(ctx, b, k)
	if err != nil {
		return fmt.Errorf("%s of %s: %w", c.Name, strings.Join(l.names, ", "), err)
	}
	v.damage = d.worth(t.byScores())
	t.tell(c.Name + " of " + l.names[0])
	return nil
}

// only are globs that match these names and no others, but that a comma matches any character.
func only(names []string) pass.Globs {
	escape := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `{`, `\{`, `}`, `\}`, `,`, `?`)
	var gs pass.Globs
	for _, name := range names {
		g := escape.Replace(name)
		if strings.HasPrefix(g, "op:") {
			g = `\` + g
		}
		gs = append(gs, g)
	}
	return gs
}

// told are the layers for the report, those first whose least damage is the largest.
func (t *tuner) told(layers []*layer) []pass.Sensitivity {
	var list []pass.Sensitivity
	for _, l := range layers {
		s := pass.Sensitivity{Tensors: l.names, Consumers: l.consumers, Bytes: l.bytes}
		for _, v := range l.variants {
			s.Variants = append(s.Variants, pass.Variant{Method: t.Candidates[v.candidate].Name, Bytes: v.bytes, Damage: v.damage})
		}
		list = append(list, s)
	}
	slices.SortStableFunc(list, func(a, b pass.Sensitivity) int { return cmp.Compare(worst(b), worst(a)) })
	return list
}

func worst(s pass.Sensitivity) float64 {
	w := 0.0
	for _, v := range s.Variants {
		w = max(w, v.Damage)
	}
	return w
}
