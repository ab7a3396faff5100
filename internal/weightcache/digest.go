package weightcache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/internal/filestate"
	"github.com/mcompress/mcompress/onnx"
)

// settled is the time after the last change of a file from which on a change is certain to get another time: file
// systems round times.
const settled = 2 * time.Second

// digest is the SHA-256 of all files of f. It is in the cache for files that have not changed: that have the same
// device, inode, size and times of modification and of status change, which programs cannot set. Where the system has
// no such numbers the files are read each time.
func (c *Cache) digest(ctx context.Context, dir *os.Root, f *onnx.File) (string, error) {
	state, last, known, err := stateOf(f)
	if err != nil {
		return "", err
	}
	name := state + ".digest"
	if known {
		if sum, ok := storedDigest(dir, state, last); ok {
			return sum, nil
		}
	}
	var names, sums []string
	for _, p := range f.Parts() {
		sum, err := p.SHA256(ctx)
		if err != nil {
			return "", fmt.Errorf("%s: %w", f.Path, err)
		}
		names, sums = append(names, p.Name), append(sums, sum)
	}
	sum := onnx.Combined(names, sums)
	after, _, _, err := stateOf(f)
	if err != nil {
		return "", err
	}
	if known && after == state {
		c.addFile(name, atomicfile.Private(), func(w io.Writer) error {
			// With the state, so that a copy under another name is not the digest of another model.
			_, err := io.WriteString(w, state+" "+sum)
			return err
		})
	}
	return sum, nil
}

// storedDigest is the digest in the file of a state, if it was written when the last change of the model's files had
// settled.
func storedDigest(dir *os.Root, state string, last time.Time) (string, bool) {
	name := state + ".digest"
	st, err := regular(dir, name)
	if err != nil || st.ModTime().Before(last.Add(settled)) {
		return "", false
	}
	text, err := dir.ReadFile(name)
	of, sum, found := strings.Cut(string(text), " ")
	if b, hexErr := hex.DecodeString(sum); err != nil || !found || of != state || hexErr != nil || len(b) != sha256.Size {
		return "", false
	}
	return sum, true
}

// stateOf identifies the state of f's files, without their paths, and has the time of the last change. It is not known
// on all systems.
func stateOf(f *onnx.File) (state string, last time.Time, known bool, err error) {
	h := sha256.New()
	for _, p := range f.Parts() {
		st, ok, err := p.Stat()
		if err != nil || !ok {
			return "", last, false, err
		}
		id, changed, ok := filestate.Of(st)
		if !ok {
			return "", last, false, nil
		}
		fmt.Fprintf(h, "%q %s\n", p.Name, id)
		if changed.After(last) {
			last = changed
		}
	}
	return hex.EncodeToString(h.Sum(nil)), last, true, nil
}
