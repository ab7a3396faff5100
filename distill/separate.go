package distill

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/ir"
)

// An update changes weights by the sums of their gradients, in graphs of its own: one for all weights, or one for each where
// the optimiser's states are kept on disk and only one weight's are in memory.
type update struct {
	norm  *changer // computes hyper-parameters with clipping; nil without
	parts []*changer
	vars  []*variable
	arena int64
}

// A changer is one graph of updates.
type changer struct {
	session       *engine.Interpreter
	feeds         map[string]*ir.Array
	hyper, frozen string
	outputs       []string
	vars          []*variable
	file          string // holds the states of the only variable; empty if they are in memory
}

// newUpdate makes the graphs, if the layout asks for any.
func (t *Trainer) newUpdate(ctx context.Context, p *layout) (_ *update, err error) {
	if !p.apart() {
		return nil, nil
	}
	u := &update{vars: t.order}
	if t.clip > 0 {
		if u.norm, err = t.normGraph(ctx); err != nil {
			return nil, err
		}
	}
	if !p.away {
		c, err := t.changer(ctx, t.order)
		u.parts = []*changer{c}
		return u, errors.Join(err, u.measure())
	}
	for i, v := range t.order {
		c, err := t.changer(ctx, []*variable{v})
		if err != nil {
			return nil, err
		}
		c.file = filepath.Join(t.folder, fmt.Sprintf("states.%d", i))
		if err := c.leave(); err != nil {
			return nil, err
		}
		u.parts = append(u.parts, c)
	}
	return u, u.measure()
}

// changer makes the graph for some variables.
func (t *Trainer) changer(ctx context.Context, vars []*variable) (_ *changer, err error) {
	tape := grad.Empty()
	g := newUpdating(&t.settings, tape)
	c := &changer{feeds: g.feeds, vars: vars}
	c.hyper, c.frozen = g.hypers()
	for _, v := range vars {
		sum := tape.Input(v.name+".sum", ir.Float, v.array.Shape...)
		g.feeds[sum.Name] = v.buffer
		g.add(v, g.weight(v), sum)
	}
	tape.Graph().AddOutput(g.total())
	c.outputs = []string{tape.Graph().Outputs[0].Name}
	c.session, err = engine.Open(ctx, tape.Model, engine.Options{Workers: t.workers})
	return c, err
}

// normGraph makes the graph that bounds the norm of all gradients together.
func (t *Trainer) normGraph(ctx context.Context) (_ *changer, err error) {
	tape := grad.Empty()
	g := newUpdating(&t.settings, tape)
	c := &changer{feeds: g.feeds}
	c.hyper, c.frozen = g.hypers()
	var sums []*ir.Value
	for _, v := range t.order {
		sum := tape.Input(v.name+".sum", ir.Float, v.array.Shape...)
		g.feeds[sum.Name] = v.buffer
		sums = append(sums, sum)
	}
	g.clipTo(sums)
	for _, v := range []*ir.Value{g.hyper, g.frozen} {
		tape.Graph().AddOutput(v)
		c.outputs = append(c.outputs, v.Name)
	}
	c.session, err = engine.Open(ctx, tape.Model, engine.Options{Workers: t.workers})
	return c, err
}

// measure notes the largest arena of the graphs, of which one runs at a time.
func (u *update) measure() error {
	for _, c := range append(u.parts, u.norm) {
		if c == nil || c.session == nil {
			continue
		}
		n, err := usage(c.session)
		if err != nil {
			return err
		}
		u.arena = max(u.arena, n)
	}
	return nil
}

// run changes all weights and empties the sums. It returns the sum of the gradients' squares.
func (u *update) run(ctx context.Context, n numbers) (total float64, err error) {
	hyper, frozen := n.hyper(n.decay), n.hyper(0)
	if u.norm != nil {
		out, err := u.norm.run(ctx, hyper, frozen)
		if err != nil {
			return 0, err
		}
		hyper, frozen = out[u.norm.outputs[0]], out[u.norm.outputs[1]]
	}
	for _, c := range u.parts {
		if err := c.fetch(); err != nil {
			return 0, err
		}
		out, err := c.run(ctx, hyper, frozen)
		if err != nil {
			return 0, err
		}
		total += float64(ir.View[float32](out[c.outputs[0]])[0])
		if err := c.leave(); err != nil {
			return 0, err
		}
	}
	for _, v := range u.vars {
		clear(v.buffer.Data)
	}
	return total, nil
}

func (c *changer) run(ctx context.Context, hyper, frozen *ir.Array) (map[string]*ir.Array, error) {
	args := map[string]*ir.Array{c.hyper: hyper, c.frozen: frozen}
	for name, a := range c.feeds {
		args[name] = a
	}
	return c.session.Run(ctx, args, nil)
}

// fetch reads the states of the only variable into memory, if they are on disk.
func (c *changer) fetch() error {
	if c.file == "" {
		return nil
	}
	f, err := os.Open(c.file)
	if err != nil {
		return err
	}
	defer f.Close()
	off := int64(0)
	for _, s := range c.vars[0].states {
		s.Data = ir.AlignedBytes(s.Bytes())
		if err := ir.ReadFull(f, s.Data, off); err != nil {
			return err
		}
		off += int64(len(s.Data))
	}
	return nil
}

// leave writes the states back, and gives their memory up.
func (c *changer) leave() (err error) {
	if c.file == "" {
		return nil
	}
	f, err := os.OpenFile(c.file, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for _, s := range c.vars[0].states {
		if _, err := f.Write(s.Data); err != nil {
			return err
		}
		s.Data = nil
	}
	return nil
}

// states calls f for each variable with its states in memory.
func (u *update) states(f func(v *variable) error) error {
	for _, c := range u.parts {
		if err := c.fetch(); err != nil {
			return err
		}
		for _, v := range c.vars {
			if err := f(v); err != nil {
				return err
			}
		}
		if err := c.leave(); err != nil {
			return err
		}
	}
	return nil
}

func (u *update) close() error {
	if u == nil {
		return nil
	}
	var errs []error
	for _, c := range append(u.parts, u.norm) {
		if c != nil && c.session != nil {
			errs = append(errs, c.session.Close())
		}
	}
	return errors.Join(errs...)
}
