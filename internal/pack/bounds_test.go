package pack

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// The sizes in a header have limits by its kind, which valid ones may have.
func TestLimitsOfHeaders(t *testing.T) {
	valid := func(h header) bool {
		got, err := parseHeader(h.append(nil))
		if err == nil && got != h {
			t.Errorf("%+v is read as %+v", h, got)
		}
		return err == nil
	}
	for k, limit := range map[kind]int{headRecord: maxHead, indexRecord: maxIndex, skeletonRecord: maxChunk,
		dataRecord: maxChunk, referenceRecord: maxChunk} {
		for raw, want := range map[int]bool{0: false, 1: true, limit: true, limit + 1: false} {
			if got := valid(header{kind: k, form: plain, packed: max(1, raw/maxRatio), raw: raw, sum: 1 << 31}); got != want {
				t.Errorf("%c: content of %d bytes: %t", k, raw, got)
			}
		}
	}
	for _, c := range []struct {
		h    header
		want bool
	}{
		{header{kind: 'X', form: plain, packed: 1, raw: 1}, false},
		{header{kind: dataRecord, form: form{baseValue, 8, nibbles}, packed: 5000, raw: 5000, gap: maxGap}, true},
		{header{kind: dataRecord, form: plain, packed: 5000, raw: 5000, gap: maxGap + 1}, false},
		{header{kind: dataRecord, form: plain, packed: maxPacked(160), raw: 160}, true},
		{header{kind: dataRecord, form: plain, packed: maxPacked(160) + 1, raw: 160}, false},
		{header{kind: dataRecord, form: plain, packed: 3, raw: 3 * maxRatio}, true},
		{header{kind: dataRecord, form: plain, packed: 2, raw: 3 * maxRatio}, false},
	} {
		if got := valid(c.h); got != c.want {
			t.Errorf("%+v: %t", c.h, got)
		}
	}
	if n := maxPacked(1600); n != 1600+100+4096 { // a sixteenth, and some headers of blocks
		t.Errorf("at most %d bytes for 1600", n)
	}
}

// A record of JSON is what was written, of the limited size, or an error.
func TestRecordsOfJSON(t *testing.T) {
	record, err := encodeJSON(headRecord, head{Files: []FileInfo{{Name: "a", Size: 5}}})
	if err != nil {
		t.Fatal(err)
	}
	h, err := parseHeader(record[:headerSize])
	if err != nil || h.kind != headRecord || h.packed != len(record)-headerSize {
		t.Fatalf("%+v, %v", h, err)
	}
	payload := record[headerSize:]
	for name, change := range map[string]func(*header, []byte) []byte{
		"right": func(_ *header, p []byte) []byte { return p },
		"sum":   func(h *header, p []byte) []byte { h.sum++; return p },
		"short": func(h *header, p []byte) []byte { h.raw++; return p },
		"long":  func(h *header, p []byte) []byte { h.raw--; return p },
		"cut":   func(_ *header, p []byte) []byte { return p[:len(p)-6] },
		"empty": func(_ *header, _ []byte) []byte { return nil },
		"text": func(h *header, _ []byte) []byte {
			other, _ := encodeJSON(headRecord, "text")
			*h, _ = parseHeader(other)
			return other[headerSize:]
		},
	} {
		h, v := h, head{}
		p := change(&h, bytes.Clone(payload))
		if err := decodeJSON(h, p, &v); (err == nil) != (name == "right") ||
			name == "right" && (len(v.Files) != 1 || v.Files[0].Size != 5) {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
	}
	text := func(n int) string { return strings.Repeat("x", n-2) } // and quotes
	for k, limit := range map[kind]int{headRecord: maxHead, indexRecord: maxIndex} {
		_, fits := encodeJSON(k, text(limit))
		_, long := encodeJSON(k, text(limit+1))
		if fits != nil || long == nil {
			t.Errorf("%c: %v, %v", k, fits, long)
		}
	}
	if _, err := encodeJSON(headRecord, func() {}); err == nil {
		t.Error("a function is encoded")
	}
	var c chunkRecord
	if err := c.UnmarshalJSON([]byte(`[68, 2, 3, 4]`)); err != nil || c != (chunkRecord{dataRecord, 2, 3, 4}) {
		t.Errorf("%+v, %v", c, err)
	}
	if err := c.UnmarshalJSON([]byte(`["D", 2, 3, 4]`)); err == nil {
		t.Error("a row of text is read")
	}
}

// Files of a container have names in its folder, once each, and sizes.
func TestFilesOfAContainer(t *testing.T) {
	for _, c := range []struct {
		files []FileInfo
		want  string
	}{
		{nil, "no files"},
		{[]FileInfo{{Name: "a"}, {Name: "b/c", Size: 1}}, ""},
		{[]FileInfo{{Name: "a"}, {Name: "a"}}, "appears twice"},
		{[]FileInfo{{Name: "a", Size: -1}}, "has size -1"},
		{[]FileInfo{{Name: "/a"}}, "not a path inside"},
		{[]FileInfo{{Name: "a"}, {Name: ".git/config"}}, "a hidden file"},
		{[]FileInfo{{Name: "a"}, {Name: "A"}}, "the same file"},
	} {
		if err := checkFiles(c.files); (err == nil) != (c.want == "") ||
			err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v", c.files, err)
		}
	}
	for n, want := range map[int64]bool{smallSize: true, smallSize + 1: false} {
		if got := small([]FileInfo{{Size: n - 5}, {Size: 5}}); got != want {
			t.Errorf("%d bytes are small: %t", n, got)
		}
	}
}

// Records that do not fit the files are rejected, by readers of a stream and of an archive alike, and those that just
// fit are not.
func TestRecordsThatDoNotFit(t *testing.T) {
	data := func(raw, gap int) chunkRecord { return chunkRecord{dataRecord, raw, raw, gap} }
	skeleton := func(raw int) chunkRecord { return chunkRecord{skeletonRecord, raw, raw, 0} }
	for name, c := range map[string]struct {
		sizes   []int64
		records []chunkRecord
		stream  string // error of the assembler; empty for none
		archive bool   // whether the archive accepts them: it does not know the bytes that are left of a skeleton
	}{
		"one":         {[]int64{5}, []chunkRecord{data(5, 0)}, "", true},
		"empty files": {[]int64{0, 5, 0, 0}, []chunkRecord{data(5, 0)}, "", true},
		"several": {[]int64{5, 9}, []chunkRecord{data(2, 0), data(3, 0), skeleton(4), data(4, 2), data(1, 2)}, "",
			true},
		"two skeletons":      {[]int64{20}, []chunkRecord{skeleton(4), data(6, 4), skeleton(3), data(7, 3)}, "", true},
		"missing":            {[]int64{5, 1}, []chunkRecord{data(5, 0)}, "data of file", false},
		"part of a file":     {[]int64{5}, []chunkRecord{data(4, 0)}, "data of file", false},
		"too long":           {[]int64{5, 9}, []chunkRecord{data(6, 0)}, "more data", false},
		"too long by gap":    {[]int64{5, 9}, []chunkRecord{skeleton(2), data(4, 2)}, "more data", false},
		"after the end":      {[]int64{5}, []chunkRecord{data(5, 0), data(1, 0)}, "more data", false},
		"gap without bytes":  {[]int64{5}, []chunkRecord{data(4, 1)}, "a gap is longer", false},
		"gap is longer":      {[]int64{9}, []chunkRecord{skeleton(4), data(3, 2), data(1, 3)}, "a gap is longer", false},
		"unused":             {[]int64{5}, []chunkRecord{skeleton(3), data(3, 2)}, "not used", true},
		"unused before next": {[]int64{9}, []chunkRecord{skeleton(3), data(3, 2), skeleton(4), data(4, 0)}, "not used", true},
	} {
		var infos []FileInfo
		for i, n := range c.sizes {
			infos = append(infos, FileInfo{Name: fmt.Sprint(i), Size: n})
		}
		outs := make([]bytes.Buffer, len(infos))
		a, err := newAssembler(slices.Clone(infos), func(file int, b []byte) error {
			_, err := outs[file].Write(b)
			return err
		})
		for i, r := range c.records {
			if err == nil {
				h := header{kind: r.kind, raw: r.raw, gap: r.gap}
				if err = a.checkRecord(h); err == nil {
					err = a.addRecord(h, bytes.Repeat([]byte{byte('a' + i)}, r.raw))
				}
			}
		}
		if err == nil {
			err = a.finish()
		}
		if (err == nil) != (c.stream == "") || err != nil && !strings.Contains(err.Error(), c.stream) {
			t.Errorf("%s: stream: %v", name, err)
		}
		first, err := encodeJSON(headRecord, head{Files: infos})
		if err != nil {
			t.Fatal(err)
		}
		archive := &Archive{Index: &Index{Files: infos, Chunks: c.records},
			r: bytes.NewReader(append(make([]byte, prologueSize), first...))}
		if err := archive.locate(); (err == nil) != c.archive {
			t.Errorf("%s: archive: %v", name, err)
		}
		if name == "several" {
			if got := outs[0].String() + " " + outs[1].String(); got != "aabbb ccddddcce" {
				t.Errorf("content %q", got)
			}
			for i := range outs {
				want, err := digested([]File{{Name: fmt.Sprint(i), Size: int64(outs[i].Len()),
					R: bytes.NewReader(outs[i].Bytes())}})
				if err != nil || a.files[i] != want[0] {
					t.Errorf("file %d is %+v, want %+v, %v", i, a.files[i], want, err)
				}
			}
		}
	}
	a := &Archive{Index: &Index{Files: []FileInfo{{Name: "0", Size: 1 << 30}}}, r: bytes.NewReader(make([]byte, 99))}
	a.files = make([][]int, 1)
	for _, c := range []struct {
		r    chunkRecord
		want bool
	}{
		{chunkRecord{dataRecord, 1, 1, 0}, true}, {chunkRecord{dataRecord, 1, 0, 0}, false},
		{chunkRecord{dataRecord, 0, 1, 0}, true}, {chunkRecord{dataRecord, -1, 1, 0}, false},
		{chunkRecord{dataRecord, 9, maxChunk, 0}, true}, {chunkRecord{dataRecord, 9, maxChunk + 1, 0}, false},
		{chunkRecord{dataRecord, 9, 9, -1}, false},
		{chunkRecord{dataRecord, maxPacked(9), 9, 0}, true}, {chunkRecord{dataRecord, maxPacked(9) + 1, 9, 0}, false},
	} {
		l := locator{Archive: a, skeleton: -1}
		if err := l.addRecord(c.r); (err == nil) != c.want || err != nil && !errors.Is(err, errTable) {
			t.Errorf("%+v: %v", c.r, err)
		}
	}
}

// An archive states what is wrong with the header of a record.
func TestHeadersOfAnArchive(t *testing.T) {
	b, index := packed(t, stable(2<<10), Options{Workers: 1})
	at := len(b) - trailerSize
	at = int(binary.LittleEndian.Uint64(b[at:]))
	chunk := prologueSize // of the first record, the head
	chunk += headerSize + int(binary.LittleEndian.Uint32(b[chunk+4:]))
	for name, c := range map[string]struct {
		at   int
		b    []byte
		want string
	}{
		"kind of the index": {at, []byte{'X'}, "record of unknown kind 88"},
		"size of the index": {at + 8, []byte{1, 0, 0, 2}, "a valid one has 1 to 33554432"},
		"end of the index": {at + 4, binary.LittleEndian.AppendUint32(nil, uint32(len(b)-trailerSize-at-headerSize+1)),
			"longer than the file"},
		"another kind of record": {at, []byte{byte(dataRecord)}, "no index"},
		"place of the index": {len(b) - trailerSize,
			binary.LittleEndian.AppendUint64(nil, uint64(len(b)-trailerSize-headerSize+1)), "malformed trailer"},
		"negative place":          {len(b) - trailerSize, binary.LittleEndian.AppendUint64(nil, 1<<63), "malformed trailer"},
		"kind of the head":        {prologueSize, []byte{'X'}, "record of unknown kind 88"},
		"kind of the first chunk": {chunk, []byte{'X'}, "record of unknown kind 88"},
		"size of the first chunk": {chunk + 8, []byte{1, 0, 0, 2}, "a valid one has 1 to 1048576"},
		"gap of the first chunk":  {chunk + 16, []byte{1, 0, 0, 0}, "differs from the index"},
	} {
		changed := bytes.Clone(b)
		copy(changed[c.at:], c.b)
		a, err := Open(bytes.NewReader(changed), int64(len(b)), "m")
		var malformed *FormatError
		if c.at < chunk || c.at >= at {
			if !errors.As(err, &malformed) {
				t.Errorf("%s: %v", name, err)
			}
		} else if err == nil {
			_, err = a.content(0)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	if index.Chunks[0].gap != 0 {
		t.Error("the first chunk has a gap")
	}
}

// A reference is the content of an earlier record of its size and digest, or an error, whether a stream or an archive
// is read.
func TestReferences(t *testing.T) {
	first, content := []byte("efgh"), []byte("abcd")
	for name, c := range map[string]struct {
		payload []byte
		raw     int
		sum     uint32
		want    error
	}{
		"right":     {[]byte{1, 0, 0, 0}, 4, checksum(content), nil},
		"short":     {[]byte{1, 0, 0}, 4, checksum(first), errReference},
		"itself":    {[]byte{2, 0, 0, 0}, 4, checksum(content), errReference},
		"size":      {[]byte{1, 0, 0, 0}, 3, checksum(content[:3]), errReference},
		"content":   {[]byte{0, 0, 0, 0}, 4, checksum(content), errDigest},
		"far ahead": {[]byte{0, 0, 0, 128}, 4, checksum(content), errReference},
	} {
		out := &output{}
		out.WriteString("..efghabcd")
		h := header{kind: referenceRecord, raw: c.raw, sum: c.sum}
		u := &reader{places: []stretch{{0, 2, 4}, {0, 6, 4}}, outputs: []Output{out}}
		stream := &chunk{header: h, raw: make([]byte, c.raw), payload: c.payload}
		if err := u.follow(stream); !errors.Is(err, c.want) || err == nil && !bytes.Equal(stream.raw, content) {
			t.Errorf("%s: stream: %q, %v", name, stream.raw, err)
		}
		a := &Archive{records: make([]archived, 3)}
		for i, b := range [][]byte{first, content} {
			a.records[i].chunkRecord = chunkRecord{kind: dataRecord, raw: len(b)}
			e := a.cache.entry(i)
			e.ready.Do(func() { e.content = b })
		}
		if got, err := a.follow(2, h, c.payload); !errors.Is(err, c.want) || err == nil && !bytes.Equal(got, content) {
			t.Errorf("%s: archive: %q, %v", name, got, err)
		}
	}
}

// Blocks are read as they were written, and others are rejected.
func TestBlocks(t *testing.T) {
	for c := range coders {
		for _, rest := range []bool{true, false} {
			symbols, size := 300, 200
			switch c {
			case stored:
				size = symbols
			case fill:
				size = 1
			}
			b := append(appendBlock([]byte("before"), c, symbols, size, rest), make([]byte, size)...)
			n := symbols
			if !rest {
				n++
			}
			got, gotSymbols, gotSize, payload, err := block(b[len("before"):], n)
			if err != nil || got != c || gotSymbols != symbols || gotSize != size || len(payload) != size {
				t.Errorf("coder %d, %t: %d, %d symbols, %d bytes, %v", c, rest, got, gotSymbols, gotSize, err)
			}
			if _, _, _, _, err := block(b[len("before"):len(b)-1], n); !errors.Is(err, errBlock) {
				t.Errorf("coder %d, %t: without the last byte: %v", c, rest, err)
			}
			if !rest {
				if _, _, _, _, err := block(b[len("before"):], symbols-1); !errors.Is(err, errBlock) {
					t.Errorf("coder %d: more symbols than are left: %v", c, err)
				}
			}
		}
	}
	varint := func(v uint64) []byte { return binary.AppendUvarint(nil, v) }
	for _, c := range []struct {
		b    []byte
		n    int
		want bool
	}{
		{nil, 1, false}, {[]byte{byte(stored)}, 1, false}, {append([]byte{byte(stored)}, 0), 1, false},
		{append([]byte{byte(stored)}, 1, 9), 1, true},
		{append([]byte{byte(fill)}, append(varint(2*maxChunk), 9)...), 2 * maxChunk, true},
		{append([]byte{byte(fill)}, append(varint(2*maxChunk+1), 9)...), 2*maxChunk + 1, false},
		{[]byte{byte(fill), 0x80, 0x80}, 5, false}, {[]byte{byte(huffman) + last, 0x80}, 5, false},
	} {
		if _, _, _, _, err := block(c.b, c.n); (err == nil) != c.want {
			t.Errorf("%v of %d: %v", c.b, c.n, err)
		}
	}
	e := newEntropy(false)
	long := bytes.Repeat([]byte{1, 2}, blockSize)
	for name, c := range map[string]struct {
		c   coder
		dst int
		in  []byte
	}{
		"fill of two": {fill, 5, []byte{1, 2}}, "fill of none": {fill, 5, nil},
		"mix in a large container": {mix, 5, []byte{1}}, "no coder": {coders, 5, []byte{1}},
		"stored of another size": {stored, 5, []byte{1}},
		"fse":                    {ans, 5, []byte{1}}, "zstd": {match, 5, []byte{1}},
		"zstd of fewer": {match, 6, e.enc.EncodeAll(make([]byte, 5), nil)},
		"zstd of more":  {match, 4, e.enc.EncodeAll(make([]byte, 5), nil)},
		"long huffman": {huffman, blockSize + 1, func() []byte {
			b, _ := e.huff.encode(nil, long[:blockSize+1])
			return b
		}()},
	} {
		if err := e.decode(c.c, make([]byte, c.dst), c.in); !errors.Is(err, errBlock) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A plane of Huffman codes has a table for each block.
	plane := e.appendPlane(nil, huffman, long)
	if c, symbols, _, _, err := block(plane, len(long)); c != huffman || symbols != blockSize || err != nil {
		t.Errorf("the first block has coder %d, %d symbols, %v", c, symbols, err)
	}
	got, rest, err := e.plane(make([]byte, len(long)), append(plane, 7), len(long))
	if err != nil || !bytes.Equal(got, long) || !bytes.Equal(rest, []byte{7}) {
		t.Errorf("%d symbols, %d bytes are left, %v", len(got), len(rest), err)
	}
}

// The sample of a tensor is all of it, or pieces of whole elements from its start to its end.
func TestSamples(t *testing.T) {
	for _, c := range []struct {
		t        ir.DType
		n        int64
		from, to int64 // bytes of the sample
	}{
		{ir.Int8, 1, 1, 1}, {ir.Int8, maxSample, maxSample, maxSample}, {ir.Int8, maxSample + 1, maxSample, maxSample},
		{ir.Int8, 100 * maxSample, maxSample, maxSample},
		{ir.Float, minSample, minSample, minSample}, {ir.Float, minSample + 100, minSample, minSample},
		{ir.Float, 64 * minSample, 2*minSample - 64, 2 * minSample}, {ir.Float, 1000 * maxSample, maxSample, maxSample},
	} {
		offsets, size := samplePieces(c.t, c.n)
		if total := size * int64(len(offsets)); total < c.from || total > c.to {
			t.Errorf("%s of %d bytes: a sample of %d", c.t, c.n, total)
		}
		if !slices.IsSorted(offsets) || offsets[0] != 0 || offsets[len(offsets)-1]+size > c.n ||
			offsets[len(offsets)-1]+size <= c.n-16 {
			t.Errorf("%s of %d bytes: %d bytes at %v", c.t, c.n, size, offsets)
		}
		for i, off := range offsets {
			if off%16 != 0 || i > 0 && (off < offsets[i-1]+size || off-offsets[i-1] > (c.n-size)/(pieces-1)+16) {
				t.Errorf("%s of %d bytes: %d bytes at %v", c.t, c.n, size, offsets)
			}
		}
	}
	for _, c := range []struct {
		size, values int
		want         bool
	}{{1 << 16, 240, false}, {1 << 16, 244, true}, {1 << 12, 240, true}, {1 << 12, 200, false}} { // few bytes have some values less often by chance
		plane := make([]byte, c.size)
		for i := range plane {
			plane[i] = byte(i % c.values)
		}
		if got := random(plane); got != c.want {
			t.Errorf("%d bytes of %d values are random: %t", c.size, c.values, got)
		}
	}
}

// Every byte of files is in one task, in order; tensors above a size have tasks of their own, and gaps are short.
func TestTasks(t *testing.T) {
	tensor := func(off, n int64) Tensor { return Tensor{ir.Spec{DType: ir.Int8, Shape: []int64{n}}, off} }
	const mega = 1 << 20
	for name, c := range map[string]struct {
		size    int64
		tensors []Tensor
		want    string // of each task: s or d and the bytes, with +gap
	}{
		"empty":         {0, nil, ""},
		"no tensors":    {mega + 1, nil, "d1048576 d1"},
		"small tensor":  {2000, []Tensor{tensor(5, minTensor-1)}, "d2000"},
		"tensor":        {2000, []Tensor{tensor(5, minTensor)}, "s5 d1024+5 d971"},
		"all":           {minTensor, []Tensor{tensor(0, minTensor)}, "d1024"},
		"two":           {5000, []Tensor{tensor(3000, 2000), tensor(10, 2000)}, "s1000 d2000+10 d2000+990"},
		"overlapping":   {5000, []Tensor{tensor(0, 3000), tensor(2999, 2001)}, "d3000 d2000"},
		"touching":      {5000, []Tensor{tensor(0, 3000), tensor(3000, 2000)}, "d3000 d2000"},
		"same place":    {5000, []Tensor{tensor(0, 5000), tensor(0, 5000)}, "d5000"},
		"outside":       {5000, []Tensor{tensor(0, 5001)}, "d5000"},
		"negative":      {5000, []Tensor{tensor(-1, 2000)}, "d5000"},
		"longest gap":   {maxGap + 2000, []Tensor{tensor(maxGap, 2000)}, "s65536 d2000+65536"},
		"longer gap":    {maxGap + 2001, []Tensor{tensor(maxGap+1, 2000)}, "d65537 d2000"},
		"large tensor":  {3*mega + 7, []Tensor{tensor(7, 3*mega)}, "s7 d1048576+7 d1048576 d1048576"},
		"not quite two": {mega + 1025, []Tensor{tensor(0, mega+1)}, "d1048576 d1 d1024"},
		"full skeleton": {17 * (maxGap + 2000), func() (ts []Tensor) {
			for i := range int64(17) {
				ts = append(ts, tensor(i*(maxGap+2000)+maxGap, 2000))
			}
			return ts
		}(), strings.Replace("s1048576"+strings.Repeat(" d2000+65536", 17), " d2000+65536 d2000+65536 d2000+65536 "+
			"d2000+65536 d2000+65536 d2000+65536 d2000+65536 d2000+65536 d2000+65536 d2000+65536 d2000+65536 d2000+65536 "+
			"d2000+65536 d2000+65536 d2000+65536 d2000+65536 d2000+65536",
			strings.Repeat(" d2000+65536", 16)+" s65536 d2000+65536", 1)},
	} {
		var got []string
		at := int64(0)
		var skeleton []stretch
		for _, task := range tasksOf([]File{{Size: c.size, Tensors: c.tensors}}) {
			n, kind := 0, "d"
			for _, s := range task.from {
				n += s.size
			}
			if task.segment == nil {
				kind = "s"
				skeleton = append(skeleton, task.from...)
			} else {
				if task.gap > 0 {
					if skeleton[0] != (stretch{0, at, task.gap}) {
						t.Errorf("%s: the gap at %d is %+v", name, at, skeleton[0])
					}
					skeleton, at = skeleton[1:], at+int64(task.gap)
				}
				if task.from[0].offset != at || n > maxChunk {
					t.Errorf("%s: %d bytes at %d, want them at %d", name, n, task.from[0].offset, at)
				}
				at += int64(n)
			}
			text := fmt.Sprint(kind, n)
			if task.gap > 0 {
				text += fmt.Sprint("+", task.gap)
			}
			got = append(got, text)
		}
		if text := strings.Join(got, " "); text != c.want || at != c.size || len(skeleton) > 0 {
			t.Errorf("%s: %s, %d of %d bytes, want %s", name, text, at, c.size, c.want)
		}
	}
}

// Elements of each width are restored from differences: those to the element before are small for small changes, those
// to a base are 0 for the same and 1 for zero.
func TestDifferencesOfEachWidth(t *testing.T) {
	for _, width := range []int{1, 2, 4, 8} {
		top := uint64(1)<<(8*width-1) - 1
		var src, base []byte
		corners := []uint64{0, 1, 2, 3, top - 1, top, top + 1, top + 2, math.MaxUint64, math.MaxUint64 - 1,
			0x5a5a5a5a5a5a5a5a}
		number := func(b []byte, v uint64) []byte {
			b = append(b, make([]byte, width)...)
			put(b, len(b)-width, width, v)
			return b
		}
		for _, x := range corners {
			for _, y := range corners {
				src, base = number(src, x), number(base, y)
			}
		}
		for name, f := range map[string]struct{ from, to func(b []byte) }{
			"before": {func(b []byte) { differences(b, src, width) }, func(b []byte) { restore(b, width) }},
			"base":   {func(b []byte) { differencesFrom(b, src, base, width) }, func(b []byte) { restoreFrom(b, base, width) }},
		} {
			b := make([]byte, len(src))
			f.from(b)
			for i := 0; i < len(b); i += width {
				from := prediction(src, i, width)
				if name == "base" {
					from = element(base, i, width)
				}
				d, x, mask := element(b, i, width), element(src, i, width), top<<1|1
				want := min((x-from)&mask, (from-x)&mask) // distance
				switch {
				case name == "base" && x == from:
					want = 0
				case name == "base" && x == 0:
					want = 1
				case want > top:
					want = mask
				case name == "base" && d <= 2*want+1 && d >= 2*want-1:
					continue // 2·distance, one less for those above the base, and one more for those before that of zero
				case name == "before" && (x-from)&mask <= top:
					want = 2 * ((x - from) & mask)
				case name == "before":
					want = 2*((from-x)&mask) - 1
				}
				if d != want&mask {
					t.Errorf("width %d, %s: %#x from %#x is %#x, want %#x", width, name, x, from, d, want&mask)
				}
			}
			if f.to(b); !bytes.Equal(b, src) {
				t.Errorf("width %d, %s: other elements are restored", width, name)
			}
		}
	}
}

// The number of workers has the limit of memory, and is never zero.
func TestWidth(t *testing.T) {
	for _, c := range []struct {
		workers int
		memory  int64
		want    int
	}{{5, 0, 5}, {0, 0, 1}, {5, 1, 1}, {5, 6*chunkMemory - 1, 1}, {5, 6 * chunkMemory, 2}, {5, 1 << 40, 5}} {
		if got := width(c.workers, c.memory); got != c.want {
			t.Errorf("%d workers in %d bytes: %d", c.workers, c.memory, got)
		}
	}
}

// Forms that no writer makes are rejected.
func TestForms(t *testing.T) {
	for f, want := range map[form]string{
		plain: "bytes", {noPredictor, 4, planes}: "planes", {noPredictor, 8, rotatedPlanes}: "float planes",
		{noPredictor, 1, nibbles}:  "nibbles",
		{previousValue, 2, planes}: "differences, planes", {baseValue, 1, nibbles}: "differences from base, nibbles",
		{baseValue + 1, 1, planes}: "", {noPredictor, 1, nibbles + 1}: "", {noPredictor, 0, planes}: "",
		{noPredictor, 3, planes}: "", {noPredictor, 16, planes}: "",
		{noPredictor, 2, nibbles}: "", {noPredictor, 1, rotatedPlanes}: "", {previousValue, 2, rotatedPlanes}: "",
	} {
		err := f.valid(16)
		if (err == nil) != (want != "") || err == nil && f.String() != want {
			t.Errorf("%v: %v", f, err)
		}
		if err == nil && f.width > 1 && f.valid(15) == nil {
			t.Errorf("%v: 15 bytes are valid", f)
		}
	}
	if b := pad(make([]byte, 3), 2, 5*maxRatio+1); len(b) != 7 {
		t.Errorf("%d bytes instead of 2 and 5", len(b))
	}
}

// A failing is a reader and writer that fails after a number of calls.
type failing struct {
	io.ReaderAt
	out  bytes.Buffer
	left int
}

var errBroken = errors.New("broken disk")

func (f *failing) call() error {
	if f.left--; f.left < 0 {
		return errBroken
	}
	return nil
}

func (f *failing) ReadAt(b []byte, off int64) (int, error) {
	if err := f.call(); err != nil {
		return 0, err
	}
	return f.ReaderAt.ReadAt(b, off)
}

func (f *failing) Write(b []byte) (int, error) {
	if err := f.call(); err != nil {
		return 0, err
	}
	return f.out.Write(b)
}

// Whichever access of a file fails, writing, unpacking and random access report it, and none reports success with other
// content.
func TestEachFailingAccess(t *testing.T) {
	zeros := File{Name: "zeros", Size: smallSize + 1, R: bytes.NewReader(make([]byte, smallSize+1))}
	files := append(stable(2<<10), zeros)
	wrap := func(files []File, f *failing) []File {
		files = slices.Clone(files)
		for i := range files {
			files[i].R = struct{ io.ReaderAt }{&failing{ReaderAt: files[i].R, left: math.MaxInt}}
			if f != nil {
				r := files[i].R
				files[i].R = readerAt(func(b []byte, off int64) (int, error) {
					if err := f.call(); err != nil {
						return 0, err
					}
					return r.ReadAt(b, off)
				})
			}
		}
		return files
	}
	base := stable(2 << 10)
	container, _ := packed(t, tuned(stable(2<<10)), Options{Workers: 1, Base: base})
	plain, _ := packed(t, files, Options{Workers: 1})
	for name, access := range map[string]func(f *failing) error{
		"write":       func(f *failing) error { _, err := Write(t.Context(), f, files, Options{Workers: 1}); return err },
		"write small": func(f *failing) error { _, err := Write(t.Context(), f, files[:1], Options{Workers: 1}); return err },
		"read the files": func(f *failing) error {
			_, err := Write(t.Context(), io.Discard, wrap(files, f), Options{Workers: 1})
			return err
		},
		"read small files": func(f *failing) error {
			_, err := Write(t.Context(), io.Discard, wrap(files[:1], f), Options{Workers: 1})
			return err
		},
		"read the base": func(f *failing) error {
			_, err := Write(t.Context(), io.Discard, tuned(stable(2<<10)), Options{Workers: 1, Base: wrap(base, f)})
			return err
		},
		"read against a base": func(f *failing) error {
			_, err := Write(t.Context(), io.Discard, wrap(tuned(stable(2<<10)), f), Options{Workers: 1, Base: base})
			return err
		},
		"open files": func(f *failing) error {
			_, err := Read(t.Context(), bytes.NewReader(plain), "m", func(FileInfo) (Output, error) {
				return &output{}, f.call()
			}, Options{Workers: 1})
			return err
		},
		"unpack into a file": func(f *failing) error {
			_, err := Read(t.Context(), bytes.NewReader(plain), "m", func(FileInfo) (Output, error) {
				return &recorded{f: f}, nil
			}, Options{Workers: 1})
			return err
		},
		"unpack with a base": func(f *failing) error {
			_, err := Read(t.Context(), bytes.NewReader(container), "m", func(FileInfo) (Output, error) {
				return &output{}, nil
			}, Options{Workers: 1, Base: wrap(base, f)})
			return err
		},
		"archive": func(f *failing) error {
			f.ReaderAt = bytes.NewReader(plain)
			a, err := Open(f, int64(len(plain)), "m")
			if err != nil {
				return err
			}
			for i := range a.Index.Files[:2] {
				if err := ir.ReadFull(a.Member(i), make([]byte, a.Index.Files[i].Size), 0); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		all := &failing{left: math.MaxInt}
		if err := access(all); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		calls := math.MaxInt - all.left
		for _, left := range []int{0, 1, 2, calls / 3, calls / 2, calls - 2, calls - 1} {
			if err := access(&failing{left: max(0, min(left, calls-1))}); !errors.Is(err, errBroken) {
				t.Errorf("%s: access %d of %d fails: %v", name, left+1, calls, err)
			}
		}
	}
}

type readerAt func(b []byte, off int64) (int, error)

func (f readerAt) ReadAt(b []byte, off int64) (int, error) { return f(b, off) }

// A recorded is an output that fails when f does.
type recorded struct {
	output
	f *failing
}

func (r *recorded) Write(b []byte) (int, error) {
	if err := r.f.call(); err != nil {
		return 0, err
	}
	return r.output.Write(b)
}

func (r *recorded) ReadAt(b []byte, off int64) (int, error) {
	if err := r.f.call(); err != nil {
		return 0, err
	}
	return r.output.ReadAt(b, off)
}

// Progress ends at the size of all files, of writing and of reading.
func TestProgress(t *testing.T) {
	files := stable(2 << 10)
	total := files[0].Size + files[1].Size
	var done, of, calls int64
	o := Options{Workers: 1, Progress: func(d, n int64) {
		if d <= done {
			t.Errorf("%d bytes after %d", d, done)
		}
		done, of, calls = d, n, calls+1
	}}
	check := func(what string) {
		if done != total || of != total || calls < 3 {
			t.Errorf("%s: progress ends at %d of %d bytes after %d calls, files have %d", what, done, of, calls, total)
		}
		done, of, calls = 0, 0, 0
	}
	b, _ := packed(t, files, o)
	check("write")
	if _, err := Read(context.Background(), bytes.NewReader(b), "m", func(FileInfo) (Output, error) {
		return &output{}, nil
	}, o); err != nil {
		t.Fatal(err)
	}
	check("read")
}
