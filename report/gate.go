package report

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/mcompress/mcompress/report/verification"
)

// A Limit is the bound of a gate, named as the flag that sets it.
type Limit struct {
	Name  string
	Bound float64
}

// A Gate is a limit with its result.
type Gate struct {
	Name   string   `json:"name"`
	Bound  float64  `json:"bound"`
	Value  *float64 `json:"value,omitempty"`  // absent where it is infinite or not known
	Reason string   `json:"reason,omitempty"` // why there is no value
	Held   bool     `json:"held"`
	// not evaluated, as nothing was written that could be run, or as there is no baseline
	Open  bool `json:"open,omitempty"`
	First bool `json:"first,omitempty"` // not evaluated, as there is no baseline yet: the result is the first one
}

// A rule is all that is known of a gate: the table rules has one for each, and nothing else lists gates.
type rule struct {
	name string
	unit unit // of the bound and the value
	// A line for help, in which a word in backquotes stands for the bound.
	doc      string
	value    func(*Report) (v float64, why string) // as verification.Rule's
	atMost   bool
	kind     GateKind
	relative bool // to a baseline
}

// A unit is how the quantity of a gate is read and shown.
type unit struct {
	parse func(string) (float64, error)
	show  func(float64) string // in enough digits to see why it failed
}

var (
	inFraction = unit{parseFraction, percentText}
	inPoints   = unit{parseFraction, points}
	inCosine   = unit{parseFraction, numberText}
	inFactor   = unit{parseFactor, factor}
	inBytes    = unit{parseBytes, func(v float64) string { return count(int64(v)) + " bytes" }}
	inDecibels = unit{parseDecibels, decibels}
	inNumber   = unit{parseNumber, numberText}
)

// rules are the rules of all gates in the order of help: those on files, on runs, and relative to a baseline.
func rules() []rule {
	rs := []rule{
		{
			name:  "require-coverage",
			unit:  inFraction,
			value: knownGates(func(r *Report) float64 { return r.Coverage.fraction() }),
			doc:   "minimum `fraction` of the bytes of weights that is compressed, from 0 to 1",
		},
		{name: "min-ratio", unit: inFactor, value: knownGates(func(r *Report) float64 { return ratio(r.Totals.FileBytes) }),
			doc: "minimum compression ratio, a `factor`"},
		{
			name:   "max-size",
			unit:   inBytes,
			atMost: true,
			value:  knownGates(func(r *Report) float64 { return float64(r.Totals.FileBytes.After) }),
			doc:    "maximum `size` of the files of the result",
		},
		{name: "min-sqnr", unit: inDecibels, doc: "minimum output SQNR in `decibels`, of every float output"},
		{name: "min-cosine", unit: inCosine, doc: "minimum `cosine` similarity of every float output"},
		{name: "min-agreement", unit: inFraction, doc: "minimum top-1 agreement, a `fraction` of the samples"},
		{name: "max-accuracy-drop", unit: inPoints,
			doc: "maximum accuracy drop, a `fraction` of the samples (0.01 is 1 point); requires data with labels"},
		{
			name: "max-metric-drop",
			unit: inNumber,
			doc:  "maximum drop of --metric or --evaluator, a `number` in its unit",
		},
		{name: "max-latency-ratio", unit: inFactor,
			doc: "maximum time of a run divided by that of the source, a `factor`: minimum of interleaved runs by --backend"},
	}
	for _, of := range verification.Rules() {
		i := slices.IndexFunc(rs, func(r rule) bool { return r.name == of.Name })
		rs[i].value, rs[i].atMost, rs[i].kind = ran(of), of.Maximum, OnOutputs
		if of.Timed {
			rs[i].kind = OnTime
		}
	}
	return append(rs, baselineRules()...)
}

// ParseBound is the bound of the gate of that name from text, in its unit and within its range: "0.01", "1.5", "10MB".
func ParseBound(gate, text string) (float64, error) {
	r, err := ruleOf(gate)
	if err != nil {
		return 0, err
	}
	return r.unit.parse(text)
}

// GateDoc is a line about the gate of that name for help, in which a word in backquotes stands for the bound.
func GateDoc(gate string) string {
	r, err := ruleOf(gate)
	if err != nil {
		return ""
	}
	return r.doc
}

func parseFraction(text string) (float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x >= 0 && x <= 1) {
		return 0, errors.New("want a fraction from 0 to 1")
	}
	return x, nil
}

func parseFactor(text string) (float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x > 0) || math.IsInf(x, 0) {
		return 0, errors.New("want a positive number")
	}
	return x, nil
}

func parseNumber(text string) (float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !finite(x) {
		return 0, errors.New("want a number")
	}
	return x, nil
}

func parseDecibels(text string) (float64, error) {
	x, err := parseNumber(text)
	if err != nil {
		return 0, errors.New("want a number of decibels")
	}
	return x, nil
}

func parseBytes(text string) (float64, error) {
	n, err := humanize.ParseBytes(text)
	if err != nil || n == 0 || n > math.MaxInt64 {
		return 0, errors.New("invalid size; use e.g. 256MiB (2^28 bytes), 10MB (10^7 bytes) or 4096")
	}
	return float64(n), nil
}

func knownGates(of func(*Report) float64) func(*Report) (float64, string) {
	return func(r *Report) (float64, string) { return of(r), "" }
}

func ran(of verification.Rule) func(*Report) (float64, string) {
	return func(r *Report) (float64, string) { return of.Value(r.Verification) }
}

func percentText(v float64) string { return fmt.Sprintf("%.6g %%", 100*v) }

// points is a difference of fractions, in percentage points.
func points(v float64) string {
	text := fmt.Sprintf("%.6g", 100*v)
	if text == "1" {
		return text + " point"
	}
	return text + " points"
}

func numberText(v float64) string { return fmt.Sprintf("%.9g", v) }

func factor(v float64) string { return fmt.Sprintf("%.6g×", v) }

func decibels(v float64) string { return fmt.Sprintf("%.6g dB", v) }

// GateNames are the names of all gates.
func GateNames() []string {
	var names []string
	for _, r := range rules() {
		names = append(names, r.name)
	}
	return names
}

func ruleOf(name string) (rule, error) {
	for _, r := range rules() {
		if r.name == name {
			return r, nil
		}
	}
	return rule{}, fmt.Errorf("report: unknown gate %q; gates are %s", name, strings.Join(GateNames(), ", "))
}

// finiteGate fails, without having been asked for, where an output is not finite and that of the source is.
const finiteGate = "finite"

// evaluate compares unrounded values.
func evaluate(r *Report, limits []Limit) ([]Gate, error) {
	gates := []Gate{}
	for _, l := range limits {
		rule, err := ruleOf(l.Name)
		if err != nil {
			return nil, err
		}
		gates = append(gates, rule.evaluate(r, l))
	}
	if g, ok := r.finite(); ok {
		gates = append(gates, g)
	}
	return gates, nil
}

// finite is the gate of that name, false where it holds: it is none then.
func (r *Report) finite() (Gate, bool) {
	if v := r.Verification; v != nil && v.Lost() != "" {
		return Gate{Name: finiteGate, Reason: v.Lost()}, true
	}
	return Gate{}, false
}

func (rule rule) evaluate(r *Report, l Limit) Gate {
	g := Gate{Name: l.Name, Bound: l.Bound}
	if rule.relative && r.Baseline != nil && r.Baseline.None {
		g.Open, g.First, g.Reason = true, true, "there is no baseline yet"
		return g
	}
	if rule.kind != OnFiles && r.Verification == nil {
		if g.Open, g.Reason = r.Result.Planned, "the models were not run"; g.Open {
			g.Reason = "dry run, the models were not run"
		}
		return g
	}
	v, why := rule.value(r)
	g.Reason = why
	if finite(v) {
		digits := 6
		if rule.kind != OnFiles {
			digits = 9 // a cosine is close to 1
		}
		v := round(v, digits)
		g.Value = &v
	}
	// NaN, a value that is not known, is within no bound of either direction.
	if g.Held = v >= l.Bound; rule.atMost {
		g.Held = v <= l.Bound
	}
	return g
}

// Evaluate evaluates other limits on r, relative to a baseline, which may be nil.
func (r *Report) Evaluate(limits []Limit, b *Baseline) ([]Gate, error) {
	against := *r
	against.Baseline = b
	return evaluate(&against, limits)
}

// EvaluateGates evaluates limits on the comparison of two models without a report.
func EvaluateGates(v *verification.Result, limits []Limit) ([]Gate, error) {
	return evaluate(&Report{Verification: v}, limits)
}

// Relative reports whether the gate of that name is relative to a baseline.
func Relative(gate string) bool {
	rule, err := ruleOf(gate)
	return err == nil && rule.relative
}

// Passed reports whether every evaluated gate passed.
func (r *Report) Passed() bool { return Passed(r.Gates) }

// Passed reports whether every evaluated gate passed.
func Passed(gates []Gate) bool {
	return !slices.ContainsFunc(gates, func(g Gate) bool { return !g.Held && !g.Open })
}

// mark and class are the result on a page.
func (g Gate) mark() string {
	return map[string]string{"passed": "✓", "failed": "✗", "open": "–"}[g.class()]
}

func (g Gate) class() string {
	switch {
	case g.Open:
		return "open"
	case g.Held:
		return "passed"
	}
	return "failed"
}

// Failure is what g, which did not hold, has instead of its bound.
func (g Gate) Failure() string {
	if g.Name == finiteGate {
		return g.Reason
	}
	value, relation, bound := g.Shown()
	return fmt.Sprintf("%s, not %s %s", value, relation, bound)
}

// Shown is the value of a gate, or why there is none, and its bound.
func (g Gate) Shown() (value, relation, bound string) {
	if g.Name == finiteGate {
		return g.Reason, "=", "0 elements"
	}
	value, relation = g.Reason, "≥"
	rule, err := ruleOf(g.Name)
	if err != nil { // a gate of a later version
		rule.unit.show = func(v float64) string { return fmt.Sprint(v) }
		relation = "against"
	}
	if rule.atMost {
		relation = "≤"
	}
	if g.Value != nil {
		value = rule.unit.show(*g.Value)
	}
	return value, relation, rule.unit.show(g.Bound)
}
