package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/pass"
)

const curveHeight = 300

// A trained is a training as pages show it.
type trained struct {
	pass.Training
	Summary string
	Pruned  [][]string // rows of PruningHead
	Effects []string   // peak, memory savings and layouts that were tried
	Curve   figure
}

// PruningHead is the head of the table of pruning steps.
func (trained) PruningHead() []string { return pruningHead }

// pruningHead is the head of the rows of pruningRows.
var pruningHead = []string{
	"Pruned after step",
	"Amount",
	"Learning rate",
	"Step kept",
	"Validation loss",
	"Validation accuracy",
	"Metric",
}

// pruningRows are the pruning steps of a training, with the result of the training after each.
func pruningRows(t pass.Training) [][]string {
	var rows [][]string
	number := func(x *float64, factor float64, format string) string {
		if x == nil {
			return ""
		}
		return fmt.Sprintf(format, factor**x)
	}
	for _, p := range t.Pruning {
		rows = append(rows, []string{
			count(int64(p.Step)), fmt.Sprintf("%.2f %%", 100*p.Amount), fmt.Sprintf("%.4g", p.LR), count(int64(p.Kept)),
			number(p.Loss, 1, "%.4g"), number(p.Accuracy, 100, "%.2f %%"), number(p.Metric, 1, "%.4g"),
		})
	}
	return rows
}

// trainings draws the curves of all trainings.
func (r *Report) trainings() ([]trained, error) {
	var out []trained
	for _, t := range r.Training {
		c, err := lossCurve(t)
		if err != nil {
			return nil, err
		}
		out = append(
			out,
			trained{
				t,
				trainingText(t),
				pruningRows(t),
				slices.Concat(TrainingMemoryTexts(&t.TrainingMemory), t.Why),
				c,
			},
		)
	}
	return out, nil
}

// trainingText summarizes a training in a sentence or two.
func trainingText(t pass.Training) string {
	s := fmt.Sprintf("%s steps on %s samples", count(int64(t.Steps)), count(int64(t.Samples))) +
		trainedOutputs(t.Outputs)
	if n := len(t.Loss); n > 0 {
		s += fmt.Sprintf("; training loss %.4g → %.4g", t.Loss[0].Y, t.Loss[n-1].Y)
	}
	if n := len(t.ValidationLoss); n > 0 {
		s += ", validation loss " + startToKept(t.ValidationLoss, t.Kept, "%.4g")
	}
	if n := len(t.ValidationAccuracy); n > 0 {
		s += ", validation accuracy " + startToKept(percentages(t.ValidationAccuracy), t.Kept, "%.2f %%")
	}
	if n := len(t.ValidationMetric); n > 0 {
		s += fmt.Sprintf(", %s on the validation set %s", t.Metric, startToKept(t.ValidationMetric, t.Kept, "%.4g"))
	}
	if text := keptText(t); text != "" {
		s += "; " + text
	}
	return s + fmt.Sprintf(". Planned memory: %s (%s).", size(t.Total()), t.Layout)
}

// TrainingMemoryTexts are lines about the planned memory of training: the peak by kind, its largest values, and the
// effect of each memory saving.
func TrainingMemoryTexts(m *pass.TrainingMemory) []string {
	var kinds, live []string
	for _, k := range m.Peak {
		if k.Bytes > 0 {
			kinds = append(kinds, k.Name+" "+size(k.Bytes))
		}
	}
	for _, v := range m.Live[:min(3, len(m.Live))] {
		kind := v.Kind
		if kind == "gradient" && v.Layer != "" {
			kind += " at " + v.Layer
		}
		live = append(live, fmt.Sprintf("%s %s (%s)", v.Name, size(v.Bytes), kind))
	}
	var lines []string
	if len(kinds) > 0 {
		lines = append(
			lines,
			"peak: "+strings.Join(kinds, ", "),
			"largest values at the peak: "+strings.Join(live, ", "),
		)
	}
	for _, r := range m.Trades {
		effect := "saves " + size(r.Saved)
		if r.Saved < 0 {
			effect = "takes " + size(-r.Saved) + " more"
		}
		lines = append(lines, fmt.Sprintf("%s: %s, %.1f %% more multiply-adds", r.Name, effect, 100*r.Work))
	}
	return lines
}

// TrainingText is a summary of a training in a line: steps, learning rate, and the change of the validation accuracy,
// metric or loss.
func TrainingText(t pass.Training) string {
	s := fmt.Sprintf("%s steps", count(int64(t.Steps)))
	if n := len(t.Pruning); n > 0 {
		s += fmt.Sprintf(" in %d trainings, %.2f %% pruned", n, 100*t.Pruning[n-1].Amount)
	}
	if i := slices.IndexFunc(t.Chosen, func(c pass.Setting) bool { return c.Option == "lr" }); i >= 0 {
		why, _, _ := strings.Cut(t.Chosen[i].Why, " (")
		s += fmt.Sprintf(", learning rate %s (%s)", t.Chosen[i].Value, why)
	}
	s += trainedOutputs(t.Outputs)
	if slices.ContainsFunc(t.Chosen, func(c pass.Setting) bool { return c.Option == "keep-zeros" }) {
		s += "; zeros of weights are trained, unless --keep-zeros is given"
	}
	switch {
	case len(t.ValidationMetric) > 0:
		s += fmt.Sprintf("; %s on the validation set %s", t.Metric, startToKept(t.ValidationMetric, t.Kept, "%.4g"))
	case len(t.ValidationAccuracy) > 0:
		s += "; validation accuracy " + startToKept(percentages(t.ValidationAccuracy), t.Kept, "%.2f %%")
	case len(t.ValidationLoss) > 0:
		s += "; validation loss " + startToKept(t.ValidationLoss, t.Kept, "%.4g")
	}
	if text := keptText(t); text != "" {
		s += "; " + text
	}
	return s
}

// trainedOutputs names the losses and their outputs, as in ", cross-entropy of logits".
func trainedOutputs(outputs []pass.TrainedOutput) (text string) {
	last := ""
	for _, o := range outputs {
		if o.Loss != last {
			text += ", " + o.Loss + " of "
		} else {
			text += ", "
		}
		last = o.Loss
		if text += o.Name; o.Teacher != "" {
			text += " (" + o.Teacher + " of the teacher)"
		}
	}
	return text
}

// Improved reports whether the weights of a training are not those from before.
func Improved(t pass.Training) bool { return t.Kept > 0 }

// keptText names the weights that were kept, if they are not those of the last step.
func keptText(t pass.Training) string {
	switch {
	case t.Steps > 0 && !Improved(t):
		return "training did not improve the model, and its weights from before are kept"
	case t.Averaged:
		return fmt.Sprintf("the moving average of the weights at step %s is kept", count(int64(t.Kept)))
	case t.Kept != t.Steps:
		return fmt.Sprintf("the weights of step %s are kept", count(int64(t.Kept)))
	}
	return ""
}

// startToKept is the first number of a curve, and that of a step, if they are of different steps.
func startToKept(ps []pass.Point, step int, format string) string {
	first, last := ps[0], ps[len(ps)-1]
	if i := slices.IndexFunc(ps, func(p pass.Point) bool { return p.Step == step }); i >= 0 {
		last = ps[i]
	}
	if first.Step == last.Step {
		return fmt.Sprintf(format, last.Y)
	}
	return fmt.Sprintf(format+" → "+format, first.Y, last.Y)
}

func percentages(ps []pass.Point) []pass.Point {
	out := slices.Clone(ps)
	for i := range out {
		out[i].Y *= 100
	}
	return out
}

// lossCurve draws the loss over the steps, of training and on the validation set.
func lossCurve(t pass.Training) (figure, error) {
	f := figure{
		Title: "Loss by step",
		Note:  "Blue line: training loss. Dark line with dots: loss on the validation set.",
	}
	if len(t.Loss) < 2 {
		return f, nil
	}
	p := plot{caption: f.caption(), height: curveHeight}
	p.x = axis{
		name:  "step",
		max:   float64(t.Steps),
		ticks: ticks(0, float64(t.Steps), 1, 1, func(v float64) string { return count(int64(v)) }),
	}
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
		var rows [][]inline
		for _, c := range t.Chosen {
			rows = append(rows, cells("--"+c.Option, c.Value, c.Why))
		}
		if len(rows) > 0 {
			m.table([]inline{"option", "chosen:", "reason"}, rows)
		}
		rows = nil
		for _, r := range pruningRows(t) {
			rows = append(rows, cells(r...))
		}
		if len(rows) > 0 {
			m.table(
				[]inline{
					"pruned after step",
					"amount:",
					"learning rate:",
					"step kept:",
					"validation loss:",
					"validation accuracy:",
					"metric:",
				},
				rows,
			)
		}
		rows = nil
		for _, s := range t.Memory {
			if s.Bytes > 0 {
				rows = append(rows, cells(s.Name, size(s.Bytes)))
			}
		}
		m.table([]inline{"memory", "planned:"}, rows)
		for _, w := range slices.Concat(TrainingMemoryTexts(&t.TrainingMemory), t.Why) {
			m.line("- %s", prose(w))
		}
	}
}
