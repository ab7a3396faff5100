package job

import (
	"context"
	"crypto/sha256"
	"slices"
	"strings"
	"sync"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/report"
)

// sums computes the digests of a model's files while the output is made.
type sums struct {
	done sync.WaitGroup
	list []string
	err  error
}

// startSums digests f's parts in the background, or does nothing.
func startSums(ctx context.Context, f *onnx.File, on bool) *sums {
	s := &sums{}
	if !on {
		return s
	}
	parts := f.Parts()
	s.list = make([]string, len(parts))
	s.done.Go(func() {
		for i, p := range parts {
			if s.list[i], s.err = p.SHA256(ctx); s.err != nil {
				return
			}
		}
	})
	return s
}

// wait returns the digest of each part, none if they are not computed.
func (s *sums) wait() ([]string, error) {
	s.done.Wait()
	return s.list, s.err
}

// provenance records version, recipe and source of the output in its metadata. The source's digest is known only once
// the file has been read: a placeholder of the same size is replaced at the end.
func (r *run) provenance() {
	r.setMeta(ir.Entry{Key: report.KeyVersion, Value: r.Version})
	r.setMeta(ir.Entry{Key: report.KeyRecipe, Value: r.recipe.SHA256})
	if !r.Digest {
		r.work.Model.Meta = slices.DeleteFunc(r.work.Model.Meta, func(e ir.Entry) bool { return e.Key == report.KeySource })
		return
	}
	r.setMeta(ir.Entry{Key: report.KeySource, Value: strings.Repeat("0", 2*sha256.Size), Late: r.sourceSum})
}

func (r *run) sourceSum(context.Context) (string, error) {
	list, err := r.sums.wait()
	if err != nil {
		return "", err
	}
	var names []string
	for _, p := range r.source.Parts() {
		names = append(names, p.Name)
	}
	return onnx.Combined(names, list), nil
}

func (r *run) setMeta(e ir.Entry) {
	m := r.work.Model
	i := slices.IndexFunc(m.Meta, func(o ir.Entry) bool { return o.Key == e.Key })
	if i < 0 {
		m.Meta = append(m.Meta, e)
		return
	}
	m.Meta[i] = e
}
