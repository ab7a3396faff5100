package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/dustin/go-humanize"

	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/internal/memplan"
)

// States writes the training states of a number of parameters, in GB of 10^9 bytes.
func States(w io.Writer, s Style, t *memplan.Training) error {
	return part{"training " + trained(t), stateTable(t, gigabytes)}.write(w, s)
}

// Training writes the memory plan of training a model, with top of its layers.
func Training(w io.Writer, s Style, path string, t *memplan.Training, top int) error {
	parts := []part{{path + ": training " + trained(t), stateTable(t, sizeOrNone)}}
	if len(t.Runs) > 0 {
		last := t.Runs[len(t.Runs)-1]
		of := fmt.Sprintf(", batch %d", last.Batch)
		if t.Fixed {
			of = ""
		}
		peak := fmt.Sprintf("live bytes over time%s: peak %s at %s, step %d of %d", of, size(last.Peak), abridged(last.AtNode), last.AtStep+1, len(last.Steps))
		parts = append(parts,
			part{"training step, in MiB" + checkpoints(t, last), stepTable(t)},
			part{"layers" + of + ", in MiB", layerTable(last, top)},
			part{peak, curve(len(last.Steps), last.Peak, func(i int) (int64, string) { return last.Steps[i].Bytes, last.Steps[i].Name })},
		)
	}
	for _, p := range parts {
		if err := p.write(w, s); err != nil {
			return err
		}
	}
	return nil
}

func gigabytes(n int64) string {
	if n == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}

// trained describes parameters, optimizer and precision.
func trained(t *memplan.Training) string {
	text := fmt.Sprintf("%s parameters with %s, %s precision", humanize.Comma(t.Parameters), t.Optimizer, t.Precision)
	if t.ZeRO > 0 || t.Devices > 1 {
		text += fmt.Sprintf(", on each of %d devices, ZeRO stage %d", t.Devices, t.ZeRO)
	}
	return text
}

// stateTable has a column for the host if it stores any state.
func stateTable(t *memplan.Training, size func(int64) string) *textTable {
	table := &textTable{indent: "  ", align: "lrr"}
	total := t.States.Total()
	row := func(name string, s memory.Placement) {
		cells := []string{name, size(s.Device)}
		if total.Host > 0 {
			cells = append(cells, size(s.Host))
		}
		table.add(cells...)
	}
	if total.Host > 0 {
		table.add("", "device", "host")
	}
	row("parameters", t.States.Parameters)
	row("gradients", t.States.Gradients)
	row("optimizer states", t.States.Optimizer)
	row("total", total)
	return table
}

func checkpoints(t *memplan.Training, r *memplan.TrainRun) string {
	if r.Segments < 2 {
		return ""
	}
	return fmt.Sprintf(", activation checkpointing (%s, %d segments)", t.Checkpoint, r.Segments)
}

func stepTable(t *memplan.Training) *textTable {
	table := &textTable{indent: "  ", align: "rrrrrl"}
	table.add("batch", "states", "activations", "with gradients", "total", "")
	for _, r := range t.Runs {
		batch := fmt.Sprint(r.Batch)
		if t.Fixed {
			batch = "fixed"
		}
		note := ""
		if r.Unknown > 0 {
			note = fmt.Sprintf("not counted: %d values of data-dependent size", r.Unknown)
		}
		table.add(batch, mebibytes(t.States.Total().Device), mebibytes(r.Activations), mebibytes(r.Peak), mebibytes(r.Total), note)
	}
	return table
}

// layerTable has the largest layers, in their order.
func layerTable(r *memplan.TrainRun, top int) *textTable {
	t := &textTable{indent: "  ", align: "llrrrr"}
	shown, rest := largestLayers(r.Layers, top)
	if len(shown) == 0 {
		return t
	}
	t.add("layer", "", "output", "saved", "gradient", "difference")
	row := func(name, op string, l memplan.Layer) {
		t.add(name, op, mebibytes(l.Output), mebibytes(l.Kept), mebibytes(l.Gradient), mebibytes(l.Difference))
	}
	for _, l := range shown {
		row(abridged(l.Node), l.Op, l)
	}
	if len(rest) > 0 {
		row(fmt.Sprintf("%d more", len(rest)), "", sum(rest))
	}
	row("total", "", sum(r.Layers))
	return t
}

func mebibytes(n int64) string {
	if n == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", float64(n)/(1<<20))
}

// largestLayers are the layers with the largest memory, up to top.
func largestLayers(layers []memplan.Layer, top int) (shown, rest []memplan.Layer) {
	weight := func(l memplan.Layer) int64 { return max(l.Output, l.Kept, l.Gradient) }
	var order []int
	for i, l := range layers {
		if weight(l) > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(weight(layers[j]), weight(layers[i])) })
	first := order[:min(top, len(order))]
	slices.Sort(first)
	for _, i := range first {
		shown = append(shown, layers[i])
	}
	for _, i := range order[len(first):] {
		rest = append(rest, layers[i])
	}
	return shown, rest
}

func sum(layers []memplan.Layer) memplan.Layer {
	var s memplan.Layer
	for _, l := range layers {
		s.Output, s.Kept = s.Output+l.Output, s.Kept+l.Kept
		s.Gradient, s.Difference = s.Gradient+l.Gradient, s.Difference+l.Difference
	}
	return s
}
