package pack

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/mcompress/mcompress/ir"
)

// An Archive gives random access to the files of a container. Its methods may be called concurrently.
type Archive struct {
	Index *Index

	r       io.ReaderAt
	name    string
	records []archived
	files   [][]int // data records of each file
	cache   cache
}

// An archived is a record of an archive.
type archived struct {
	chunkRecord
	at       int64 // offset of the header in the container
	start    int64 // offset of the content in the file; the gap is before it
	skeleton int   // number of the record with the bytes of the gap
	from     int   // their offset there
}

// Packed reports whether r begins as a container does.
func Packed(r io.ReaderAt) bool {
	b := make([]byte, len(magic))
	_, err := r.ReadAt(b, 0)
	return (err == nil || errors.Is(err, io.EOF)) && string(b) == magic
}

// Open reads the index of the container of size bytes in r. Errors of content are *FormatError.
func Open(r io.ReaderAt, size int64, name string) (*Archive, error) {
	a := &Archive{Index: &Index{}, r: r, name: name}
	at, err := a.readIndex(size)
	if err == nil {
		err = checkBase(a.Index.Base, nil)
	}
	if err == nil {
		err = a.locate()
	}
	if err != nil {
		return nil, &FormatError{name, at, err}
	}
	return a, nil
}

// readIndex reads the index through the trailer, and returns its offset.
func (a *Archive) readIndex(size int64) (int64, error) {
	if size < int64(prologueSize+trailerSize+headerSize) {
		return 0, errors.New("the file is truncated")
	}
	b := make([]byte, prologueSize)
	if err := ir.ReadFull(a.r, b, 0); err != nil {
		return 0, err
	}
	if err := checkPrologue(b); err != nil {
		return 0, err
	}
	b = make([]byte, trailerSize)
	if err := ir.ReadFull(a.r, b, size-int64(trailerSize)); err != nil {
		return 0, err
	}
	at := int64(binary.LittleEndian.Uint64(b))
	end := size - int64(trailerSize)
	if string(b[8:]) != trailer || at < 0 || at > end-headerSize {
		return 0, errors.New("malformed trailer: the file is truncated")
	}
	h, payload, err := a.record(at, end)
	if err == nil && h.kind != indexRecord {
		err = errors.New("no index")
	}
	if err == nil {
		err = decodeJSON(h, payload, a.Index)
	}
	if err == nil {
		err = checkFiles(a.Index.Files)
	}
	return at, err
}

// record reads the record at an offset, which ends at end or before.
func (a *Archive) record(at, end int64) (header, []byte, error) {
	var b [headerSize]byte
	if err := ir.ReadFull(a.r, b[:], at); err != nil {
		return header{}, nil, err
	}
	h, err := parseHeader(b[:])
	if err != nil {
		return h, nil, err
	}
	if int64(h.packed) > end-at-headerSize {
		return h, nil, errors.New("a record is longer than the file")
	}
	payload := make([]byte, h.packed)
	return h, payload, ir.ReadFull(a.r, payload, at+headerSize)
}

// locate computes the place of every record from the table of the index.
func (a *Archive) locate() error {
	var head [headerSize]byte
	if err := ir.ReadFull(a.r, head[:], int64(prologueSize)); err != nil {
		return err
	}
	h, err := parseHeader(head[:])
	if err != nil {
		return err
	}
	a.files = make([][]int, len(a.Index.Files))
	l := locator{Archive: a, at: int64(prologueSize + headerSize + h.packed), skeleton: -1}
	for _, c := range a.Index.Chunks {
		if err := l.addRecord(c); err != nil {
			return err
		}
	}
	l.advance()
	if l.file < len(a.files) {
		return fmt.Errorf("data of file %q is missing", a.Index.Files[l.file].Name)
	}
	return nil
}

// A locator is the state of locate between records.
type locator struct {
	*Archive
	at       int64
	file     int
	pos      int64
	skeleton int // the last one
	used     int // its bytes in gaps so far
}

// advance leaves the files that are complete.
func (l *locator) advance() {
	for l.file < len(l.files) && l.pos == l.Index.Files[l.file].Size {
		l.file, l.pos = l.file+1, 0
	}
}

func (l *locator) addRecord(c chunkRecord) error {
	r := archived{chunkRecord: c, at: l.at, skeleton: l.skeleton, from: l.used}
	l.at += int64(headerSize) + int64(c.packed)
	if c.raw < 1 || c.raw > maxChunk || c.packed < 0 || c.packed > maxPacked(c.raw) || c.gap < 0 {
		return errTable
	}
	if c.kind == skeletonRecord {
		l.skeleton, l.used = len(l.records), 0
		l.records = append(l.records, r)
		return nil
	}
	l.advance()
	if c.gap > 0 && (l.skeleton < 0 || c.gap > l.records[l.skeleton].raw-l.used) {
		return errTable
	}
	if l.file == len(l.files) || int64(c.gap)+int64(c.raw) > l.Index.Files[l.file].Size-l.pos {
		return errTable
	}
	r.start = l.pos + int64(c.gap)
	l.used, l.pos = l.used+c.gap, r.start+int64(c.raw)
	l.files[l.file] = append(l.files[l.file], len(l.records))
	l.records = append(l.records, r)
	return nil
}

// errTable is the error of an index whose records differ from its files.
var errTable = errors.New("malformed table of records")
