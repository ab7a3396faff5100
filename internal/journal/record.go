package journal

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

	"github.com/mcompress/mcompress/ir"
)

// A record of the log is a header, the name of a unit and the parts of its result. The header is the CRC-32C of all
// that follows it, the length of the name, the number of parts and their lengths, little-endian.
const fixedHeader = 4 + 4 + 4

// Limits of a record, so that a broken header allocates little.
const (
	maxName  = 1 << 16
	maxParts = 1 << 8
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// append writes a record at the end of the log.
func (j *Journal) append(unit string, parts [][]byte) ([]*io.SectionReader, error) {
	head := binary.LittleEndian.AppendUint32(nil, 0)
	head = binary.LittleEndian.AppendUint32(head, uint32(len(unit)))
	head = binary.LittleEndian.AppendUint32(head, uint32(len(parts)))
	for _, p := range parts {
		head = binary.LittleEndian.AppendUint64(head, uint64(len(p)))
	}
	head = append(head, unit...)
	sum := crc32.Update(0, castagnoli, head[4:])
	for _, p := range parts {
		sum = crc32.Update(sum, castagnoli, p)
	}
	binary.LittleEndian.PutUint32(head, sum)
	at, made := j.end, []*io.SectionReader{}
	// The log may be torn at any byte. Its end moves only once all is written, and so do the results that others
	// find.
	for i, p := range append([][]byte{head}, parts...) {
		if _, err := j.file.WriteAt(p, at); err != nil {
			return nil, err
		}
		if i > 0 {
			made = append(made, io.NewSectionReader(j.file, at, int64(len(p))))
		}
		at += int64(len(p))
	}
	j.end, j.parts[unit] = at, made
	return made, nil
}

// errTorn is a record that an interruption left incomplete.
var errTorn = errors.New("incomplete record")

// scan reads the records up to the first incomplete one, which is errTorn.
func (j *Journal) scan(ctx context.Context) error {
	st, err := j.file.Stat()
	if err != nil {
		return err
	}
	for j.end < st.Size() {
		if err := j.record(ctx, st.Size()); err != nil {
			return err
		}
	}
	return nil
}

// record reads the record at the end of what is known.
func (j *Journal) record(ctx context.Context, size int64) error {
	fixed := make([]byte, fixedHeader)
	if size-j.end < fixedHeader {
		return errTorn
	}
	if err := ir.ReadFull(j.file, fixed, j.end); err != nil {
		return err
	}
	sum := binary.LittleEndian.Uint32(fixed)
	name, parts := int64(binary.LittleEndian.Uint32(fixed[4:])), int64(binary.LittleEndian.Uint32(fixed[8:]))
	at := j.end + fixedHeader
	// The lengths are not protected before the checksum is computed, for which all bytes have to be read: they are
	// compared with the file first, so that random ones allocate nothing.
	if name > maxName || parts > maxParts || size-at < 8*parts+name {
		return errTorn
	}
	rest := make([]byte, 8*parts+name)
	if err := ir.ReadFull(j.file, rest, at); err != nil {
		return err
	}
	at += int64(len(rest))
	var made []*io.SectionReader
	for i := range parts {
		n := int64(binary.LittleEndian.Uint64(rest[8*i:]))
		if n < 0 || n > size-at {
			return errTorn
		}
		made = append(made, io.NewSectionReader(j.file, at, n))
		at += n
	}
	h := crc32.New(castagnoli)
	_, _ = h.Write(fixed[4:])
	_, _ = h.Write(rest)
	from := j.end + int64(fixedHeader+len(rest))
	if err := ir.Copy(ctx, h, io.NewSectionReader(j.file, from, at-from), at-from); err != nil {
		return err
	}
	if h.Sum32() != sum {
		return errTorn
	}
	j.end, j.parts[string(rest[8*parts:])] = at, made
	return nil
}
