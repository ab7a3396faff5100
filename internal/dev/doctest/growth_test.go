package doctest

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dustin/go-humanize"
)

// A growthPoint is a cost at a size.
type growthPoint struct{ size, cpu, peak float64 }

// A growthSeries is the costs of a command by nodes or by bytes.
type growthSeries struct {
	by, command string
	points      []growthPoint
}

// TestGrowthIsThatOfTheBenchmarks generates the chart docs/growth.svg from docs/benchmarks.md.
func TestGrowthIsThatOfTheBenchmarks(t *testing.T) {
	path := filepath.Join(root(t), "docs", "growth.svg")
	settle(t, path, readIfThere(path), growthChart(growthOf(t)))
}

func growthOf(t *testing.T) (all []growthSeries) {
	t.Helper()
	_, section, _ := strings.Cut(read(t, root(t), "docs", "benchmarks.md"), "<!-- growth -->\n")
	section, _, _ = strings.Cut(section, "<!-- /growth -->")
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "| "), " | ")
		if len(cells) != 6 {
			continue
		}
		var p growthPoint
		for i, to := range map[int]*float64{1: &p.size, 4: &p.cpu, 5: &p.peak} {
			*to, _ = strconv.ParseFloat(cells[i], 64)
		}
		if p.size == 0 {
			continue // the head of the table
		}
		i := slices.IndexFunc(all, func(s growthSeries) bool { return s.by == cells[0] && s.command == cells[2] })
		if i < 0 {
			i, all = len(all), append(all, growthSeries{by: cells[0], command: cells[2]})
		}
		all[i].points = append(all[i].points, p)
	}
	if len(all) == 0 {
		t.Fatal("docs/benchmarks.md has no table of growth")
	}
	return all
}

const (
	growthWidth, growthHeight = 330, 200
	growthLeft, growthTop     = 60, 40
)

var growthColors = []string{"#0b6bcb", "#c2410c", "#15803d", "#7c3aed", "#6b7280"}

// growthChart draws CPU time and peak memory by nodes and by bytes, on logarithmic axes.
func growthChart(all []growthSeries) string {
	var b strings.Builder
	b.WriteString(`<svg xmlns="http://www.w3.org/2000/svg" width="860" height="580" viewBox="0 0 860 580" font-family="system-ui, sans-serif" font-size="12">` + "\n")
	b.WriteString(`<rect width="860" height="580" fill="#ffffff"/>` + "\n")
	for row, by := range []string{"nodes", "bytes"} {
		of := slices.DeleteFunc(slices.Clone(all), func(s growthSeries) bool { return s.by != by })
		for column, figure := range []struct {
			name string
			of   func(growthPoint) float64
		}{
			{"CPU time in seconds", func(p growthPoint) float64 { return p.cpu }},
			{"peak memory in MiB", func(p growthPoint) float64 { return p.peak }},
		} {
			x, y := growthLeft+column*430, growthTop+row*280
			text(&b, x, y-14, "start", figure.name+" by "+by)
			growthPanel(&b, x, y, of, figure.of)
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// decades are the powers of ten that enclose the figures.
func decades(all []growthSeries, figure func(growthPoint) float64) (lo, hi int) {
	least, most := math.Inf(1), 0.0
	for _, s := range all {
		for _, p := range s.points {
			least, most = min(least, max(figure(p), 0.01)), max(most, figure(p))
		}
	}
	return int(math.Floor(math.Log10(least))), int(math.Ceil(math.Log10(most)))
}

func growthPanel(b *strings.Builder, x, y int, all []growthSeries, figure func(growthPoint) float64) {
	size := func(p growthPoint) float64 { return p.size }
	left, right := decades(all, size)
	bottom, top := decades(all, figure)
	at := func(p growthPoint) (float64, float64) {
		u := (math.Log10(p.size) - float64(left)) / float64(right-left)
		v := (math.Log10(max(figure(p), 0.01)) - float64(bottom)) / float64(top-bottom)
		return float64(x) + growthWidth*u, float64(y) + growthHeight*(1-v)
	}
	for i := left; i <= right; i++ {
		u := x + growthWidth*(i-left)/(right-left)
		fmt.Fprintf(b, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="#e3e6ea"/>`+"\n", u, y, u, y+growthHeight)
		text(b, u, y+growthHeight+16, "middle", power(i))
	}
	for i := bottom; i <= top; i++ {
		v := y + growthHeight*(top-i)/(top-bottom)
		fmt.Fprintf(b, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="#e3e6ea"/>`+"\n", x, v, x+growthWidth, v)
		text(b, x-6, v+4, "end", power(i))
	}
	for i, s := range all {
		color := growthColors[i%len(growthColors)]
		var points []string
		for _, p := range s.points {
			u, v := at(p)
			points = append(points, fmt.Sprintf("%.1f,%.1f", u, v))
			fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", u, v, color)
		}
		fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="1.5"/>`+"\n",
			strings.Join(points, " "), color)
		fmt.Fprintf(b, `<circle cx="%d" cy="%d" r="3" fill="%s"/>`+"\n", x+10, y+10+16*i, color)
		text(b, x+18, y+14+16*i, "start", s.command)
	}
}

// power is 10^i as a label of an axis.
func power(i int) string {
	if i < 0 {
		return strconv.FormatFloat(math.Pow10(i), 'f', -i, 64)
	}
	return humanize.SIWithDigits(math.Pow10(i), 0, "")
}
