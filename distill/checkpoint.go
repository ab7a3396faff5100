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
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A checkpoint of training is a zip archive of stored entries: state.json, the bytes of each weight, running statistic and optimizer state, and
// snapshots of the weights.
type checkpoint struct {
	identity  identity // of the training
	params    *parameters
	average   *average           // nil without --ema
	update    *accumulatedUpdate // nil if steps update weights
	snapshots []string           // files; their base names are those of the entries
}

const stateEntry = "state.json"

// checkpointVersion is that of the format: it changes with the fields of state, and with how training uses them.
const checkpointVersion = 5

// header is the content of state.json.
type header struct {
	Version  int
	Identity identity
	State    state
}

func (t *trainer) checkpoint() *checkpoint {
	return &checkpoint{identity: t.identity, params: t.params, average: t.average, update: t.update, snapshots: []string{t.bestFile(), t.observedFile(), earlyFile(t.folder)}}
}

// save writes a checkpoint to --save, atomically.
func (t *trainer) save() error {
	path := t.settings.Save
	if path == "" {
		return nil
	}
	if err := t.checkWeights(); err != nil {
		return err
	}
	defer t.elapsed.lap(&t.elapsed.Save)
	err := atomicfile.Write(path, atomicfile.Private(), func(w io.Writer) error { return t.checkpoint().write(w, t.state) })
	if err != nil {
		return fmt.Errorf("--save: %w", err)
	}
	return nil
}

// resume restores the checkpoint in --save, with --resume and if the file exists.
func (t *trainer) resume(ctx context.Context) (err error) {
	path := t.settings.Save
	if err := atomicfile.Check(path); path != "" && err != nil { // before the training, and before reading could block
		return fmt.Errorf("--save: %w", err)
	}
	if !t.settings.Resume {
		return nil
	}
	z, err := zip.OpenReader(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("--resume %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, z.Close()) }()
	c := t.checkpoint()
	if t.state, err = c.readState(&z.Reader); err != nil {
		return fmt.Errorf("--resume %s: %w", path, err)
	}
	if err = c.readSnapshots(&z.Reader); err == nil {
		err = t.observeAgain(ctx) // overwrites the weights by a snapshot
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
	for _, p := range c.params.weights {
		if err := f("weight/"+p.name, p.array); err != nil {
			return err
		}
	}
	for _, s := range c.params.stats {
		if err := f("batchnorm/"+s.name, s.array); err != nil {
			return err
		}
	}
	for _, p := range c.params.weights {
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
	states := func(p *parameter) error {
		for i, s := range p.states {
			if err := f(fmt.Sprintf("optimizer.%d/%s", i, p.name), s); err != nil {
				return err
			}
		}
		return nil
	}
	if c.update != nil {
		return c.update.eachParameter(states)
	}
	for _, p := range c.params.weights {
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
		err = json.Unmarshal(text, &h)
	}
	if err == nil && h.Version != checkpointVersion {
		err = fmt.Errorf("checkpoint of format %d, this version reads %d", h.Version, checkpointVersion)
	}
	if d := h.Identity.difference(c.identity); err == nil && d != "" {
		err = pass.OptionErrorf("checkpoint of a training of %s; remove it, or give another file", d)
	}
	return h.State, err
}

func (c *checkpoint) readSnapshots(z *zip.Reader) error {
	for _, path := range c.snapshots {
		if b, err := readEntry(z, filepath.Base(path)); err == nil {
			if err := os.WriteFile(path, b, 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *checkpoint) readArrays(z *zip.Reader) error {
	return c.each(func(name string, a *ir.Array) error {
		b, err := readEntry(z, name)
		if err == nil && len(b) != len(a.Data) {
			err = fmt.Errorf("%s has %d bytes, want %d", name, len(b), len(a.Data))
		}
		copy(a.Data, b)
		return err
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
