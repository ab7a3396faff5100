package job

import (
	"context"
	"errors"
	"iter"
	"path/filepath"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/report"
)

// reportFiles are written files as a report has them.
func reportFiles(written []onnx.Written) (files []report.File) {
	for _, w := range written {
		files = append(files, report.File{Name: w.Name, Bytes: w.Size, SHA256: w.SHA256})
	}
	return files
}

// missingOf is the *onnx.Missing that err is; nil for none.
func missingOf(err error) (m *onnx.Missing, ok bool) {
	ok = errors.As(err, &m)
	return m, ok
}

// completePart completes the work of a worker, whose data files are written: it checks the weights in them and measures
// them for the report, and digests its part of the source.
func (r *run) completePart(ctx context.Context, p *onnx.Plan, path string, written []report.File,
	missing *onnx.Missing) (_ *Result, err error) {
	res := &Result{Input: r.Input}
	// Only data files are divided; the model file, the first one, needs all of them.
	own, mine := map[string]bool{}, r.Journal.Mine(p.Sizes()[1:])
	for i, path := range p.Paths(path)[1:] {
		own[filepath.Base(path)] = mine[i]
	}
	for _, f := range written {
		if own[f.Name] {
			res.Parts = append(res.Parts, f)
		}
	}
	if err := r.measurePart(ctx, p, path, own, missing); err != nil {
		return nil, err
	}
	_, err = r.digests.wait()
	if _, ok := ir.ElsewhereIn(err); err != nil && !ok {
		return nil, err
	}
	return res, nil
}

// measurePart checks and measures the weights of the result that are in own data files. The first worker also
// measures those that are in none.
func (r *run) measurePart(ctx context.Context, p *onnx.Plan, path string, own map[string]bool,
	missing *onnx.Missing) (err error) {
	out, err := reopen(ctx, r.set, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	in := r.reportInput()
	in.Source.Files = files(r.source, nil)
	in.Result = report.Model{Path: r.path, IR: out.Model}
	in.Errors, in.NoDigest, in.Journal = true, true, r.Journal
	// Weights in no data file are in the model file, which all workers have: one of them measures these.
	first, parts, planned := r.Journal.Mine([]int64{1})[0], out.Parts(), sameTensors(out.Model, p.Model())
	in.Mine = func(t *ir.Tensor) bool {
		mine, some := planned != nil, false
		for leaf := range leaves(t) {
			mine = mine && !missing.Has(planned[leaf])
			if s, ok := leaf.Source.(ir.Span); ok && out.Part(s) > 0 {
				mine, some = mine && own[parts[out.Part(s)].Name], true
			}
		}
		return mine && (some || first)
	}
	err = r.checkWritten(ctx, p, out.Model, in.Mine)
	if _, ok := ir.ElsewhereIn(err); r.Errors && (err == nil || ok) {
		_, err = report.Build(ctx, in)
	}
	if _, ok := ir.ElsewhereIn(err); ok {
		return nil
	}
	return err
}

// sameTensors are the constants of b by those of a, which has been written from b; nil if they do not correspond.
func sameTensors(a, b *ir.Model) map[*ir.Tensor]*ir.Tensor {
	of := map[*ir.Tensor]*ir.Tensor{}
	next, stop := iter.Pull(b.Values())
	defer stop()
	for v := range a.Values() {
		w, ok := next()
		if !ok || v.Name != w.Name || (v.Const == nil) != (w.Const == nil) {
			return nil
		}
		if v.Const != nil {
			of[v.Const] = w.Const
		}
	}
	return of
}

// leaves are the tensors that t is computed from and that are not computed.
func leaves(t *ir.Tensor) iter.Seq[*ir.Tensor] {
	return func(yield func(*ir.Tensor) bool) { visitLeaves(t, yield) }
}

// visitLeaves calls yield with each of the leaves of t until it returns false.
func visitLeaves(t *ir.Tensor, yield func(*ir.Tensor) bool) bool {
	o, ok := t.Source.(ir.Output)
	if !ok {
		return yield(t)
	}
	for _, in := range o.Of.In {
		if !visitLeaves(in, yield) {
			return false
		}
	}
	return true
}
