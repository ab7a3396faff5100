package doctest

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A sparseForm is a row of the section sparse-recipe of docs/benchmarks.md: a model in one form. Accuracy in percent is
// NaN without one.
type sparseForm struct {
	model, form, runtime    string
	accuracy, bytes, median float64
}

// label names form and runtime.
func (f sparseForm) label() string { return f.form + ", " + f.runtime }

// TestSparseRecipesAreThoseOfTheBenchmarks generates the table of README.md and the chart docs/sparse.svg from
// docs/benchmarks.md.
func TestSparseRecipesAreThoseOfTheBenchmarks(t *testing.T) {
	section := sparseSection(t)
	models := sparseForms(t, section)
	path := filepath.Join(root(t), "README.md")
	page := read(t, path)
	table := sparseTable(models)
	if strings.Contains(section, "`-quick`") {
		table += "\nThe times are those of a quick run, and no evidence.\n"
	}
	settle(t, path, page, between(t, page, "sparse-recipe", table))
	chart := filepath.Join(root(t), "docs", "sparse.svg")
	settle(t, chart, readIfThere(chart), sparseChart(models))
}

// sparseSection is the section sparse-recipe of docs/benchmarks.md.
func sparseSection(t *testing.T) string {
	t.Helper()
	_, section, _ := strings.Cut(read(t, root(t), "docs", "benchmarks.md"), "<!-- sparse-recipe -->\n")
	section, _, _ = strings.Cut(section, "<!-- /sparse-recipe -->")
	return section
}

// sparseForms are the forms of each model, the dense one in ONNX Runtime first.
func sparseForms(t *testing.T, section string) (models [][]sparseForm) {
	t.Helper()
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "| "), " | ")
		if len(cells) != 8 || cells[0] == "model" {
			continue
		}
		n := func(i int) float64 {
			v, err := strconv.ParseFloat(cells[i], 64)
			if err != nil && cells[i] != "–" {
				t.Fatalf("docs/benchmarks.md: %s: %v", line, err)
			}
			if err != nil {
				return math.NaN()
			}
			return v
		}
		f := sparseForm{cells[0], cells[1], cells[2], n(3), n(5), n(7)}
		if len(models) == 0 || models[len(models)-1][0].model != f.model {
			models = append(models, nil)
		}
		models[len(models)-1] = append(models[len(models)-1], f)
	}
	if len(models) == 0 {
		t.Fatal("docs/benchmarks.md has no table of sparse recipes")
	}
	return models
}

func sparseTable(models [][]sparseForm) string {
	var b strings.Builder
	b.WriteString("| model | form, runtime | accuracy | file | latency | ONNX Runtime, dense ÷ this |\n|---|---|---:|---:|---:|---:|\n")
	for _, forms := range models {
		for _, f := range forms {
			accuracy := "–"
			if !math.IsNaN(f.accuracy) {
				accuracy = fmt.Sprintf("%.1f %%", f.accuracy)
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %.3g ms | %.1f× |\n", f.model, f.label(), accuracy,
				size(int64(f.bytes)), f.median, forms[0].median/f.median)
		}
	}
	return b.String()
}

// The chart has a column of points for each form by latency, a line for each model, and areas of points by file size.
const (
	sparseLeft, sparseTop, sparseWidth, sparseHeight = 60, 60, 520, 260
	sparseRadius                                     = 16 // of the dense model
)

// sparseChart draws accuracy by latency, both compared with the dense model in ONNX Runtime: files are areas.
func sparseChart(models [][]sparseForm) string {
	models = slices.DeleteFunc(slices.Clone(models),
		func(forms []sparseForm) bool { return math.IsNaN(forms[0].accuracy) })
	slowest, lowest, highest := 1.0, math.Inf(1), math.Inf(-1)
	for _, forms := range models {
		for _, f := range forms {
			slowest = max(slowest, f.median/forms[0].median)
			lowest, highest = min(lowest, f.accuracy-forms[0].accuracy), max(highest, f.accuracy-forms[0].accuracy)
		}
	}
	low, high := math.Floor(lowest)-1, math.Ceil(highest)+1
	x := func(ratio float64) float64 { return sparseLeft + sparseWidth*ratio/(1.1*slowest) }
	y := func(points float64) float64 { return sparseTop + sparseHeight*(high-points)/(high-low) }
	var b strings.Builder
	const width, height = 860, sparseTop + sparseHeight + 50
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="system-ui, sans-serif" font-size="12">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, height)
	text(&b, 16, 22, "start", "Change of accuracy in points, by latency ÷ that of the dense model in ONNX Runtime; areas are file sizes")
	for points := low; points <= high; points++ {
		fmt.Fprintf(&b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#e3e6ea"/>`+"\n", sparseLeft, y(points),
			sparseLeft+sparseWidth, y(points))
		text(&b, sparseLeft-10, int(y(points))+4, "end", fmt.Sprintf("%+.0f", points))
	}
	for ratio := 0.0; ratio <= 1.1*slowest; ratio += 0.25 {
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#e3e6ea"/>`+"\n", x(ratio), sparseTop,
			x(ratio), sparseTop+sparseHeight)
		text(&b, int(x(ratio)), sparseTop+sparseHeight+18, "middle", fmt.Sprintf("%.2f", ratio))
	}
	row := 0
	for i, forms := range models {
		color := []string{ourColor, "#c2410c", "#15803d", "#7c3aed"}[i%4]
		text(&b, sparseLeft+sparseWidth+20, sparseTop+8+18*row, "start", forms[0].model)
		row++
		for k, f := range forms {
			px, py := x(f.median/forms[0].median), y(f.accuracy-forms[0].accuracy)
			if k > 0 {
				last := forms[k-1]
				fmt.Fprintf(&b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="1" stroke-dasharray="3 3"/>`+"\n",
					x(last.median/forms[0].median), y(last.accuracy-forms[0].accuracy), px, py, color)
			}
			fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="%.1f" fill="%s" fill-opacity="0.6"/>`+"\n", px, py,
				sparseRadius*math.Sqrt(f.bytes/forms[0].bytes), color)
			text(&b, int(px), int(py)+4, "middle", fmt.Sprint(k+1))
			text(&b, sparseLeft+sparseWidth+20, sparseTop+8+18*row, "start",
				fmt.Sprintf("%d  %s: %s", k+1, f.label(), size(int64(f.bytes))))
			row++
		}
		row++
	}
	b.WriteString("</svg>\n")
	return b.String()
}
