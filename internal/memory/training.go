package memory

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// A Training is the options of training that determine its memory.
type Training struct {
	Optimizer string // adam, adamw, adam8, momentum or sgd
	Precision string // one of PrecisionNames
	ZeRO      int    // stage 0 to 3: partitions nothing, optimizer states, also gradients, also parameters
	Devices   int    // that train together; 0 for 1
}

// An Optimizer stores this number of moments per parameter.
type Optimizer struct {
	Name    string
	Moments int64
	// one byte each, and a float32 per 256 of them (Dettmers et al., 8-bit Optimizers via Block-wise Quantization,
	// 2021, arXiv:2110.02861)
	Bits8 bool
}

// optimizers returns the supported optimizers.
func optimizers() []Optimizer {
	return []Optimizer{{Name: "sgd"}, {Name: "momentum", Moments: 1}, {Name: "adam", Moments: 2},
		{Name: "adamw", Moments: 2}, {Name: "adam8", Moments: 2, Bits8: true}}
}

// A Precision is bytes per element.
type Precision struct {
	Name                                string
	Parameter, Gradient, Master, Moment int64
}

// precisions returns the supported precisions. Mixed is that of Micikevicius et al. (2017, arXiv:1710.03740): 16 bits
// but for optimizer states, which include a copy of the parameters. With bfloat16 nothing is in 32 bits.
func precisions() []Precision {
	return []Precision{
		{Name: "float32", Parameter: 4, Gradient: 4, Moment: 4},
		{Name: "mixed", Parameter: 2, Gradient: 2, Master: 4, Moment: 4},
		{Name: "bfloat16", Parameter: 2, Gradient: 2, Moment: 2},
	}
}

// States is the memory of model states on one device, in the terms of ZeRO.
type States struct {
	Parameters int64 `json:"parameters"`
	Gradients  int64 `json:"gradients"`
	Optimizer  int64 `json:"optimizer_states"` // float32 copies of parameters among them
}

// Total is the sum of all states.
func (s States) Total() int64 { return s.Parameters + s.Gradients + s.Optimizer }

// maxParameters is the limit at which bytes fit an int64.
const maxParameters = math.MaxInt64 / 64

// States returns the model states of params parameters. The partitioning by ZeRO stages is section 5 of Rajbhandari et
// al., ZeRO: Memory Optimizations Toward Training Trillion Parameter Models (2020, arXiv:1910.02054), rounded up per
// device.
func (t Training) States(params int64) (States, error) {
	o, p, err := t.byName()
	if err != nil {
		return States{}, err
	}
	if params < 0 || params > maxParameters {
		return States{}, fmt.Errorf("memory: %d parameters are not between 0 and %d", params, int64(maxParameters))
	}
	divided := func(from int, bytes int64) int64 {
		if t.ZeRO < from {
			return bytes
		}
		n := int64(max(1, t.Devices))
		return (bytes + n - 1) / n
	}
	return States{
		Parameters: divided(3, params*p.Parameter),
		Gradients:  divided(2, params*p.Gradient),
		Optimizer:  divided(1, params*p.Master+o.bytes(params, p)),
	}, nil
}

// byName returns optimizer and precision by name.
func (t Training) byName() (Optimizer, Precision, error) {
	o := slices.IndexFunc(optimizers(), func(o Optimizer) bool { return o.Name == t.Optimizer })
	p := slices.IndexFunc(precisions(), func(p Precision) bool { return p.Name == t.Precision })
	switch {
	case o < 0:
		return Optimizer{}, Precision{}, fmt.Errorf("memory: optimizer %q is not one of %s", t.Optimizer,
			strings.Join(optimizerNames(), ", "))
	case p < 0:
		return Optimizer{}, Precision{}, fmt.Errorf("memory: precision %q is not one of %s", t.Precision,
			strings.Join(PrecisionNames(), ", "))
	case t.ZeRO < 0 || t.ZeRO > 3:
		return Optimizer{}, Precision{}, fmt.Errorf("memory: ZeRO has stages 0 to 3, not %d", t.ZeRO)
	case t.Devices < 0:
		return Optimizer{}, Precision{}, fmt.Errorf("memory: %d devices", t.Devices)
	}
	return optimizers()[o], precisions()[p], nil
}

// optimizerNames returns the names for Training.Optimizer.
func optimizerNames() []string {
	var names []string
	for _, o := range optimizers() {
		names = append(names, o.Name)
	}
	return names
}

// PrecisionNames returns the names for Training.Precision.
func PrecisionNames() []string {
	var names []string
	for _, p := range precisions() {
		names = append(names, p.Name)
	}
	return names
}

// bytes returns the size of the moments.
func (o Optimizer) bytes(params int64, p Precision) int64 {
	if !o.Bits8 {
		return o.Moments * params * p.Moment
	}
	const block = 256
	return o.Moments * (params + 4*((params+block-1)/block))
}
