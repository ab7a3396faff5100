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

// A baseline is the source session whose activations trial sessions reuse. A trial changes one weight: activations before that
// weight, and all other weights, are those of the baseline. All models are raised to one opset for that.
type baseline struct {
	*built
	opset   int64
	session *engine.Interpreter    // nil if the source cannot be raised, or needs too much memory
	values  []map[string]*ir.Array // cached activations, by sensitivity run
	free    int64                  // bytes left for cached activations; others are recomputed
}

// baselineFraction is the divisor of the memory limit for cached activations.
const baselineFraction = 8

// baseline is the source at the opset that candidates need.
func (t *tuner) baseline(ctx context.Context) (*baseline, error) {
	b, err := t.build(ctx, t.Prefix)
	if err != nil {
		return nil, err
	}
	k := &baseline{built: b, opset: max(t.opset, b.Model.Opset(""))}
	if err := k.raise(ctx, b); err != nil {
		return nil, errors.Join(err, b.close())
	}
	if b.Model.Opset("") < k.opset {
		return k, nil
	}
	s, err := t.open(ctx, b, k)
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	if _, streamed := s.Weights(); streamed > 0 {
		return k, s.Close()
	}
	k.session = s
	return k, nil
}

// raise raises b to the opset of k if possible.
func (k *baseline) raise(ctx context.Context, b *built) error {
	var no *opset.Unsupported
	if err := opset.Raise(ctx, b.eval, b.Model, k.opset); !errors.As(err, &no) {
		return err
	}
	return nil
}

// open opens b with the activations and weights that it shares with k.
func (t *tuner) open(ctx context.Context, b *built, k *baseline) (*engine.Interpreter, error) {
	return engine.Open(ctx, b.Model, engine.Options{
		Workers: t.Workers / t.concurrent, Limits: t.Limits, Baseline: k.session, Identity: func(t *ir.Tensor) string { return b.tensors[t] },
	})
}

// reset drops cached activations: other layers need others.
func (k *baseline) reset(free int64) {
	if k != nil {
		k.values, k.free = nil, free
	}
}

// close closes the baseline, if there is one.
func (k *baseline) close() error {
	if k == nil {
		return nil
	}
	if k.session != nil {
		return errors.Join(k.session.Close(), k.built.close())
	}
	return k.built.close()
}

// inputs are the model inputs of run number at and the named activations.
func (k *baseline) inputs(ctx context.Context, at int, in map[string]*ir.Array, names []string) (map[string]*ir.Array, error) {
	if len(names) == 0 {
		return in, nil
	}
	for len(k.values) <= at {
		k.values = append(k.values, map[string]*ir.Array{})
	}
	all := maps.Clone(in)
	maps.Copy(all, k.values[at])
	missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return all[name] != nil })
	if len(missing) == 0 {
		return all, nil
	}
	got, err := k.compute(ctx, in, missing)
	if err != nil {
		return nil, err
	}
	for name, a := range got {
		if all[name] = a; a.Bytes() <= k.free {
			k.free -= a.Bytes()
			k.values[at][name] = a
		}
	}
	return all, nil
}

// errComplete ends a run after the last requested activation.
var errComplete = errors.New("all values are computed")

// compute runs the source until the named activations are computed.
func (k *baseline) compute(ctx context.Context, in map[string]*ir.Array, names []string) (map[string]*ir.Array, error) {
	got := map[string]*ir.Array{}
	err := k.session.Watch(ctx, verify.InputsOf(k.session, in), names, func(name string, a *ir.Array) error {
		if got[name] = a.Clone(); len(got) == len(names) {
			return errComplete
		}
		return nil
	})
	if err != nil && !errors.Is(err, errComplete) {
		return nil, err
	}
	return got, nil
}

// tensorsOf identifies the constants of a file by their order.
func tensorsOf(m *ir.Model) map[*ir.Tensor]string {
	names := map[*ir.Tensor]string{}
	for g := range m.Graphs() {
		for _, v := range g.Consts() {
			names[v.Const] = strconv.Itoa(len(names))
		}
	}
	return names
}
