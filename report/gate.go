package report

import (
	"fmt"
	"slices"
	"strings"
)

// A Limit is a bound that a result must keep, named as the flag that sets it.
type Limit struct {
	Name  string
	Bound float64
}

// A Gate is a limit with its verdict.
type Gate struct {
	Name  string  `json:"name"`
	Bound float64 `json:"bound"`
	Value float64 `json:"value"`
	Held  bool    `json:"held"`
}

// A rule is what a gate looks at, and which side of its bound is right.
type rule struct {
	name   string
	value  func(*Report) float64
	atMost bool
	show   func(float64) string // in enough digits to see why it did not hold
}

var rules = []rule{
	{"require-coverage", func(r *Report) float64 { return r.Coverage.share() }, false, func(v float64) string { return fmt.Sprintf("%.6g %%", 100*v) }},
	{"min-ratio", func(r *Report) float64 { return ratio(r.Totals.FileBytes) }, false, func(v float64) string { return fmt.Sprintf("%.6g×", v) }},
	{"max-size", func(r *Report) float64 { return float64(r.Totals.FileBytes.After) }, true, func(v float64) string { return count(int64(v)) + " bytes" }},
}

func ruleOf(name string) (rule, error) {
	i := slices.IndexFunc(rules, func(r rule) bool { return r.name == name })
	if i < 0 {
		return rule{}, fmt.Errorf("report: no gate is called %q; there are %s", name, strings.Join(gateNames(), ", "))
	}
	return rules[i], nil
}

func gateNames() []string {
	names := make([]string, len(rules))
	for i, r := range rules {
		names[i] = r.name
	}
	return names
}

// judge decides on values as they are and shows them rounded.
func judge(r *Report, limits []Limit) ([]Gate, error) {
	gates := []Gate{}
	for _, l := range limits {
		rule, err := ruleOf(l.Name)
		if err != nil {
			return nil, err
		}
		v := rule.value(r)
		held := v >= l.Bound
		if rule.atMost {
			held = v <= l.Bound
		}
		gates = append(gates, Gate{l.Name, l.Bound, round(v, 6), held})
	}
	return gates, nil
}

// Passed reports whether every gate held.
func (r *Report) Passed() bool {
	return !slices.ContainsFunc(r.Gates, func(g Gate) bool { return !g.Held })
}
