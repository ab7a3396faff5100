package job

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
	"github.com/mcompress/mcompress/sparse"
)

// evaluateGates reports on the output of the given files and evaluates the gates: those on sizes and coverage,
// which are known before a payload is read unless the output is packed, and after verification those on its
// metrics.
func (r *run) evaluateGates(ctx context.Context, p *onnx.Plan, result []report.File) (*report.Report, error) {
	in := r.reportInput()
	in.NoDigest = in.NoDigest || !r.DryRun // the report on the written output replaces this one
	in.Source.Files = files(r.source, nil)
	in.Result = report.Model{IR: p.Model(), Planned: true, Metadata: p.Metadata(), Files: result}
	return report.Build(ctx, in)
}

// plannedFiles are the files of p, whose model is called path.
func plannedFiles(p *onnx.Plan, path string) []report.File {
	var files []report.File
	for i, path := range p.Paths(path) {
		files = append(files, report.File{Name: filepath.Base(path), Bytes: p.Sizes()[i]})
	}
	return files
}

// stageFiles writes the files of the result under temporary names: the model, which it opens again and verifies,
// exported weights, and reports.
func (r *run) stageFiles(ctx context.Context, p *onnx.Plan) (_ *Result, err error) {
	set, path := r.set, r.path
	// A packed result is made from a whole model, which is verified like any other and never gets a name.
	if isPacked(r.path) {
		if set, path, err = r.stagingSet(); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, set.Close()) }()
	}
	o := onnx.SaveOptions{Workers: r.Workers, Memory: r.Memory, Digest: r.Digest, Eval: r.eval, Progress: r.Progress}
	if p.Size() >= resumableBytes || r.ManyProcesses {
		o.Journal = r.Journal
	}
	staged, err := p.Fill(ctx, set, path, opset.BrokenBy(r.source.Model), o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, staged.Close()) }()
	made := &result{files: plannedFiles(p, path), seal: staged.Seal}
	// Otherwise digests and flushes go on in the background until the report needs them. Packing reads the whole file, and
	// a worker's part ends with it.
	if r.ManyProcesses || set != r.set {
		err := made.complete(ctx)
		if missing, ok := missingOf(err); r.Worker && (err == nil || ok) {
			return r.completePart(ctx, p, path, made.files, missing)
		}
		if err != nil {
			return nil, err
		}
	}
	out, err := reopen(ctx, set, path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if set != r.set {
		if made.files, err = r.packFiles(ctx, out); err != nil {
			return nil, err
		}
	}
	// Nothing has its name yet: an output that is wrong, or that a gate rejects, leaves existing files as they are.
	if err := r.checkOutput(ctx, p, out, made.files); err != nil {
		return nil, errors.Join(err, staged.Close(), r.discardFiles(p))
	}
	return r.reportResult(ctx, p, made, out)
}

// A result is the files of the result, without digests until they are complete: the digests of source and result
// and the flush of the result go on while the result is verified and measured.
type result struct {
	files []report.File
	seal  func(context.Context) ([]onnx.Written, error) // nil once the files are complete
}

// complete completes the files, once.
func (r *result) complete(ctx context.Context) error {
	if r.seal == nil {
		return nil
	}
	written, err := r.seal(ctx)
	r.files, r.seal = reportFiles(written), nil
	return err
}

// resumableBytes is the size from which the payloads of a file are kept across interruptions: a smaller one is written
// anew in seconds.
const resumableBytes = 1 << 30

// reopen opens a model of a set under its temporary name.
func reopen(ctx context.Context, set *atomicfile.Set, path string) (*onnx.File, error) {
	dir, err := set.Folder(path)
	if err != nil {
		return nil, err
	}
	out, err := onnx.OpenContext(ctx, filepath.Join(dir, filepath.Base(path)))
	if err != nil {
		return nil, fmt.Errorf("the output cannot be read back: %w", err)
	}
	if err := out.Model.Verify(); err != nil {
		return nil, errors.Join(ir.Bugf("the output is broken: %w", err), out.Close())
	}
	return out, nil
}

// discardFiles removes the files of an output that another one replaces.
func (r *run) discardFiles(p *onnx.Plan) error {
	var errs []error
	for _, path := range p.Paths(r.path) {
		errs = append(errs, r.set.Remove(path))
	}
	return errors.Join(errs...)
}

// publish gives the files of the result their names, the model last. A run that is interrupted before has no output.
func (r *run) publish(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	// The last step before files appear: all of the sources has been read by now, in several passes, and was digested.
	if err := r.unchanged(); err != nil {
		return err
	}
	return r.set.Publish(r.path)
}

// reportResult reports on the output.
func (r *run) reportResult(ctx context.Context, p *onnx.Plan, made *result, out *onnx.File) (_ *Result, err error) {
	// A rejected output is a file of its own, without the folder of the model.
	if r.folder != nil && r.path == r.Output {
		if err := r.folder.Write(r.set, r.layers, r.config); err != nil {
			return nil, err
		}
	}
	in := r.reportInput()
	in.Result = report.Model{Path: r.path, IR: out.Model, Metadata: out.Metadata()}
	// Build calls this after it has measured errors: until then digests and flushes go on.
	in.Files = func(ctx context.Context) (source, result []report.File, err error) {
		sums, err := r.digests.wait()
		if err == nil {
			err = made.complete(ctx)
		}
		return files(r.source, sums), made.files, err
	}
	in.Errors = r.Errors
	if p.Size() >= resumableBytes || r.ManyProcesses {
		in.Journal = r.Journal
	}
	in.Environment = r.environment()
	if r.ExportDir != "" {
		if err := sparse.Export(ctx, r.eval, r.rows, r.ExportDir, r.set); err != nil {
			return nil, err
		}
	}
	res := &Result{Input: r.Input, Output: r.path}
	if r.verification != nil {
		res.NotRun = r.verification.Skipped
	}
	if res.Report, err = report.Build(ctx, in); err != nil {
		return nil, err
	}
	if err := r.checkInvariants(ctx, p, res.Report); err != nil {
		return nil, err
	}
	res.Rejected = !res.Report.Passed()
	return res, r.writeReports(ctx, res)
}

func (r *run) reportInput() report.Input {
	var copied *report.Copied
	if r.folder != nil && r.path == r.Output {
		copied = &report.Copied{Files: r.folder.Copied, Omitted: r.folder.Omitted, Stale: r.folder.Stale}
	}
	in := report.Input{
		Copied: copied,
		Tool:   "mcompress", Version: r.Version, Recipe: r.recipe, Request: r.Request,
		Source: report.Model{Path: r.Input, IR: r.source.Model, Metadata: r.source.Metadata()},
		Rows:   r.rows, Gates: r.Gates, Verification: r.verification, Removed: r.layers, Config: r.config,
		Training: r.trainings,
		Teachers: r.teachers, Data: r.data, Search: r.Search, Target: r.Target, Hints: r.Hints, Baseline: r.Baseline,
		Eval: r.eval, Workers: r.Workers,
		NoDigest: !r.Digest,
	}
	if r.referenceModel != nil {
		in.Reference = &r.referenceModel.model
	}
	return in
}

func files(f *onnx.File, sums []string) []report.File {
	var fs []report.File
	for i, p := range f.Parts() {
		rf := report.File{Name: p.Name, Bytes: p.Size}
		if i < len(sums) {
			rf.SHA256 = sums[i]
		}
		fs = append(fs, rf)
	}
	return fs
}

// writeReports writes the reports under temporary names.
func (r *run) writeReports(ctx context.Context, res *Result) error {
	for _, name := range r.Reports {
		format, known := report.FormatNamed(name)
		if !known {
			return pass.OptionErrorf("unknown report format %q", name)
		}
		path, err := r.reportPath(format.Suffix)
		if err != nil {
			return err
		}
		if err := r.set.WriteFile(path, func(w io.Writer) error {
			return format.Write(res.Report, ir.ContextWriter(ctx, w), r.Card)
		}); err != nil {
			return fmt.Errorf("report: %w", err)
		}
		res.Reports = append(res.Reports, path)
	}
	if !slices.Contains(r.Reports, "json") {
		return nil
	}
	path, err := r.reportPath(".environment.json")
	if err != nil {
		return err
	}
	return r.set.WriteFile(path, res.Report.Environment.JSON)
}
