package distill

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/internal/bounded"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A checkpoint of training is a zip archive of stored entries: state.json, the bytes of each weight, running statistic
// and optimizer state, and snapshots of the weights.
type checkpoint struct {
	identity  identity // of the training
	graphs    *graphBuilder
	average   *average           // nil without --ema
	update    *accumulatedUpdate // nil if steps update weights
	snapshots []string           // files; their base names are those of the entries
}

const stateEntry = "state.json"

// checkpointVersion is that of the format: it changes with the fields of state, and with how training uses them.
const checkpointVersion = 7

// header is the content of state.json.
type header struct {
	Version  int
	Identity identity
	State    state
}

// openCheckpoint prepares the checkpoint of a training whose graphs are open.
func (t *trainer) openCheckpoint(ctx context.Context, teachers []*ir.Model) (err error) {
	t.checkpoint = &checkpoint{
		graphs: t.graphs, average: t.validation.average, update: t.update,
		// Without best, a resumed training that does not improve any more would have nothing to restore; without observed,
		// QAT would quantize by other ranges than before the interruption; without early, later trainings could not rewind.
		snapshots: []string{t.validation.bestFile(), t.graphs.observedFile(), earlyFile(t.folder)},
	}
	// It reads all samples and weights: only if a checkpoint will be compared with it.
	if t.settings.Save != "" && t.loader.set != nil {
		t.checkpoint.identity, err = newIdentity(ctx, t.graphs, teachers)
	}
	return err
}

// save writes the checkpoint to a file, atomically.
func (c *checkpoint) save(path string, s state) error {
	err := atomicfile.Write(path, atomicfile.Private(), func(w io.Writer) error { return c.write(w, s) })
	if err != nil {
		return fmt.Errorf("--save: %w", err)
	}
	return nil
}

// checkWritable is an error if the file cannot be written. It is called before the training, and before reading
// could block.
func (c *checkpoint) checkWritable(path string) error {
	if path == "" {
		return nil
	}
	if err := atomicfile.Check(path); err != nil {
		return fmt.Errorf("--save: %w", err)
	}
	return nil
}

// restore restores the training of a file, if it exists.
func (c *checkpoint) restore(ctx context.Context, path string, s *state) (err error) {
	z, err := zip.OpenReader(path)
	// The first run of a command that is repeated until it succeeds has no file yet.
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("--resume %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, z.Close()) }()
	// Before anything is overwritten: a checkpoint of another training is refused.
	if *s, err = c.readState(&z.Reader); err != nil {
		return fmt.Errorf("--resume %s: %w", path, err)
	}
	// Snapshots first: quantization is repeated on the weights that it observed, which are one of them.
	if err = c.readSnapshots(&z.Reader); err == nil {
		err = c.graphs.repeatQuantization(ctx) // overwrites the weights by a snapshot: before they are read
	}
	if err == nil {
		err = c.readArrays(&z.Reader)
	}
	if err != nil {
		return fmt.Errorf("--resume %s: %w", path, err)
	}
	return nil
}

func (c *checkpoint) write(w io.Writer, s state) error {
	z := zip.NewWriter(w)
	text, err := json.Marshal(header{checkpointVersion, c.identity, s})
	if err != nil {
		return err
	}
	if err := writeEntry(z, stateEntry, text); err != nil {
		return err
	}
	for _, path := range c.snapshots {
		// A snapshot exists once its event has: the first evaluation, observation, or rewind epoch.
		if err := copyEntry(z, path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if err := c.each(func(name string, a *ir.Array) error { return writeEntry(z, name, a.Data) }); err != nil {
		return err
	}
	return z.Close()
}

// copyEntry writes the content of a file, which is not held in memory.
func copyEntry(z *zip.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w, err := z.CreateHeader(&zip.FileHeader{Name: filepath.Base(path), Method: zip.Store})
	if err == nil {
		_, err = io.Copy(w, f)
	}
	return err
}

func writeEntry(z *zip.Writer, name string, data []byte) error {
	w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
	if err == nil {
		_, err = w.Write(data)
	}
	return err
}

// each calls f for all weights, running statistics and optimizer states.
func (c *checkpoint) each(f func(name string, a *ir.Array) error) error {
	for _, p := range c.graphs.params.weights {
		if err := f("weight/"+p.name, p.array); err != nil {
			return err
		}
	}
	// They have no gradient, but each step changes them.
	for _, s := range c.graphs.params.stats {
		if err := f("batchnorm/"+s.name, s.array); err != nil {
			return err
		}
	}
	for _, p := range c.graphs.params.weights {
		// Masks are no entries: pruning computes them from the scores of the training before.
		if p.scores != nil {
			if err := f("scores/"+p.name, p.scores); err != nil {
				return err
			}
		}
	}
	for i, a := range c.average.list() {
		if err := f(fmt.Sprintf("average/%d", i), a); err != nil {
			return err
		}
	}
	// Accumulated gradients are no entries: checkpoints are written between steps, when they are zero.
	states := func(p *parameter) error {
		for i, s := range p.states {
			if err := f(fmt.Sprintf("optimizer.%d/%s", i, p.name), s); err != nil {
				return err
			}
		}
		return nil
	}
	// States that are on disk are read one parameter at a time.
	if c.update != nil {
		return c.update.eachParameter(states)
	}
	for _, p := range c.graphs.params.weights {
		if err := states(p); err != nil {
			return err
		}
	}
	return nil
}

// readState reads the state, and checks that the checkpoint belongs to this training.
func (c *checkpoint) readState(z *zip.Reader) (state, error) {
	var h header
	text, err := readEntry(z, stateEntry)
	if err == nil {
		err = bounded.JSON(text, &h)
	}
	if err == nil && h.Version != checkpointVersion {
		err = fmt.Errorf("checkpoint of format %d, this version reads %d", h.Version, checkpointVersion)
	}
	// After the version: other formats have other identities.
	if d := h.Identity.difference(c.identity); err == nil && d != "" {
		err = pass.OptionErrorf("checkpoint of a training of %s; remove it, or give another file", d)
	}
	return h.State, err
}

func (c *checkpoint) readSnapshots(z *zip.Reader) error {
	for _, path := range c.snapshots {
		b, err := readEntry(z, filepath.Base(path))
		// Missing ones are no error, as their events may come after the checkpoint. A damaged one is: training would go on
		// without the best weights, or without the ranges that were observed.
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.WriteFile(path, b, 0o600)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(path), err)
		}
	}
	return nil
}

func (c *checkpoint) readArrays(z *zip.Reader) error {
	return c.each(func(name string, a *ir.Array) error {
		b, err := readEntry(z, name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if len(b) != len(a.Data) {
			return fmt.Errorf("%s has %d bytes, want %d", name, len(b), len(a.Data))
		}
		copy(a.Data, b)
		return nil
	})
}

func readEntry(z *zip.Reader, name string) ([]byte, error) {
	f, err := z.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}
