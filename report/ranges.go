package report

import (
	"cmp"
	"encoding"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
)

// An interval is the values that a figure may have.
type interval struct{ low, high float64 }

var (
	anyNumber   = interval{-math.MaxFloat64, math.MaxFloat64} // finite
	notNegative = interval{0, math.MaxFloat64}
	fraction    = interval{0, 1}
	difference  = interval{-1, 1} // of two fractions
	// Of two sums of float64, which are no smaller than 2^-1074 and no larger than 2^1024.
	decibelRange = interval{-6400, 6400}
	// A sum of a few sizes is exact in JSON and does not overflow.
	amount = interval{0, 1 << 53}
)

// ranges are the ranges of the figures of a report and of its environment, by the end of their path in the JSON form:
// "agree.y" is y in agree, whatever agree is part of. The longest end counts. Whole numbers without a row are numbers
// of things or of bytes. A test requires a row for each other figure.
var ranges = map[string]interval{
	"cosine":   {-1, 1},
	"sqnr_db":  decibelRange,
	"from_db":  decibelRange,
	"to_db":    decibelRange,
	"max_abs":  notNegative,
	"sparsity": fraction,

	"totals.ratio":             notNegative,
	"modules.ratio":            notNegative,
	"coverage.share":           fraction,
	"sparsity.prunable.before": fraction,
	"sparsity.prunable.after":  fraction,
	"sparsity.all.before":      fraction,
	"sparsity.all.after":       fraction,
	// In the unit of the gate, which a metric of the user may be.
	"gates.bound": anyNumber,
	"gates.value": anyNumber,

	"agreement":                fraction,
	"accuracy.before":          fraction,
	"accuracy.after":           fraction,
	"drop.low":                 difference,
	"drop.high":                difference,
	"metric.before":            anyNumber,
	"metric.after":             anyNumber,
	"metric.value":             anyNumber,
	"metric.standard_error":    notNegative,
	"latency.before_seconds":   notNegative,
	"latency.after_seconds":    notNegative,
	"latency_seconds.source":   notNegative,
	"latency_seconds.result":   notNegative,
	"boxes.iou":                fraction,
	"boxes.matched":            fraction,
	"boxes.mean_iou":           fraction,
	"before.start":             anyNumber,
	"after.start":              anyNumber,
	"error.start":              anyNumber,
	"before.width":             notNegative,
	"after.width":              notNegative,
	"error.width":              notNegative,
	"loss.y":                   anyNumber,
	"judged.y":                 anyNumber,
	"measured.y":               anyNumber,
	"agree.y":                  fraction,
	"pruning.amount":           fraction,
	"pruning.lr":               notNegative,
	"pruning.loss":             anyNumber,
	"pruning.accuracy":         fraction,
	"pruning.metric":           anyNumber,
	"trades.saved":             {-1 << 53, 1 << 53}, // a saving may cost memory
	"trades.work":              anyNumber,
	"variants.damage":          anyNumber, // a divergence of equal scores is 0 up to rounding
	"trials.accuracy_drop":     difference,
	"trials.metric_drop":       anyNumber,
	"ir_version":               anyNumber, // of models from elsewhere, as they have it
	"opsets.version":           anyNumber,
	"shape":                    notNegative, // with an axis of 0, others have any size
	"wall_seconds":             notNegative,
	"step_seconds":             notNegative,
	"samples_per_second":       notNegative,
	"wait_seconds":             notNegative,
	"compute_seconds":          notNegative,
	"evaluate_seconds":         notNegative,
	"save_seconds":             notNegative,
	"read_seconds":             notNegative,
	"decode_seconds":           notNegative,
	"augment_seconds":          notNegative,
	"loading.bytes_per_second": notNegative,
	"config_values.from":       anyNumber, // of the configuration, as it has it
	"config_values.to":         anyNumber,
}

// rangeOf is the range of the figure at a path; false if the table has none.
func rangeOf(path string) (interval, bool) {
	for end := path; ; {
		if r, ok := ranges[end]; ok {
			return r, true
		}
		_, rest, found := strings.Cut(end, ".")
		if !found {
			return interval{}, false
		}
		end = rest
	}
}

// A check returns the first figure of a value that is out of its range, after where the value is; "" if there is none.
type check func(v reflect.Value, at string) string

// checkOf is the check of values of a type at a path; nil for those without figures. It is made once for all elements
// of a list, as reports may have a million weights.
func checkOf(t reflect.Type, path string) check {
	// The numbers of an enumeration are written as words.
	if t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		of := checkOf(t.Elem(), path)
		if of == nil {
			return nil
		}
		return func(v reflect.Value, at string) string {
			if v.IsNil() {
				return ""
			}
			return of(v.Elem(), at)
		}
	case reflect.Slice:
		of := checkOf(t.Elem(), path)
		if of == nil {
			return nil
		}
		return func(v reflect.Value, at string) string {
			for i := range v.Len() {
				if line := of(v.Index(i), ""); line != "" {
					return fmt.Sprintf("%s[%d]%s", at, i, line)
				}
			}
			return ""
		}
	case reflect.Struct:
		return checkOfFields(t, path)
	case reflect.Int, reflect.Int32, reflect.Int64:
		r, ok := rangeOf(path)
		if !ok {
			r = amount
		}
		return func(v reflect.Value, at string) string { return r.outside(float64(v.Int()), at) }
	case reflect.Float32, reflect.Float64:
		r, ok := rangeOf(path)
		if !ok {
			panic("report: no range of " + path)
		}
		return func(v reflect.Value, at string) string { return r.outside(v.Float(), at) }
	}
	return nil
}

func checkOfFields(t reflect.Type, path string) check {
	type field struct {
		index int
		name  string
		check check
	}
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() {
			continue
		}
		below := path
		if !f.Anonymous || name != "" {
			name = cmp.Or(name, f.Name)
			below = strings.TrimPrefix(path+"."+name, ".")
			name = "." + name
		}
		if c := checkOf(f.Type, below); c != nil {
			fields = append(fields, field{i, name, c})
		}
	}
	if len(fields) == 0 {
		return nil
	}
	return func(v reflect.Value, at string) string {
		for _, f := range fields {
			if line := f.check(v.Field(f.index), f.name); line != "" {
				return at + line
			}
		}
		return ""
	}
}

// outside is a line about a figure that is not in r; "" if it is.
func (r interval) outside(x float64, at string) string {
	switch {
	case x >= r.low && x <= r.high: // false for NaN
		return ""
	case r.high >= 1<<53 && r.low == 0:
		return fmt.Sprintf("%s is %v, it cannot be negative or as large as that", at, x)
	}
	return fmt.Sprintf("%s is %v, not within %v and %v", at, x, r.low, r.high)
}

// outOfRange is a line for each member of v, a pointer to a struct, with a figure that is out of its range.
func outOfRange(v any) (lines []string) {
	s := reflect.ValueOf(v).Elem()
	for _, m := range members(s) {
		if c := checkOf(m.value.Type(), m.name); c != nil {
			if line := c(m.value, m.name); line != "" {
				lines = append(lines, line)
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// Inconsistencies are lines about figures of e that no run has.
func (e *Environment) Inconsistencies() []string { return outOfRange(e) }
