package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/internal/journal"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/internal/remote"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/registry"
	"github.com/mcompress/mcompress/report"
)

// The files in the folder of a plan, besides the result.
const (
	planFile    = "plan.json"
	partsFolder = "parts"
	resultFile  = "finalized.json"
)

// A dividedPlan is the content of plan.json: one run of a command that several processes divide.
type dividedPlan struct {
	Workers  int              `json:"workers"`
	Command  []string         `json:"command"`
	Identity journal.Identity `json:"identity"`
	Files    []report.File    `json:"files,omitempty"` // of the result, as far as they are known without a search
	Read     int64            `json:"source_bytes"`
	Memory   int64            `json:"memory_bytes"` // of a process, besides --memory-limit
}

// A division is the role of this process in the run of a plan.
type division struct {
	folder   string
	plan     dividedPlan
	planning bool           // only plan.json is made
	worker   bool           // it computes a part of the units; otherwise it uses all
	group    *journal.Group // nil while planning

	parts []report.File // that a worker has written
}

// isPlanning reports whether only the plan of the run is made. A run that is not divided has a nil division.
func (d *division) isPlanning() bool { return d != nil && d.planning }

// isWorker reports whether the process computes a part of the run.
func (d *division) isWorker() bool { return d != nil && d.worker }

// undivided is an error if the run is divided, which a flag does not permit.
func (t *tool) undivided(flag string) error {
	if t.division != nil {
		return usagef("a plan has no %s", flag)
	}
	return nil
}

// check returns an error for a command that cannot be divided.
func (d *division) check(w *writing, models []string, steps []pass.Options) error {
	switch {
	case len(models) != 1:
		return usagef("a plan is for one model, not %d", len(models))
	case w.dryRun:
		return usagef("a plan has no --dry-run")
	case filepath.Clean(w.output) != filepath.Clean(d.folder) || w.dataFiles != d.plan.Workers:
		return usagef("a plan sets --output and --data-files")
	}
	for _, s := range steps {
		if s.Method().Stage == pass.Train {
			return usagef("%s trains, which is not divided: train first", s.Method().Name)
		}
	}
	return nil
}

// resume returns the journal of the division, if the command is that of the plan.
func (d *division) resume(c *cli.Context, t *tool, w *writing, model string, steps []pass.Options) (*resumption, error) {
	id, err := d.identify(c, t, w, model, steps)
	if err != nil {
		return nil, err
	}
	none := func() error { return nil }
	if d.planning {
		d.plan.Identity = id
		return &resumption{nil, none, none, nil}, nil
	}
	if was := d.plan.Identity; was != id {
		return nil, usagef("%s was made for %s", filepath.Join(d.folder, planFile), was.Difference(id))
	}
	return &resumption{d.group, none, none, nil}, nil
}

// identify is the identity of the run. Its source is identified by names, sizes and times of its files: reading it would take as long as a worker's part.
func (d *division) identify(c *cli.Context, t *tool, w *writing, model string, steps []pass.Options) (id journal.Identity, err error) {
	if registry.IsReference(model) || remote.Is(model) {
		return id, usagef("a plan is for a file: download %s first", remote.Shown(model))
	}
	f, err := onnx.OpenContext(c.Context, model)
	if err != nil {
		return id, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := sha256.New()
	for _, path := range f.Paths() {
		st, err := os.Stat(path)
		if err != nil {
			return id, err
		}
		d.plan.Read += st.Size()
		fmt.Fprintln(h, filepath.Base(path), st.Size(), st.ModTime().UnixNano())
	}
	id = journal.Identity{Version: job.Version(), Source: hex.EncodeToString(h.Sum(nil))}
	id.Request, err = w.request(c, t, steps)
	return id, err
}

// measure plans the memory of a process, and finds the files that the result will have unless the steps are searched.
func (d *division) measure(ctx context.Context, t *tool, w *writing, m listed, label string, steps []pass.Options, settings *job.Verification) error {
	o, err := w.job(ctx, t, m.model, m.output, steps)
	if err != nil {
		return err
	}
	o.DryRun, o.Digest, o.Gates, o.Errors, o.Reports, o.Label, o.Verify, o.Divided = true, false, nil, false, nil, label, settings, true
	if w.choose != nil {
		o.Steps = nil
	}
	res, err := job.Run(ctx, o)
	if err != nil {
		return err
	}
	if w.choose == nil {
		d.plan.Files = res.Report.Result.Files
	}
	d.plan.Memory = memory.ProgramOf(0, memory.Measure().Total()) + runFactor*res.RunMemory
	return nil
}

// runFactor is what a run of models takes of the memory of a process, as half of what is available is its limit.
const runFactor = 2

// run runs the command of the plan in this process.
func (d *division) run(ctx context.Context, t *tool) error {
	given := append([]string{"mcompress", "--color", t.color.Value}, t.given(t.workers)...)
	if t.quiet {
		given = append(given, "--quiet")
	}
	if t.json {
		given = append(given, "--json")
	}
	sub, command := *t, d.plan.Command
	sub.division = d
	own := []string{"--output", d.folder + string(os.PathSeparator), "--data-files", strconv.Itoa(d.plan.Workers)}
	return sub.app().RunContext(ctx, slices.Concat(given, command[:1], own, command[1:]))
}

// readPlan reads the plan in a folder.
func readPlan(folder string) (p dividedPlan, err error) {
	path := filepath.Join(folder, planFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return p, usagef("%s: no plan; make one with mcompress plan", path)
	}
	if err != nil {
		return p, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&p); err != nil || p.Workers < 1 || len(p.Command) == 0 {
		return p, usagef("%s: not a plan of this version: %v", path, err)
	}
	return p, nil
}

// writeFile writes a file into the folder of the plan, whole.
func (d *division) writeFile(name string, content any) (err error) {
	text, err := json.MarshalIndent(content, "", "  ")
	if err != nil {
		return err
	}
	set := &atomicfile.Set{Sync: true}
	defer func() { err = errors.Join(err, set.Close()) }()
	path := filepath.Join(d.folder, name)
	err = set.WriteFile(path, func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
	if err != nil {
		return err
	}
	return set.Publish(path)
}

// finalized reports whether the result is complete.
func (d *division) finalized() (bool, error) {
	_, err := os.Stat(filepath.Join(d.folder, resultFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// join joins the run of the plan as worker number index, or to finalize it if index is the number of workers.
func join(ctx context.Context, folder string, index int, p dividedPlan) (*division, error) {
	if v := job.Version(); p.Identity.Version != v {
		return nil, usagef("%s is a plan of version %s, this is %s", filepath.Join(folder, planFile), p.Identity.Version, v)
	}
	d := &division{folder: folder, plan: p, worker: index < p.Workers}
	done, err := d.finalized()
	if done || err != nil {
		return d, err
	}
	d.group, err = journal.Join(ctx, filepath.Join(folder, partsFolder), index, p.Workers, p.Identity)
	var foreign *journal.ForeignError
	if errors.As(err, &foreign) {
		err = &usageError{err}
	}
	return d, err
}
