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

// A kin is the source, held while models are measured in which one weight is stored in another way. What they compute as it does, in front
// of that weight, is taken from it, as are the weights behind. For that all of them are raised to one opset.
type kin struct {
	*built
	opset   int64
	session *engine.Interpreter    // nil where the source cannot be raised, or takes too much memory
	values  []map[string]*ir.Array // by run, of those that damage is measured on
	room    int64                  // bytes that values may still take; what has none is computed again
}

// valuesOfKin is the part of the memory that its values may take.
const valuesOfKin = 8

// related is the source at the opset that candidates need.
func (t *tuner) related(ctx context.Context) (*kin, error) {
	b, err := t.build(ctx, t.Prefix)
	if err != nil {
		return nil, err
	}
	k := &kin{built: b, opset: max(t.opset, b.Model.Opset(""))}
	if err := k.raise(ctx, b); err != nil {
		return nil, errors.Join(err, b.close())
	}
	if b.Model.Opset("") < k.opset {
		return k, nil
	}
	s, err := t.beside(ctx, b, k)
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	if _, streamed := s.Weights(); streamed > 0 {
		return k, s.Close()
	}
	k.session = s
	return k, nil
}

// raise brings b to k's opset, if that can be.
func (k *kin) raise(ctx context.Context, b *built) error {
	var no *opset.Unsupported
	if err := opset.Raise(ctx, b.eval, b.Model, k.opset); !errors.As(err, &no) {
		return err
	}
	return nil
}

// beside opens b, with what it has in common with k.
func (t *tuner) beside(ctx context.Context, b *built, k *kin) (*engine.Interpreter, error) {
	return engine.Open(ctx, b.Model, engine.Options{
		Workers: t.Workers / t.atOnce, MemoryLimit: t.Memory, Baseline: k.session, Identity: func(t *ir.Tensor) string { return b.tensors[t] },
	})
}

// forget gives values up: those of another layer are others.
func (k *kin) forget(room int64) { k.values, k.room = nil, room }

func (k *kin) close() error {
	if k.session != nil {
		return errors.Join(k.session.Close(), k.built.close())
	}
	return k.built.close()
}

// with are the inputs of run number at, and the values of these names.
func (k *kin) with(ctx context.Context, at int, in map[string]*ir.Array, names []string) (map[string]*ir.Array, error) {
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
		if all[name] = a; a.Bytes() <= k.room {
			k.room -= a.Bytes()
			k.values[at][name] = a
		}
	}
	return all, nil
}

// errComplete ends a run that was asked for what is there.
var errComplete = errors.New("all values are there")

// compute runs the source until these values are there.
func (k *kin) compute(ctx context.Context, in map[string]*ir.Array, names []string) (map[string]*ir.Array, error) {
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

// tensorsOf tells constants of a file apart, by their order.
func tensorsOf(m *ir.Model) map[*ir.Tensor]string {
	names := map[*ir.Tensor]string{}
	for g := range m.Graphs() {
		for _, v := range g.Consts() {
			names[v.Const] = strconv.Itoa(len(names))
		}
	}
	return names
}
