package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/report/partition"
)

// maxNames is the number of values on a line.
const maxNames = 3

// Partition writes the pipeline stages of a model, and the tensor-parallel cuts of top pairs of weights.
func Partition(w io.Writer, s Style, path string, p *partition.Plan, top int) error {
	parts := []part{
		{inStages(path, p), stageTable(p)},
		{"weights replicated in several stages", sharedTable(p)},
		{fmt.Sprintf("tensor-parallel cuts over %d devices", len(p.Stages)), parallelTable(p, top)},
	}
	for i, part := range parts {
		if err := part.write(w, s); err != nil {
			return err
		}
		if i == 0 && p.Seconds > 0 {
			if _, err := fmt.Fprintln(w, "  "+bound(p)); err != nil {
				return err
			}
		}
		if i == 0 && p.Unknown > 0 {
			if _, err := fmt.Fprintf(w, "  values of data-dependent size, not counted: %d\n", p.Unknown); err != nil {
				return err
			}
		}
	}
	return nil
}

func inStages(path string, p *partition.Plan) string {
	if len(p.Stages) == 1 {
		return path + " in 1 stage"
	}
	return fmt.Sprintf("%s in %d stages, balanced by %s", path, len(p.Stages), p.By)
}

func stageTable(p *partition.Plan) *textTable {
	t := &textTable{indent: "  ", align: "rrrrrrll"}
	measured := func(cell string) []string {
		if p.Seconds == 0 {
			return nil
		}
		return []string{cell}
	}
	if p.Seconds == 0 {
		t.align = t.align[1:]
	}
	t.add(slices.Concat([]string{"stage", "nodes", "weights", "peak"}, measured("time"), []string{"transfer", "values", "first and last node"})...)
	for i, s := range p.Stages {
		head := []string{fmt.Sprint(i + 1), fmt.Sprint(s.Nodes), sizeOrNone(s.Weights), sizeOrNone(s.Peak)}
		t.add(slices.Concat(head, measured(seconds(s.Seconds)), []string{sizeOrNone(s.Handed), crossing(s), abridged(s.First) + " → " + abridged(s.Last)})...)
	}
	return t
}

// bound is the throughput of a pipeline, which its slowest stage bounds, without transfers.
func bound(p *partition.Plan) string {
	slowest, total := 0, 0.0
	for i, s := range p.Stages {
		if total += s.Seconds; s.Seconds == p.Seconds {
			slowest = i + 1
		}
	}
	return fmt.Sprintf("bottleneck: stage %d; a pipeline completes at most %s batches/s, one device %s", slowest, rate(1/p.Seconds), rate(1/total))
}

// crossing names the values that are transferred to later stages.
func crossing(s *partition.Stage) string {
	if len(s.Crosses) == 0 {
		return "–"
	}
	var names []string
	for _, v := range s.Crosses {
		names = append(names, v.Name)
	}
	return few(names)
}

// smallShared is the size below which shared constants, such as shapes, are summed up.
const smallShared = 1 << 10

func sharedTable(p *partition.Plan) *textTable {
	t := &textTable{indent: "  ", align: "lrl"}
	small, bytes := 0, int64(0)
	for _, s := range p.Shared {
		if s.Bytes < smallShared {
			small, bytes = small+1, bytes+s.Bytes
			continue
		}
		var in []string
		for _, k := range s.Stages {
			in = append(in, fmt.Sprint(k))
		}
		t.add(abridged(s.Name), size(s.Bytes), "stages "+And(in))
	}
	if small > 0 {
		t.add(fmt.Sprintf("below 1 KiB: %d", small), sizeOrNone(bytes))
	}
	return t
}

func parallelTable(p *partition.Plan, top int) *textTable {
	t := &textTable{indent: "  ", align: "lllrl"}
	if len(p.Parallel) == 0 || top == 0 {
		return t
	}
	t.add("weight", "", "cut", "per device", "")
	for i, pair := range p.Parallel {
		if i == top {
			t.add(fmt.Sprintf("%d more pairs", len(p.Parallel)-i))
			break
		}
		for _, c := range pair.Columns {
			t.cut(c, "by columns", "")
		}
		then := fmt.Sprintf("then all-reduce %s of %s", size(pair.AllReduce.Bytes), abridged(pair.AllReduce.Name))
		if pair.Refused != "" {
			then = "not divided: " + pair.Refused
		}
		t.cut(pair.Row, "by rows", then)
	}
	return t
}

func (t *textTable) cut(c partition.Cut, how, then string) {
	if !c.Even {
		then = strings.TrimPrefix(then+"; unevenly", "; ")
	}
	t.add(abridged(c.Weight), c.Type, fmt.Sprintf("%s, axis %d", how, c.Axis), size(c.PerDevice), then)
}

// few abbreviates a list of values.
func few(names []string) string {
	var list []string
	for i, name := range names {
		if i == maxNames && len(names) > maxNames+1 {
			list = append(list, fmt.Sprintf("%d more", len(names)-i))
			break
		}
		list = append(list, abridged(name))
	}
	return strings.Join(list, ", ")
}
