package doctest

import (
	"fmt"
	"html"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A realModel is a row of the table of quantize --auto in docs/benchmarks.md: bytes and top-1 accuracy in percent of a
// model, of the best setting of ONNX Runtime, and of mcompress.
type realModel struct {
	name, setting                  string
	source, peer, ours             float64
	accuracy, peerAccuracy, ourAcc float64
}

// TestRealModelsAreThoseOfTheBenchmarks generates the table of README.md and the chart docs/accuracy.svg from
// docs/benchmarks.md.
func TestRealModelsAreThoseOfTheBenchmarks(t *testing.T) {
	models := realModels(t)
	path := filepath.Join(root(t), "README.md")
	page := read(t, path)
	settle(t, path, page, between(t, page, "real-models", realTable(models)))
	chart := filepath.Join(root(t), "docs", "accuracy.svg")
	settle(t, chart, readIfThere(chart), realChart(models))
}

func realModels(t *testing.T) []realModel {
	t.Helper()
	_, section, _ := strings.Cut(read(t, root(t), "docs", "benchmarks.md"), "<!-- auto -->\n")
	section, _, _ = strings.Cut(section, "<!-- /auto -->")
	var models []realModel
	for line := range strings.Lines(section) {
		cells := strings.Split(line, " | ")
		if len(cells) != 12 || strings.HasPrefix(line, "| model") {
			continue
		}
		n := func(i int) float64 {
			v, err := strconv.ParseFloat(cells[i], 64)
			if err != nil {
				t.Fatalf("docs/benchmarks.md: %s: %v", line, err)
			}
			return v
		}
		models = append(models, realModel{strings.TrimPrefix(cells[0], "| "), cells[3], n(1), n(4), n(6), n(2), n(5),
			n(7)})
	}
	if len(models) < 5 {
		t.Fatal("docs/benchmarks.md has no table of real models")
	}
	return models
}

func realTable(models []realModel) string {
	var b strings.Builder
	b.WriteString("| model | file | ONNX Runtime, best setting | mcompress `--auto` | top-1 accuracy: source, ONNX Runtime, mcompress |\n|---|---:|---:|---:|---:|\n")
	for _, m := range models {
		fmt.Fprintf(&b, "| %s | %s | %.2f× | %.2f× | %.1f %%, %.1f %%, %.1f %% |\n", m.name, size(int64(m.source)),
			m.source/m.peer, m.source/m.ours, m.accuracy, m.peerAccuracy, m.ourAcc)
	}
	return b.String()
}

const (
	chartLeft, chartWidth, chartRow, chartTop = 190, 420, 24, 46
	peerColor, ourColor                       = "#b0b7c3", "#0b6bcb"
)

// realChart draws a row for each model: its file sizes as fractions of the source, and the accuracies.
func realChart(models []realModel) string {
	var b strings.Builder
	height := chartTop + chartRow*len(models) + 34
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="860" height="%d" viewBox="0 0 860 %d" font-family="system-ui, sans-serif" font-size="12">`+"\n", height, height)
	fmt.Fprintf(&b, `<rect width="860" height="%d" fill="#ffffff"/>`+"\n", height)
	text(&b, 16, 22, "start", "File size as a fraction of the source; top-1 accuracy on held-out samples")
	for i, label := range []string{"mcompress --auto", "ONNX Runtime, best of 23 settings"} {
		fmt.Fprintf(&b, `<circle cx="%d" cy="18" r="5" fill="%s"/>`+"\n", 480+130*i, []string{ourColor, peerColor}[i])
		text(&b, 490+130*i, 22, "start", label)
	}
	for tick := 0; tick <= 10; tick += 2 {
		x := chartLeft + chartWidth*tick/10
		fmt.Fprintf(&b, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="#e3e6ea"/>`+"\n", x, chartTop-8, x, height-30)
		text(&b, x, height-14, "middle", fmt.Sprintf("%.1f", float64(tick)/10))
	}
	for i, m := range models {
		y := chartTop + chartRow*i + 8
		ours, peer := chartLeft+chartWidth*m.ours/m.source, chartLeft+chartWidth*m.peer/m.source
		text(&b, chartLeft-10, y+4, "end", m.name)
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="%s" stroke-width="2"/>`+"\n", ours, y,
			peer, y, peerColor)
		fmt.Fprintf(&b, `<circle cx="%.1f" cy="%d" r="5" fill="%s"/>`+"\n", peer, y, peerColor)
		fmt.Fprintf(&b, `<circle cx="%.1f" cy="%d" r="5" fill="%s"/>`+"\n", ours, y, ourColor)
		text(&b, chartLeft+chartWidth+14, y+4, "start",
			fmt.Sprintf("accuracy %.1f %% → %.1f %% (%.1f %%)", m.accuracy, m.ourAcc, m.peerAccuracy))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func text(b *strings.Builder, x, y int, anchor, s string) {
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="%s" fill="#1f2933">%s</text>`+"\n", x, y, anchor,
		html.EscapeString(s))
}

// between replaces the text between <!-- name --> and <!-- /name -->.
func between(t *testing.T, page, name, text string) string {
	t.Helper()
	marks := regexp.MustCompile(`(?s)(<!-- ` + name + ` -->\n?).*?(<!-- /` + name + ` -->)`)
	if !marks.MatchString(page) {
		t.Fatalf("no <!-- %s --> in the page", name)
	}
	return marks.ReplaceAllString(page, "${1}"+strings.ReplaceAll(text, "$", "$$")+"${2}")
}
