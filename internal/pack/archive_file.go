package pack

import (
	"fmt"
	"io"
	"io/fs"
	"path"
	"sort"
	"time"
)

// A Member is a file in an archive, read at random: its chunks are decoded when they are read, and a few are kept in
// memory.
type Member struct {
	a      *Archive
	number int
	pos    int64
}

// Member returns a file of the archive.
func (a *Archive) Member(number int) *Member { return &Member{a: a, number: number} }

// Open implements fs.FS.
func (a *Archive) Open(name string) (fs.File, error) {
	for i, f := range a.Index.Files {
		if f.Name == name {
			return a.Member(i), nil
		}
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// ReadAt implements io.ReaderAt.
func (m *Member) ReadAt(b []byte, off int64) (int, error) {
	size := m.Size()
	if off < 0 || off > size {
		return 0, fs.ErrInvalid
	}
	done := 0
	for done < len(b) && off < size {
		n, err := m.piece(b[done:], off)
		if err != nil {
			return done, err
		}
		done, off = done+n, off+int64(n)
	}
	if done < len(b) {
		return done, io.EOF
	}
	return done, nil
}

// piece reads from one record, that of the offset.
func (m *Member) piece(b []byte, off int64) (int, error) {
	records := m.a.files[m.number]
	// The first record that ends after off: its content, or the gap before it.
	i := sort.Search(len(records), func(i int) bool {
		r := m.a.records[records[i]]
		return r.start+int64(r.raw) > off
	})
	number := records[i]
	r := m.a.records[number]
	from, n := int(off-r.start), r.raw
	if from < 0 { // in the gap
		number, from, n = r.skeleton, r.from+r.gap+from, r.from+r.gap
	}
	content, err := m.a.content(number)
	if err != nil {
		return 0, fmt.Errorf("record %d: %w", number, err)
	}
	return copy(b, content[from:n]), nil
}

// Read implements fs.File.
func (m *Member) Read(b []byte) (int, error) {
	n, err := m.ReadAt(b, m.pos)
	m.pos += int64(n)
	return n, err
}

// Stat implements fs.File.
func (m *Member) Stat() (fs.FileInfo, error) { return m, nil }

// Close implements fs.File.
func (m *Member) Close() error { return nil }

// Name implements fs.FileInfo.
func (m *Member) Name() string { return path.Base(m.a.Index.Files[m.number].Name) }

// Size implements fs.FileInfo.
func (m *Member) Size() int64 { return m.a.Index.Files[m.number].Size }

// Mode implements fs.FileInfo.
func (m *Member) Mode() fs.FileMode { return 0o444 }

// ModTime implements fs.FileInfo; it is not stored.
func (m *Member) ModTime() time.Time { return time.Time{} }

// IsDir implements fs.FileInfo.
func (m *Member) IsDir() bool { return false }

// Sys implements fs.FileInfo.
func (m *Member) Sys() any { return nil }
