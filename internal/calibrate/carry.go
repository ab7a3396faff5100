package calibrate

import (
	"context"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A carryRunner runs a model for the outputs that are inputs of the next run: caches, states.
type carryRunner struct {
	session *engine.Interpreter
	state   *dataset.State
	before  map[string]*ir.Array // inputs of the run before, whose outputs are due
}

// newCarryRunner is nil if no outputs are carried.
func newCarryRunner(ctx context.Context, s *pass.Step, m *ir.Model, set *dataset.Set) (*carryRunner, error) {
	pairs := set.Carry()
	if len(pairs) == 0 {
		return nil, nil
	}
	session, err := engine.Open(ctx, m, engine.Options{Workers: s.Env.Workers, Limits: s.Env.Limits})
	if err != nil {
		return nil, err
	}
	return &carryRunner{session: session, state: dataset.NewState(pairs)}, nil
}

// next adds the carried inputs to those of a batch.
func (c *carryRunner) next(ctx context.Context, b *dataset.Batch) error {
	if c == nil {
		return nil
	}
	// One run late, as only a sample that goes on needs the outputs of its last run.
	if !c.state.Starts(b) {
		out, err := c.session.Run(ctx, c.before, c.state.Fetch(nil))
		if err != nil {
			return err
		}
		c.state.Keep(out)
	}
	b.Inputs = c.state.Inputs(b)
	c.before = b.Inputs
	return nil
}

func (c *carryRunner) close() {
	if c != nil {
		_ = c.session.Close() // nothing was written that could be lost
	}
}
