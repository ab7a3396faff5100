package distill

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/internal/engine/train"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A layout is how a training step uses memory.
type layout struct {
	batch              int             // samples per step
	microBatches       int             // per step: gradient accumulation
	checkpoint         string          // activation checkpointing
	storedBytes        int64           // of activations that checkpoint "within" stores
	segments           []grad.Segment  // of checkpoint "auto", once chosen
	recomputeCheap     bool            // cheap operators are recomputed
	storage            string          // data type of stored activations
	exact              map[string]bool // stored activations in float32, whatever the storage
	stored             conversion      // of the planned step
	offloadActivations bool            // activations are stored on disk
	offloadOptimizer   bool            // optimizer states are stored on disk
}

// microBatch is the number of samples per run of the step's graph.
func (p *layout) microBatch() int { return p.batch / p.microBatches }

// accumulates reports whether steps accumulate gradients, and weights are updated by separate graphs.
func (p *layout) accumulates() bool { return p.microBatches > 1 || p.offloadOptimizer }

// key identifies the graph of a step.
func (p *layout) key() string {
	return fmt.Sprint(p.microBatch(), p.accumulates(), p.checkpoint, p.storedBytes, p.segments, p.recomputeCheap,
		p.storage, p.exact, p.offloadActivations)
}

// layout returns the layout of the options.
func (s *settings) layout() (*layout, error) {
	p := &layout{batch: s.Batch, microBatches: s.Accumulate, checkpoint: s.Checkpoint, storage: s.Storage}
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
	case p.checkpoint == "":
		return 0, pass.OptionErrorf("--checkpoint: unknown value; use one of none, light, sqrt, every=N, auto or the " +
			"pattern of a block")
	}
	return 0, nil
}

// isPattern reports whether the checkpoint mode is the pattern of blocks.
func (p *layout) isPattern() bool {
	modes := []string{"none", light, "sqrt", "auto", within}
	return !slices.Contains(modes, p.checkpoint) && !strings.HasPrefix(p.checkpoint, "every=")
}

// Activation checkpointing modes without fixed segments.
const (
	within = "within" // stores as many activations as fit into the budget; not an option of users
	light  = "light"  // recomputes cheap operators
)

// recomputation returns the segments of the forward graph that are recomputed.
func (p *layout) recomputation(a *grad.Activations, profile grad.Profile) ([]grad.Segment, error) {
	n, _ := p.every()
	switch {
	case n > 0:
		return profile.Every(n), nil
	case p.checkpoint == "sqrt":
		return profile.Sqrt(), nil
	case p.checkpoint == "auto":
		return p.segments, nil
	case p.checkpoint == within:
		return profile.Within(p.storedBytes), nil
	case p.isPattern():
		segments, err := a.Blocks(p.checkpoint)
		if err != nil {
			return nil, pass.OptionErrorf("--checkpoint: %v; modes are none, light, sqrt, every=N and auto", err)
		}
		return segments, nil
	}
	return nil, nil
}

// smallActivation is the size in bytes up to which activations are stored unchanged: another form would not save enough
// to be worth its time.
const smallActivation = 4 << 10

// apply changes how activations are stored, of a forward graph with this profile. counter returns the input with the
// step number.
func (p *layout) apply(ctx context.Context, t *grad.Activations, profile grad.Profile, folder string,
	counter func() *ir.Value) (conversion, error) {
	segments, err := p.recomputation(t, profile)
	if err != nil {
		return conversion{}, err
	}
	t.Recompute(segments)
	if p.recomputeCheap || p.checkpoint == light {
		t.RecomputeCheap()
	}
	// Before the storage changes: what is offloaded are these values, or the other forms that they get now.
	stored := t.Stored()
	c := conversion{forms: map[string]form{}}
	switch p.storage {
	case "float16":
		err = p.storeFloat16(ctx, t, &c)
	case "int8":
		p.storeInt8(t, counter, &c)
	}
	if p.offloadActivations {
		offload(t, stored, c.forms, folder)
	}
	return c, err
}

// A form is another form of an activation: the values that are stored and restored.
type form struct{ stored, loaded *ir.Value }

// A conversion is the stored activations of another type.
type conversion struct {
	names         []string
	before, after int64           // bytes
	forms         map[string]form // by name, of those that operators do not compute on
}

func (c *conversion) addValue(v *ir.Value, before, after int64) {
	c.names, c.before, c.after = append(c.names, v.Name), c.before+before, c.after+after
}

// replace stores another form of v, of this type.
func (c *conversion) replace(t *grad.Activations, v *ir.Value, dt ir.DType, shape []int64, store,
	load func(*ir.Value) *ir.Node) {
	stored, loaded := t.Replace(v, store, load)
	f := form{stored.Outputs[0], loaded.Outputs[0]}
	t.SetType(f.stored, dt, shape...)
	c.forms[v.Name] = f
	c.addValue(v, t.Bytes(v), t.Bytes(f.stored))
}

func (p *layout) storeFloat16(ctx context.Context, t *grad.Activations, c *conversion) error {
	// First by type: values whose operators compute on Float16 are stored as they are, and only the rest is converted.
	converted, err := t.StoreFloat16(ctx, smallActivation, p.exact)
	for _, v := range converted {
		// It is a Float16 value by now.
		c.addValue(v, 2*t.Bytes(v), t.Bytes(v))
	}
	// The rest is computed in float32, and converted to be stored.
	for _, v := range t.Storable(smallActivation) {
		if !p.exact[v.Name] {
			c.replace(t, v, ir.Float16, t.Shape(v), unary(t.Builder, "StoreHalf"), unary(t.Builder, "LoadHalf"))
		}
	}
	return err
}

// storeInt8 quantizes the activations that the backward pass consumes. counter returns the input with the step number.
func (p *layout) storeInt8(t *grad.Activations, counter func() *ir.Value, c *conversion) {
	for i, v := range t.Quantizable(smallActivation) {
		if p.exact[v.Name] {
			continue
		}
		c.replace(t, v, ir.Uint8, []int64{train.QuantizedBytes(t.Bytes(v) / 4)}, func(v *ir.Value) *ir.Node {
			return t.New(ir.OpID{Domain: "mcompress", Type: "QuantizeActivation"}, []*ir.Value{v, counter()},
				ir.IntAttr("seed", int64(i)))
		}, func(q *ir.Value) *ir.Node {
			return t.New(ir.OpID{Domain: "mcompress", Type: "DequantizeActivation"}, []*ir.Value{q},
				ir.IntsAttr("shape", t.Shape(v)...))
		})
	}
}

// unary returns a constructor of nodes of an operator with one input.
func unary(b *grad.Builder, typ string) func(*ir.Value) *ir.Node {
	return func(v *ir.Value) *ir.Node { return b.New(ir.OpID{Domain: "mcompress", Type: typ}, []*ir.Value{v}) }
}

// offload stores activations, or their other forms, in files until the backward pass.
func offload(t *grad.Activations, stored []*ir.Value, forms map[string]form, folder string) {
	for i, v := range stored {
		if dt := t.DType(v); t.Bytes(v) <= smallActivation || dt != ir.Float && dt != ir.Float16 {
			continue
		}
		if f, ok := forms[v.Name]; ok {
			v = f.stored
		}
		file := ir.StringAttr("path", filepath.Join(folder, fmt.Sprintf("activation.%d", i)))
		t.Replace(v, func(v *ir.Value) *ir.Node {
			return t.New(ir.OpID{Domain: "mcompress", Type: "Offload"}, []*ir.Value{v}, file)
		}, func(token *ir.Value) *ir.Node {
			return t.New(ir.OpID{Domain: "mcompress", Type: "Restore"}, []*ir.Value{token}, file,
				ir.IntAttr("dtype", int64(t.DType(v))), ir.IntsAttr("shape", t.Shape(v)...))
		})
	}
}

// String lists the memory savings.
func (p *layout) String() string {
	var list []string
	add := func(applies bool, format string, args ...any) {
		if applies {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	add(p.checkpoint == within, "activation checkpointing (%s of activations stored)",
		humanize.IBytes(uint64(p.storedBytes)))
	add(p.checkpoint != within && p.checkpoint != "none", "activation checkpointing (%s)", p.checkpoint)
	add(p.microBatches > 1, "gradient accumulation (batch of %d in %d micro-batches)", p.batch, p.microBatches)
	add(len(p.stored.names) > 0, "%d activations stored in %s (%s instead of %s)", len(p.stored.names), p.storage,
		humanize.IBytes(uint64(p.stored.after)), humanize.IBytes(uint64(p.stored.before)))
	add(p.offloadActivations, "activations offloaded to disk")
	add(p.offloadOptimizer, "optimizer state offloaded to disk")
	if len(list) == 0 {
		return "no memory savings"
	}
	return strings.Join(list, "; ")
}
