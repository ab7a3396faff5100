package distill

import (
	"math"

	"github.com/mcompress/mcompress/ir"
)

// An optimizer updates weights by their gradients.
type optimizer struct {
	name   string
	op     string  // of the engine
	rate   float64 // default learning rate
	decay  float64 // default weight decay
	attrs  []*ir.Attr
	states func(w ir.Spec) []ir.Spec // for a weight
}

// optimizers is the list of optimizers.
var optimizers = []optimizer{
	{"adam", "AdamUpdate", 1e-3, 0, nil, twoMoments},
	{"adamw", "AdamUpdate", 1e-3, decoupledDecay, []*ir.Attr{ir.IntAttr("decoupled", 1)}, twoMoments},
	{"adam8", "Adam8Update", 1e-3, 0, nil, quantizedMoments},
	{"momentum", "SGDUpdate", 1e-2, 0, nil, func(w ir.Spec) []ir.Spec { return []ir.Spec{w} }},
	{"sgd", "SGDUpdate", 1e-2, 0, nil, func(ir.Spec) []ir.Spec { return nil }},
}

func twoMoments(w ir.Spec) []ir.Spec { return []ir.Spec{w, w} }

// adam8Block is the block size of 8-bit moments.
const adam8Block = 256

// quantizedMoments returns the states of 8-bit Adam: quantized moments and the scales of their blocks.
func quantizedMoments(w ir.Spec) []ir.Spec {
	moment := ir.Spec{DType: ir.Uint8, Shape: w.Shape}
	scales := ir.Spec{DType: ir.Float, Shape: []int64{(w.Elems() + adam8Block - 1) / adam8Block}}
	return []ir.Spec{moment, moment, scales, scales}
}

// chosenOptimizer returns the optimizer of the options.
func (s *settings) chosenOptimizer() optimizer {
	for _, o := range optimizers {
		if o.name == s.Optimizer {
			if o.name == "momentum" {
				// The list of the table is nil: append does not change it.
				o.attrs = append(o.attrs, ir.FloatAttr("momentum", float32(*s.Momentum)))
			}
			return o
		}
	}
	return optimizers[0]
}

// schedules return the learning rate as a fraction of the initial one, by the fraction of steps that are done.
var schedules = []struct {
	name string
	at   func(done float64) float64
}{
	{"cosine", func(done float64) float64 { return (1 + math.Cos(math.Pi*done)) / 2 }},
	{"linear", func(done float64) float64 { return 1 - done }},
	{"step", func(done float64) float64 { return math.Pow(0.1, math.Floor(3*done)) }},
	{"constant", func(float64) float64 { return 1 }},
}

// rateAt returns the learning rate of a step, counted from 0.
func (s *settings) rateAt(step, steps int) float64 {
	rate, warm := s.LR, int(*s.Warmup*float64(steps))
	if step < warm {
		// From 1: a first step with the rate 0 would be lost.
		return rate * float64(step+1) / float64(warm)
	}
	for _, c := range schedules {
		if c.name == s.Schedule {
			// Of the steps after the warmup, so that the schedule begins at the full rate and ends at the last step.
			return rate * c.at(float64(step-warm)/float64(max(1, steps-warm)))
		}
	}
	return rate
}
