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

// An augment changes images before teacher and student see them.
type augment struct {
	session *engine.Interpreter
	input   string // of the model
}

// newAugment opens the graph that --augment asks for; nil without.
func newAugment(ctx context.Context, t *Trainer) (*augment, error) {
	if t.settings.augment == "" {
		return nil, nil
	}
	if len(t.ports) != 1 {
		return nil, fmt.Errorf("--augment requires a model with one input, an image; this one has %d inputs", len(t.ports))
	}
	spec := t.first[t.ports[0].Name]
	tape := grad.Empty()
	x, counter := tape.Input("x", spec.DType, spec.Shape...), tape.Input("step", ir.Int64, 1)
	x.Type.Shape[0] = ir.Dim{N: -1}
	for i, word := range words(t.settings.augment) {
		typ, attrs, err := change(word)
		if err != nil {
			return nil, err
		}
		attrs = append(attrs, ir.IntAttr("seed", int64(t.seed)+int64(i)))
		x = tape.Own(typ, 1, []*ir.Value{x, counter}, append(attrs, sides(spec.Shape)...)...)[0]
	}
	tape.Graph().AddOutput(x)
	s, err := engine.Open(ctx, tape.Model, engine.Options{Workers: t.workers})
	if err != nil {
		return nil, err
	}
	return &augment{s, t.ports[0].Name}, nil
}

// change is the operator for one word of --augment.
func change(word string) (string, []*ir.Attr, error) {
	name, text, _ := strings.Cut(word, "=")
	n, err := strconv.Atoi(text)
	switch {
	case word == "flip":
		return "AugmentFlip", nil, nil
	case name == "shift" && err == nil && n > 0:
		return "AugmentShift", []*ir.Attr{ir.IntAttr("shift", int64(n))}, nil
	}
	return "", nil, pass.OptionErrorf("--augment %s: unknown augmentation; use shift=PIXELS or flip", word)
}

// sides are the attributes for images that lie in vectors: they are taken to be square.
func sides(shape []int64) []*ir.Attr {
	if len(shape) != 2 {
		return nil
	}
	side := int64(1)
	for side*side < shape[1] {
		side++
	}
	return []*ir.Attr{ir.IntAttr("height", side), ir.IntAttr("width", shape[1]/side)}
}

// apply changes the images of a batch.
func (a *augment) apply(ctx context.Context, in map[string]*ir.Array, step int) (map[string]*ir.Array, error) {
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

func (a *augment) close() error {
	if a == nil {
		return nil
	}
	return a.session.Close()
}
