package partition

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/mcompress/mcompress/internal/bounded"
	"github.com/mcompress/mcompress/internal/digest"
	"github.com/mcompress/mcompress/internal/untrusted"
	"github.com/mcompress/mcompress/report/partition"
)

// maxManifest is the maximum size in bytes of a manifest: 48 layers on 8 ranks take 1 MB.
const maxManifest = 64 << 20

// ReadManifest reads NAME.stages.json or NAME.shards.json. Stages are returned as segments of one shard each. Files are
// in the folder of the manifest, and each input comes from the model's inputs, an earlier file of the same rank, or an
// earlier reduction: others are errors.
func ReadManifest(path string) (*partition.ShardManifest, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() || st.Size() > maxManifest {
		return nil, errors.Join(err, fmt.Errorf("%s: not a manifest", path))
	}
	// One reader for both kinds: a chain of stages is a manifest of one rank whose segments have one shard each.
	var m struct {
		partition.ShardManifest
		Stages []partition.Member `json:"stages"`
	}
	if err := bounded.ReadJSON(f, maxManifest, &m); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if m.Version != ManifestVersion {
		return nil, fmt.Errorf("%s: version %d of the manifest is not supported", path, m.Version)
	}
	for _, s := range m.Stages {
		shard := partition.Shard{File: s.File, Parts: s.Parts, Outputs: s.Outputs}
		for _, in := range s.Inputs {
			shard.Inputs = append(shard.Inputs, partition.Operand{Name: in.Name, From: in.From})
		}
		m.Ranks, m.Segments = 1, append(m.Segments, partition.Segment{Shards: []partition.Shard{shard}})
	}
	if err := checkManifest(&m.ShardManifest); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &m.ShardManifest, nil
}

// maxRanks is the maximum number of ranks of a manifest.
const maxRanks = 4096

// checkManifest follows the values through the segments.
func checkManifest(m *partition.ShardManifest) error {
	if m.Ranks < 1 || m.Ranks > maxRanks || len(m.Segments) == 0 || len(m.Outputs) == 0 {
		return errors.New("not a manifest of stages or shards")
	}
	c := checker{ranks: m.Ranks, rank: map[string]int{}, outputs: map[string][]string{}, sums: map[string]bool{}}
	for _, s := range m.Segments {
		if err := c.segment(s); err != nil {
			return err
		}
	}
	for _, o := range m.Outputs {
		if err := c.output(o); err != nil {
			return fmt.Errorf("output %q: %w", o.Name, err)
		}
	}
	return nil
}

// A checker has the values of the segments before one.
type checker struct {
	ranks   int
	rank    map[string]int      // of each file
	outputs map[string][]string // outputs of each file
	sums    map[string]bool
}

func (c *checker) segment(s partition.Segment) error {
	ranks := map[int]bool{}
	for _, shard := range s.Shards {
		_, twice := c.rank[shard.File]
		if twice || !isFileName(shard.File) {
			return fmt.Errorf("%q is not the name of a file of its own", shard.File)
		}
		if shard.Rank < 0 || shard.Rank >= c.ranks || ranks[shard.Rank] {
			return fmt.Errorf(
				"%s: rank %d: there are %d, each with one file in a segment",
				shard.File,
				shard.Rank,
				c.ranks,
			)
		}
		for _, in := range shard.Inputs {
			if err := c.input(shard.Rank, in); err != nil {
				return fmt.Errorf("%s: input %q: %w", shard.File, in.Name, err)
			}
		}
		for _, p := range shard.Parts {
			if !isFileName(p.Name) {
				return fmt.Errorf("%q is not the name of a file of its own", p.Name)
			}
		}
		// Only now: a shard does not read values of the others in its segment, as they run at the same time.
		ranks[shard.Rank] = true
		c.rank[shard.File], c.outputs[shard.File] = shard.Rank, shard.Outputs
	}
	for _, r := range s.Reductions {
		if r.Operation != "sum" {
			return fmt.Errorf("reduction of %q: operation %q is not supported", r.Name, r.Operation)
		}
		if len(s.Shards) == 0 ||
			slices.ContainsFunc(s.Shards, func(s partition.Shard) bool { return !slices.Contains(s.Outputs, r.Name) }) {
			return fmt.Errorf("reduction of %q: not an output of all files of the segment", r.Name)
		}
		c.sums[r.Name] = true
	}
	return nil
}

// isFileName reports whether name is that of a file in the folder of the manifest.
func isFileName(name string) bool {
	// Manifests are downloaded with models: a name must not lead out of their folder, on any system.
	_, err := untrusted.Path("", name)
	return err == nil && name != "." && name == filepath.Base(name)
}

func (c *checker) input(rank int, in partition.Operand) error {
	switch {
	case in.Reduced && c.sums[in.Name], !in.Reduced && in.From == "":
		return nil
	case in.Reduced:
		return errors.New("no earlier reduction")
	case c.rank[in.From] != rank && c.ranks > 1:
		return fmt.Errorf("%s is the file of another rank", in.From)
	}
	return c.has(in.From, in.Name)
}

func (c *checker) has(file, value string) error {
	if !slices.Contains(c.outputs[file], value) {
		return fmt.Errorf("not an output of an earlier file %q", file)
	}
	return nil
}

func (c *checker) output(o partition.Result) error {
	if o.Reduced && !c.sums[o.Name] {
		return errors.New("no reduction")
	}
	if o.Axis < 0 {
		return fmt.Errorf("axis %d", o.Axis)
	}
	files := o.Concat
	if o.From != "" {
		files = append(slices.Clone(files), o.From)
	}
	for _, file := range files {
		if err := c.has(file, o.Name); err != nil {
			return err
		}
	}
	return nil
}

// CompareFiles returns an error if a file in the folder has another size than in the manifest m, or another digest if
// digests are compared and the manifest has them.
func CompareFiles(ctx context.Context, m *partition.ShardManifest, folder string, digests bool) error {
	for _, s := range m.Segments {
		for _, shard := range s.Shards {
			for _, p := range shard.Parts {
				if err := comparePart(ctx, p, folder, digests); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func comparePart(ctx context.Context, p partition.Part, folder string, digests bool) error {
	path := filepath.Join(folder, p.Name)
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	// Sizes first: they find most mix-ups without reading gigabytes.
	if st.Size() != p.Size {
		return fmt.Errorf(
			"%s: %d bytes, but the manifest has %d: not the file that was written with it",
			path,
			st.Size(),
			p.Size,
		)
	}
	if !digests || p.SHA256 == "" {
		return nil
	}
	sum, _, err := digest.File(ctx, path, nil)
	if err == nil && sum != p.SHA256 {
		err = fmt.Errorf("%s: the digest is not that of the manifest: not the file that was written with it", path)
	}
	return err
}
