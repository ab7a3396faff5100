package calibrate

import (
	"flag"
	"github.com/mcompress/mcompress/pass"
	"math"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// A Range is what values of a tensor lie in, as far as codes are to stand for them. Zero always lies in it.
type Range struct {
	Min float64 `json:"min"`
	Max float64 `json:"max"`
}

// An Observer finds the ranges of values by one of several rules. It holds a histogram a value at most.
type Observer struct {
	rule       string
	percentile float64
	seen       map[string]*seen
}

// seen is what is known of one value.
type seen struct {
	histogram
	spoilt string // why it has no range
	mean   Range  // of the ranges of single runs
	runs   int
}

// A rule makes a range of what was seen, for codes of so many steps.
type rule struct {
	name   string
	counts bool // it needs the histogram
	fit    func(o *Observer, s *seen, steps int) Range
}

// rules are those of --calibrator.
func rules() []rule {
	return []rule{
		{"mse", true, func(_ *Observer, s *seen, steps int) Range { return s.leastError(steps) }},
		{"minmax", false, func(_ *Observer, s *seen, _ int) Range { return s.all() }},
		{"moving-average", false, func(_ *Observer, s *seen, _ int) Range { return s.mean }},
		{"percentile", true, func(o *Observer, s *seen, _ int) Range { return s.share(o.percentile / 100) }},
		{"entropy", true, func(_ *Observer, s *seen, steps int) Range { return s.leastDivergence(steps) }},
	}
}

func ruleNames() []string {
	var names []string
	for _, r := range rules() {
		names = append(names, r.name)
	}
	return names
}

// Bind declares the options.
func (o *Observer) Bind(fs *flag.FlagSet) {
	fs.StringVar(&o.rule, "calibrator", "mse", "`rule` that ranges follow from: "+strings.Join(ruleNames(), ", "))
	fs.Float64Var(&o.percentile, "percentile", 99.99, "`percent` of the numbers that lie in a range, of percentile")
}

// Check reports options that make no sense.
func (o *Observer) Check() error {
	if !slices.Contains(ruleNames(), o.rule) {
		return pass.OptionErrorf("--calibrator %s: there are %s", o.rule, strings.Join(ruleNames(), ", "))
	}
	if !(o.percentile >= 50 && o.percentile <= 100) {
		return pass.OptionErrorf("--percentile %v: it goes from 50 to 100", o.percentile)
	}
	return nil
}

func (o *Observer) chosen() rule {
	i := slices.IndexFunc(rules(), func(r rule) bool { return r.name == o.rule })
	return rules()[i]
}

// Visit takes in what one run made of a value.
func (o *Observer) Visit(name string, a *ir.Array) error {
	s := o.seen[name]
	if s == nil {
		if o.seen == nil {
			o.seen = map[string]*seen{}
		}
		s = &seen{}
		o.seen[name] = s
	}
	s.add(a, o.chosen().counts)
	return nil
}

func (s *seen) add(a *ir.Array, counts bool) {
	switch {
	case a.Kind != ir.Dense || a.DType != ir.Float:
		s.spoilt = "it is no tensor of float32"
		return
	case a.Elems() == 0:
		return
	}
	x := ir.View[float32](a)
	if kernel.AbsMaxBits(x) >= math.Float32bits(float32(math.Inf(1))) {
		s.spoilt = "it holds NaN or infinities"
		return
	}
	lo, hi := kernel.MinMax(x)
	s.average(Range{min(0, float64(lo)), max(0, float64(hi))})
	if counts {
		s.histogram.add(x)
		return
	}
	s.low, s.top = min(s.low, lo), max(s.top, hi)
}

// weight is that of one more run in the moving average: ONNX Runtime's averaging constant.
const weight = 0.01

func (s *seen) average(r Range) {
	s.runs++
	if s.runs == 1 {
		s.mean = r
		return
	}
	s.mean.Min += float64(weight * (r.Min - s.mean.Min))
	s.mean.Max += float64(weight * (r.Max - s.mean.Max))
}

// all is the range of everything that was seen.
func (s *seen) all() Range { return Range{float64(s.low), float64(s.top)} }

// Range is that of a value, for codes of so many steps, or why there is none.
func (o *Observer) Range(name string, steps int) (r Range, why string) {
	s := o.seen[name]
	switch {
	case s == nil || s.runs == 0 && s.spoilt == "":
		return r, "no run made it"
	case s.spoilt != "":
		return r, s.spoilt
	case s.low == 0 && s.top == 0:
		return r, ""
	}
	return o.chosen().fit(o, s, steps), ""
}
