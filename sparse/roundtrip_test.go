package sparse

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"math"
	"runtime"
	"testing"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// layouts are all ways to store m, not the smallest only.
func layouts(m statistics) []layout {
	ls := []layout{bitmask{m.tensor}, csrOf(m.tensor)}
	if m.fill == 0 {
		ls = append(ls, coo{m.tensor})
	}
	if m.blocks >= 0 {
		ls = append(ls, bsrOf(m.tensor, m.block, m.blocks))
	}
	for i, w := range gapWidths {
		d := delta{tensor: m.tensor, width: w, codes: m.nnz + m.escapes[i], escapes: m.escapes[i] > 0, dtype: ir.Uint8}
		if w == 16 {
			d.dtype = ir.Uint16
		}
		ls = append(ls, d)
		if w == 4 {
			d.dtype = ir.Uint4
			ls = append(ls, d)
		}
	}
	return ls
}

// roundTrip lays w out in every form and back. Eval.Run compares the written bytes with
// what was declared.
func roundTrip(t *testing.T, w weight, block Block) {
	t.Helper()
	e := ir.NewEval("")
	defer e.Close()
	dense := &ir.Tensor{Spec: w.Spec, Source: ir.Mem(w.data)}
	m, err := measure(context.Background(), e, dense, 0, block)
	if err != nil {
		t.Fatal(err)
	}
	want := bytes.Clone(w.data)
	if w.DType.IsFloat() { // zeros are stored by their value
		kernel.PositiveZeros(want, int(w.DType.Bits()/8))
	}
	for _, l := range layouts(m) {
		got, err := e.ReadAll(context.Background(), restore(l, w.name)(payloads(l, dense)))
		if err != nil {
			t.Errorf("%s: %s %v: %v", l.label(), w.DType, w.Shape, err)
			continue
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: %s %v came back different", l.label(), w.DType, w.Shape)
		}
	}
}

func TestRoundTripOfShapesAndTypes(t *testing.T) {
	keeps := map[string]func(int64) bool{
		"nothing":        func(int64) bool { return false },
		"everything":     func(int64) bool { return true },
		"the first":      only(0),
		"a tenth":        density(.1),
		"one half":       density(.5),
		"all but a few":  density(.97),
		"every other 24": func(i int64) bool { return i/24%2 == 1 },
	}
	shapes := [][]int64{{1}, {7}, {24}, {1, 24}, {24, 1}, {13, 17}, {48, 48}, {3, 5, 7}, {8, 4, 3, 3}, {5, 1, 1, 1, 9}}
	for name, keep := range keeps {
		t.Run(name, func(t *testing.T) {
			for _, shape := range shapes {
				for _, dt := range []ir.DType{ir.Int8, ir.Uint8, ir.Float16, ir.BFloat16, ir.Float, ir.Double} {
					last := ir.Spec{Shape: shape}.Elems() - 1
					roundTrip(t, random("w", dt, shape, keep), Block{Rows: 4, Cols: 3})
					roundTrip(t, random("w", dt, shape, only(last)), Block{Rows: 1, Cols: 1})
				}
			}
		})
	}
}

// Gaps around the largest code of each width, and around the blocks that are read.
func TestRoundTripOfGaps(t *testing.T) {
	for _, gap := range []int64{14, 15, 16, 29, 30, 31, 254, 255, 256, 509, 510, 511, 65534, 65535, 65536, 131070, 131071,
		blockElems, 2*blockElems + 5} {
		for lead := range int64(3) {
			at := []int64{lead, lead + gap, lead + 2*gap, lead + 2*gap + 1}
			roundTrip(t, random("w", ir.Int8, []int64{lead + 3*gap + 2}, only(at...)), Block{Rows: 1, Cols: 2})
		}
	}
}

// NaN and subnormal numbers are values; -0.0 is a zero, which no form stores.
func TestNaNIsAValueAndNegativeZeroIsNot(t *testing.T) {
	var data []byte
	for _, bits := range []uint32{0, 1<<31 | 1, 0x7fc00001, 0xffc12345, 0x7f800001, 0x7f800000, 1, 0} {
		data = binary.LittleEndian.AppendUint32(data, bits)
	}
	w := weight{"w", ir.Spec{DType: ir.Float, Shape: []int64{2, 4}}, data}
	roundTrip(t, w, Block{Rows: 1, Cols: 2})
	m, err := measure(context.Background(), ir.NewEval(""), &ir.Tensor{Spec: w.Spec, Source: ir.Mem(data)}, 0, Block{})
	if err != nil || m.nnz != 6 {
		t.Errorf("%d values, want 6: %v", m.nnz, err)
	}
	binary.LittleEndian.PutUint32(data[4:], 1<<31)
	m, err = measure(context.Background(), ir.NewEval(""), &ir.Tensor{Spec: w.Spec, Source: ir.Mem(data)}, 0,
		Block{Rows: 1, Cols: 1})
	if err != nil || m.nnz != 5 || m.blocks != 5 {
		t.Errorf("%d values and %d blocks with -0.0, want 5: %v", m.nnz, m.blocks, err)
	}
}

// A block whose row is wider than a stripe is read in pieces, and written row by row.
func TestRoundTripOfWideBlocks(t *testing.T) {
	wide := stripeBytes/4/8 + 40
	roundTrip(t, random("w", ir.Float, []int64{16, int64(wide) / 8 * 8}, blocks(int64(wide)/8*8, .01)),
		Block{Rows: 8, Cols: 8})
}

// What the reader of a hostile file may meet: errors, no panics and no wrong results.
func TestDecodeRefusesWhatEncodeDoesNotWrite(t *testing.T) {
	ten := tensor{Spec: ir.Spec{DType: ir.Int8, Shape: []int64{2, 5}}, nnz: 2}
	values := []byte{7, 9}
	int64s := func(xs ...int64) []byte { return bytesOf(ir.Int64, xs) }
	int32s := func(xs ...int64) []byte { return bytesOf(ir.Int32, xs) }
	for _, c := range []struct {
		name string
		layout
		parts [][]byte
	}{
		{"descending", coo{ten}, [][]byte{values, int64s(4, 3)}},
		{"twice the same", coo{ten}, [][]byte{values, int64s(3, 3)}},
		{"outside", coo{ten}, [][]byte{values, int64s(3, 10)}},
		{"negative", coo{ten}, [][]byte{values, int64s(-1, 3)}},
		{"short", coo{ten}, [][]byte{values, int64s(3)}},
		{"a column outside", csrOf(ten), [][]byte{values, {1, 5}, int32s(1, 2)}},
		{"rows end early", csrOf(ten), [][]byte{values, {1, 2}, int32s(1, 1)}},
		{"rows end backwards", csrOf(ten), [][]byte{values, {1, 2}, int32s(2, 1)}},
		{"rows end late", csrOf(ten), [][]byte{values, {1, 2}, int32s(1, 3)}},
		{"more bits", bitmask{ten}, [][]byte{{0, 7, 9}, {7, 0}}},
		{"fewer bits", bitmask{ten}, [][]byte{{0, 7, 9}, {4, 0}}},
		{"a gap of zero", delta{tensor: ten, width: 8, codes: 2, dtype: ir.Uint8}, [][]byte{values, {1, 0}}},
		{"gaps that lead out", delta{tensor: ten, width: 8, codes: 2, dtype: ir.Uint8}, [][]byte{values, {1, 200}}},
		{"a block outside", bsrOf(ten, Block{Rows: 1, Cols: 5}, 2), [][]byte{make([]byte, 10), {0, 2}}},
		{"blocks descend", bsrOf(ten, Block{Rows: 1, Cols: 5}, 2), [][]byte{make([]byte, 10), {1, 0}}},
	} {
		var in []io.ReaderAt
		for _, b := range c.parts {
			in = append(in, bytes.NewReader(b))
		}
		if err := c.decode(context.Background(), in, io.Discard); err == nil {
			t.Errorf("%s: %s: no error", c.label(), c.name)
		}
	}
}

// A pattern is a payload of any size without any memory.
type pattern struct{ every int64 }

func (p pattern) ReadAt(b []byte, off int64) (int, error) {
	clear(b)
	for i := (p.every - off%p.every) % p.every; i < int64(len(b)); i += p.every {
		b[i] = 1
	}
	return len(b), nil
}

// Memory is that of a block, not of the tensor: everything that measuring, writing and
// reading back allocate together stays within twice the work that is declared.
func TestMemoryIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("reads half a gigabyte for each form")
	}
	spec := ir.Spec{Name: "w", DType: ir.Float, Shape: []int64{1 << 12, 1 << 15}}
	for _, every := range []int64{40, 4 << 20} {
		dense := &ir.Tensor{Spec: spec, Source: ir.Span{R: pattern{every}}}
		e := ir.NewEval(t.TempDir())
		m, err := measure(context.Background(), e, dense, 0, Block{Rows: 16, Cols: 16})
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range layouts(m) {
			r := recipe(l, dense)
			out := make([]io.Writer, len(r.Out))
			for i := range out {
				out[i] = io.Discard
			}
			before := allocated()
			if err := e.Run(context.Background(), r, out); err != nil {
				t.Error(err)
			}
			if got := allocated() - before; got > 2*r.Work {
				t.Errorf("%s, one value in %d bytes: %d B allocated, %d declared", l.label(), every, got, r.Work)
			}
		}
	}
}

func allocated() int64 {
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(min(s.TotalAlloc, math.MaxInt64))
}

func FuzzRoundTrip(f *testing.F) {
	f.Add([]byte{0, 1, 0, 0, 255, 0, 0, 128}, uint8(2), uint8(1))
	f.Add(make([]byte, 600), uint8(4), uint8(3))
	f.Fuzz(func(t *testing.T, data []byte, rows, kind uint8) {
		dt := []ir.DType{ir.Int8, ir.Uint8, ir.Float16, ir.Float, ir.Double}[kind%5]
		size, r := int(dt.Bits()/8), max(1, int64(rows))
		cols := int64(len(data)/size) / r
		if cols == 0 {
			return
		}
		data = data[:r*cols*int64(size)]
		roundTrip(t, weight{"w", ir.Spec{Name: "w", DType: dt, Shape: []int64{r, cols}}, data}, Block{Rows: 2, Cols: 2})
	})
}
