package report

import (
	"fmt"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"

	"github.com/mcompress/mcompress/pass"
)

const curveHeight = 300

// A trained is what pages show of a training.
type trained struct {
	pass.Training
	Told   string
	Curves figure
}

// trainings draws the curves of all trainings.
func (r *Report) trainings() ([]trained, error) {
	var out []trained
	for _, t := range r.Training {
		c, err := curves(t)
		if err != nil {
			return nil, err
		}
		out = append(out, trained{t, told(t), c})
	}
	return out, nil
}

// told is a training in a sentence or two.
func told(t pass.Training) string {
	s := fmt.Sprintf("%s steps on %s samples", count(int64(t.Steps)), count(int64(t.Samples)))
	if n := len(t.Loss); n > 0 {
		s += fmt.Sprintf("; loss %.4g → %.4g", t.Loss[0].Y, t.Loss[n-1].Y)
	}
	if n := len(t.Judged); n > 0 {
		s += fmt.Sprintf(", %.4g on samples kept apart", t.Judged[n-1].Y)
	}
	if n := len(t.Agree); n > 0 {
		s += fmt.Sprintf(", %.2f %% of them right", 100*t.Agree[n-1].Y)
	}
	if t.Kept != t.Steps {
		s += fmt.Sprintf("; the weights of step %s were kept", count(int64(t.Kept)))
	}
	total := int64(0)
	for _, m := range t.Memory {
		total += m.Bytes
	}
	return s + fmt.Sprintf(". It took %s: %s.", size(total), t.Layout)
}

// curves draws the loss over the steps, and that on samples kept apart.
func curves(t pass.Training) (figure, error) {
	f := figure{Title: "Loss by step", Note: "The line is what training saw, dots are samples that it did not learn from."}
	if len(t.Loss) < 2 {
		return f, nil
	}
	p := framed()
	top := 0.0
	for _, q := range slices.Concat(t.Loss, t.Judged) {
		top = max(top, q.Y*1.08)
	}
	if err := addLine(p, places(t.Loss), false); err != nil {
		return f, err
	}
	if err := addDots(p, places(t.Judged), true); err != nil {
		return f, err
	}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, float64(t.Steps), 0, top
	p.X.Tick.Marker = plot.ConstantTicks(marks(float64(t.Steps), 1, func(v float64) string { return fmt.Sprintf("step %g", v) })[1:])
	thousandths := marks(top*1000, 1, func(v float64) string { return fmt.Sprintf("%.3g", v/1000) })
	for i := range thousandths {
		thousandths[i].Value /= 1000
	}
	p.Y.Tick.Marker = plot.ConstantTicks(thousandths)
	var err error
	f.SVG, err = drawn(p, f.Title, curveHeight)
	return f, err
}

// addDots draws points, and a line between them if they are joined, apart from other lines.
func addDots(p *plot.Plot, points plotter.XYs, joined bool) error {
	if len(points) == 0 {
		return nil
	}
	l, s, err := plotter.NewLinePoints(points)
	if err != nil {
		return fmt.Errorf("report: training: %w", err)
	}
	l.LineStyle = draw.LineStyle{Color: strong, Width: 1.2}
	s.GlyphStyle = draw.GlyphStyle{Color: strong, Radius: 2.5, Shape: draw.CircleGlyph{}}
	if joined {
		p.Add(l)
	}
	p.Add(s)
	return nil
}

func places(ps []pass.Point) plotter.XYs {
	var out plotter.XYs
	for _, p := range ps {
		out = append(out, plotter.XY{X: float64(p.Step), Y: p.Y})
	}
	return out
}

// training writes what steps that train did.
func (m *markdown) training(ts []pass.Training) {
	for _, t := range ts {
		m.line("### Training: %s", prose(t.Method))
		m.line("%s", prose(told(t)))
		var rows [][]string
		for _, s := range t.Memory {
			if s.Bytes > 0 {
				rows = append(rows, []string{prose(s.Name), size(s.Bytes)})
			}
		}
		m.table([]string{"memory", "planned:"}, rows)
		for _, w := range t.Why {
			m.line("- %s", prose(w))
		}
	}
}
