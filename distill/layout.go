package distill

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A layout says how a step fits into memory.
type layout struct {
	batch      int // samples of a step
	parts      int // that a batch is computed in
	checkpoint string
	room       int64          // for what checkpoint "within" keeps
	cuts       []grad.Segment // of checkpoint "auto", once they were chosen
	light      bool           // what costs little is computed again
	half       bool           // activations and their gradients are kept in 16 bits
	disk       bool           // activations are kept on disk
	away       bool           // the optimiser's states are kept on disk
}

// part is the number of samples that are computed at once.
func (p *layout) part() int { return p.batch / p.parts }

// apart reports whether weights are changed by a graph of its own.
func (p *layout) apart() bool { return p.parts > 1 || p.away }

// layout is what the settings ask for.
func (s *settings) layout() (*layout, error) {
	p := &layout{batch: s.batch, parts: s.accumulate, checkpoint: s.checkpoint, half: s.storage == "float16"}
	p.disk = s.offload == "activations" || s.offload == "all"
	p.away = s.offload == "optimizer" || s.offload == "all"
	_, err := p.every()
	return p, err
}

// every is N of checkpoint every=N, 0 for another one.
func (p *layout) every() (int, error) {
	text, ok := strings.CutPrefix(p.checkpoint, "every=")
	switch {
	case ok:
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return 0, pass.OptionErrorf("--checkpoint %s: N must be a positive number of layers", p.checkpoint)
		}
		return n, nil
	case p.checkpoint == "none" || p.checkpoint == light || p.checkpoint == "sqrt" || p.checkpoint == "auto" || p.checkpoint == within:
		return 0, nil
	}
	return 0, pass.OptionErrorf("--checkpoint %s: unknown value; use one of none, light, sqrt, every=N, auto", p.checkpoint)
}

// Checkpoints that are not named by segments.
const (
	within = "within" // keeps as much as there is room for
	light  = "light"  // computes again what costs little
)

// segments are the parts of the forward graph that are computed again.
func (p *layout) segments(t *grad.Tape) []grad.Segment {
	profile := t.Profile()
	n, _ := p.every()
	switch {
	case n > 0:
		return profile.Every(n)
	case p.checkpoint == "sqrt":
		return profile.Sqrt()
	case p.checkpoint == "auto":
		return p.cuts
	case p.checkpoint == within:
		return profile.Within(p.room)
	}
	return nil
}

// mostWhole is the size up to which an activation is kept as it is: another form of it would save nothing
// worth its time.
const mostWhole = 4 << 10

// apply changes how activations are kept.
func (p *layout) apply(ctx context.Context, t *grad.Tape, folder string) error {
	t.Recompute(p.segments(t))
	if p.light || p.checkpoint == light {
		t.Renew()
	}
	if !p.half && !p.disk {
		return nil
	}
	if p.half {
		if err := t.Halve(ctx, mostWhole); err != nil {
			return err
		}
	}
	for i, v := range t.Kept() {
		if t.Bytes(v) <= mostWhole || t.DType(v) != ir.Float && t.DType(v) != ir.Float16 {
			continue
		}
		if p.disk {
			p.offload(t, v, filepath.Join(folder, fmt.Sprintf("activation.%d", i)))
		} else if t.DType(v) == ir.Float {
			t.Stash(v, half(t, "StoreHalf"), half(t, "LoadHalf"))
		}
	}
	return nil
}

func half(t *grad.Tape, typ string) func(*ir.Value) *ir.Node {
	return func(v *ir.Value) *ir.Node { return t.New(ir.OpID{Domain: "mcompress", Type: typ}, []*ir.Value{v}) }
}

// offload keeps v in a file, in 16 bits if that is asked for.
func (p *layout) offload(t *grad.Tape, v *ir.Value, path string) {
	at := ir.StringAttr("path", path)
	t.Stash(v, func(v *ir.Value) *ir.Node {
		return t.New(ir.OpID{Domain: "mcompress", Type: "Offload"}, []*ir.Value{v}, at)
	}, func(token *ir.Value) *ir.Node {
		return t.New(ir.OpID{Domain: "mcompress", Type: "Restore"}, []*ir.Value{token}, at,
			ir.IntAttr("dtype", int64(t.DType(v))), ir.IntsAttr("shape", t.Shape(v)...))
	})
}

// String says what is done to save memory.
func (p *layout) String() string {
	var words []string
	add := func(is bool, format string, args ...any) {
		if is {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	add(p.checkpoint == within, "activations beyond %s are recomputed", humanize.IBytes(uint64(p.room)))
	add(p.checkpoint != within && p.checkpoint != "none", "activation checkpointing (%s)", p.checkpoint)
	add(p.parts > 1, "gradient accumulation (batch of %d in %d micro-batches)", p.batch, p.parts)
	add(p.half, "activations and their gradients stored in float16")
	add(p.disk, "activations offloaded to disk")
	add(p.away, "optimizer state offloaded to disk")
	if len(words) == 0 {
		return "no memory savings"
	}
	return strings.Join(words, "; ")
}
