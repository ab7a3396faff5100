package tune

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/verify"
	"github.com/mcompress/mcompress/ir"
)

// A measurer measures candidates for layers.
type measurer struct {
	*tuner
	baseline *baseline // nil before the first measurement
	bytes    int64     // of the file without any candidate
}

// pending are the measurements of this process that the journal does not have.
func (m *measurer) pending(layers []*layer, mine []bool) []measurement {
	var list []measurement
	for i, l := range layers {
		for j := range l.variants {
			known := false
			if m.Journal != nil {
				_, known = m.Journal.Result(unitOf(m.Candidates, l, &l.variants[j]))
			}
			if mine[i] && !known {
				list = append(list, measurement{l, &l.variants[j]})
			}
		}
	}
	return list
}

// openVariant applies one candidate to one layer. The session shares activations and weights with the baseline.
func (m *measurer) openVariant(ctx context.Context, v measurement) variantModel {
	step, err := m.Candidates[v.variant.candidate].Step(only(v.layer.weights(v.variant.candidate)), Measuring, m.calibrate)
	if err != nil {
		return variantModel{err: err}
	}
	b, err := m.build(ctx, append(slices.Clone(m.Prefix), step))
	if err != nil {
		return variantModel{err: m.named(v, err)}
	}
	s, err := m.openOn(ctx, b)
	if err != nil {
		return variantModel{err: errors.Join(m.named(v, err), b.close())}
	}
	return variantModel{measurement: v, builtModel: b, session: s}
}

// named adds the variant to an error.
func (m *measurer) named(v measurement, err error) error {
	return fmt.Errorf("%s of %s: %w", m.Candidates[v.variant.candidate].Name, strings.Join(v.layer.names, ", "), err)
}

// openOn opens b for runs from the first value that differs from the baseline.
func (m *measurer) openOn(ctx context.Context, b *builtModel) (*engine.Interpreter, error) {
	if m.baseline.session != nil {
		if err := m.baseline.raise(ctx, b); err != nil {
			return nil, err
		}
	}
	return m.open(ctx, b, m.baseline)
}

// measure runs s, with activations of the baseline as inputs, on the sensitivity samples.
func (m *measurer) measure(ctx context.Context, s *engine.Interpreter) (*outputError, error) {
	d := &outputError{noise: map[string]float64{}, signal: map[string]float64{}}
	first := m.sensitivityOutputs.rewind()
	type pair struct{ want, got map[string]*ir.Array }
	run, given := 0, s.BaselineInputs()
	start := func(b *dataset.Batch) (func(context.Context) (pair, error), error) {
		want, err := first.Run(ctx, b.Inputs, nil)
		if err != nil {
			return nil, &verify.SideError{Side: verify.First, Err: err}
		}
		in, err := m.baseline.inputs(ctx, run, b.Inputs, given)
		if err != nil {
			return nil, &verify.SideError{Side: verify.First, Err: err}
		}
		run++
		return func(ctx context.Context) (pair, error) {
			got, err := s.Run(ctx, verify.InputsOf(s, in), nil)
			return pair{want, got}, err
		}, nil
	}
	err := verify.InOrder(ctx, m.concurrent, m.set.Batches(ctx, m.order(m.sensitivityRuns)), start,
		func(b *dataset.Batch, p pair) error {
			d.add(verify.NewPadding(m.sensitivityOutputs, b), p.want, p.got)
			return nil
		})
	return d, err
}

// variant measures the file size and the sensitivity of a variant.
func (m *measurer) variant(ctx context.Context, o variantModel) error {
	o.variant.bytes = o.layer.bytes + m.size(o.builtModel) - m.bytes
	d, err := m.measure(ctx, o.session)
	if err != nil {
		return m.named(o.measurement, err)
	}
	o.variant.sensitivity = d.sensitivity(m.byScores())
	return nil
}
