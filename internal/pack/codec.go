package pack

import (
	"errors"
	"strings"
)

// A codec is the form of a tensor and the coder of each plane, chosen by trial on a sample of it.
type codec struct {
	form
	coders [8]coder
}

// String names the codec in the index.
func (c codec) String() string {
	names := [...]string{stored: "stored", fill: "stored", huffman: "huffman", ans: "fse", match: "zstd", mix: "mix"}
	n, _ := c.symbols(int(c.width))
	var used []string
	for _, k := range c.coders[:n] {
		used = append(used, names[k])
	}
	return c.form.String() + ": " + strings.Join(used, " ")
}

// A chunker encodes and decodes chunks. It is used by one goroutine at a time.
type chunker struct {
	*entropy
	difference []byte
	base       []byte // the content that baseValue predicts
	planes     []byte
}

func newChunker(small bool) *chunker { return &chunker{entropy: newEntropy(small)} }

// grow returns *b with n bytes.
func grow(b *[]byte, n int) []byte {
	if cap(*b) < n {
		*b = make([]byte, n)
	}
	return (*b)[:n]
}

// symbolsOf returns the planes of raw.
func (c *chunker) symbolsOf(f form, raw []byte) []byte {
	src := raw
	switch f.predictor {
	case previousValue:
		src = grow(&c.difference, len(raw))
		differences(src, raw, int(f.width))
	case baseValue:
		src = grow(&c.difference, len(raw))
		if f.layout == nibbles {
			differencesFrom4(src, raw, c.base)
		} else {
			differencesFrom(src, raw, c.base, int(f.width))
		}
	}
	if f.width == 1 && f.layout == planes {
		return src
	}
	count, each := f.symbols(len(raw))
	out := grow(&c.planes, count*each)
	split(out, src, f)
	return out
}

// encode appends the payload of raw to dst, padded to the smallest size that a reader accepts.
func (c *chunker) encode(dst []byte, k codec, raw []byte) []byte {
	start := len(dst)
	all := c.symbolsOf(k.form, raw)
	count, each := k.symbols(len(raw))
	for i := range count {
		dst = c.appendPlane(dst, k.coders[i], all[i*each:(i+1)*each])
	}
	return pad(dst, start, len(raw))
}

// pad appends zeros until the payload from start on is at least 1/1024 of its content.
func pad(dst []byte, start, raw int) []byte {
	for len(dst)-start < raw/maxRatio {
		dst = append(dst, 0)
	}
	return dst
}

// decode fills raw with the content of payload.
func (c *chunker) decode(f form, raw, payload []byte) error {
	if err := f.valid(len(raw)); err != nil {
		return err
	}
	count, each := f.symbols(len(raw))
	buffer := grow(&c.planes, count*each)
	// Planes are slices of their own: one that is stored as a whole is read where it is in the payload.
	var from [8][]byte
	var err error
	for i := range count {
		if from[i], payload, err = c.plane(buffer[i*each:(i+1)*each], payload, each); err != nil {
			return err
		}
	}
	// The padding. Other bytes would be content that no reader restores.
	for _, b := range payload {
		if b != 0 {
			return errors.New("data after the last block")
		}
	}
	merge(raw, from[:count], f)
	switch f.predictor {
	case previousValue:
		restore(raw, int(f.width))
	case baseValue:
		if f.layout == nibbles {
			restoreFrom4(raw, c.base)
		} else {
			restoreFrom(raw, c.base, int(f.width))
		}
	}
	return nil
}
