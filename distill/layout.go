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

// A layout is how a training step uses memory.
type layout struct {
	batch              int            // samples per step
	microBatches       int            // per step: gradient accumulation
	checkpoint         string         // activation checkpointing
	storedBytes        int64          // of activations that checkpoint "within" stores
	segments           []grad.Segment // of checkpoint "auto", once chosen
	recomputeCheap     bool           // cheap operators are recomputed
	float16            bool           // activations and their gradients are stored in float16
	offloadActivations bool           // activations are stored on disk
	offloadOptimizer   bool           // optimizer states are stored on disk
}

// microBatch is the number of samples per run of the step's graph.
func (p *layout) microBatch() int { return p.batch / p.microBatches }

// accumulates reports whether steps accumulate gradients, and weights are updated by separate graphs.
func (p *layout) accumulates() bool { return p.microBatches > 1 || p.offloadOptimizer }

// layout returns the layout of the options.
func (s *settings) layout() (*layout, error) {
	p := &layout{batch: s.Batch, microBatches: s.Accumulate, checkpoint: s.Checkpoint, float16: s.Storage == "float16"}
	p.offloadActivations = s.Offload == "activations" || s.Offload == "all"
	p.offloadOptimizer = s.Offload == "optimizer" || s.Offload == "all"
	_, err := p.every()
	return p, err
}

// every returns N of checkpoint every=N, 0 for other modes.
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

// Activation checkpointing modes without fixed segments.
const (
	within = "within" // stores as many activations as fit into the budget; not an option of users
	light  = "light"  // recomputes cheap operators
)

// recomputed returns the segments of the forward graph that are recomputed.
func (p *layout) recomputed(a *grad.Activations) []grad.Segment {
	profile := a.Profile()
	n, _ := p.every()
	switch {
	case n > 0:
		return profile.Every(n)
	case p.checkpoint == "sqrt":
		return profile.Sqrt()
	case p.checkpoint == "auto":
		return p.segments
	case p.checkpoint == within:
		return profile.Within(p.storedBytes)
	}
	return nil
}

// smallActivation is the size in bytes up to which activations are stored unchanged: another form would not save enough to be worth
// its time.
const smallActivation = 4 << 10

// apply changes how activations are stored.
func (p *layout) apply(ctx context.Context, t *grad.Activations, folder string) error {
	t.Recompute(p.recomputed(t))
	if p.recomputeCheap || p.checkpoint == light {
		t.RecomputeCheap()
	}
	if !p.float16 && !p.offloadActivations {
		return nil
	}
	if p.float16 {
		if err := t.StoreFloat16(ctx, smallActivation); err != nil {
			return err
		}
	}
	for i, v := range t.Stored() {
		if t.Bytes(v) <= smallActivation || t.DType(v) != ir.Float && t.DType(v) != ir.Float16 {
			continue
		}
		if p.offloadActivations {
			offload(t, v, filepath.Join(folder, fmt.Sprintf("activation.%d", i)))
		} else if t.DType(v) == ir.Float {
			t.Replace(v, unary(t.Builder, "StoreHalf"), unary(t.Builder, "LoadHalf"))
		}
	}
	return nil
}

// unary returns a constructor of nodes of an operator with one input.
func unary(b *grad.Builder, typ string) func(*ir.Value) *ir.Node {
	return func(v *ir.Value) *ir.Node { return b.New(ir.OpID{Domain: "mcompress", Type: typ}, []*ir.Value{v}) }
}

// offload stores v in a file until the backward pass.
func offload(t *grad.Activations, v *ir.Value, path string) {
	file := ir.StringAttr("path", path)
	t.Replace(v, func(v *ir.Value) *ir.Node {
		return t.New(ir.OpID{Domain: "mcompress", Type: "Offload"}, []*ir.Value{v}, file)
	}, func(token *ir.Value) *ir.Node {
		return t.New(ir.OpID{Domain: "mcompress", Type: "Restore"}, []*ir.Value{token}, file,
			ir.IntAttr("dtype", int64(t.DType(v))), ir.IntsAttr("shape", t.Shape(v)...))
	})
}

// String lists the memory savings.
func (p *layout) String() string {
	var list []string
	add := func(applies bool, format string, args ...any) {
		if applies {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	add(p.checkpoint == within, "activation checkpointing (%s of activations stored)", humanize.IBytes(uint64(p.storedBytes)))
	add(p.checkpoint != within && p.checkpoint != "none", "activation checkpointing (%s)", p.checkpoint)
	add(p.microBatches > 1, "gradient accumulation (batch of %d in %d micro-batches)", p.batch, p.microBatches)
	add(p.float16, "activations and their gradients stored in float16")
	add(p.offloadActivations, "activations offloaded to disk")
	add(p.offloadOptimizer, "optimizer state offloaded to disk")
	if len(list) == 0 {
		return "no memory savings"
	}
	return strings.Join(list, "; ")
}
