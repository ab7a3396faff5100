package memplan

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/onnx"
)

// TrainOptions describe a training.
type TrainOptions struct {
	memory.Training
	Batches    []int64          // sizes of dynamic batch axes; one run of 1 if empty
	Dims       map[string]int64 // sizes of dynamic axes by name
	Checkpoint string           // none, sqrt or every=N
}

// Training is the memory of training. All sizes are bytes, on one device.
type Training struct {
	Optimizer  string           `json:"optimizer"`
	Precision  string           `json:"precision"`
	ZeRO       int              `json:"zero_stage"`
	Devices    int              `json:"devices"`
	Parameters int64            `json:"parameters"` // their number
	States     memory.States    `json:"states"`
	Total      memory.Placement `json:"total"` // of states, or of the last run

	Checkpoint string      `json:"checkpoint,omitempty"`
	Unplanned  string      `json:"unplanned,omitempty"` // why there are no runs
	Fixed      bool        `json:"batch_fixed"`         // the batch axis is static
	Runs       []*TrainRun `json:"runs,omitempty"`
}

// A TrainRun is the memory of one training step, without persistent states.
type TrainRun struct {
	Batch       int64       `json:"batch"`
	Total       int64       `json:"total"`       // on the device, states included
	Activations int64       `json:"activations"` // maximum of live bytes of values at a step
	Peak        int64       `json:"peak"`        // maximum of live bytes of values and their gradients at a step
	AtStep      int         `json:"peak_step"`   // from 0
	AtNode      string      `json:"peak_node"`
	Segments    int         `json:"segments"` // that recompute their values, except the last; 1 without activation checkpointing
	Unknown     int         `json:"unknown_values"`
	Layers      []Layer     `json:"layers"`
	Steps       []TrainStep `json:"steps"`

	passes *memory.Passes
}

// A Layer is one node of a training step.
type Layer struct {
	Node       string `json:"node"`
	Op         string `json:"op"`
	Output     int64  `json:"output"`     // memory of its outputs; 0 if they are in place
	Kept       int64  `json:"kept"`       // saved for the backward pass
	Gradient   int64  `json:"gradient"`   // gradients of values that its backward pass allocates
	Difference int64  `json:"difference"` // kept less gradient: released by its backward pass
}

// A TrainStep is the live bytes while the forward or backward pass of a node runs.
type TrainStep struct {
	Name      string `json:"name"`
	Bytes     int64  `json:"bytes"`
	Gradients int64  `json:"gradients"` // gradients of values among these
}

// TrainParameters is the memory of training a number of parameters, without activations.
func TrainParameters(params int64, o TrainOptions) (*Training, error) {
	s, err := o.States(params)
	if err != nil {
		return nil, err
	}
	return &Training{
		Optimizer: o.Optimizer, Precision: o.Precision, ZeRO: o.ZeRO, Devices: max(1, o.Devices), Parameters: params, States: s, Total: s.Total(),
	}, nil
}

// Train is the memory of training f. No weight is read. A model that the engine cannot plan has
// states only.
func Train(ctx context.Context, f *onnx.File, o TrainOptions) (*Training, error) {
	if _, err := checkpointing(o.Checkpoint); err != nil {
		return nil, err
	}
	t, err := TrainParameters(count(f), o)
	if err != nil {
		return nil, err
	}
	t.Checkpoint = o.Checkpoint
	p, err := open(ctx, f.Model, Options{Workers: 1, Plain: true, Dims: o.Dims, keep: true})
	var missing *engine.Unsupported
	var untyped *untypedError
	if errors.As(err, &missing) || errors.As(err, &untyped) {
		t.Unplanned = err.Error()
		return t, nil
	}
	if err != nil {
		return nil, err
	}
	defer p.close()
	t.Fixed = p.fixed
	batches := o.Batches
	if len(batches) == 0 || p.fixed {
		batches = []int64{1}
	}
	for _, n := range batches {
		r, err := p.train(f.Model, n, o)
		if err != nil {
			return nil, p.withBatch(n, err)
		}
		r.Total = r.Peak + t.States.Total().Device
		t.Runs, t.Total.Device = append(t.Runs, r), r.Total
	}
	return t, nil
}

// count is the number of parameters, those of subgraphs and functions included.
func count(f *onnx.File) int64 {
	n := int64(0)
	for g := range f.Model.Graphs() {
		for _, v := range parameters(g) {
			n += v.Const.Elems()
		}
	}
	return n
}

// A segmentation divides a tape into segments for activation checkpointing.
type segmentation func(*memory.Tape) ([]int, error)

// checkpointing parses none, sqrt and every=N.
func checkpointing(word string) (segmentation, error) {
	switch word {
	case "none", "":
		return func(*memory.Tape) ([]int, error) { return nil, nil }, nil
	case "sqrt":
		return (*memory.Tape).Checkpoints, nil
	}
	text, every := strings.CutPrefix(word, "every=")
	n, err := strconv.Atoi(text)
	if !every || err != nil || n < 1 {
		return nil, fmt.Errorf("invalid checkpoint %q; use none, sqrt or every=N", word)
	}
	return func(t *memory.Tape) ([]int, error) { return t.Every(n), nil }, nil
}
