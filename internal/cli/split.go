package cli

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/mcompress/mcompress/report/partition"
)

// A Split is the result of the command split: stages or shards.
type Split struct {
	Model string `json:"-"`
	*partition.Split
}

// Text writes the files, and the run if there is one.
func (p *Split) Text(w io.Writer, s Style) error {
	var parts []part
	if p.Shards != nil {
		parts = []part{p.shardFiles(s), p.shardWeights()}
	} else {
		parts = []part{p.stageFiles(s)}
	}
	for _, part := range parts {
		if err := part.write(w, s); err != nil {
			return err
		}
	}
	if p.Run == nil {
		return nil
	}
	return splitRun(w, s, p.Run, p.Model, p.Manifest)
}

func (p *Split) stageFiles(s Style) part {
	t := &textTable{indent: "  ", align: "lrrll"}
	t.add("file", "size", "nodes", "inputs", "outputs")
	for i, m := range p.Chain.Stages {
		var given []string
		for _, in := range m.Inputs {
			given = append(given, in.Name)
		}
		t.add(p.path(m.File), size(bytesOf(m.Parts)), fmt.Sprint(p.Plan.Stages[i].Nodes), few(given), few(m.Outputs))
	}
	t.add(s.dim(p.Manifest))
	return part{inStages(p.Model, p.Plan), t}
}

// maxFiles is the number of files of shards that the text lists; the manifest has all.
const maxFiles = 20

func (p *Split) shardFiles(s Style) part {
	t := &textTable{indent: "  ", align: "lrrl"}
	t.add("file", "size", "weights", "then all-reduce")
	files := 0
	for _, segment := range p.Shards.Segments {
		sums := ""
		for _, r := range segment.Reductions {
			sums = fmt.Sprintf("%s of %s", size(r.Bytes), abridged(r.Name))
		}
		for _, m := range segment.Shards {
			if files++; files <= maxFiles {
				t.add(p.path(m.File), size(bytesOf(m.Parts)), sizeOrNone(m.Weights), sums)
			}
		}
	}
	if files > maxFiles {
		t.add(fmt.Sprintf("%d more files", files-maxFiles))
	}
	t.add(s.dim(p.Manifest))
	return part{fmt.Sprintf("%s on %d ranks, in %d segments", p.Model, p.Shards.Ranks, len(p.Shards.Segments)), t}
}

// shardWeights sums up the weights and the values that are exchanged.
func (p *Split) shardWeights() part {
	t := &textTable{indent: "  "}
	b, reduced := p.Shards.Weights, int64(0)
	for _, segment := range p.Shards.Segments {
		for _, r := range segment.Reductions {
			reduced += r.Bytes
		}
	}
	t.add("weights", fmt.Sprintf("%s, of which %s divided; all files %s, of which %s replicated", size(b.Model), size(b.Divided), size(b.Stored), size(b.Replicated)))
	t.add("all-reduce", size(reduced)+" on each rank in a run with a batch of 1")
	for i, r := range p.Shards.Refused {
		t.add(first(i, "not divided"), abridged(r.Weight)+": "+r.Reason)
	}
	return part{"sum", t}
}

func (p *Split) path(file string) string { return filepath.Join(filepath.Dir(p.Manifest), file) }

func bytesOf(parts []partition.Part) (bytes int64) {
	for _, p := range parts {
		bytes += p.Size
	}
	return bytes
}

// splitRun writes a run of stages or shards in processes.
func splitRun(w io.Writer, s Style, r *partition.Run, model, manifest string) error {
	t := &textTable{indent: "  ", align: "lrrrr"}
	t.add("process", "runs", "compute time", "peak resident", "exchanged")
	for _, p := range r.Devices {
		t.add(p.Name, fmt.Sprint(p.Runs), seconds(p.Seconds), sizeOrNone(p.Peak), sizeOrNone(p.Bytes))
	}
	if err := (part{fmt.Sprintf("run in %d processes, %s", len(r.Devices), r.Mode), t}).write(w, s); err != nil {
		return err
	}
	return Verification{A: model, B: manifest, Result: r.Verification}.Text(w, s)
}
