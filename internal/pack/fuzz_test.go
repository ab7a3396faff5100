package pack

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"encoding/json"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/hostile"
	"github.com/mcompress/mcompress/internal/dev/oracle"
	"github.com/mcompress/mcompress/internal/untrusted"
	"github.com/mcompress/mcompress/ir"
)

// containers is the bound of whole containers, of which a byte stands for maxRatio at most, and which are read twice.
// Coders keep tables and buffers for chunks.
var containers = oracle.Bound{Memory: 64 << 20, MemoryPerByte: 16 * maxRatio, Time: oracle.Linear.Time, TimePerByte: oracle.Linear.TimePerByte}

func FuzzRead(f *testing.F) {
	b, _ := packed(f, sample()[:1], Options{Workers: 1})
	f.Add(b[:2000])
	b = smallContainer(f)
	f.Add(b)
	hostile.Seed(f, hostile.Some(hostile.Binary(b), 60))
	f.Fuzz(func(t *testing.T, b []byte) {
		containers.Check(t, len(b), func() { readTwice(t, b) })
	})
}

// smallContainer is a container with one tensor.
func smallContainer(f *testing.F) []byte {
	b, _ := packed(f, []File{{
		Name: "s.onnx", Size: 4000, R: bytes.NewReader(make([]byte, 4000)),
		Tensors: []Tensor{{ir.Spec{DType: ir.Float, Shape: []int64{500}}, 7}},
	}}, Options{Workers: 1})
	return b
}

// readTwice reads a container as a stream and by its index: what the first accepts has the same content in the second.
func readTwice(t *testing.T, b []byte) {
	// First, as it may be accepted where the stream is not.
	a, errOpen := Open(bytes.NewReader(b), int64(len(b)), "m.mcz")
	if errOpen == nil {
		checkIndexNames(t, a.Index)
	}
	outs := map[string]*output{}
	index, err := Read(context.Background(), bytes.NewReader(b), "m.mcz", func(f FileInfo) (Output, error) {
		if err := untrusted.CheckNames([]string{f.Name}); err != nil {
			t.Errorf("a file is made: %v", err)
		}
		outs[f.Name] = &output{}
		return outs[f.Name], nil
	}, Options{Workers: 1})
	if err != nil {
		return
	}
	if errOpen != nil {
		t.Fatalf("Read accepts what Open does not: %v", errOpen)
	}
	checkIndexNames(t, index)
	for i, f := range a.Index.Files {
		got := make([]byte, f.Size)
		if err := ir.ReadFull(a.Member(i), got, 0); err != nil || !bytes.Equal(got, outs[f.Name].Bytes()) {
			t.Fatalf("%s differs: %v", f.Name, err)
		}
	}
}

func checkIndexNames(t *testing.T, x *Index) {
	t.Helper()
	names := make([]string, len(x.Files))
	for i, f := range x.Files {
		names[i] = f.Name
	}
	if err := untrusted.CheckNames(names); err != nil {
		t.Error(err)
	}
	for _, tensor := range x.Tensors {
		_ = x.Packed(tensor)
	}
}

// FuzzDocuments reads containers whose head or index is any text, with the right checksums and offsets.
func FuzzDocuments(f *testing.F) {
	b := smallContainer(f)
	a, err := Open(bytes.NewReader(b), int64(len(b)), "m.mcz")
	if err != nil {
		f.Fatal(err)
	}
	index, err := json.Marshal(a.Index)
	if err != nil {
		f.Fatal(err)
	}
	first, err := json.Marshal(head{Files: a.Index.Files})
	if err != nil {
		f.Fatal(err)
	}
	at := binary.LittleEndian.Uint64(b[len(b)-trailerSize:])
	h, err := parseHeader(b[prologueSize:])
	if err != nil {
		f.Fatal(err)
	}
	for _, l := range append(hostile.Some(hostile.JSON(string(index)), 150), hostile.Lie{Text: string(index)}) {
		f.Add(false, []byte(l.Text))
	}
	for _, l := range append(hostile.Some(hostile.JSON(string(first)), 80), hostile.Lie{Text: string(first)}) {
		f.Add(true, []byte(l.Text))
	}
	chunks := b[prologueSize+headerSize+h.packed : at]
	f.Fuzz(func(t *testing.T, isHead bool, text []byte) {
		if len(text) == 0 || len(text) > maxHead {
			return
		}
		begin, end := first, text
		if isHead {
			begin, end = text, index
		}
		container := bytes.Clone(b[:prologueSize])
		container = append(append(container, documentRecord(t, headRecord, begin)...), chunks...)
		at := len(container)
		container = append(container, documentRecord(t, indexRecord, end)...)
		container = append(binary.LittleEndian.AppendUint64(container, uint64(at)), trailer...)
		// The text may be compressed a thousand times.
		containers.Check(t, len(container)+len(text), func() { readTwice(t, container) })
	})
}

// documentRecord is a record with a text that may be no JSON.
func documentRecord(t *testing.T, k kind, text []byte) []byte {
	t.Helper()
	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	h := header{kind: k, packed: z.Len(), raw: len(text), sum: checksum(text)}
	return append(h.append(nil), z.Bytes()...)
}
