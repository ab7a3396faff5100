package tune

import (
	"errors"

	"github.com/mcompress/mcompress/internal/engine"
)

// A measurement is a candidate for a layer that is to be measured.
type measurement struct {
	layer   *layer
	variant *variant
}

// A variantModel is the model of a measurement with its session.
type variantModel struct {
	measurement
	*builtModel
	session *engine.Interpreter
	err     error
}

// close closes the session and the model, if they are open.
func (o variantModel) close() error {
	if o.err != nil {
		return nil
	}
	return errors.Join(o.session.Close(), o.builtModel.close())
}

// A prefetcher opens the models of measurements, in order: the next one while the one before it runs, if there are
// several workers.
type prefetcher struct {
	todo   []measurement
	open   func(measurement) variantModel
	worker bool              // for the next one
	next   chan variantModel // nil if none was started
}

// take returns the next model.
func (a *prefetcher) take() variantModel {
	var o variantModel
	if a.next != nil {
		o = <-a.next
	} else {
		o = a.open(a.todo[0])
	}
	a.next, a.todo = nil, a.todo[1:]
	// One model ahead: each holds memory. The order is that of the measurements, so that results do not depend on who
	// is faster.
	if a.worker && len(a.todo) > 0 && o.err == nil {
		next, m := make(chan variantModel, 1), a.todo[0]
		a.next = next
		go func() { next <- a.open(m) }()
	}
	return o
}

// close closes the model that was not taken.
func (a *prefetcher) close() error {
	if a.next == nil {
		return nil
	}
	// Also after an error of another measurement: the goroutine ends before the source is closed, whose files it
	// reads.
	return (<-a.next).close()
}
