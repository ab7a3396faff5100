package mcompress

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

// Compression ratios for which a summary names another method.
const (
	lowRatio   = 1.5 // below
	worthwhile = 1.3 // minimum ratio of the other method to the method used
)

// maxGraph is the size of a graph, of about 100,000 nodes or initializers, from which a dry run of another method takes
// seconds.
const maxGraph = 4 << 20

// needsAlternative reports whether the result is hardly smaller than its source, and would be much smaller without the
// weights that the method skipped. It is found by a dry run, which large graphs do without.
func needsAlternative(r *report.Report) bool {
	file := r.Totals.FileBytes
	if compression(file) >= lowRatio || r.Totals.GraphBytes() > maxGraph {
		return false
	}
	without := file
	for _, row := range r.Untouched() {
		without.After -= row.Before.Bytes
	}
	return compression(without) >= worthwhile*compression(file)
}

func compression(c report.Change) float64 { return float64(c.Before) / float64(max(1, c.After)) }

// alternative states what method would give on the same model: the operator whose weights have the most bytes among
// those that only it quantizes, and its compression ratio, from the report of its dry run. Empty if it gives little
// more.
func alternative(r, other *report.Report, method string) string {
	if compression(other.Totals.FileBytes) < worthwhile*compression(r.Totals.FileBytes) {
		return ""
	}
	kept := map[[2]string]bool{}
	for _, row := range r.Untouched() {
		kept[[2]string{row.Scope, row.Tensor}] = true
	}
	by := map[string]*operatorWeights{}
	for _, row := range other.Ledger {
		if at := [2]string{row.Scope, row.Tensor}; row.Status != pass.Changed.String() || !kept[at] ||
			len(row.Consumers) == 0 {
			continue
		}
		name, _, _ := strings.Cut(row.Consumers[0], " ")
		if by[name] == nil {
			by[name] = &operatorWeights{operator: name}
		}
		by[name].count++
		by[name].bytes += row.Before.Bytes
	}
	if len(by) == 0 {
		return ""
	}
	o := slices.MaxFunc(slices.Collect(maps.Values(by)), func(a, b *operatorWeights) int {
		return cmp.Or(cmp.Compare(a.bytes, b.bytes), cmp.Compare(b.operator, a.operator))
	})
	part := float64(o.bytes) / float64(max(1, r.Totals.FileBytes.Before))
	return fmt.Sprintf("%d weights of %s, %.0f %% of the file, are not quantized: --method %s gives about %.1f×", o.count,
		o.operator, 100*part, method, compression(other.Totals.FileBytes))
}

// An operatorWeights is the weights of an operator.
type operatorWeights struct {
	operator string
	count    int
	bytes    int64
}
