package distill

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/ir"
)

// The state of training is a zip archive of stored entries: state.json, and the bytes of each weight and of each state of the
// optimizer.
const stateEntry = "state.json"

// header is the part of a saved state that is not arrays.
type header struct {
	Options string // digest of all that the course follows from
	State   state
}

// saved writes the state to --save, if it is time for that. The file appears whole or not at all.
func (t *Trainer) saved(due bool) (err error) {
	if t.save == "" || !due {
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(t.save), filepath.Base(t.save)+".*")
	if err != nil {
		return fmt.Errorf("--save: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("--save %s: %w", t.save, err), os.Remove(f.Name()))
		}
	}()
	if err = errors.Join(t.write(f), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), t.save)
}

func (t *Trainer) write(w io.Writer) error {
	z := zip.NewWriter(w)
	text, err := json.Marshal(header{t.digest(), t.state})
	if err != nil {
		return err
	}
	if err := entry(z, stateEntry, text); err != nil {
		return err
	}
	for _, v := range t.order {
		if err := entry(z, "weight/"+v.name, v.array.Data); err != nil {
			return err
		}
	}
	for _, path := range t.copies() {
		if b, err := os.ReadFile(path); err == nil {
			if err := entry(z, filepath.Base(path), b); err != nil {
				return err
			}
		}
	}
	for _, m := range t.moments {
		if err := entry(z, "moment/"+m.name, m.array.Data); err != nil {
			return err
		}
	}
	if err := t.eachState(func(name string, a *ir.Array) error { return entry(z, name, a.Data) }); err != nil {
		return err
	}
	return z.Close()
}

func entry(z *zip.Writer, name string, data []byte) error {
	w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
	if err == nil {
		_, err = w.Write(data)
	}
	return err
}

// eachState calls f for all states of the optimizer.
func (t *Trainer) eachState(f func(name string, a *ir.Array) error) error {
	each := func(v *variable) error {
		for i, s := range v.states {
			if err := f(fmt.Sprintf("state.%d/%s", i, v.name), s); err != nil {
				return err
			}
		}
		return nil
	}
	if t.layout.away {
		return t.update.states(each)
	}
	for _, v := range t.order {
		if err := each(v); err != nil {
			return err
		}
	}
	return nil
}

// goOn reads the state from --save, if --resume is given and the file is there.
func (t *Trainer) goOn(ctx context.Context) (err error) {
	if !t.resume {
		return nil
	}
	z, err := zip.OpenReader(t.save)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("--resume %s: %w", t.save, err)
	}
	defer func() { err = errors.Join(err, z.Close()) }()
	if err := t.read(ctx, &z.Reader); err != nil {
		return fmt.Errorf("--resume %s: %w", t.save, err)
	}
	return nil
}

func (t *Trainer) read(ctx context.Context, z *zip.Reader) error {
	var h header
	text, err := content(z, stateEntry)
	if err == nil {
		err = json.Unmarshal(text, &h)
	}
	if err != nil {
		return err
	}
	if h.Options != t.digest() {
		return errors.New("checkpoint of another model, other data or other options")
	}
	memory := t.state.Course.Memory
	t.state = h.State
	t.state.Course.Memory = memory
	fill := func(name string, a *ir.Array) error {
		b, err := content(z, name)
		if err == nil && len(b) != len(a.Data) {
			err = fmt.Errorf("%s has %d bytes, want %d", name, len(b), len(a.Data))
		}
		copy(a.Data, b)
		return err
	}
	for _, path := range t.copies() {
		if b, err := content(z, filepath.Base(path)); err == nil {
			if err := os.WriteFile(path, b, 0o600); err != nil {
				return err
			}
		}
	}
	if err := t.rehearseAgain(ctx); err != nil {
		return err
	}
	for _, v := range t.order {
		if err := fill("weight/"+v.name, v.array); err != nil {
			return err
		}
	}
	for _, m := range t.moments {
		if err := fill("moment/"+m.name, m.array); err != nil {
			return err
		}
	}
	return t.eachState(fill)
}

// copies are files of weights as they were, called as their entries.
func (t *Trainer) copies() []string { return []string{t.bestFile(), t.rehearsedFile()} }

func content(z *zip.Reader, name string) ([]byte, error) {
	f, err := z.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// digest is that of all that the course follows from: options, weights' names and shapes, and the number of samples.
func (t *Trainer) digest() string {
	s := t.settings
	s.save, s.every, s.resume, s.data = "", 0, false, dataset.Source{}
	h := sha256.New()
	fmt.Fprintf(h, "%+v %v %d %d\n", s, t.rounding.options(), len(t.split.learn), len(t.split.judge))
	for _, v := range t.order {
		fmt.Fprintf(h, "%s %s\n", v.name, v.array)
	}
	return hex.EncodeToString(h.Sum(nil))
}
