package calibrate

import (
	"math"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A Range is the clipping range of a tensor's values for quantization. It always contains zero.
type Range struct {
	Min float64 `json:"min"`
	Max float64 `json:"max"`
}

// An Observer computes activation ranges by one of several rules. It holds at most one histogram per value.
type Observer struct {
	Rule       string  // of the ranges
	Percentile float64 // of the numbers in a range, for the rule of that name
	seen       map[string]*statistics
}

// statistics are those of one value.
type statistics struct {
	histogram
	invalid pass.Code // the reason why there is no range
	mean    Range     // moving average of the ranges of single runs
	runs    int
}

// A rule computes a range from the observed statistics, for a number of quantization steps.
type rule struct {
	name   string
	counts bool // it needs a histogram
	fit    func(o *Observer, s *statistics, steps int) Range
}

// rules are the values of --calibrator.
func rules() []rule {
	return []rule{
		{"mse", true, func(_ *Observer, s *statistics, steps int) Range { return s.leastError(steps) }},
		{"minmax", false, func(_ *Observer, s *statistics, _ int) Range { return s.all() }},
		{"moving-average", false, func(_ *Observer, s *statistics, _ int) Range { return s.mean }},
		{"percentile", true, func(o *Observer, s *statistics, _ int) Range { return s.percentile(o.Percentile / 100) }},
		{"entropy", true, func(_ *Observer, s *statistics, steps int) Range { return s.leastDivergence(steps) }},
	}
}

func ruleNames() []string {
	var names []string
	for _, r := range rules() {
		names = append(names, r.name)
	}
	return names
}

// Check reports invalid options.
func (o *Observer) Check() error {
	if !slices.Contains(ruleNames(), o.Rule) {
		return pass.OptionErrorf("--calibrator %s: must be one of %s", o.Rule, strings.Join(ruleNames(), ", "))
	}
	if !(o.Percentile >= 50 && o.Percentile <= 100) {
		return pass.OptionErrorf("--percentile %v: must be from 50 to 100", o.Percentile)
	}
	return nil
}

func (o *Observer) selectedRule() rule {
	i := slices.IndexFunc(rules(), func(r rule) bool { return r.name == o.Rule })
	return rules()[i]
}

// Visit adds a value of one run.
func (o *Observer) Visit(name string, a *ir.Array) error {
	s := o.seen[name]
	if s == nil {
		if o.seen == nil {
			o.seen = map[string]*statistics{}
		}
		s = &statistics{}
		o.seen[name] = s
	}
	s.add(a, o.selectedRule().counts)
	return nil
}

func (s *statistics) add(a *ir.Array, counts bool) {
	switch {
	case a.Kind != ir.Dense || a.DType != ir.Float:
		s.invalid = pass.FloatTypes
		return
	case a.Elems() == 0:
		return
	}
	x := ir.View[float32](a)
	if kernel.AbsMaxBits(x) >= math.Float32bits(float32(math.Inf(1))) {
		// For good, even if other runs are finite: a range would not hold what the model computes.
		s.invalid = pass.FloatNotFinite
		return
	}
	lo, hi := kernel.MinMax(x)
	// One run counts once, however many elements it has.
	s.average(Range{min(0, float64(lo)), max(0, float64(hi))})
	if counts {
		s.histogram.add(x)
		return
	}
	s.low, s.top = min(s.low, lo), max(s.top, hi)
}

// weight is the weight of a new run in the moving average: ONNX Runtime's averaging constant.
const weight = 0.01

func (s *statistics) average(r Range) {
	s.runs++
	if s.runs == 1 {
		s.mean = r
		return
	}
	s.mean.Min += float64(weight * (r.Min - s.mean.Min))
	s.mean.Max += float64(weight * (r.Max - s.mean.Max))
}

// all is the range of all observed values.
func (s *statistics) all() Range { return Range{float64(s.low), float64(s.top)} }

// Range is the clipping range of a value for a number of quantization steps, or the reason why there is none.
func (o *Observer) Range(name string, steps int) (r Range, reason pass.Code) {
	s := o.seen[name]
	switch {
	case s == nil || s.runs == 0 && s.invalid == "":
		return r, pass.FloatNotObserved
	case s.invalid != "":
		return r, s.invalid
	case s.low == 0 && s.top == 0:
		return r, ""
	}
	return o.selectedRule().fit(o, s, steps), ""
}
