package modelgen

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/mcompress/mcompress/ir"
)

// Write writes the model to path, its external data next to it, and the inputs of its run to test_data_set_0 next to
// it.
func (m *Model) Write(path string) error {
	w := &files{name: filepath.Base(path)}
	text := m.message(w)
	folder := filepath.Dir(path)
	var errs []error
	for i, data := range w.data {
		errs = append(errs, os.WriteFile(filepath.Join(folder, w.location(i)), data, 0o644))
	}
	set := filepath.Join(folder, "test_data_set_0")
	if err := os.MkdirAll(set, 0o755); err != nil {
		return err
	}
	for i, t := range m.Inputs {
		errs = append(errs, os.WriteFile(filepath.Join(set, fmt.Sprintf("input_%d.pb", i)), t.message(nil), 0o644))
	}
	return errors.Join(append(errs, os.WriteFile(path, text, 0o644))...)
}

// files are the external data of a model.
type files struct {
	name string
	data [][]byte
}

func (f *files) location(i int) string { return fmt.Sprintf("%s.data%d", f.name, i) }

// add appends the data of t to its file.
func (f *files) add(t *Tensor) (location string, offset int) {
	for len(f.data) <= t.File {
		f.data = append(f.data, nil)
	}
	offset = len(f.data[t.File])
	f.data[t.File] = append(f.data[t.File], t.Data...)
	return f.location(t.File), offset
}

// A message is a protobuf message under construction.
type message []byte

func (b *message) varint(field int, v int64) {
	*b = binary.AppendUvarint(*b, uint64(field<<3))
	*b = binary.AppendUvarint(*b, uint64(v))
}

func (b *message) bytes(field int, text []byte) {
	*b = binary.AppendUvarint(*b, uint64(field<<3|2))
	*b = binary.AppendUvarint(*b, uint64(len(text)))
	*b = append(*b, text...)
}

func (b *message) string(field int, s string) { b.bytes(field, []byte(s)) }

func (b *message) float(field int, f float32) {
	*b = binary.AppendUvarint(*b, uint64(field<<3|5))
	*b = binary.LittleEndian.AppendUint32(*b, math.Float32bits(f))
}

// packed is a repeated field of varints in one piece.
func (b *message) packed(field int, vs []int64) {
	var list []byte
	for _, v := range vs {
		list = binary.AppendUvarint(list, uint64(v))
	}
	b.bytes(field, list)
}

func (m *Model) message(w *files) message {
	var b message
	b.varint(1, m.IR)
	b.string(2, "modelgen")
	b.bytes(7, m.Graph.message(w, m.IR))
	imports := []struct {
		domain  string
		version int64
	}{{"", m.Opset}}
	if m.Contrib {
		imports = append(imports, struct {
			domain  string
			version int64
		}{"com.microsoft", 1})
	}
	if len(m.Functions) > 0 {
		imports = append(imports, struct {
			domain  string
			version int64
		}{local, 1})
	}
	for _, i := range imports {
		var o message
		o.string(1, i.domain)
		o.varint(2, i.version)
		b.bytes(8, o)
	}
	for _, f := range m.Functions {
		b.bytes(25, f.message(w, m))
	}
	return b
}

func (g *Graph) message(w *files, irVersion int64) message {
	var b message
	for _, n := range g.Nodes {
		b.bytes(1, n.message(w, irVersion))
	}
	b.string(2, g.Name)
	for _, t := range g.Constants {
		switch t.Field {
		case Sparse, SparseN:
			b.bytes(15, t.sparse())
		default:
			b.bytes(5, t.message(w))
		}
	}
	for _, v := range g.Inputs {
		b.bytes(11, v.message())
	}
	for _, t := range g.Constants {
		if t.Input {
			b.bytes(11, valueOf(t).message())
		}
	}
	for _, v := range g.Outputs {
		b.bytes(12, v.message())
	}
	for _, v := range g.Infos {
		b.bytes(13, v.message())
	}
	return b
}

func valueOf(t *Tensor) Value {
	v := Value{Name: t.Name, Type: t.Type, Shape: []ir.Dim{}}
	for _, d := range t.Shape {
		v.Shape = append(v.Shape, ir.Dim{N: d})
	}
	return v
}

func (v Value) message() message {
	var tensor, typ, b message
	if v.Type == ir.Undefined {
		b.string(1, v.Name)
		return b
	}
	tensor.varint(1, int64(v.Type))
	if v.Shape != nil {
		var shape message
		for _, d := range v.Shape {
			var dim message
			switch {
			case d.Param != "":
				dim.string(2, d.Param)
			case d.N >= 0:
				dim.varint(1, d.N)
			}
			shape.bytes(1, dim)
		}
		tensor.bytes(2, shape)
	}
	typ.bytes(1, tensor)
	b.string(1, v.Name)
	b.bytes(2, typ)
	return b
}

func (n *Node) message(w *files, irVersion int64) message {
	var b message
	for _, s := range n.In {
		b.string(1, s)
	}
	for _, s := range n.Out {
		b.string(2, s)
	}
	b.string(3, n.Name)
	b.string(4, n.Op)
	for _, a := range n.Attrs {
		b.bytes(5, a.message(w, irVersion))
	}
	if n.Domain != "" {
		b.string(7, n.Domain)
	}
	return b
}

func (a Attr) message(w *files, irVersion int64) message {
	var b message
	b.string(1, a.Name)
	switch v := a.Value.(type) {
	case float32:
		b.float(2, v)
		b.varint(20, int64(ir.AttrFloat))
	case int64:
		b.varint(3, v)
		b.varint(20, int64(ir.AttrInt))
	case string:
		b.string(4, v)
		b.varint(20, int64(ir.AttrString))
	case *Tensor:
		if v.Field >= Sparse {
			b.bytes(22, v.sparse())
			b.varint(20, int64(ir.AttrSparse))
			break
		}
		b.bytes(5, v.message(w))
		b.varint(20, int64(ir.AttrTensor))
	case *Graph:
		b.bytes(6, v.message(w, irVersion))
		b.varint(20, int64(ir.AttrGraph))
	case []float32:
		for _, f := range v {
			b.float(7, f)
		}
		b.varint(20, int64(ir.AttrFloats))
	case []int64:
		b.packed(8, v)
		b.varint(20, int64(ir.AttrInts))
	case []string:
		for _, s := range v {
			b.string(9, s)
		}
		b.varint(20, int64(ir.AttrStrings))
	default:
		panic(fmt.Sprintf("attribute %s of type %T", a.Name, v))
	}
	return b
}

func (f *Function) message(w *files, m *Model) message {
	var b message
	b.string(1, f.Name)
	for _, s := range f.In {
		b.string(4, s)
	}
	for _, s := range f.Out {
		b.string(5, s)
	}
	for _, n := range f.Nodes {
		b.bytes(7, n.message(w, m.IR))
	}
	for _, i := range []struct {
		domain  string
		version int64
	}{{"", m.Opset}, {local, 1}} {
		var o message
		o.string(1, i.domain)
		o.varint(2, i.version)
		b.bytes(9, o)
	}
	b.string(10, local)
	return b
}

// message is a TensorProto. External data goes to w; without w it is in raw_data.
func (t *Tensor) message(w *files) message {
	var b message
	b.packed(1, t.Shape)
	b.varint(2, int64(t.Type))
	b.string(8, t.Name)
	switch {
	case t.Field == Typed:
		t.typed(&b)
	case t.Field == External && w != nil:
		location, offset := w.add(t)
		for _, e := range [][2]string{{"location", location}, {"offset", fmt.Sprint(offset)},
			{"length", fmt.Sprint(len(t.Data))}} {
			var entry message
			entry.string(1, e[0])
			entry.string(2, e[1])
			b.bytes(13, entry)
		}
		b.varint(14, 1)
	default:
		b.bytes(9, t.Data)
	}
	return b
}

// typed writes the elements to the field of their type. int32_data has a whole byte of a type below 8 bits in each
// number.
func (t *Tensor) typed(b *message) {
	switch t.Type {
	case ir.Float, ir.Complex64:
		b.bytes(4, t.Data)
	case ir.Double, ir.Complex128:
		b.bytes(10, t.Data)
	case ir.Int64:
		b.packed(7, t.integers())
	case ir.Uint32, ir.Uint64:
		b.packed(11, t.integers())
	default:
		b.packed(5, t.integers())
	}
}

// integers are the numbers of a typed field of integers.
func (t *Tensor) integers() []int64 {
	var list []int64
	width := int(max(8, t.Type.Bits())) / 8
	for i := 0; i+width <= len(t.Data); i += width {
		var word [8]byte
		copy(word[:], t.Data[i:i+width])
		v := int64(binary.LittleEndian.Uint64(word[:]))
		if shift := 64 - 8*width; t.Type == ir.Int8 || t.Type == ir.Int16 || t.Type == ir.Int32 {
			v = v << shift >> shift
		}
		list = append(list, v)
	}
	return list
}

// sparse is a SparseTensorProto of the elements whose bytes are not all 0.
func (t *Tensor) sparse() message {
	width := t.Type.Bits() / 8
	values := &Tensor{Name: t.Name, Type: t.Type}
	indices := &Tensor{Name: t.Name + "_indices", Type: ir.Int64}
	count := int64(0)
	for i := range t.elems() {
		e := t.Data[i*width : (i+1)*width]
		if !nonZero(e) {
			continue
		}
		count++
		values.Data = append(values.Data, e...)
		if t.Field == Sparse {
			indices.Data = binary.LittleEndian.AppendUint64(indices.Data, uint64(i))
			continue
		}
		for axis := range t.Shape {
			stride := int64(1)
			for _, d := range t.Shape[axis+1:] {
				stride *= d
			}
			indices.Data = binary.LittleEndian.AppendUint64(indices.Data, uint64(i/stride%t.Shape[axis]))
		}
	}
	values.Shape, indices.Shape = []int64{count}, []int64{count}
	if t.Field == SparseN {
		indices.Shape = append(indices.Shape, int64(len(t.Shape)))
	}
	var b message
	b.bytes(1, values.message(nil))
	b.bytes(2, indices.message(nil))
	b.packed(3, t.Shape)
	return b
}

func nonZero(e []byte) bool {
	for _, b := range e {
		if b != 0 {
			return true
		}
	}
	return false
}
