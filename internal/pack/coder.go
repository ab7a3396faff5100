package pack

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/klauspost/compress/fse"
	"github.com/klauspost/compress/zstd"
)

// A coder codes the symbols of a block.
type coder byte

const (
	stored  coder = iota
	fill          // all symbols are equal
	huffman       // of bytes, four streams
	ans           // FSE, tabled asymmetric numeral systems
	match         // zstd
	mix           // context mixing, only in small containers
	coders        // the number of coders
)

// blockSize is the number of symbols that share a Huffman code. Other blocks have the rest of the plane.
const blockSize = 128 << 10

// last is added to the coder of a block with all symbols that are left of the plane.
const last = 8

// An entropy has the memory of the coders. It is used by one goroutine at a time.
type entropy struct {
	huff  huffmanCoder
	fse   fse.Scratch
	unfse fse.Scratch
	enc   *zstd.Encoder
	slow  *zstd.Encoder // finds longer matches, but not always a smaller code; nil unless small
	dec   *zstd.Decoder
	out   []byte
	small bool              // whether mix is allowed
	mixed map[string][]byte // the code of planes so far: a codec is chosen on all of a small tensor
}

// smallSize is the maximum size of the files of a container that has mix, which codes one to two megabytes per second.
const smallSize = 4 << 20

// small reports whether files are small enough for mix.
func small(files []FileInfo) bool {
	rest := int64(smallSize)
	for _, f := range files {
		if rest -= f.Size; rest < 0 {
			return false
		}
	}
	return true
}

func newEntropy(small bool) *entropy {
	encoder := func(level zstd.EncoderLevel) *zstd.Encoder {
		// The checksum of the record covers the content, so that a second one is left out.
		enc, err := zstd.NewWriter(
			nil,
			zstd.WithEncoderConcurrency(1),
			zstd.WithEncoderLevel(level),
			zstd.WithWindowSize(maxChunk),
			zstd.WithEncoderCRC(false),
			zstd.WithLowerEncoderMem(true),
		)
		if err != nil {
			panic(err) // the options are constants
		}
		return enc
	}
	dec, err := zstd.NewReader(
		nil,
		zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderLowmem(true),
		// A frame that decodes to more than the block has is an error before memory is allocated.
		zstd.WithDecodeAllCapLimit(true),
	)
	if err != nil {
		panic(err)
	}
	e := &entropy{enc: encoder(zstd.SpeedBetterCompression), dec: dec, small: small, mixed: map[string][]byte{}}
	if small {
		e.slow = encoder(zstd.SpeedBestCompression)
	}
	return e
}

// code returns the payload of in, and the coder that was used: stored if c saves nothing. The payload is valid until
// the next call.
func (e *entropy) code(c coder, in []byte) (coder, []byte) {
	// Huffman codes need two symbols, and a sparse plane is often all zeros.
	if c != stored && allEqual(in) {
		return fill, in[:1]
	}
	var out []byte
	var err error
	switch c {
	case huffman:
		var ok bool
		if e.out, ok = e.huff.encode(e.out[:0], in); !ok {
			return stored, in
		}
		out = e.out
	case ans:
		e.fse.TableLog = 12
		out, err = fse.Compress(in, &e.fse)
	case match:
		e.out = e.enc.EncodeAll(in, e.out[:0])
		out = e.out
		if e.slow != nil {
			if other := e.slow.EncodeAll(in, nil); len(other) < len(out) {
				out = other
			}
		}
	case mix:
		var known bool
		if out, known = e.mixed[string(in)]; !known {
			out = mixed(nil, in)
			e.mixed[string(in)] = out
		}
	default:
		err = errors.ErrUnsupported
	}
	if err != nil || len(out) >= len(in) { // the coders reject what they cannot compress
		return stored, in
	}
	return c, out
}

// allEqual reports whether all bytes of b are equal.
func allEqual(b []byte) bool { return bytes.Equal(b[1:], b[:len(b)-1]) }

// appendPlane appends the blocks of a plane.
func (e *entropy) appendPlane(dst []byte, c coder, plane []byte) []byte {
	for len(plane) > 0 {
		// Only a Huffman code gains from tables that follow the data. FSE has one for the whole plane: one for each
		// 128 KiB cost more than it saved, and int8 weights took 0.8 % more than their entropy, now 0.2 %.
		b := plane
		if c == huffman {
			b = b[:min(len(b), blockSize)]
		}
		used, out := e.code(c, b)
		dst = appendBlock(dst, used, len(b), len(out), len(b) == len(plane))
		dst = append(dst, out...)
		plane = plane[len(b):]
	}
	return dst
}

// appendBlock appends the header of a block: the coder, the number of symbols unless they are all that are left, and
// the size of the payload unless the coder implies it.
func appendBlock(dst []byte, c coder, symbols, size int, rest bool) []byte {
	if rest {
		dst = append(dst, byte(c)+last)
	} else {
		dst = binary.AppendUvarint(append(dst, byte(c)), uint64(symbols))
	}
	if c != stored && c != fill {
		dst = binary.AppendUvarint(dst, uint64(size))
	}
	return dst
}

// block reads the header of a block, where n symbols are left, and returns the rest of payload.
func block(payload []byte, n int) (c coder, symbols, size int, rest []byte, err error) {
	if len(payload) == 0 {
		return 0, 0, 0, nil, errBlock
	}
	number := func() int {
		v, n := binary.Uvarint(payload)
		if n <= 0 || v > maxChunk*2 {
			err = errBlock
			return 0
		}
		payload = payload[n:]
		return int(v)
	}
	c, symbols = coder(payload[0]), n
	payload = payload[1:]
	if c < last {
		symbols = number()
	}
	c &^= last
	switch c {
	case stored:
		size = symbols
	case fill:
		size = 1
	default:
		size = number()
	}
	if err == nil && (size > len(payload) || symbols < 1 || symbols > n) {
		err = errBlock
	}
	return c, symbols, size, payload, err
}

// A plane that is one stored block needs no copy: it is a part of the payload.
var errBlock = errors.New("malformed block")

// plane decodes a plane of n symbols from the front of payload, into dst unless it is stored as a whole, and returns it
// with the rest of payload.
func (e *entropy) plane(dst, payload []byte, n int) (plane, rest []byte, err error) {
	dst = dst[:n]
	for done := 0; done < n; {
		c, symbols, size, rest, err := block(payload, n-done)
		if err != nil {
			return nil, nil, err
		}
		payload = rest
		if c == stored && symbols == n {
			return payload[:n], payload[n:], nil
		}
		if err := e.decode(c, dst[done:done+symbols:done+symbols], payload[:size]); err != nil {
			return nil, nil, err
		}
		payload, done = payload[size:], done+symbols
	}
	return dst, payload, nil
}

// decode fills dst with the symbols of a block.
func (e *entropy) decode(c coder, dst, in []byte) error {
	var out []byte
	var err error
	switch c {
	case stored:
		out = in
	case fill:
		if len(in) != 1 {
			return errBlock
		}
		for i := range dst {
			dst[i] = in[0]
		}
		return nil
	case huffman:
		if len(dst) > blockSize {
			return errBlock
		}
		return e.huff.decode(dst, in)
	case ans:
		e.unfse.DecompressLimit = len(dst)
		out, err = fse.Decompress(in, &e.unfse)
	case match:
		out, err = e.dec.DecodeAll(in, dst[:0])
	case mix:
		// Mixing takes a second for 2 MB: a container of any size that uses it could keep a reader busy for eight
		// minutes a gigabyte.
		if !e.small {
			return errBlock
		}
		unmixed(dst, in)
		return nil
	default:
		return errBlock
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errBlock, err)
	}
	if len(out) != len(dst) {
		return errBlock
	}
	copy(dst, out)
	return nil
}
