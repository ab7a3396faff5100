package pack

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// An Output is a file that is unpacked. Content that appears again is read back.
type Output interface {
	io.Writer
	io.ReaderAt
}

// A FormatError is the error of a container that is malformed.
type FormatError struct {
	File string
	Off  int64 // of the record
	Err  error
}

// Error names the file and the offset.
func (e *FormatError) Error() string {
	return fmt.Sprintf("%s: offset %d: %v", e.File, e.Off, e.Err)
}

// Unwrap returns the cause.
func (e *FormatError) Unwrap() error { return e.Err }

// A reader unpacks a stream.
type reader struct {
	Options
	in    *bufio.Reader
	name  string
	at    int64 // bytes read
	head  head
	total int64
	index Index // as in the stream

	open    func(FileInfo) (Output, error)
	outputs []Output
	parts   *assembler
	places  []stretch // of the records
	records []chunkRecord
	done    int64
}

// Read unpacks the stream r, which name denotes in errors. It calls open for each file, in order; files are incomplete
// unless the error is nil. Errors of content are *FormatError.
func Read(
	ctx context.Context,
	r io.Reader,
	name string,
	open func(FileInfo) (Output, error),
	o Options,
) (*Index, error) {
	u := &reader{Options: o, in: bufio.NewReaderSize(r, 64<<10), name: name, open: open}
	if err := u.begin(); err != nil {
		return nil, err
	}
	var err error
	if u.parts, err = newAssembler(u.head.Files, u.write); err != nil {
		return nil, err
	}
	if err := (pipeline{width(o.Workers, o.Memory), small(u.head.Files), u.next, u.decode, u.emit}).run(ctx); err != nil {
		return nil, err
	}
	if err := u.checkIndex(); err != nil {
		return nil, u.fail(u.at, err)
	}
	return &u.index, nil
}

func (u *reader) fail(off int64, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("the file is truncated")
	}
	return &FormatError{u.name, off, err}
}

// begin reads magic, version and head.
func (u *reader) begin() error {
	b := make([]byte, prologueSize)
	if err := u.full(b); err != nil {
		return u.fail(0, errors.New("not a packed model"))
	}
	if err := checkPrologue(b); err != nil {
		return u.fail(0, err)
	}
	at := u.at
	h, payload, err := u.record(nil)
	if err == nil && h.kind != headRecord {
		err = errors.New("the first record is not the head")
	}
	if err == nil {
		err = decodeJSON(h, payload, &u.head)
	}
	if err == nil {
		err = checkFiles(u.head.Files)
	}
	if err == nil {
		err = checkBase(u.head.Base, u.Base)
	}
	if err != nil {
		return u.fail(at, err)
	}
	for _, f := range u.head.Files {
		u.total += f.Size
	}
	return nil
}

// checkPrologue rejects other files and versions.
func checkPrologue(b []byte) error {
	if string(b[:len(magic)]) != magic {
		return errors.New("not a packed model")
	}
	if v := binary.LittleEndian.Uint32(b[len(magic):]); v != version {
		return fmt.Errorf("version %d of the format is not supported", v)
	}
	return nil
}

func (u *reader) full(b []byte) error {
	n, err := io.ReadFull(u.in, b)
	u.at += int64(n)
	return err
}

// record reads the next record, its payload into buf.
func (u *reader) record(buf []byte) (header, []byte, error) {
	var b [headerSize]byte
	if err := u.full(b[:]); err != nil {
		return header{}, nil, err
	}
	h, err := parseHeader(b[:])
	if err != nil {
		return h, nil, err
	}
	payload := grow(&buf, h.packed)
	return h, payload, u.full(payload)
}

// next reads the record of a chunk; the last record is the index.
func (u *reader) next(c *chunk) (bool, error) {
	at := u.at
	h, payload, err := u.record(c.payload)
	c.header, c.payload = h, payload
	switch {
	case err != nil:
	case h.kind == indexRecord:
		if err = decodeJSON(h, payload, &u.index); err == nil {
			err = u.tail(at)
		}
		if err == nil {
			return false, nil
		}
	case h.kind == headRecord:
		err = errors.New("a second head")
	case c.number == maxChunks:
		err = errors.New("too many records")
	}
	if err != nil {
		return false, u.fail(at, err)
	}
	return true, nil
}

// tail reads what follows the index, which is at the offset index.
func (u *reader) tail(index int64) error {
	b := make([]byte, trailerSize)
	if err := u.full(b); err != nil {
		return err
	}
	if string(b[8:]) != trailer || binary.LittleEndian.Uint64(b) != uint64(index) {
		return errors.New("malformed trailer")
	}
	if _, err := u.in.ReadByte(); err != io.EOF {
		return errors.New("data after the trailer")
	}
	return nil
}

// decode decodes the content of a chunk, unless it is a reference.
func (u *reader) decode(worker *chunker, c *chunk) error {
	c.raw = grow(&c.raw, c.header.raw)
	if c.kind == referenceRecord {
		return nil
	}
	payload, err := c.payload, error(nil)
	if c.predictor == baseValue {
		worker.base = grow(&worker.base, len(c.raw))
		payload, err = readBase(u.Base, worker.base, payload)
	}
	if err == nil {
		err = worker.decode(c.form, c.raw, payload)
	}
	if err == nil && checksum(c.raw) != c.sum {
		err = errDigest
	}
	if err != nil {
		return fmt.Errorf("%s: record %d: %w", u.name, c.number, err)
	}
	return nil
}

// emit adds a chunk to the files.
func (u *reader) emit(c *chunk) error {
	// Here and not in the workers: a reference is to content that has been written, which is the case in order
	// only.
	err := u.follow(c)
	if err == nil {
		err = u.parts.checkRecord(c.header)
	}
	if err != nil {
		return fmt.Errorf("%s: record %d: %w", u.name, c.number, err)
	}
	at := stretch{u.parts.file, u.parts.pos + int64(c.gap), c.header.raw}
	if c.kind != dataRecord {
		at.size = 0
	}
	u.places = append(u.places, at)
	u.records = append(u.records, chunkRecord{c.kind, c.packed, c.header.raw, c.gap})
	if u.done += int64(c.header.raw); u.Progress != nil {
		u.Progress(u.done, u.total)
	}
	return u.parts.addRecord(c.header, c.raw)
}

// follow reads back the content that a reference denotes.
func (u *reader) follow(c *chunk) error {
	if c.kind != referenceRecord {
		return nil
	}
	number, err := parseReference(c.payload)
	if err != nil {
		return err
	}
	if number >= len(u.places) || u.places[number].size != len(c.raw) {
		return errReference
	}
	from := u.places[number]
	if err := ir.ReadFull(u.outputs[from.file], c.raw, from.offset); err != nil {
		return err
	}
	if checksum(c.raw) != c.sum {
		return errDigest
	}
	return nil
}

// errReference is the error of a reference to a record without such content.
var errReference = errors.New("a reference to no earlier record of its size")

func parseReference(payload []byte) (int, error) {
	if len(payload) < 4 {
		return 0, errReference
	}
	return int(binary.LittleEndian.Uint32(payload)), nil
}

// write appends to a file, which it opens first.
func (u *reader) write(file int, b []byte) error {
	if file == len(u.outputs) {
		out, err := u.open(u.head.Files[file])
		if err != nil {
			return err
		}
		u.outputs = append(u.outputs, out)
	}
	_, err := u.outputs[file].Write(b)
	return err
}

// checkIndex compares the index with what was unpacked.
func (u *reader) checkIndex() error {
	if err := u.parts.finish(); err != nil {
		return err
	}
	// The head is without digests, which parts has added by now: the index has to have the same.
	if !slices.Equal(u.index.Files, u.head.Files) || !slices.Equal(u.index.Base, u.head.Base) ||
		!slices.Equal(u.index.Chunks, u.records) {
		return fmt.Errorf("%w: files or records differ from the index", errDigest)
	}
	return nil
}
