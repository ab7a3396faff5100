package report

import (
	"fmt"
	"html/template"
	"math"

	"github.com/mcompress/mcompress/internal/memory"
)

// A MemoryCurve is the memory of a run over time, for comparisons.
type MemoryCurve struct {
	Name string
	Held int64   // persistent bytes
	Live []int64 // bytes of the arena at each step
}

// curveKinds are the kinds whose colors the curves have, in turn.
var curveKinds = []memory.Kind{memory.Weight, memory.Activation, memory.Gradient, memory.Scratch}

// A comparedCurve is an item of the legend.
type comparedCurve struct {
	MemoryCurve
	Kind memory.Kind
	Peak int64
}

// curves are the items of the legend.
func (m *Memory) curves() []comparedCurve {
	var out []comparedCurve
	for i, c := range m.Compared {
		k := comparedCurve{MemoryCurve: c, Kind: curveKinds[i%len(curveKinds)]}
		for _, n := range c.Live {
			k.Peak = max(k.Peak, c.Held+n)
		}
		out = append(out, k)
	}
	return out
}

// compared draws the memory of all compared runs over the fraction of their steps.
func (m *Memory) compared() (template.HTML, error) {
	if len(m.Compared) == 0 {
		return "", nil
	}
	p := &plot{
		caption: caption{title: "Memory over time of each combination"},
		height:  timelineHeight,
		x:       axis{name: "executed nodes of the step", max: 1},
	}
	p.x.ticks = ticks(0, 1, 1, 0, func(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) })
	most := int64(1)
	for _, c := range m.curves() {
		most = max(most, c.Peak)
		p.line(c.points(), kindColors[c.Kind])
	}
	p.y.max = float64(most) * 1.08
	p.y.ticks = byteTicks(0, p.y.max)
	return p.svg()
}

// points are the live bytes, of long runs the largest of several steps.
func (c *comparedCurve) points() []point {
	n := len(c.Live)
	columns := min(n, maxColumns)
	var out []point
	for i := range columns {
		from, to := i*n/columns, (i+1)*n/columns
		top := 0.0
		for _, b := range c.Live[from:to] {
			top = math.Max(top, float64(b))
		}
		y := float64(c.Held) + top
		out = append(out, point{float64(from) / float64(n), y}, point{float64(to) / float64(n), y})
	}
	return out
}
