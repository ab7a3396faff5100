package tune

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/verify"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
)

// A baseline is the source session whose activations trial sessions reuse. A trial changes one weight: activations
// before that weight, and all other weights, are those of the baseline. All models are raised to one opset for that.
type baseline struct {
	*builtModel
	opset   int64
	session *engine.Interpreter // nil if the source cannot be raised, or needs too much memory
	layer   int                 // number of the current layer
	cached  []*activations      // by sensitivity run
	free    int64               // bytes left for cached activations; others are recomputed
	part    part
}

// The activations of a sensitivity run are cached for the other variants of a layer, and for the computation of those
// of the next layer.
type activations struct {
	layer  int
	values map[string]*ir.Array
}

// A part of the source computes activations from others.
type part struct {
	*engine.Interpreter
	given, fetch []string
}

// baselineFraction is the divisor of the memory limit for cached activations.
const baselineFraction = 8

// openBaseline opens the source at the opset that candidates need.
func (t *tuner) openBaseline(ctx context.Context) (*baseline, error) {
	b, err := t.build(ctx, t.Prefix)
	if err != nil {
		return nil, err
	}
	k := &baseline{builtModel: b, opset: max(t.opset, b.Model.Opset("")), free: t.Memory / baselineFraction}
	if err := k.raise(ctx, b); err != nil {
		return nil, errors.Join(err, b.close())
	}
	// Without a session trials run on their own: raised models do not share values with one that is not.
	if b.Model.Opset("") < k.opset {
		return k, nil
	}
	s, err := t.open(ctx, b, k)
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	// Weights that are read anew in each run cannot be shared, and the memory is needed.
	if _, streamed := s.Weights(); streamed > 0 {
		return k, s.Close()
	}
	k.session = s
	return k, nil
}

// raise raises b to the opset of k if possible.
func (k *baseline) raise(ctx context.Context, b *builtModel) error {
	var no *opset.Unsupported
	if err := opset.Raise(ctx, b.eval, b.Model, k.opset); !errors.As(err, &no) {
		return err
	}
	return nil
}

// open opens b with the activations and weights that it shares with k.
func (t *tuner) open(ctx context.Context, b *builtModel, k *baseline) (*engine.Interpreter, error) {
	return engine.Open(ctx, b.Model, engine.Options{
		Workers: t.Workers / t.concurrent, Limits: t.Limits, Baseline: k.session, Identity: func(t *ir.Tensor) string {
			return b.tensors[t]
		},
	})
}

// next continues with the next layer.
func (k *baseline) next() {
	if k != nil {
		k.layer++
	}
}

// close closes the baseline, if there is one.
func (k *baseline) close() error {
	if k == nil {
		return nil
	}
	if k.session != nil {
		k.freePart()
		return errors.Join(k.session.Close(), k.builtModel.close())
	}
	return k.builtModel.close()
}

// inputs are the model inputs of run number at and the named activations.
func (k *baseline) inputs(ctx context.Context, at int, in map[string]*ir.Array,
	names []string) (map[string]*ir.Array, error) {
	if len(names) == 0 {
		return in, nil
	}
	for len(k.cached) <= at {
		k.cached = append(k.cached, &activations{values: map[string]*ir.Array{}})
	}
	c := k.cached[at]
	all := maps.Clone(in)
	maps.Copy(all, c.values)
	// Activations of the layer before are given to the part that computes these: a model of n layers is run once for
	// all, and not from its inputs for each.
	missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return all[name] != nil })
	got := map[string]*ir.Array{}
	if len(missing) > 0 {
		var err error
		if got, err = k.compute(ctx, all, slices.Sorted(maps.Keys(c.values)), missing); err != nil {
			return nil, err
		}
		maps.Copy(all, got)
	}
	k.store(c, got, names)
	return all, nil
}

// store caches new activations in c, and drops those of other layers than the current one that are not among the named
// ones.
func (k *baseline) store(c *activations, got map[string]*ir.Array, names []string) {
	// Of the layer before only what this one needs stays.
	if c.layer != k.layer {
		c.layer = k.layer
		for name, a := range c.values {
			if !slices.Contains(names, name) {
				delete(c.values, name)
				k.free += a.Bytes()
			}
		}
	}
	for name, a := range got {
		if a.Bytes() <= k.free {
			k.free -= a.Bytes()
			c.values[name] = a
		}
	}
}

// compute runs the source from the given activations, and the model inputs, to the named ones.
func (k *baseline) compute(ctx context.Context, all map[string]*ir.Array, given,
	names []string) (map[string]*ir.Array, error) {
	if p := &k.part; p.Interpreter == nil || !slices.Equal(p.given, given) || !slices.Equal(p.fetch, names) {
		k.freePart()
		// The same part serves all variants of a layer and all samples.
		k.part = part{k.session.Part(given, names), given, names}
	}
	return k.part.Run(ctx, verify.InputsOf(k.part, all), names)
}

// freePart releases the memory of the part that ran last.
func (k *baseline) freePart() {
	if k.part.Interpreter != nil {
		k.part.Free()
	}
}

// tensorsOf identifies the constants of a file by their order.
func tensorsOf(m *ir.Model) map[*ir.Tensor]string {
	names := map[*ir.Tensor]string{}
	for g := range m.Graphs() {
		for _, v := range g.Consts() {
			// By their order: names need not be unique, and each trial opens the file anew, with tensors of its own.
			names[v.Const] = strconv.Itoa(len(names))
		}
	}
	return names
}
