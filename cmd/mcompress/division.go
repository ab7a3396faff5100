package main

import (
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

	tag string // of plan.json in a bucket; empty on disk
}

// exchanged is the maximum number of bytes that a process of a plan in a bucket has on disk: the result, which a search does not know, and the results of layers.
func (p *dividedPlan) exchanged() int64 {
	n := p.Read
	for _, f := range p.Files {
		n += f.Bytes
	}
	if p.Files == nil {
		n += p.Read
	}
	return n
}

// A division is the role of this process in the run of a plan.
type division struct {
	folder   string         // a path or URL
	dir      string         // the folder on disk
	scratch  *scratchFolder // that has dir; nil if it is the folder
	mirror   *remote.Mirror // of the folder of the parts, in dir; nil if it is the folder
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

// identify is the identity of the run. Its source is identified by names, sizes and times of its files, or by their tags: reading it would take as long as a
// worker's part.
func (d *division) identify(c *cli.Context, t *tool, w *writing, model string, steps []pass.Options) (id journal.Identity, err error) {
	if registry.IsReference(model) {
		return id, usagef("a plan is for a file: pull %s first", model)
	}
	f, err := remote.OpenModel(c.Context, model)
	if err != nil {
		return id, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	d.plan.Read = f.Size()
	id.Version = job.Version()
	if remote.Is(model) {
		id.Source, err = remote.ModelTag(c.Context, model)
	} else {
		id.Source, err = timesOf(f.Paths())
	}
	switch {
	case err != nil:
		return id, err
	case id.Source == "":
		return id, usagef("%s: the server sends no strong ETag, by which workers recognize the source: download it first", model)
	}
	id.Request, err = w.request(c, t, steps)
	return id, err
}

// timesOf identifies files by their names, sizes and times.
func timesOf(paths []string) (string, error) {
	h := sha256.New()
	for _, path := range paths {
		st, err := os.Stat(path)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(h, filepath.Base(path), st.Size(), st.ModTime().UnixNano())
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// measure plans the memory of a process, and finds the files that the result will have, unless there are no steps yet.
func (d *division) measure(ctx context.Context, t *tool, w *writing, m listed, label string, steps []pass.Options, settings *job.Verification) error {
	o, err := w.job(ctx, t, m.model, m.output, steps)
	if err != nil {
		return err
	}
	o.DryRun, o.Digest, o.Gates, o.Errors, o.Reports, o.Label, o.Verify, o.Divided = true, false, nil, false, nil, label, settings, true
	res, err := job.Run(ctx, o)
	if err != nil {
		return err
	}
	if len(steps) > 0 {
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
	output := d.folder + string(os.PathSeparator)
	if remote.Is(d.folder) {
		output = remote.Join(d.folder, "")
	}
	own := []string{"--output", output, "--data-files", strconv.Itoa(d.plan.Workers)}
	return sub.app().RunContext(ctx, slices.Concat(given, command[:1], own, command[1:]))
}

// maxPlan limits the bytes of plan.json, which has the command line and the names of the result's files.
const maxPlan = 16 << 20

// readPlan reads the plan in a folder.
func readPlan(ctx context.Context, folder string) (p dividedPlan, err error) {
	path := remote.Join(folder, planFile)
	f, size, err := remote.OpenFile(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return p, usagef("%s: no plan; make one with mcompress plan", path)
	}
	if err != nil {
		return p, err
	}
	defer f.Close()
	if o, ok := f.(*remote.File); ok {
		p.tag = o.Tag()
	}
	decoder := json.NewDecoder(io.NewSectionReader(f, 0, min(size, maxPlan)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&p); err != nil || p.Workers < 1 || len(p.Command) == 0 || !slices.Contains(plannedCommands, p.Command[0]) {
		return p, usagef("%s: not a plan of this version: %v", path, err)
	}
	return p, nil
}

// writeFile writes a file into the folder of the plan, whole.
func (d *division) writeFile(ctx context.Context, name string, content any) (err error) {
	text, err := json.MarshalIndent(content, "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if remote.Is(d.folder) {
		return remote.Create(ctx, remote.Join(d.folder, name), text)
	}
	set := &atomicfile.Set{Sync: true}
	defer func() { err = errors.Join(err, set.Close()) }()
	path := filepath.Join(d.folder, name)
	err = set.WriteFile(path, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
	if err != nil {
		return err
	}
	return set.Publish(path)
}

// has reports whether a file is in the folder of the plan.
func (d *division) has(ctx context.Context, name string) (bool, error) {
	f, _, err := remote.OpenFile(ctx, remote.Join(d.folder, name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	}
	return true, f.Close()
}

// join joins the run of the plan as worker number index, or to finalize it if index is the number of workers. What is left after the result is complete is removed.
func join(ctx context.Context, folder string, index int, p dividedPlan) (*division, error) {
	if v := job.Version(); p.Identity.Version != v {
		return nil, usagef("%s is a plan of version %s, this is %s", remote.Join(folder, planFile), p.Identity.Version, v)
	}
	d := &division{folder: folder, plan: p, worker: index < p.Workers}
	if err := d.open(strconv.Itoa(index)); err != nil {
		return nil, err
	}
	if err := d.join(ctx, index); err != nil {
		d.leave(err)
		return nil, err
	}
	return d, nil
}

// open finds the folder on disk. The role distinguishes the processes of a plan, each of which has one for a folder in a bucket.
func (d *division) open(role string) (err error) {
	d.dir = d.folder
	if !remote.Is(d.folder) {
		return nil
	}
	if d.scratch, err = newScratch("plans", d.folder, " "+d.plan.tag+" "+role); err != nil {
		return err
	}
	d.dir = d.scratch.dir
	d.mirror = remote.NewMirror(filepath.Join(d.dir, partsFolder), remote.Join(d.folder, partsFolder))
	return nil
}

// exchange is the mirror of the parts.
func (d *division) exchange() journal.Mirror {
	if d.mirror == nil {
		return nil
	}
	return d.mirror
}

func (d *division) join(ctx context.Context, index int) error {
	parts := filepath.Join(d.dir, partsFolder)
	done, err := d.has(ctx, resultFile)
	switch {
	case err != nil || done && d.worker:
		return err
	case done:
		return journal.Remove(ctx, parts, d.exchange())
	}
	d.group, err = journal.Join(ctx, parts, index, d.plan.Workers, d.plan.Identity, d.exchange())
	var foreign *journal.ForeignError
	if errors.As(err, &foreign) {
		err = &usageError{err}
	}
	return err
}

// leave ends the role of this process in the run with this error: what an interrupted one continues with stays.
func (d *division) leave(err error) {
	if d.scratch == nil {
		return
	}
	if code := exitCode(err); code == exitDone || code == exitGate {
		_ = os.RemoveAll(filepath.Join(d.dir, partsFolder))
	}
	d.scratch.leave()
}

// local is the path on disk of the result at a path or URL. A division without a folder in a bucket has it there.
func (d *division) local(output string) string {
	if !remote.Is(output) {
		return output
	}
	return filepath.Join(d.dir, remote.Base(output))
}

// upload uploads the files of a result. If the run is divided, those that workers have uploaded are copied, and another process that has been started to finalize
// the plan since is an error.
func (d *division) upload(ctx context.Context, files []remote.Upload) error {
	if d != nil {
		if err := d.group.Lock(ctx); err != nil {
			return err
		}
		for i := range files {
			files[i].From = d.mirror.Object(files[i].SHA256)
		}
	}
	return remote.Publish(ctx, files)
}
