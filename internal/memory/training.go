package memory

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// A Training is how parameters are trained, as far as memory goes.
type Training struct {
	Optimizer string // a name of Optimizers
	Precision string // a name of Precisions
	ZeRO      int    // stage 0 to 3: over devices are divided nothing, the optimizer's states, gradients too, parameters too
	Devices   int    // that train together; 0 for 1

	OffloadOptimizer, OffloadParameters bool // to the memory of the host
}

// An Optimizer keeps so many moments of each parameter from step to step.
type Optimizer struct {
	Name    string
	Moments int64
	Bits8   bool // a byte each, and for 2048 of them a float32 (Dettmers et al., 8-bit Optimizers via Block-wise Quantization, 2021, arXiv:2110.02861)
}

// Optimizers are those that Training knows.
func Optimizers() []Optimizer {
	return []Optimizer{{Name: "sgd"}, {Name: "momentum", Moments: 1}, {Name: "adam", Moments: 2}, {Name: "adam8bit", Moments: 2, Bits8: true}}
}

// A Precision is bytes for each number.
type Precision struct {
	Name                                          string
	Parameter, Gradient, Master, Moment, Activity int64
}

// Precisions are those that Training knows. Mixed is that of Micikevicius et al. (2017, arXiv:1710.03740):
// 16 bits but for what the optimizer keeps, a copy of the parameters among it. In bfloat16 nothing is
// kept in 32 bits.
func Precisions() []Precision {
	return []Precision{
		{Name: "float32", Parameter: 4, Gradient: 4, Moment: 4, Activity: 4},
		{Name: "mixed", Parameter: 2, Gradient: 2, Master: 4, Moment: 4, Activity: 2},
		{Name: "bfloat16", Parameter: 2, Gradient: 2, Moment: 2, Activity: 2},
	}
}

// A Share is bytes on one device, and in the memory of the host for this device.
type Share struct {
	Device int64 `json:"device"`
	Host   int64 `json:"host"`
}

// States is what training holds all the time for each parameter: model states in the terms of
// ZeRO.
type States struct {
	Parameters Share `json:"parameters"`
	Gradients  Share `json:"gradients"`
	Optimizer  Share `json:"optimizer_states"` // float32 copies of parameters among them
}

// Total is the sum of all states.
func (s States) Total() Share {
	return Share{
		Device: s.Parameters.Device + s.Gradients.Device + s.Optimizer.Device,
		Host:   s.Parameters.Host + s.Gradients.Host + s.Optimizer.Host,
	}
}

// mostParameters is such that bytes fit an int64.
const mostParameters = math.MaxInt64 / 64

// States are those of so many parameters. How stages of ZeRO divide them is section 5 of Rajbhandari
// et al., ZeRO: Memory Optimizations Toward Training Trillion Parameter Models (2020,
// arXiv:1910.02054); what a device has that does not divide evenly is rounded up.
func (t Training) States(params int64) (States, error) {
	o, p, err := t.settle()
	if err != nil {
		return States{}, err
	}
	if params < 0 || params > mostParameters {
		return States{}, fmt.Errorf("memory: %d parameters are not between 0 and %d", params, int64(mostParameters))
	}
	divided := func(from int, bytes int64) int64 {
		if t.ZeRO < from {
			return bytes
		}
		n := int64(max(1, t.Devices))
		return (bytes + n - 1) / n
	}
	return States{
		Parameters: on(divided(3, params*p.Parameter), t.OffloadParameters),
		Gradients:  on(divided(2, params*p.Gradient), false),
		Optimizer:  on(divided(1, params*p.Master+o.bytes(params, p)), t.OffloadOptimizer),
	}, nil
}

// settle looks names up.
func (t Training) settle() (Optimizer, Precision, error) {
	o := slices.IndexFunc(Optimizers(), func(o Optimizer) bool { return o.Name == t.Optimizer })
	p := slices.IndexFunc(Precisions(), func(p Precision) bool { return p.Name == t.Precision })
	switch {
	case o < 0:
		return Optimizer{}, Precision{}, fmt.Errorf("memory: optimizer %q is none of %s", t.Optimizer, strings.Join(OptimizerNames(), ", "))
	case p < 0:
		return Optimizer{}, Precision{}, fmt.Errorf("memory: precision %q is none of %s", t.Precision, strings.Join(PrecisionNames(), ", "))
	case t.ZeRO < 0 || t.ZeRO > 3:
		return Optimizer{}, Precision{}, fmt.Errorf("memory: ZeRO has stages 0 to 3, not %d", t.ZeRO)
	case t.Devices < 0:
		return Optimizer{}, Precision{}, fmt.Errorf("memory: %d devices", t.Devices)
	}
	return Optimizers()[o], Precisions()[p], nil
}

// OptimizerNames are the words for Training.Optimizer.
func OptimizerNames() []string {
	var names []string
	for _, o := range Optimizers() {
		names = append(names, o.Name)
	}
	return names
}

// PrecisionNames are the words for Training.Precision.
func PrecisionNames() []string {
	var names []string
	for _, p := range Precisions() {
		names = append(names, p.Name)
	}
	return names
}

// Activity is the bytes of a number between layers.
func (t Training) Activity() (int64, error) {
	_, p, err := t.settle()
	return p.Activity, err
}

// bytes are those of the moments of so many parameters.
func (o Optimizer) bytes(params int64, p Precision) int64 {
	if !o.Bits8 {
		return o.Moments * params * p.Moment
	}
	const block = 2048
	return o.Moments * (params + 4*((params+block-1)/block))
}

func on(bytes int64, host bool) Share {
	if host {
		return Share{Host: bytes}
	}
	return Share{Device: bytes}
}
