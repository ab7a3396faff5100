package distill

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"hash"
	"maps"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// An identity is the digests of what training depends on, by content: paths do not matter. The samples are those that
// the model gets, with their labels: after all that options change in them.
type identity struct{ Options, Model, Data, Teachers string }

// difference names what differs between the training of a checkpoint and this one; empty if nothing does.
func (i identity) difference(now identity) string {
	var parts []string
	for _, p := range []struct{ name, was, is string }{
		{"another model", i.Model, now.Model}, {"other data, labels or preprocessing", i.Data, now.Data},
		{"other teachers", i.Teachers, now.Teachers}, {"other options", i.Options, now.Options},
	} {
		if p.was != p.is {
			parts = append(parts, p.name)
		}
	}
	return strings.Join(parts, " and ")
}

// newIdentity computes the identity of a training.
func newIdentity(ctx context.Context, b *graphBuilder, teachers []*ir.Model) (i identity, err error) {
	if i.Model, err = modelDigest(ctx, b.eval, b.model); err != nil {
		return i, err
	}
	for _, m := range teachers {
		sum, err := modelDigest(ctx, b.eval, m)
		if err != nil {
			return i, fmt.Errorf("teacher: %w", err)
		}
		i.Teachers += sum
	}
	if i.Data, err = b.loader.digest(ctx); err != nil {
		return i, err
	}
	i.Options = b.optionsDigest()
	return i, nil
}

// optionsDigest returns the digest of the options, but for those of data, teachers and checkpoints.
func (b *graphBuilder) optionsDigest() string {
	h := sha256.New()
	excluded := flag.NewFlagSet("", flag.ContinueOnError)
	pass.Declare(excluded, &pass.Samples{})
	for _, name := range []string{"save", "save-every", "resume", "teacher"} {
		excluded.String(name, "", "")
	}
	fmt.Fprintln(h, b.settings.method)
	for _, o := range pass.Values(b.settings.options) {
		if excluded.Lookup(o.Name) == nil {
			fmt.Fprintln(h, o.Name, o.Value)
		}
	}
	fmt.Fprintf(h, "evaluator %v %q\n", b.settings.Evaluator != nil, b.settings.EvaluatorID)
	fmt.Fprintf(h, "%v %d %d\n", b.fakeQuant.options(), len(b.loader.training), len(b.loader.validation))
	// The selection of weights, and which zeros are kept: options of the step and not of the training.
	for _, p := range b.params.weights {
		fmt.Fprintf(h, "%s %s %v\n", p.name, p.array, p.pruned)
	}
	return sum(h)
}

func sum(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }

// modelDigest returns the digest of a model: its text, which has all but the payloads of large tensors, and these.
func modelDigest(ctx context.Context, e *ir.Eval, m *ir.Model) (string, error) {
	h := sha256.New()
	if err := m.Text(ctx, e, h); err != nil {
		return "", err
	}
	for g := range m.Graphs() {
		for _, v := range g.Consts() {
			r, err := e.Open(ctx, v.Const)
			if err == nil {
				err = ir.Copy(ctx, h, r, v.Const.Bytes())
			}
			if err != nil {
				return "", fmt.Errorf("tensor %q: %w", v.Name, err)
			}
		}
	}
	return sum(h), nil
}

// digest returns that of all samples.
func (l *loader) digest(ctx context.Context) (string, error) {
	h := sha256.New()
	write := func(name string, a *ir.Array) {
		fmt.Fprintf(h, "%s %s %q\n", name, a, a.Text)
		h.Write(a.Data)
	}
	for b, err := range l.set.Batches(ctx, dataset.Order{Size: readBatch, Reuse: true}) {
		if err != nil {
			return "", err
		}
		// In order, since the digest must not depend on that of a map.
		for _, name := range slices.Sorted(maps.Keys(b.Inputs)) {
			write(name, b.Inputs[name])
		}
		if b.Labels != nil {
			write("labels", b.Labels)
		}
	}
	return sum(h), nil
}
