package pack

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// placeSize is the size of the place of a base's content: the number of the file, and the offset.
const placeSize = 12

func (s stretch) append(b []byte) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(b, uint32(s.file)), uint64(s.offset))
}

// readBase reads the content of the base at the place that payload begins with, and returns the rest of payload.
func readBase(base []File, content, payload []byte) ([]byte, error) {
	if len(payload) < placeSize {
		return nil, errPlace
	}
	file, off := binary.LittleEndian.Uint32(payload), int64(binary.LittleEndian.Uint64(payload[4:]))
	if int64(file) >= int64(len(base)) || off < 0 || off > base[file].Size-int64(len(content)) {
		return nil, errPlace
	}
	return payload[placeSize:], ir.ReadFull(base[file].R, content, off)
}

var errPlace = errors.New("a difference from no place in the base")

// digested are the sizes and digests of the files of a base.
func digested(base []File) ([]FileInfo, error) {
	var infos []FileInfo
	for _, f := range base {
		h := sha256.New()
		if _, err := io.Copy(h, io.NewSectionReader(f.R, 0, f.Size)); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		infos = append(infos, FileInfo{f.Name, f.Size, hex.EncodeToString(h.Sum(nil))})
	}
	return infos, nil
}

// checkBase compares the base with that of the container; names may differ.
func checkBase(want []FileInfo, base []File) error {
	if len(want) == 0 {
		return nil
	}
	if len(base) == 0 {
		return &BaseError{want[0]}
	}
	got, err := digested(base)
	if err != nil {
		return err
	}
	same := func(a, b FileInfo) bool { return a.Size == b.Size && a.SHA256 == b.SHA256 }
	if !slices.EqualFunc(want, got, same) {
		return &BaseError{want[0]}
	}
	return nil
}

// A BaseError is the error of a container that was packed against another base, or any base where there is none.
type BaseError struct{ Base FileInfo }

// Error names the base.
func (e *BaseError) Error() string {
	return fmt.Sprintf(
		"packed as differences from base %s (sha256:%s): unpack it with that model as --base",
		e.Base.Name,
		e.Base.SHA256,
	)
}

// A finder finds the tensor of a base that is most like another: that of the same name, type and shape, or one that
// begins with the same bytes.
type finder struct {
	files  []File
	named  map[string]stretch
	starts map[string]stretch
}

func newFinder(files []File) (*finder, error) {
	f := &finder{files, map[string]stretch{}, map[string]stretch{}}
	for i, file := range files {
		for _, t := range file.Tensors {
			if t.Bytes() < minTensor || t.Offset < 0 || t.Offset > file.Size-t.Bytes() {
				continue
			}
			at := stretch{file: i, offset: t.Offset}
			f.named[t.String()] = at
			start, err := startOf(file, t)
			if err != nil {
				return nil, err
			}
			if _, known := f.starts[start]; !known {
				f.starts[start] = at
			}
		}
	}
	return f, nil
}

// startOf is the size of a tensor and the digest of its first bytes.
func startOf(f File, t Tensor) (string, error) {
	b := make([]byte, min(t.Bytes(), maxGap))
	if err := ir.ReadFull(f.R, b, t.Offset); err != nil {
		return "", fmt.Errorf("%s: %w", f.Name, err)
	}
	return fmt.Sprintf("%d %x", t.Bytes(), sha256.Sum256(b)), nil
}

// find sets the place in the base of each segment of a tensor that is like one there.
func (f *finder) find(files []File, tasks []*task) error {
	for _, t := range tasks {
		s := t.segment
		if s == nil || s.tensor == nil || s.base != nil {
			continue
		}
		at, ok := f.named[s.tensor.String()]
		if !ok {
			start, err := startOf(files[s.file], *s.tensor)
			if err != nil {
				return err
			}
			at, ok = f.starts[start]
		}
		if ok {
			s.base = &at
		}
	}
	return nil
}

// String is the name, type and shape.
func (t Tensor) String() string { return fmt.Sprintf("%q %s %v", t.Name, t.DType, t.Shape) }
