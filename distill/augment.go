package distill

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// An augmenter changes training images randomly, for teacher and student alike.
type augmenter struct {
	session *engine.Interpreter
	input   string // of the model
}

// newAugmenter opens the graph of --augment; nil without.
func newAugmenter(ctx context.Context, l *loader) (*augmenter, error) {
	if l.settings.Augment == "" {
		return nil, nil
	}
	if len(l.inputs) != 1 {
		return nil, fmt.Errorf("--augment requires a model with one input, an image; this one has %d inputs", len(l.inputs))
	}
	spec := l.sample[l.inputs[0].Name]
	graph := grad.NewBuilder()
	x, counter := graph.Input("x", spec.DType, spec.Shape...), graph.Input("step", ir.Int64, 1)
	x.Type.Shape[0] = ir.Dim{N: -1}
	for i, item := range items(l.settings.Augment) {
		typ, attrs, err := augmentation(item)
		if err != nil {
			return nil, err
		}
		attrs = append(attrs, ir.IntAttr("seed", int64(*l.settings.Seed)+int64(i)))
		x = graph.Own(typ, 1, []*ir.Value{x, counter}, append(attrs, imageSize(spec.Shape)...)...)[0]
	}
	graph.Graph().AddOutput(x)
	s, err := engine.Open(ctx, graph.Model, l.session())
	if err != nil {
		return nil, err
	}
	return &augmenter{s, l.inputs[0].Name}, nil
}

// augmentation returns the operator of one item of --augment.
func augmentation(item string) (string, []*ir.Attr, error) {
	name, text, _ := strings.Cut(item, "=")
	n, err := strconv.Atoi(text)
	switch {
	case item == "flip":
		return "AugmentFlip", nil, nil
	case name == "shift" && err == nil && n > 0:
		return "AugmentShift", []*ir.Attr{ir.IntAttr("shift", int64(n))}, nil
	}
	return "", nil, pass.OptionErrorf("--augment %s: unknown augmentation; use shift=PIXELS or flip", item)
}

// imageSize returns the attributes for flattened images, which are assumed to be square.
func imageSize(shape []int64) []*ir.Attr {
	if len(shape) != 2 {
		return nil
	}
	side := int64(1)
	for side*side < shape[1] {
		side++
	}
	return []*ir.Attr{ir.IntAttr("height", side), ir.IntAttr("width", shape[1]/side)}
}

// apply augments the images of a batch. a may be nil.
func (a *augmenter) apply(ctx context.Context, in map[string]*ir.Array, step int) (map[string]*ir.Array, error) {
	if a == nil {
		return in, nil
	}
	out, err := a.session.Run(ctx, map[string]*ir.Array{"x": in[a.input], "step": ir.ArrayOf([]int64{int64(step)}, 1)}, nil)
	if err != nil {
		return nil, fmt.Errorf("--augment: %w", err)
	}
	for _, y := range out {
		return map[string]*ir.Array{a.input: y}, nil
	}
	return in, nil
}

func (a *augmenter) close() error {
	if a == nil {
		return nil
	}
	return a.session.Close()
}
