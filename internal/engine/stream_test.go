package engine_test

import (
	"bytes"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/ir"
)

// A counter counts the bytes read of a payload, and pending reads.
type counter struct {
	io.ReaderAt
	wait         time.Duration
	bytes, going atomic.Int64
}

func (c *counter) ReadAt(b []byte, off int64) (int, error) {
	c.going.Add(1)
	defer c.going.Add(-1)
	time.Sleep(c.wait)
	c.bytes.Add(int64(len(b)))
	return c.ReaderAt.ReadAt(b, off)
}

const tableRows, tableWidth = 4096, 64

// lookup is a model with an embedding table of that type, indexed along an axis. more may add consumers of the table
// and the indices.
func lookup(dt ir.DType, axis int64, more func(b *builder, table, words *ir.Value)) (*ir.Model, *counter) {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 21}}
	b := &builder{m.Graph}
	spec := ir.Spec{DType: dt, Shape: []int64{tableRows, tableWidth}}
	payload := make([]byte, spec.Bytes())
	for i := range payload {
		payload[i] = byte(i*i>>7) & 0x3f // no float is NaN
	}
	r := &counter{ReaderAt: bytes.NewReader(payload)}
	table := b.AddConst("table", &ir.Tensor{Spec: spec, Source: ir.Span{R: r}})
	words := b.Insert(nil, "Gather", []*ir.Value{table, b.input("ids", ir.Int64, "n")}, ir.IntAttr("axis", axis))
	words = b.cast(words, ir.Float)
	if more != nil {
		more(b, table, words)
	}
	b.output(words)
	return m, r
}

// A run reads only the rows that it needs of a streamed table, and allocates no memory for the others.
func TestStreamedTableReadsOnlyNeededRows(t *testing.T) {
	tied := func(b *builder, table, words *ir.Value) {
		b.output(b.op("MatMul", words, b.transpose(table, 1, 0)))
	}
	for name, c := range map[string]struct {
		dt   ir.DType
		axis int64
		more func(b *builder, table, words *ir.Value)
		rows int64 // rows that are read
	}{
		"float":                 {dt: ir.Float, rows: 5},
		"half":                  {dt: ir.Float16, rows: 5},
		"two to a byte":         {dt: ir.Int4, rows: 5},
		"columns":               {dt: ir.Float, axis: 1, rows: tableRows},
		"consumed by a product": {dt: ir.Float, more: tied, rows: tableRows + 5},
	} {
		t.Run(name, func(t *testing.T) {
			in := map[string]*ir.Array{"ids": ir.ArrayOf([]int64{3, -1, 7, 8, 3}, 5)}
			m, _ := lookup(c.dt, c.axis, c.more)
			want, _ := runModel(t, m, in, engine.Options{})
			m, read := lookup(c.dt, c.axis, c.more)
			e, err := engine.Open(t.Context(), m, engine.Options{Workers: 2, Limits: memory.Limits{Weights: 1 << 9}})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			read.bytes.Store(0)
			got, err := e.Run(t.Context(), in, nil)
			if err != nil {
				t.Fatal(err)
			}
			for k, w := range want {
				if err := (tolerance{}).differ(w, got[k]); err != nil {
					t.Errorf("output %q: %v", k, err)
				}
			}
			row := ir.Spec{DType: c.dt, Shape: []int64{tableWidth}}
			if n := read.bytes.Load(); n != c.rows*row.Bytes() {
				t.Errorf("%d bytes were read, want %d rows of %d", n, c.rows, row.Bytes())
			}
			u, err := e.Usage(map[string]ir.Spec{"ids": in["ids"].Spec()})
			if whole := tableRows * row.Bytes(); err != nil || (u.Plan.Size >= whole) != (c.rows >= tableRows) {
				t.Errorf("the arena has %d bytes for a table of %d: %v", u.Plan.Size, whole, err)
			}
			if _, err := e.Run(t.Context(), map[string]*ir.Array{"ids": ir.ArrayOf([]int64{tableRows}, 1)},
				nil); err == nil {
				t.Error("an index out of range was accepted")
			}
		})
	}
}

// Tables of which only rows are read are streamed first, even if other constants are larger.
func TestTablesAreStreamedFirst(t *testing.T) {
	const wide = 4 * tableWidth
	m, read := lookup(ir.Float, 0, func(b *builder, _, words *ir.Value) {
		b.output(b.op("MatMul", words, b.floats([]int64{tableWidth, wide * tableWidth},
			make([]float32, wide*tableWidth*tableWidth)...)))
	})
	limit := 2 * int64(4*wide*tableWidth*tableWidth+1<<10) // for the weight, though not for both
	e, err := engine.Open(t.Context(), m, engine.Options{Limits: memory.Limits{Weights: limit / 2}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, streamed := e.Weights(); streamed != 4*tableRows*tableWidth || read.bytes.Load() != 0 {
		t.Errorf("%d bytes are streamed, %d were read", streamed, read.bytes.Load())
	}
}

// No read is pending after a run ended with an error: its memory is reused by the next one.
func TestFailedRunStopsReading(t *testing.T) {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 21}}
	b := &builder{m.Graph}
	spec := ir.Spec{DType: ir.Float, Shape: []int64{tableWidth, tableRows}}
	slow := &counter{ReaderAt: bytes.NewReader(make([]byte, spec.Bytes())), wait: 50 * time.Millisecond}
	words := b.op("Gather", b.floats([]int64{2, tableWidth}, make([]float32, 2*tableWidth)...),
		b.input("ids", ir.Int64, "n"))
	b.output(b.op("MatMul", words, b.AddConst("w", &ir.Tensor{Spec: spec, Source: ir.Span{R: slow}})))
	e, err := engine.Open(t.Context(), m, engine.Options{Limits: memory.Limits{Weights: 1 << 9}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, err := e.Run(t.Context(), map[string]*ir.Array{"ids": ir.ArrayOf([]int64{2}, 1)}, nil); err == nil {
		t.Fatal("an index out of range was accepted")
	}
	if n := slow.going.Load(); n > 0 || slow.bytes.Load() == 0 {
		t.Errorf("%d reads are pending; %d bytes were read", n, slow.bytes.Load())
	}
}
