package pack

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// Options control Write and Read. The result does not depend on Workers and Memory.
type Options struct {
	Workers  int
	Memory   int64                   // limit of the chunks in memory; 0 for none
	Progress func(done, total int64) // bytes of the files; may be nil
	Base     []File                  // files that differences are stored from; nil for none
}

// A writer writes a container.
type writer struct {
	Options
	out   io.Writer
	files []File
	tasks []*task
	total int64

	at     int64 // bytes written
	index  Index
	sums   *assembler
	chunks map[uint64]original
	done   int64
}

// Write packs files into w and returns the index. It reads every byte of the files once, and repeated content a second
// time. Small files are packed in two ways, by tensors and as bytes, in memory, and the smaller result is written:
// nothing else tells whether the structure that a coder of bytes finds in all of a file, such as tensors that differ
// little, is worth more than elements of one type.
func Write(ctx context.Context, w io.Writer, files []File, o Options) (*Index, error) {
	size := int64(0)
	for _, f := range files {
		size += f.Size
	}
	// Twice only where it is cheap: both results are in memory.
	if size > smallSize || len(o.Base) > 0 ||
		!slices.ContainsFunc(files, func(f File) bool { return len(f.Tensors) > 0 }) {
		return write(ctx, w, files, o)
	}
	var byTensor, asBytes bytes.Buffer
	index, err := write(ctx, &byTensor, files, o)
	if err != nil {
		return nil, err
	}
	plain := slices.Clone(files)
	for i := range plain {
		plain[i].Tensors = nil
	}
	o.Progress = nil // done already
	other, err := write(ctx, &asBytes, plain, o)
	if err != nil {
		return nil, err
	}
	result := &byTensor
	if asBytes.Len() < byTensor.Len() {
		result, index = &asBytes, other
	}
	_, err = result.WriteTo(w)
	return index, err
}

// write packs files by their tensors.
func write(ctx context.Context, w io.Writer, files []File, o Options) (*Index, error) {
	p := &writer{Options: o, out: w, files: files, tasks: tasksOf(files), chunks: map[uint64]original{}}
	p.index.Tensors = []TensorInfo{} // not null in JSON
	for _, f := range files {
		p.index.Files = append(p.index.Files, FileInfo{Name: f.Name, Size: f.Size})
		p.total += f.Size
	}
	if err := checkFiles(p.index.Files); err != nil {
		return nil, err
	}
	if len(p.tasks) > maxChunks {
		return nil, fmt.Errorf("%d chunks; the maximum is %d", len(p.tasks), maxChunks)
	}
	if err := p.findBase(); err != nil {
		return nil, err
	}
	start := binary.LittleEndian.AppendUint32([]byte(magic), version)
	record, err := encodeJSON(headRecord, head{Files: p.index.Files, Base: p.index.Base})
	if err != nil {
		return nil, err
	}
	if err := p.write(append(start, record...)); err != nil {
		return nil, err
	}
	if p.sums, err = newAssembler(p.index.Files, func(int, []byte) error { return nil }); err != nil {
		return nil, err
	}
	if err := (pipeline{width(o.Workers, o.Memory), small(p.index.Files), p.next, p.encode, p.emit}).run(ctx); err != nil {
		return nil, err
	}
	return &p.index, p.end()
}

// findBase digests the base and finds the tensors in it that are like those to be packed.
func (p *writer) findBase() (err error) {
	if len(p.Base) == 0 {
		return nil
	}
	if p.index.Base, err = digested(p.Base); err != nil {
		return err
	}
	f, err := newFinder(p.Base)
	if err != nil {
		return err
	}
	return f.find(p.files, p.tasks)
}

func (p *writer) write(b []byte) error {
	n, err := p.out.Write(b)
	p.at += int64(n)
	return err
}

// end writes the index and the trailer.
func (p *writer) end() error {
	at := p.at
	record, err := encodeJSON(indexRecord, p.index)
	if err != nil {
		return err
	}
	record = binary.LittleEndian.AppendUint64(record, uint64(at))
	// The index is last, as digests and sizes of records are known then: the container is written as a stream, and
	// read as one by its head.
	return p.write(append(record, trailer...))
}

func (p *writer) next(c *chunk) (bool, error) {
	if c.number == len(p.tasks) {
		return false, nil
	}
	c.task = p.tasks[c.number]
	return true, nil
}

// encode reads and encodes the content of a chunk.
func (p *writer) encode(worker *chunker, c *chunk) error {
	n := 0
	for _, s := range c.task.from {
		n += s.size
	}
	raw := grow(&c.raw, n)
	c.raw = raw
	for _, s := range c.task.from {
		if err := p.files[s.file].read(raw[:s.size], s.offset); err != nil {
			return err
		}
		raw = raw[s.size:]
	}
	k := codec{form: plain, coders: [8]coder{match}}
	if worker.small && c.task.segment == nil {
		k.coders[0], _ = worker.coderOf(c.raw, 0, false)
	}
	c.kind = skeletonRecord
	s := c.task.segment
	if s != nil {
		// Any worker may come first: the choice depends on the sample alone, so that the result is the same.
		s.once.Do(func() { s.codec, s.err = p.choose(worker, s) })
		if s.err != nil {
			return s.err
		}
		k, c.kind = s.codec, dataRecord
	}
	if k.valid(len(c.raw)) != nil {
		k = codec{form: plain, coders: [8]coder{match}} // a part of an element
	}
	c.payload = c.payload[:0]
	if k.predictor == baseValue {
		from := stretch{file: s.base.file, offset: s.base.offset + c.task.from[0].offset - s.offset}
		worker.base = grow(&worker.base, n)
		if err := p.Base[from.file].read(worker.base, from.offset); err != nil {
			return err
		}
		c.payload = from.append(c.payload)
	}
	c.payload = worker.encode(c.payload, k, c.raw)
	c.form, c.packed, c.header.raw, c.sum, c.gap = k.form, len(c.payload), n, checksum(c.raw), c.task.gap
	return nil
}

// choose chooses the codec of a segment.
func (p *writer) choose(worker *chunker, s *segment) (codec, error) {
	offsets, size := samplePieces(s.dtype(), s.size)
	sample, err := samples(p.files[s.file], s.offset, offsets, size)
	if err != nil {
		return codec{}, err
	}
	var base []byte
	if s.base != nil {
		if base, err = samples(p.Base[s.base.file], s.base.offset, offsets, size); err != nil {
			return codec{}, err
		}
	}
	return worker.choose(s.dtype(), sample, base), nil
}

// samples are pieces of f of a size, at offsets from start.
func samples(f File, start int64, offsets []int64, size int64) ([]byte, error) {
	var all []byte
	for _, off := range offsets {
		n := len(all)
		all = append(all, make([]byte, size)...)
		if err := f.read(all[n:], start+off); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (f File) read(b []byte, off int64) error {
	if err := ir.ReadFull(f.R, b, off); err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	return nil
}

// An original is a data record that later ones with the same content refer to.
type original struct {
	number int
	from   stretch
}

// emit writes a chunk, or a reference to an earlier one of the same content.
func (p *writer) emit(c *chunk) error {
	if err := p.refer(c); err != nil {
		return err
	}
	if err := p.sums.addRecord(c.header, c.raw); err != nil {
		return err
	}
	p.list(c)
	p.index.Chunks = append(p.index.Chunks, chunkRecord{c.kind, c.packed, c.header.raw, c.gap})
	if err := p.write(c.header.append(nil)); err != nil {
		return err
	}
	if p.done += int64(c.header.raw); p.Progress != nil {
		p.Progress(p.done, p.total)
	}
	return p.write(c.payload)
}

// refer makes c a reference if its content is stored already, which is compared byte by byte.
func (p *writer) refer(c *chunk) error {
	const reference = 4
	// A reference is padded as any payload is: for content that is packed to less it would be no smaller.
	if c.kind != dataRecord || c.packed <= max(reference, c.header.raw/maxRatio) {
		return nil
	}
	key := uint64(c.sum)<<32 | uint64(c.header.raw)
	first, known := p.chunks[key]
	if !known {
		p.chunks[key] = original{c.number, c.task.from[0]}
		return nil
	}
	b := grow(&c.before, len(c.raw))
	c.before = b
	// CRC-32C and size only suggest equal content.
	if err := p.files[first.from.file].read(b, first.from.offset); err != nil || !bytes.Equal(b, c.raw) {
		return err
	}
	c.kind, c.form = referenceRecord, plain
	c.payload = pad(binary.LittleEndian.AppendUint32(c.payload[:0], uint32(first.number)), 0, len(c.raw))
	c.packed = len(c.payload)
	return nil
}

// list adds a tensor to the index at its first chunk.
func (p *writer) list(c *chunk) {
	s := c.task.segment
	if s == nil || s.tensor == nil || c.task.from[0].offset > s.offset {
		return
	}
	t := TensorInfo{
		Name:  s.tensor.Name,
		Type:  s.tensor.DType.String(),
		Shape: s.tensor.Shape,
		Size:  s.size,
		Chunk: c.number,
		Codec: s.codec.String(),
	}
	if c.kind == referenceRecord {
		t.Codec = "reference"
	}
	p.index.Tensors = append(p.index.Tensors, t)
}
