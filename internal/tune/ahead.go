package tune

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/internal/engine"
)

// A measurement is a candidate for a layer that is to be measured.
type measurement struct {
	layer   *layer
	variant *variant
}

// An opened is the model of a measurement with its session.
type opened struct {
	measurement
	*built
	session *engine.Interpreter
	err     error
}

// close closes the session and the model, if they are open.
func (o opened) close() error {
	if o.err != nil {
		return nil
	}
	return errors.Join(o.session.Close(), o.built.close())
}

// An ahead opens the models of measurements, in order: the next one while the one before it runs, if there are several workers.
type ahead struct {
	todo   []measurement
	open   func(measurement) opened
	worker bool        // for the next one
	next   chan opened // nil if none was started
}

// take returns the next model.
func (a *ahead) take() opened {
	var o opened
	if a.next != nil {
		o = <-a.next
	} else {
		o = a.open(a.todo[0])
	}
	a.next, a.todo = nil, a.todo[1:]
	if a.worker && len(a.todo) > 0 && o.err == nil {
		next, m := make(chan opened, 1), a.todo[0]
		a.next = next
		go func() { next <- a.open(m) }()
	}
	return o
}

// close closes the model that was not taken.
func (a *ahead) close() error {
	if a.next == nil {
		return nil
	}
	return (<-a.next).close()
}

// pending are the measurements of this process that the journal does not have.
func (t *tuner) pending(layers []*layer, mine []bool) []measurement {
	var list []measurement
	for i, l := range layers {
		for j := range l.variants {
			known := false
			if t.Journal != nil {
				_, known = t.Journal.Result(unitOf(t.Candidates, l, &l.variants[j]))
			}
			if mine[i] && !known {
				list = append(list, measurement{l, &l.variants[j]})
			}
		}
	}
	return list
}

// openVariant applies one candidate to one layer. The session shares activations and weights with k.
func (t *tuner) openVariant(ctx context.Context, k *baseline, m measurement) opened {
	step, err := t.Candidates[m.variant.candidate].Step(only(m.layer.weights(m.variant.candidate)), Measuring, t.calibrate)
	if err != nil {
		return opened{err: err}
	}
	b, err := t.build(ctx, append(slices.Clone(t.Prefix), step))
	if err != nil {
		return opened{err: err}
	}
	s, err := t.openOn(ctx, b, k)
	if err != nil {
		return opened{err: errors.Join(t.named(m, err), b.close())}
	}
	return opened{measurement: m, built: b, session: s}
}

// named adds the variant to an error.
func (t *tuner) named(m measurement, err error) error {
	return fmt.Errorf("%s of %s: %w", t.Candidates[m.variant.candidate].Name, strings.Join(m.layer.names, ", "), err)
}
