package report

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/pass"
)

const curveHeight = 300

// A trained is a training as pages show it.
type trained struct {
	pass.Training
	Summary string
	Curve   figure
}

// trainings draws the curves of all trainings.
func (r *Report) trainings() ([]trained, error) {
	var out []trained
	for _, t := range r.Training {
		c, err := lossCurve(t)
		if err != nil {
			return nil, err
		}
		out = append(out, trained{t, trainingText(t), c})
	}
	return out, nil
}

// trainingText summarizes a training in a sentence or two.
func trainingText(t pass.Training) string {
	s := fmt.Sprintf("%s steps on %s samples", count(int64(t.Steps)), count(int64(t.Samples)))
	if n := len(t.Loss); n > 0 {
		s += fmt.Sprintf("; training loss %.4g → %.4g", t.Loss[0].Y, t.Loss[n-1].Y)
	}
	if n := len(t.ValidationLoss); n > 0 {
		s += fmt.Sprintf(", validation loss %.4g", t.ValidationLoss[n-1].Y)
	}
	if n := len(t.ValidationAccuracy); n > 0 {
		s += fmt.Sprintf(", validation accuracy %.2f %%", 100*t.ValidationAccuracy[n-1].Y)
	}
	if n := len(t.ValidationMetric); n > 0 {
		s += fmt.Sprintf(", %s on the validation set %.4g", t.Metric, t.ValidationMetric[n-1].Y)
	}
	if t.Kept != t.Steps {
		s += fmt.Sprintf("; the weights of step %s were saved", count(int64(t.Kept)))
	}
	total := int64(0)
	for _, m := range t.Memory {
		total += m.Bytes
	}
	return s + fmt.Sprintf(". Planned memory: %s (%s).", size(total), t.Layout)
}

// lossCurve draws the loss over the steps, of training and on the validation set.
func lossCurve(t pass.Training) (figure, error) {
	f := figure{Title: "Loss by step", Note: "Blue line: training loss. Dark line with dots: loss on the validation set."}
	if len(t.Loss) < 2 {
		return f, nil
	}
	p := plot{caption: f.caption(), height: curveHeight}
	p.x = axis{name: "step", max: float64(t.Steps), ticks: ticks(0, float64(t.Steps), 1, 1, func(v float64) string { return count(int64(v)) })}
	for _, q := range slices.Concat(t.Loss, t.ValidationLoss) {
		p.y.max = max(p.y.max, q.Y*1.08)
	}
	p.y.name, p.y.ticks = "loss", numberTicks(0, p.y.max)
	p.line(stepsOf(t.Loss), after)
	if held := stepsOf(t.ValidationLoss); len(held) > 0 {
		p.line(held, strong)
		p.dots(held, strong, 2.5)
	}
	var err error
	f.SVG, err = p.svg()
	return f, err
}

func stepsOf(ps []pass.Point) []point {
	var out []point
	for _, p := range ps {
		out = append(out, point{float64(p.Step), p.Y})
	}
	return out
}

// training writes a section for each training.
func (m *markdown) training(ts []pass.Training) {
	for _, t := range ts {
		m.line("### Training: %s", prose(t.Method))
		m.line("%s", prose(trainingText(t)))
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
