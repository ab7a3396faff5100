package job

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/report"
)

// Compare reports on two models that are there already: o.Input and what became of it,
// o.Output. Nothing is known of the way from one to the other; tensors are matched.
func Compare(ctx context.Context, o Options) (_ *Result, err error) {
	o.defaults()
	r := &run{Options: &o, observe: report.Observe(o.Workers), eval: ir.NewEval(""), path: compared(o.Input, o.Output)}
	defer func() { err = errors.Join(err, r.close()) }()
	if r.source, err = onnx.Open(o.Input); err != nil {
		return nil, located(o.Input, err)
	}
	if r.work, err = onnx.Open(o.Output); err != nil {
		return nil, located(o.Output, err)
	}
	return r.compare(ctx)
}

// compared names the reports of a comparison, so that those of the run which made the
// second model stay.
func compared(a, b string) string {
	return stem(b) + ".vs." + filepath.Base(stem(a)) + ".onnx"
}

func (r *run) compare(ctx context.Context) (*Result, error) {
	in := r.input()
	var err error
	if in.Source.Files, err = r.summed(ctx, r.source); err != nil {
		return nil, located(r.Input, err)
	}
	in.Result = report.Model{Path: r.Output, IR: r.work.Model}
	if in.Result.Files, err = r.summed(ctx, r.work); err != nil {
		return nil, located(r.Output, err)
	}
	in.Errors = true
	in.Environment = r.observe()
	res := &Result{Input: r.Input, Output: r.Output}
	if res.Report, err = report.Build(ctx, in); err != nil {
		return nil, fmt.Errorf("%s: %w", r.Output, err)
	}
	res.Rejected = !res.Report.Passed()
	return res, r.writeReports(res)
}

// summed are the files of f with their digests.
func (r *run) summed(ctx context.Context, f *onnx.File) ([]report.File, error) {
	sums, err := startSums(ctx, f, r.Digest).wait()
	return files(f, sums), err
}
