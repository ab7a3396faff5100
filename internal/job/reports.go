package job

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/report"
	"github.com/mcompress/mcompress/sparse"
)

// evaluate reports on the planned output and evaluates the gates: those on sizes and coverage, which are known before a
// payload is read, and after verification those on its metrics.
func (r *run) evaluate(ctx context.Context, p *onnx.Plan) (*report.Report, error) {
	if r.Source == nil {
		if err := guard(r.source, p, r.path); err != nil {
			return nil, err
		}
	}
	in := r.input()
	in.Source.Files = files(r.source, nil)
	in.Result = report.Model{IR: p.Model(), Planned: true}
	for i, path := range p.Paths(r.path) {
		in.Result.Files = append(in.Result.Files, report.File{Name: filepath.Base(path), Bytes: p.Sizes()[i]})
	}
	return report.Build(ctx, in)
}

// finish opens the written output and reports on it.
func (r *run) finish(ctx context.Context, written []onnx.Written) (*Result, error) {
	out, err := onnx.Open(r.path)
	if err != nil {
		return nil, fmt.Errorf("the output cannot be read back: %w", err)
	}
	defer out.Close()
	if err := out.Model.Verify(); err != nil {
		return nil, fmt.Errorf("the output is broken: %w", err)
	}
	sums, err := r.sums.wait()
	if err != nil {
		return nil, err
	}
	in := r.input()
	in.Source.Files = files(r.source, sums)
	in.Result = report.Model{Path: r.path, IR: out.Model}
	for _, w := range written {
		in.Result.Files = append(in.Result.Files, report.File{Name: w.Name, Bytes: w.Size, SHA256: w.SHA256})
	}
	in.Errors = r.Errors
	in.Environment = r.observe()
	if r.ExportDir != "" {
		if err := sparse.Export(ctx, r.eval, r.rows, r.ExportDir); err != nil {
			return nil, err
		}
	}
	res := &Result{Input: r.Input, Output: r.path}
	if r.verified != nil {
		res.NotRun = r.verified.Skipped
	}
	if res.Report, err = report.Build(ctx, in); err != nil {
		return nil, err
	}
	res.Rejected = !res.Report.Passed()
	return res, r.writeReports(res)
}

func (r *run) input() report.Input {
	return report.Input{
		Tool: "mcompress", Version: r.Version, Recipe: r.recipe,
		Source: report.Model{Path: r.Input, IR: r.source.Model},
		Rows:   r.rows, Gates: r.Gates, Verification: r.verified, Training: r.trained, Search: r.Search, Target: r.Target, Hints: r.Hints, Eval: r.eval, Workers: r.Workers,
	}
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

// Formats are the report formats by name.
func Formats() map[string]func(*report.Report, io.Writer) error {
	return map[string]func(*report.Report, io.Writer) error{
		"json": (*report.Report).JSON,
		"md":   (*report.Report).Markdown,
		"html": (*report.Report).HTML,
	}
}

func (r *run) writeReports(res *Result) error {
	formats := Formats()
	for _, name := range r.Reports {
		path, err := r.reportPath(name)
		if err != nil {
			return err
		}
		if err := WriteFile(path, func(f *os.File) error { return formats[name](res.Report, f) }); err != nil {
			return fmt.Errorf("report: %w", err)
		}
		res.Reports = append(res.Reports, path)
	}
	return nil
}
