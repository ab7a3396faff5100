package distill

import (
	"math"

	"github.com/mcompress/mcompress/ir"
)

// An optimizer is a way to change weights by their gradients.
type optimizer struct {
	name   string
	op     string
	rate   float64 // by default
	attrs  []*ir.Attr
	states func(w ir.Spec) []ir.Spec // what it keeps of earlier gradients
}

// optimizers is the list of optimisers.
var optimizers = []optimizer{
	{"adam", "AdamUpdate", 1e-3, nil, twice},
	{"adamw", "AdamUpdate", 1e-3, []*ir.Attr{ir.IntAttr("decoupled", 1)}, twice},
	{"adam8", "Adam8Update", 1e-3, nil, narrow},
	{"momentum", "SGDUpdate", 1e-2, nil, func(w ir.Spec) []ir.Spec { return []ir.Spec{w} }},
	{"sgd", "SGDUpdate", 1e-2, nil, func(ir.Spec) []ir.Spec { return nil }},
}

func twice(w ir.Spec) []ir.Spec { return []ir.Spec{w, w} }

// block8 is how many 8-bit states share a scale.
const block8 = 256

// narrow are the states of 8-bit Adam: codes and the scales of their blocks.
func narrow(w ir.Spec) []ir.Spec {
	codes := ir.Spec{DType: ir.Uint8, Shape: w.Shape}
	scales := ir.Spec{DType: ir.Float, Shape: []int64{(w.Elems() + block8 - 1) / block8}}
	return []ir.Spec{codes, codes, scales, scales}
}

func optimizerNames() []string {
	var names []string
	for _, o := range optimizers {
		names = append(names, o.name)
	}
	return names
}

// chosen is the optimizer of the settings.
func (s *settings) chosen() optimizer {
	for _, o := range optimizers {
		if o.name == s.optimizer {
			if o.name == "momentum" {
				o.attrs = append(o.attrs, ir.FloatAttr("momentum", float32(s.momentum)))
			}
			return o
		}
	}
	return optimizers[0]
}

// schedules say what share of the rate is left when a share of the course is over.
var schedules = []struct {
	name string
	at   func(done float64) float64
}{
	{"cosine", func(done float64) float64 { return (1 + math.Cos(math.Pi*done)) / 2 }},
	{"linear", func(done float64) float64 { return 1 - done }},
	{"step", func(done float64) float64 { return math.Pow(0.1, math.Floor(3*done)) }},
	{"constant", func(float64) float64 { return 1 }},
}

func scheduleNames() []string {
	var names []string
	for _, s := range schedules {
		names = append(names, s.name)
	}
	return names
}

// rateAt is the learning rate of a step, counted from 0.
func (s *settings) rateAt(step, steps int) float64 {
	rate := s.rate
	if rate == 0 {
		rate = s.chosen().rate * s.kind.rate
	}
	warm := int(s.warmup * float64(steps))
	if step < warm {
		return rate * float64(step+1) / float64(warm)
	}
	for _, c := range schedules {
		if c.name == s.schedule {
			return rate * c.at(float64(step-warm)/float64(max(1, steps-warm)))
		}
	}
	return rate
}
