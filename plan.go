package mcompress

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
	"strconv"
	"time"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/internal/bounded"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/internal/journal"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/internal/remote"
	"github.com/mcompress/mcompress/ir"
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

// A Plan is a run of a request for one model that several processes divide, in a folder on disk or in a bucket: the
// content of plan.json there.
type Plan struct {
	Workers       int              `json:"workers"`
	Request       Request          `json:"request"`
	Sensitivities bool             `json:"sensitivities,omitempty"` // Request.Sensitivities instead of Run
	Identity      journal.Identity `json:"identity"`
	Files         []report.File    `json:"files,omitempty"` // of the result, as far as they are known without a search
	Read          int64            `json:"source_bytes"`
	Memory        int64            `json:"memory_bytes"` // of a process, besides the memory limit
	// Command is the command line that made the plan, for people: only Request counts.
	Command []string `json:"command,omitempty"`
	Digest  string   `json:"digest"` // SHA-256 of all other fields, which Write sets

	// AllowPrograms lets Work and Finalize run Request.Verification.Command and load Request.Verification.Library, which
	// are code of whoever could write the plan.
	AllowPrograms bool `json:"-"`

	folder string // a path or URL
	tag    string // of plan.json in a bucket; empty on disk
}

// Folder is the path or URL of the folder of the plan.
func (p *Plan) Folder() string { return p.folder }

// Exchanged is the maximum number of bytes that a process of a plan in a bucket has on disk: the result, which a search
// does not know, and the results of layers.
func (p *Plan) Exchanged() int64 {
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
	plan     *Plan
	planning bool           // only plan.json is made
	worker   bool           // it computes a part of the units; otherwise it uses all
	group    *journal.Group // nil while planning

	parts []report.File // that a worker has written
}

// isPlanning reports whether only the plan of the run is made. A run that is not divided has a nil division.
func (d *division) isPlanning() bool { return d != nil && d.planning }

// isWorker reports whether the process computes a part of the run.
func (d *division) isWorker() bool { return d != nil && d.worker }

// check returns an error for a request that cannot be divided.
func (d *division) check(x *run) error {
	switch {
	case d == nil:
		return nil
	case len(x.Models) != 1:
		return fieldErrorf("a plan is for one model, not %d", len(x.Models))
	case x.DryRun:
		return fieldErrorf("a plan has no {DryRun}")
	case x.Verification.Evaluator != nil:
		return fieldErrorf("a plan has no {Verification.Evaluator}: name a program in {Verification.Command}")
	}
	for _, s := range x.steps {
		if s.Method().Stage == pass.Train {
			return fieldErrorf("%s trains, which is not divided: train first", s.Method().Name)
		}
	}
	return nil
}

// resume returns the journal of the division, if the request is that of the plan.
func (d *division) resume(ctx context.Context, x *run, model string, steps []pass.Options) (*resumption, error) {
	id, err := d.identify(ctx, x, model, steps)
	if err != nil {
		return nil, err
	}
	none := func() error { return nil }
	if d.planning {
		d.plan.Identity = id
		return &resumption{nil, none, none, nil}, nil
	}
	// Each worker identifies the run by what it reads itself: another version, source or file of the request would
	// divide units in another way, and results of two different runs would be joined.
	if was := d.plan.Identity; was != id {
		return nil, fieldErrorf("%s was made for %s", filepath.Join(d.folder, planFile), was.Difference(id))
	}
	return &resumption{d.group, none, none, nil}, nil
}

// identify is the identity of the run. Its source is identified by names, sizes and times of its files, or by their
// tags: reading it would take as long as a worker's part.
func (d *division) identify(ctx context.Context, x *run, model string,
	steps []pass.Options) (id journal.Identity, err error) {
	if registry.IsReference(model) {
		return id, fieldErrorf("a plan is for a file: pull %s first", model)
	}
	f, err := remote.OpenModel(ctx, model)
	if err != nil {
		return id, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	d.plan.Read = f.Size()
	id.Version = job.Version()
	if remote.Is(model) {
		id.Source, err = remote.ModelTag(ctx, model)
	} else {
		id.Source, err = timesOf(f.Paths())
	}
	switch {
	case err != nil:
		return id, err
	case id.Source == "":
		return id, fieldErrorf("%s: the server sends no strong ETag, by which workers recognize the source: download it "+
			"first", model)
	}
	id.Request, err = x.digestOf(ctx, steps)
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
func (d *division) measure(ctx context.Context, x *run, m listed, steps []pass.Options) error {
	o, err := x.job(ctx, m.model, m.output, steps)
	if err != nil {
		return err
	}
	o.DryRun, o.Digest, o.Gates, o.Errors, o.Reports = true, false, nil, false, nil
	o.Verify, o.ManyProcesses = x.verify, true
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

// request is that of the plan, for this process.
func (d *division) request(l Limits, e Events) Request {
	r := d.plan.Request
	r.Limits, r.Events, r.division, r.DataFiles = l, e, d, d.plan.Workers
	r.Output = d.folder + string(os.PathSeparator)
	if remote.Is(d.folder) {
		r.Output = remote.Join(d.folder, "")
	}
	return r
}

// run runs the request of the plan in this process.
func (d *division) run(ctx context.Context, l Limits, e Events) (f Finalized, err error) {
	if d.plan.Sensitivities {
		f.Sensitivities, err = d.request(l, e).Sensitivities(ctx, nil)
		return f, err
	}
	f.Outcomes, err = d.request(l, e).RunAll(ctx)
	return f, err
}

// maxPlan limits the bytes of plan.json, which has the command line and the names of the result's files.
const maxPlan = 16 << 20

// OpenPlan reads the plan in a folder, on disk or in a bucket.
func OpenPlan(ctx context.Context, folder string) (*Plan, error) {
	path := remote.Join(folder, planFile)
	f, size, err := remote.OpenFile(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fieldErrorf("%s: no plan; make one with mcompress plan", path)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p := &Plan{folder: folder}
	if o, ok := f.(*remote.File); ok {
		p.tag = o.Tag()
	}
	text, err := bounded.Read(io.NewSectionReader(f, 0, size), maxPlan)
	if err != nil {
		return nil, err
	}
	// A field of a later version would be ignored, and the result be another one.
	if err := bounded.StrictJSON(text, p); err != nil || len(p.Request.Models) != 1 {
		return nil, fieldErrorf("%s: not a plan of this version: %v", path, err)
	}
	if v := job.Version(); p.Identity.Version != v {
		return nil, fieldErrorf("%s is a plan of version %s, this is %s", path, p.Identity.Version, v)
	}
	digest, err := p.digest()
	if err != nil {
		return nil, err
	}
	if digest != p.Digest {
		return nil, fieldErrorf("%s was changed after it was made; make another plan", path)
	}
	// Again, as the digest protects from mistakes only: whoever can write the file can compute it.
	return p, p.check()
}

// digest is that of the plan.
func (p *Plan) digest() (string, error) {
	plain := *p
	plain.Digest = ""
	text, err := json.Marshal(plain)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), err
}

// check returns an error if processes of the plan would write anything outside of its folder: the workers of a plan need
// not trust whoever can write to the folder.
func (p *Plan) check() error {
	r := p.Request
	switch {
	case p.Workers < 1:
		return fieldErrorf("a plan has at least one worker")
	case r.Output != "" || r.DataFiles != 0:
		return fieldErrorf("a plan sets {Output} and {DataFiles}")
	case r.Reports.Dir != "" || r.ExportDir != "" || r.Verification.WeightCache != "":
		return fieldErrorf("the files of a plan are in its folder: it has no {Reports.Dir}, {ExportDir} and " +
			"{Verification.WeightCache}")
	case r.Push != "":
		return fieldErrorf("a plan has no {Push}: push the result when it is finalized")
	}
	// Each worker has a data file, and memory in every other one.
	if err := pass.CheckDataFiles(p.Workers); err != nil {
		return fieldErrorf("workers: %w", err)
	}
	return nil
}

// checkPrograms returns an error if a process of the plan may run a program that is not allowed.
func (p *Plan) checkPrograms() error {
	v := p.Request.Verification
	switch {
	case p.AllowPrograms:
	case len(v.Command) > 0:
		return fieldErrorf("the plan runs the program %q: give {AllowPrograms} if you trust whoever made it", v.Command[0])
	case v.Library != "":
		return fieldErrorf("the plan loads the library %q: give {AllowPrograms} if you trust whoever made it", v.Library)
	}
	return nil
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

// newDivision joins the run of the plan as worker number index, or to finalize it if index is the number of workers.
// What is left after the result is complete is removed.
func newDivision(ctx context.Context, p *Plan, index int) (*division, error) {
	d := &division{folder: p.folder, plan: p, worker: index < p.Workers}
	if err := d.open(strconv.Itoa(index)); err != nil {
		return nil, err
	}
	if err := d.join(ctx, index); err != nil {
		d.leave(err)
		return nil, err
	}
	return d, nil
}

// open finds the folder on disk. The role distinguishes the processes of a plan, each of which has one for a folder in
// a bucket.
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
	// Without a group the worker has nothing to do: the result is complete.
	case err != nil || done && d.worker:
		return err
	// A process that was killed after it had written the result has left the parts.
	case done:
		return journal.Remove(ctx, parts, d.exchange())
	}
	d.group, err = journal.Join(ctx, parts, index, d.plan.Workers, d.plan.Identity, d.exchange())
	var foreign *journal.ForeignError
	if errors.As(err, &foreign) {
		err = fieldErrorf("%w", err)
	}
	return err
}

// leave ends the role of this process in the run with this error: what an interrupted one continues with stays.
func (d *division) leave(err error) {
	if d.scratch == nil {
		return
	}
	// With any other error a repeated worker continues with what is there.
	if code := ExitCode(err); code == ExitDone || code == ExitGate {
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

// upload uploads the files of a result. If the run is divided, those that workers have uploaded are copied, and another
// process that has been started to finalize the plan since is an error.
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

// Plan makes the plan of a request for one model in a folder, new or without a plan, in which the result will be:
// s3://BUCKET/PREFIX is for workers without a shared file system. Plan.Write writes it. Workers compute parts of it
// with Plan.Work, in any order and on any machine that has the files of the request under the same paths or URLs, and
// one process completes the result with Plan.Finalize. The result has a data file of each worker.
func (r Request) Plan(ctx context.Context, folder string, workers int) (*Plan, error) {
	return r.plan(ctx, folder, workers, false)
}

// PlanSensitivities is Plan for Sensitivities.
func (r Request) PlanSensitivities(ctx context.Context, folder string, workers int) (*Plan, error) {
	return r.plan(ctx, folder, workers, true)
}

func (r Request) plan(ctx context.Context, folder string, workers int, sensitivities bool) (_ *Plan, err error) {
	p := &Plan{Workers: workers, Request: r, Sensitivities: sensitivities, folder: folder}
	if err := p.check(); err != nil {
		return nil, err
	}
	for _, name := range append(r.Models, r.verified().Path, r.Data.Path) {
		// plan.json is read by all workers, and outlives a signature.
		if remote.Shown(name) != name {
			return nil, fieldErrorf("%s: a plan stores no URLs with a query, which may have a signature", remote.Shown(name))
		}
	}
	for _, s := range r.Steps {
		// plan.json has the steps as a recipe, which would lose such options.
		if o := pass.OutsideRecipes(s); o != "" {
			return nil, fieldErrorf("a plan has no --%s", o)
		}
	}
	d := &division{folder: folder, planning: true, plan: p}
	// Before anything is computed: workers of the other plan may be running.
	switch planned, err := d.has(ctx, planFile); {
	case err != nil:
		return nil, err
	case planned:
		return nil, fieldErrorf("%s has a plan already", folder)
	}
	if !remote.Is(folder) {
		undo, err := atomicfile.MakeDir(folder)
		if err != nil {
			return nil, err
		}
		defer undo()
	}
	if err := d.open("plan"); err != nil {
		return nil, err
	}
	// Planning leaves nothing to continue with.
	defer d.leave(nil)
	if _, err := d.run(ctx, r.Limits, r.Events); err != nil {
		return nil, err
	}
	return d.plan, nil
}

// Write writes plan.json into the folder of the plan, which it makes: workers can begin.
func (p *Plan) Write(ctx context.Context) error {
	if !remote.Is(p.folder) {
		undo, err := atomicfile.MakeDir(p.folder)
		if err != nil {
			return err
		}
		defer undo() // of a folder that is empty, as writing failed
	}
	var err error
	if p.Digest, err = p.digest(); err != nil {
		return err
	}
	return (&division{folder: p.folder}).writeFile(ctx, planFile, p)
}

// Work computes the part of worker number index. A worker that was interrupted continues, and one that has ended has
// nothing to do. One that needs results of others waits for them, until there is no new one for the given time: that is
// a *WaitError. It returns the data files that it has written.
func (p *Plan) Work(ctx context.Context, index int, patience time.Duration, l Limits,
	e Events) (_ []report.File, err error) {
	if index < 0 || index >= p.Workers {
		return nil, fieldErrorf("{Index} %d: the plan has workers 0 to %d", index, p.Workers-1)
	}
	if err := p.checkPrograms(); err != nil {
		return nil, err
	}
	d, err := newDivision(ctx, p, index)
	if err != nil {
		return nil, err
	}
	defer func() { d.leave(err) }()
	if d.group == nil {
		return d.parts, nil
	}
	defer func() { err = errors.Join(err, d.group.Close()) }()
	// Known from its journal, also by a process that was started again after its end.
	if d.group.Ended() {
		return d.parts, nil
	}
	for {
		_, err := d.run(ctx, l, e)
		// The run begins anew after each wait: units that are done are read from the journals, so that it only costs their
		// lookup.
		missing, elsewhere := ir.ElsewhereIn(err)
		if !elsewhere {
			if err == nil {
				err = d.group.End(ctx)
			}
			return d.parts, err
		}
		e.note(fmt.Sprintf("work: worker %d waits for %s", index, missing.Unit))
		err = d.group.Wait(ctx, patience, func() bool {
			_, ok := d.group.Result(missing.Unit)
			return ok
		})
		if err != nil {
			return nil, &WaitError{err}
		}
	}
}

// Finalized is the end of a plan.
type Finalized struct {
	UpToDate      bool // it was complete before
	Outcomes      []Outcome
	Sensitivities []Sensitivity
}

// Err is the error of the model, or the gates that it does not keep; nil for none.
func (f Finalized) Err() error {
	for _, o := range f.Outcomes {
		if err := o.Error(); err != nil {
			return err
		}
	}
	for _, s := range f.Sensitivities {
		if s.Err != nil {
			return s.Err
		}
	}
	return nil
}

// Finalize completes the result of the plan when its workers have ended: it waits for them until there is no new result
// for the given time, computes what they lost, writes the model next to their data files, verifies it, evaluates the
// gates and writes the reports. The parts of the workers are removed in the end; the plan stays.
func (p *Plan) Finalize(ctx context.Context, patience time.Duration, l Limits, e Events) (_ Finalized, err error) {
	if err := p.checkPrograms(); err != nil {
		return Finalized{}, err
	}
	d, err := newDivision(ctx, p, p.Workers)
	if err != nil {
		return Finalized{}, err
	}
	defer func() { d.leave(err) }()
	if d.group == nil {
		return Finalized{UpToDate: true}, nil
	}
	defer func() { err = errors.Join(err, d.group.Close()) }()
	if err := d.group.Lock(ctx); err != nil {
		return Finalized{}, err
	}
	// All workers have ended after it: what is missing then was lost, and is computed by this process.
	if err := d.group.Wait(ctx, patience, func() bool { return len(d.group.Missing()) == 0 }); err != nil {
		var ended *journal.PatienceError
		if !errors.As(err, &ended) {
			return Finalized{}, err
		}
		missing := d.group.Missing()
		return Finalized{}, &WaitError{fmt.Errorf("%s: %d of %d workers have not ended, the first is mcompress work "+
			"%[1]s --index %[4]d", p.folder, len(missing), p.Workers, missing[0])}
	}
	f, err := d.run(ctx, l, e)
	if err != nil {
		return f, err
	}
	code := ExitCode(f.Err())
	if code != ExitDone && code != ExitGate {
		return f, nil
	}
	// Before the parts are removed: a process that is killed in between finds the result complete, and only has to
	// remove them.
	if err := d.writeFile(ctx, resultFile, map[string]any{"exit_code": code}); err != nil {
		return f, err
	}
	return f, d.group.Remove(ctx)
}
