package report

import (
	"fmt"
	"math"
	"reflect"
	"slices"
)

// Inconsistencies compares figures of r with their ranges and with others that they follow from, one line for each
// difference: totals of files, coverage of weights, weights and ledger, errors, verdict, and values and results of
// gates. A report that Build made and Read has read has none.
func (r *Report) Inconsistencies() []string {
	lines := outOfRange(r)
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	r.accountedFor(add)
	r.countsAgree(add)
	if want := (Change{fileBytes(r.before()), fileBytes(r.Result)}); r.Totals.FileBytes != want {
		add(
			"totals.file_bytes is %d → %d, its files have %d → %d bytes",
			r.Totals.FileBytes.Before,
			r.Totals.FileBytes.After,
			want.Before,
			want.After,
		)
	}
	if r.Reference != nil &&
		!slices.ContainsFunc(r.Teachers, func(t Teacher) bool { return reflect.DeepEqual(t.Side, *r.Reference) }) {
		add("the reference %s is none of the teachers", main(*r.Reference))
	}
	if want := round(ratio(r.Totals.FileBytes), 4); r.Totals.Ratio != want {
		add("totals.ratio is %v, its files have %v", r.Totals.Ratio, want)
	}
	if want := coverage(r.Weights); r.Coverage != want {
		add("coverage is %s, the weights have %s", r.Coverage.text(), want.text())
	}
	if want := NewVerdict(r.Gates, r.Verification); !reflect.DeepEqual(r.Verdict, want) {
		add(
			"the verdict is %s on %s, its gates and samples give %s on %s",
			r.Verdict.Text(),
			r.Verdict.Evidence,
			want.Text(),
			want.Evidence,
		)
	}
	if v := r.Verification; v != nil && v.Accuracy != nil && !v.Accuracy.Consistent() {
		add("the accuracy %s is not that of its numbers of samples", v.Accuracy.Text())
	}
	if want, is := r.finite(); is && !slices.Contains(r.Gates, want) {
		add("gate %s: not recorded, %s", want.Name, want.Reason)
	}
	for _, g := range r.Gates {
		if text := r.inconsistency(g); text != "" {
			add("gate %s: %s", g.Name, text)
		}
	}
	return lines
}

// inconsistency is the first difference of g from the figures of r; "" if there is none.
func (r *Report) inconsistency(g Gate) string {
	if g.Name == finiteGate {
		if want, _ := r.finite(); want != g {
			return "recorded, but the figures of the report have no such loss"
		}
		return ""
	}
	rule, err := ruleOf(g.Name)
	if err != nil {
		return "not known to this version"
	}
	// The gate is evaluated again by the figures of the report: an edit of one of them does not follow in the
	// other.
	want := rule.evaluate(r, Limit{g.Name, g.Bound})
	switch {
	case want.Open != g.Open || (want.Value == nil) != (g.Value == nil):
		return fmt.Sprintf("recorded as %s, the report has %s", g.text(), want.text())
	case g.Value == nil && want.Held != g.Held:
		return fmt.Sprintf("recorded as %s, it %s", g.class(), want.class())
	case g.Value == nil:
		return ""
	case math.Abs(*g.Value-*want.Value) > gateRounding*max(1, math.Abs(*want.Value)):
		return fmt.Sprintf(
			"the value is %s, the figures of the report give %s",
			rule.unit.show(*g.Value),
			rule.unit.show(*want.Value),
		)
	case math.Abs(*g.Value-g.Bound) > gateRounding*max(1, math.Abs(g.Bound)) &&
		(*g.Value > g.Bound == rule.atMost) == g.Held:
		return fmt.Sprintf(
			"recorded as %s with %s against the bound %s",
			g.class(),
			rule.unit.show(*g.Value),
			rule.unit.show(g.Bound),
		)
	}
	return ""
}

// gateRounding is the maximum relative difference of a gate's value, which is that before rounding, and the rounded
// figure of the report.
const gateRounding = 1e-3

// text is whether g has a value.
func (g Gate) text() string {
	switch {
	case g.Open:
		return "not evaluated"
	case g.Value == nil:
		return "without a value"
	}
	return "evaluated"
}
