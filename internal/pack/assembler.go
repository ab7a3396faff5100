package pack

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
)

// An assembler puts the contents of records together to files, and digests them.
type assembler struct {
	files []FileInfo
	write func(file int, b []byte) error

	file     int
	pos      int64 // in the file
	skeleton []byte
	rest     []byte // of skeleton
	hash     hash.Hash
}

func newAssembler(files []FileInfo, write func(int, []byte) error) (*assembler, error) {
	a := &assembler{files: files, write: write, hash: sha256.New()}
	return a, a.advance()
}

// advance ends the files that are complete.
func (a *assembler) advance() error {
	for a.file < len(a.files) && a.pos == a.files[a.file].Size {
		// An empty file has no record: writing nothing to it creates it.
		if err := a.write(a.file, nil); err != nil {
			return err
		}
		a.files[a.file].SHA256 = hex.EncodeToString(a.hash.Sum(nil))
		a.file, a.pos = a.file+1, 0
		a.hash.Reset()
	}
	return nil
}

// checkRecord rejects a record that does not fit into the files.
func (a *assembler) checkRecord(h header) error {
	switch {
	case h.kind == skeletonRecord:
		if len(a.rest) > 0 {
			return errUnused
		}
	case h.gap > len(a.rest):
		return errors.New("a gap is longer than the skeleton")
	case a.file == len(a.files) || int64(h.gap+h.raw) > a.files[a.file].Size-a.pos:
		return errors.New("more data than the files have")
	}
	return nil
}

// errUnused is the error of a skeleton that is too long.
var errUnused = errors.New("bytes of the skeleton are not used")

// addRecord appends the content of a valid record to the files. Its errors are those of write.
func (a *assembler) addRecord(h header, content []byte) error {
	if h.kind == skeletonRecord {
		a.skeleton = append(a.skeleton[:0], content...)
		a.rest = a.skeleton
		return nil
	}
	for _, b := range [][]byte{a.rest[:h.gap], content} {
		a.hash.Write(b)
		if err := a.write(a.file, b); err != nil {
			return err
		}
		a.pos += int64(len(b))
	}
	a.rest = a.rest[h.gap:]
	return a.advance()
}

// finish reports missing data.
func (a *assembler) finish() error {
	switch {
	case a.file < len(a.files):
		return fmt.Errorf("data of file %q is missing", a.files[a.file].Name)
	case len(a.rest) > 0:
		return errUnused
	}
	return nil
}
