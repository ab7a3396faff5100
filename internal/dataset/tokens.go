package dataset

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/mcompress/mcompress/ir"
)

// defaultWindow is the number of tokens of a sample where the model leaves it open.
const defaultWindow = 256

// windows cuts a stream of token ids into samples of equal length without overlap; the rest is left out. The length is
// that of the model's axis, or of Options.Dims.
func windows(a *array, ids Input, o Options) (*array, error) {
	size := int64(defaultWindow)
	if dims := ids.dims(o.Dims); len(dims) == 2 && dims[1].Known() {
		size = dims[1].N
	}
	if a.n < size {
		return nil, fmt.Errorf("%s: %d tokens are fewer than the %d of a sample; set the size of the axis with --dim",
			a.row().Name, a.n, size)
	}
	return &array{from: a.from, name: a.name, elem: a.elem, n: a.n / size, shape: []int64{size}, off: a.off,
		stride: size * a.elem.size}, nil
}

// asTokens are samples of a stream of token ids, if the model is a language model and the file is one; else s.
func asTokens(s *samples, inputs []Input, o Options) (*samples, error) {
	ids, ok := sequence(inputs)
	a, single := s.only.(*array)
	if !ok || !single || len(a.shape) > 0 || !isInteger(a.elem.dtype) {
		return s, nil
	}
	w, err := windows(a, ids, o)
	if err == nil {
		s.setArray(ids.Name, w)
	}
	return s, err
}

// setArray makes c the array of an input; the others are not in the data.
func (s *samples) setArray(input string, c column) {
	// A language model has several inputs, which an array without a name could not serve.
	s.only, s.names = nil, []string{input}
	s.open = func(name string) (column, error) {
		if name != input {
			return nil, nil
		}
		return c, nil
	}
}

// tokenHead is the number of bytes of a file by which the width of tokens is recognized.
const tokenHead = 64 << 10

// openTokens opens a file of token ids of 16 or 32 bits, little-endian and without a header, as nanoGPT and other
// trainers write it. They have 32 bits if the first ones, read as such, are all in the vocabulary.
func openTokens(path string, ids Input) (*samples, error) {
	s := &samples{path: path}
	c, err := s.file(path)
	if err != nil {
		return s, err
	}
	if c.packed {
		return s, fmt.Errorf("%s: token files are not compressed", path)
	}
	elem := element{dtype: ir.Uint16, size: 2}
	if head := c.head(int(min(c.size, tokenHead))); c.size%4 == 0 && wideTokens(head, vocabulary(ids)) {
		elem = element{dtype: ir.Uint32, size: 4}
	}
	if c.size%elem.size != 0 {
		return s, fmt.Errorf("%s: %d bytes are no tokens of 16 or 32 bits", path, c.size)
	}
	s.only = &array{from: c, elem: elem, n: c.size / elem.size, stride: elem.size}
	return s, nil
}

// vocabulary is the size of the table that ids index, or a large one.
func vocabulary(ids Input) uint32 {
	const unknown = 1 << 20
	if ids.value != nil {
		if n := shortest(ids.value, map[*ir.Value]bool{}); n > 0 && n < unknown {
			return uint32(n)
		}
	}
	return unknown
}

func wideTokens(head []byte, vocabulary uint32) bool {
	for at := 0; at+4 <= len(head); at += 4 {
		if binary.LittleEndian.Uint32(head[at:]) >= vocabulary {
			return false
		}
	}
	return true
}

// isText recognizes text, for an error that names the remedy.
func isText(at location) bool {
	return at.head != nil && strings.EqualFold(filepath.Ext(strings.TrimSuffix(at.path, ".gz")), ".txt")
}
