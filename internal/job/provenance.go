package job

import (
	"context"
	"crypto/sha256"
	"slices"
	"strings"
	"sync"

	"github.com/mcompress/mcompress/internal/remote"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/report"
)

// fileDigests computes the digests of a model's files while the output is made.
type fileDigests struct {
	journal ir.Journal // that divides the files between processes; nil for none
	once    sync.Once
	group   sync.WaitGroup
	list    []string
	err     error
}

// startDigests digests f's parts in the background, or does nothing. A journal divides them between processes; nil for
// none.
func startDigests(ctx context.Context, f *onnx.File, on bool, j ir.Journal) *fileDigests {
	s := &fileDigests{journal: j}
	if on {
		s.start(ctx, f)
	}
	return s
}

// start digests f's parts in the background, once.
func (s *fileDigests) start(ctx context.Context, f *onnx.File) {
	s.once.Do(func() {
		parts := f.Parts()
		// Each unit below writes its own element, so that the list needs no lock.
		s.list = make([]string, len(parts))
		var sizes []int64
		for _, p := range parts {
			sizes = append(sizes, p.Size)
		}
		s.group.Go(func() {
			s.err = ir.Each(s.journal, sizes, func(i int, mine bool) error {
				sum, err := ir.Once(ctx, s.journal, "digest of "+parts[i].Name, mine, func() ([]byte, error) {
					sum, err := parts[i].SHA256(ctx)
					return []byte(sum), err
				})
				s.list[i] = string(sum)
				return err
			})
		})
	})
}

// wait returns the digest of each part, none if they are not computed.
func (s *fileDigests) wait() ([]string, error) {
	s.group.Wait()
	return s.list, s.err
}

// combinedDigest is the digest of f, whose parts s digests.
func (s *fileDigests) combinedDigest(f *onnx.File) (string, error) {
	list, err := s.wait()
	if err != nil {
		return "", err
	}
	var names []string
	for _, p := range f.Parts() {
		names = append(names, p.Name)
	}
	return onnx.Combined(names, list), nil
}

// A Digest is the digest of the files of a source, which Run and others read once for all of them.
type Digest struct {
	fileDigests
	file *onnx.File
	stop context.CancelFunc
	ctx  func() context.Context
}

// OpenDigest opens the files of a model. They are read when the digest is needed.
func OpenDigest(ctx context.Context, path string) (*Digest, error) {
	f, err := remote.OpenModel(ctx, path)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	return &Digest{file: f, stop: stop, ctx: func() context.Context { return ctx }}, nil
}

// SHA256 is the digest, in hexadecimal.
func (d *Digest) SHA256() (string, error) {
	d.start(d.ctx(), d.file)
	return d.combinedDigest(d.file)
}

// Close ends the computation and closes the files.
func (d *Digest) Close() error {
	d.stop()
	d.group.Wait()
	return d.file.Close()
}

// provenance records version, recipe and source of the output in its metadata. The source's digest is known only once
// the file has been read: a placeholder of the same size is replaced at the end.
func (r *run) provenance() {
	m := r.work.Model
	stamp(m, r.Version, r.recipe.SHA256, r.sourceSum)
	if !r.Digest {
		m.Meta = slices.DeleteFunc(m.Meta, func(e ir.Entry) bool { return e.Key == report.KeySource })
	}
}

// zeroDigest has the size of a digest.
var zeroDigest = strings.Repeat("0", 2*sha256.Size)

// stamp records a version, the digest of a recipe, and that of the source, which late gives, in the metadata of m.
func stamp(m *ir.Model, version, recipe string, late func(context.Context) (string, error)) {
	for _, e := range []ir.Entry{{Key: report.KeyVersion, Value: version}, {Key: report.KeyRecipe, Value: recipe},
		{Key: report.KeySource, Value: zeroDigest, Late: late}} {
		i := slices.IndexFunc(m.Meta, func(o ir.Entry) bool { return o.Key == e.Key })
		if i < 0 {
			m.Meta = append(m.Meta, e)
			continue
		}
		m.Meta[i] = e
	}
}

// Size is the size in bytes of the files of m as the result of a run of this version that is called name, with its
// metadata.
func Size(m *ir.Model, name string, o onnx.LayoutOptions) int64 {
	given := m.Meta
	defer func() { m.Meta = given }()
	m.Meta = slices.Clone(given) // stamp replaces entries in place
	stamp(m, Version(), zeroDigest, nil)
	return onnx.Layout(m, modelName(name), o).Size()
}

func (r *run) sourceSum(context.Context) (string, error) { return r.digests.combinedDigest(r.source) }
