package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/dustin/go-humanize"
)

// round keeps the given number of decimals.
func round(v float64, decimals int) float64 {
	p := math.Pow10(decimals)
	return math.Round(v*p) / p
}

// size formats bytes in binary units.
func size(n int64) string {
	if n < 0 {
		return "-" + humanize.IBytes(uint64(-n))
	}
	return humanize.IBytes(uint64(n))
}

func percent(fraction float64) string { return fmt.Sprintf("%.1f %%", 100*fraction) }

func times(ratio float64) string { return fmt.Sprintf("%.2f×", ratio) }

// count groups digits: 1,234,567.
func count(n int64) string { return humanize.Comma(n) }

// shape is a tensor's element type and shape, as "float 3×4".
func shape(dtype string, dims []int64) string {
	if len(dims) == 0 {
		return dtype
	}
	texts := make([]string, len(dims))
	for i, d := range dims {
		texts[i] = fmt.Sprint(d)
	}
	return dtype + " " + strings.Join(texts, "×")
}

// sqnr is the SQNR of an error; "" where none was measured.
func sqnr(e *Error) string {
	switch {
	case e == nil:
		return ""
	case e.Exact:
		return "exact"
	case e.SQNR == nil:
		return "undefined"
	}
	return fmt.Sprintf("%.1f dB", *e.SQNR)
}

func cosine(e *Error) string {
	if e == nil || e.Cosine == nil {
		return ""
	}
	return fmt.Sprintf("%.6f", *e.Cosine)
}

func maxError(e *Error) string {
	switch {
	case e == nil || e.Max == nil:
		return ""
	case *e.Max == 0:
		return "0"
	}
	return fmt.Sprintf("%.2e", *e.Max)
}

func sparsity(s *float64) string {
	if s == nil {
		return ""
	}
	return percent(*s)
}

// seconds formats a time in the unit that suits it.
func seconds(s float64) string {
	switch {
	case s >= 1:
		return fmt.Sprintf("%.3g s", s)
	case s >= 1e-3:
		return fmt.Sprintf("%.3g ms", 1e3*s)
	}
	return fmt.Sprintf("%.3g µs", 1e6*s)
}

// plural is a number of things.
func plural(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return count(n) + " " + thing + "s"
}

func joined(xs []string) string { return strings.Join(xs, " → ") }

// short is the start of a digest; the whole of it is in the provenance.
func short(digest string) string { return digest[:min(12, len(digest))] }
