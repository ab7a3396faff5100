package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/mcompress/mcompress/distill"
	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/internal/memplan"
	"github.com/mcompress/mcompress/pass"
)

// States writes the training states of a number of parameters, in GB of 10^9 bytes.
func States(w io.Writer, s Style, params int64, how memory.Training, states memory.States) error {
	title := fmt.Sprintf("training %s parameters with %s, %s precision", humanize.Comma(params), how.Optimizer, how.Precision)
	if how.ZeRO > 0 || how.Devices > 1 {
		title += fmt.Sprintf(", on each of %d devices, ZeRO stage %d", how.Devices, how.ZeRO)
	}
	t := &textTable{indent: "  ", align: "lr"}
	t.add("parameters", gigabytes(states.Parameters))
	t.add("gradients", gigabytes(states.Gradients))
	t.add("optimizer states", gigabytes(states.Optimizer))
	t.add("total", gigabytes(states.Total()))
	return part{title, t}.write(w, s)
}

func gigabytes(n int64) string {
	if n == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}

// TrainingPlans are the plans of training a model, one for each batch size.
type TrainingPlans struct {
	Model    string            `json:"model"`
	Plans    []*distill.Plan   `json:"plans"`
	Budget   int64             `json:"budget,omitempty"`
	Choices  []*memplan.Choice `json:"choices,omitempty"`  // combinations of memory savings, of the last batch size
	Compared []*memplan.Choice `json:"compared,omitempty"` // with activation checkpointing, float16 storage, both, and neither
	Top      int               `json:"-"`                  // maximum number of layers
}

// Write writes the plans as text; details are of the last one.
func (p *TrainingPlans) Write(w io.Writer, s Style) error {
	last := p.Plans[len(p.Plans)-1]
	title := fmt.Sprintf("%s: training %s parameters with %s, loss %s", p.Model, humanize.Comma(last.Parameters), last.Optimizer, strings.Join(last.Losses, " and "))
	parts := []part{
		{title, sizesTable(p.Plans)},
		{"layout: " + last.Layout, list(last.Why)}, // printed if a budget chose it
		{"at the peak, by kind" + ofPlan(last), peakTable(last.TrainingMemory)},
		{"largest values at the peak", liveValues(last.Live)},
		{"memory savings, each compared with the plan without it", tradeTable(last.Trades)},
		{"combinations of memory savings" + within(p.Budget) + "; predicted time: multiply-adds, recomputation included", choiceTable(s, p.Choices, p.Budget)},
		{"comparison" + trialsOf(p.Compared), comparedTable(p.Compared)},
		{"layers" + ofPlan(last) + ", live bytes of the arena after each, in MiB", layerLog(last.Steps, p.Top)},
		{"live bytes over time" + ofPlan(last), curve(len(last.Steps), peakOf(last), func(i int) (int64, string) {
			return last.Steps[i].Bytes, last.Steps[i].String()
		})},
	}
	for _, part := range parts {
		if err := part.write(w, s); err != nil {
			return err
		}
	}
	return nil
}

func ofPlan(p *distill.Plan) string {
	if p.MicroBatches > 1 {
		return fmt.Sprintf(", batch %d in %d micro-batches", p.Batch, p.MicroBatches)
	}
	return fmt.Sprintf(", batch %d", p.Batch)
}

func within(budget int64) string {
	if budget == 0 {
		return ""
	}
	return fmt.Sprintf(", budget %s bytes", humanize.Comma(budget))
}

func peakOf(p *distill.Plan) (most int64) {
	for _, s := range p.Steps {
		most = max(most, s.Bytes)
	}
	return most
}

// sizesTable has a column for each batch size.
func sizesTable(plans []*distill.Plan) *textTable {
	t := &textTable{indent: "  ", align: "l" + strings.Repeat("r", len(plans))}
	head := []string{"planned memory"}
	for _, p := range plans {
		head = append(head, fmt.Sprintf("batch %d", p.Batch))
	}
	t.add(head...)
	for i, s := range plans[0].Memory {
		row, used := []string{s.Name}, false
		for _, p := range plans {
			row, used = append(row, sizeOrNone(p.Memory[i].Bytes)), used || p.Memory[i].Bytes > 0
		}
		if used {
			t.add(row...)
		}
	}
	row, arena := []string{"total"}, []string{"arena, in bytes"}
	for _, p := range plans {
		row, arena = append(row, sizeOrNone(p.Bytes)), append(arena, humanize.Comma(p.Arena))
	}
	t.add(row...)
	t.add(arena...)
	return t
}

func list(lines []string) *textTable {
	t := &textTable{indent: "  ", align: "l"}
	for _, l := range lines {
		t.add(l)
	}
	return t
}

func peakTable(m pass.TrainingMemory) *textTable {
	t := &textTable{indent: "  ", align: "lrr"}
	for _, s := range m.Peak {
		if s.Bytes > 0 {
			t.add(s.Name, size(s.Bytes), percent(fraction(s.Bytes, m.Total())))
		}
	}
	return t
}

func liveValues(live []pass.LiveValue) *textTable {
	t := &textTable{indent: "  ", align: "lrll"}
	for _, v := range live {
		name := abridged(v.Name)
		if v.Kind == "scratch" {
			name = "scratch"
		}
		t.add(name, size(v.Bytes), v.Kind, abridged(v.Layer))
	}
	return t
}

func tradeTable(trades []pass.Trade) *textTable {
	t := &textTable{indent: "  ", align: "lrr"}
	if len(trades) > 0 {
		t.add("", "saved", "more work")
	}
	for _, r := range trades {
		t.add(r.Name, signed(r.Saved), fmt.Sprintf("%.1f %%", 100*r.Work))
	}
	return t
}

func signed(n int64) string {
	if n < 0 {
		return "-" + size(-n)
	}
	return sizeOrNone(n)
}

func choiceTable(s Style, all []*memplan.Choice, budget int64) *textTable {
	t := &textTable{indent: "  ", align: "lrrrrrrl"}
	if len(all) == 0 {
		return t
	}
	head := []string{"options", "arena", "total", "predicted time"}
	if budget > 0 {
		head = append(head, "largest batch", "its total")
	}
	if tried(all) {
		head = append(head, "s per step", "resident")
	}
	t.add(append(head, "")...)
	for _, c := range all {
		name := c.Name
		if name == "" {
			name = "none"
		}
		row := []string{name, size(c.Arena), size(c.Total), fmt.Sprintf("×%.3f", c.Time)}
		if budget > 0 {
			row = append(row, fmt.Sprint(c.Largest), size(c.AtMost))
		}
		if tried(all) {
			row = append(row, trialCells(c)...)
		}
		switch {
		case c.Cheapest:
			row = append(row, s.good("cheapest that fits"))
		case budget > 0 && !c.Fits:
			row = append(row, s.bad("does not fit"))
		}
		t.add(row...)
	}
	return t
}

func tried(all []*memplan.Choice) bool {
	for _, c := range all {
		if c.Measured != nil {
			return true
		}
	}
	return false
}

func trialCells(c *memplan.Choice) []string {
	if c.Measured == nil {
		return []string{"–", "–"}
	}
	return []string{fmt.Sprintf("%.3g", c.Measured.Seconds), size(c.Measured.Resident)}
}

func comparedTable(all []*memplan.Choice) *textTable {
	t := &textTable{indent: "  ", align: "lrrrrrr"}
	if len(all) == 0 {
		return t
	}
	t.add("", "arena", "of baseline", "total", "s per step", "resident", "loss")
	for _, c := range all {
		row := []string{c.Name, size(c.Arena), percent(fraction(c.Arena, all[0].Arena)), size(c.Total)}
		if c.Measured != nil {
			row = append(append(row, trialCells(c)...), fmt.Sprintf("%.5g", c.Measured.Loss))
		}
		t.add(row...)
	}
	return t
}

// trialsOf describes the steps that were measured.
func trialsOf(all []*memplan.Choice) string {
	if len(all) == 0 || all[0].Measured == nil {
		return ""
	}
	samples := "samples of --data"
	if all[0].Measured.Random {
		samples = "a random batch"
	}
	return fmt.Sprintf("; time of the fastest of %d steps, loss of the last one, on %s", all[0].Measured.Steps, samples)
}

// A logLine is the memory after a pass of a layer.
type logLine struct {
	layer string
	phase grad.Phase
	after int64
}

// logLines joins the executed nodes of one pass of a layer. Losses and updates of weights belong to the line before them.
func logLines(steps []distill.PlanStep) []logLine {
	var lines []logLine
	for _, s := range steps {
		last := len(lines) - 1
		switch {
		case last >= 0 && (s.Layer == "" || lines[last].layer == s.Layer && lines[last].phase == s.Phase):
			lines[last].after = s.After
		default:
			lines = append(lines, logLine{s.Layer, s.Phase, s.After})
		}
	}
	return lines
}

// layerLog has the memory before the step and after each pass of each layer, with the difference to the line before, as a logger in
// PyTorch's hooks prints it.
func layerLog(steps []distill.PlanStep, top int) *textTable {
	t := &textTable{indent: "  ", align: "llrr"}
	t.add("layer", "pass", "live", "difference")
	t.add("", "before", "–", "")
	lines, before := logLines(steps), int64(0)
	for i, l := range lines {
		if i == top {
			t.add(fmt.Sprintf("%d more lines: see --top", len(lines)-top))
			break
		}
		t.add(abridged(l.layer), string(l.phase), mebibytes(l.after), difference(l.after-before))
		before = l.after
	}
	return t
}

func mebibytes(n int64) string {
	if n == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", float64(n)/(1<<20))
}

func difference(n int64) string {
	if n == 0 {
		return "–"
	}
	return fmt.Sprintf("%+.2f", float64(n)/(1<<20))
}
