package onnx

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
)

// forgetForms makes every numeric constant a new tensor of the same payload, so that
// it is written as raw_data whatever it came as.
func forgetForms(m *ir.Model) {
	for g := range m.Graphs() {
		for _, v := range g.Consts() {
			if v.Const.DType != ir.String {
				v.Const = &ir.Tensor{Spec: v.Const.Spec, Source: v.Const.Source}
			}
		}
	}
}

// Every element type, in every encoding of its typed field, is the raw_data that ONNX
// takes it for.
func TestTypedFieldsDecode(t *testing.T) {
	w := conform.Start(t)
	paths, err := w.GenerateSet(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, path := range paths {
		name := filepath.Base(path)
		if !strings.HasPrefix(name, "tensors_typed.") && !strings.HasPrefix(name, "tensor_shapes.") {
			continue
		}
		if strings.Contains(name, ".unknown.") {
			continue // unknown fields are forgotten with the form
		}
		tried++
		f := mustOpen(t, path)
		forgetForms(f.Model)
		out := filepath.Join(t.TempDir(), name)
		mustSave(t, f.Model, out, options(t))
		if err := w.EqualValues(path, out); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if tried < 3 {
		t.Errorf("only %d models of typed fields", tried)
	}
}

// Sparse constants are the dense tensors that ONNX Runtime takes them for.
func TestSparseConstantsExpand(t *testing.T) {
	w := conform.Start(t)
	for _, name := range []string{"sparse_constant.onnx", "sparse_initializer.onnx"} {
		f := mustOpen(t, fixture(t, name))
		forgetForms(f.Model)
		out := filepath.Join(t.TempDir(), name)
		mustSave(t, f.Model, out, options(t))
		outputs, err := w.Compare(f.Path, out, conform.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range outputs {
			if !o.Equal {
				t.Errorf("%s: output %s differs", name, o.Name)
			}
		}
	}
}

func readConst(t *testing.T, m *ir.Model, name string) ([]byte, error) {
	t.Helper()
	e := ir.NewEval(t.TempDir())
	defer e.Close()
	for _, v := range m.Graph.Consts() {
		if v.Name == name {
			return e.ReadAll(context.Background(), v.Const)
		}
	}
	t.Fatalf("no constant %q", name)
	return nil, nil
}

// A long field is decoded when it is read, window by window.
func TestLongTypedFieldsDecode(t *testing.T) {
	const n = 3 * window / 5
	var values []int64
	var packed, want []byte
	for i := range int64(n) {
		v := (i*2654435761 + 7) % (1 << (i % 32))
		if i%3 == 0 {
			v = -v
		}
		values = append(values, v)
		packed = protowire.AppendVarint(packed, uint64(v))
		want = binary.LittleEndian.AppendUint32(want, uint32(v))
	}
	half := protowire.AppendVarint(nil, uint64(values[0]))
	for name, tensor := range map[string]message{
		"packed":   tensorOf(ir.Int32, n).bytes(tensorInt32s, packed),
		"unpacked": tensorOf(ir.Int32, n).varint(tensorInt32s, values...),
		"mixed":    tensorOf(ir.Int32, n).varint(tensorInt32s, values[0]).bytes(tensorInt32s, packed[len(half):]),
		"scattered": tensorOf(ir.Int32).varint(tensorInt32s, values[0]).varint(tensorDims, n).bytes(tensorInt32s,
			packed[len(half):]),
	} {
		f := mustOpen(t, writeModel(t, withTensor(tensor)))
		got, err := readConst(t, f.Model, "w")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: the payload differs", name)
		}
	}
}

func TestLongTypedFieldsOfTheWrongLength(t *testing.T) {
	const n = 5000
	for _, items := range []int{n - 1, n + 1} {
		m, err := decodeBytes(withTensor(tensorOf(ir.Uint8, n).bytes(tensorInt32s, make([]byte, items))), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := readConst(t, m, "w"); err == nil || !strings.Contains(err.Error(), "items") {
			t.Errorf("%d items for %d elements: %v", items, n, err)
		}
	}
}

func TestPackedFloatsAreNotCopied(t *testing.T) {
	vs := make([]float32, 1000)
	for i := range vs {
		vs[i] = math.Float32frombits(uint32(i) * 2654435761)
	}
	f := mustOpen(t, writeModel(t, withTensor(tensorOf(ir.Float, 1000).bytes(tensorFloats, floats(vs...)))))
	if _, ok := f.Model.Graph.Consts()[0].Const.Source.(ir.Span); !ok {
		t.Error("the source is no span of the file")
	}
	got, err := readConst(t, f.Model, "w")
	if err != nil || !bytes.Equal(got, floats(vs...)) {
		t.Errorf("the payload differs (%v)", err)
	}
}

// Indices that do not ascend or lie outside of the shape are an error of the read.
func TestSparseIndicesAreChecked(t *testing.T) {
	for name, indices := range map[string][]int64{
		"falling": {3, 1}, "twice": {1, 1}, "negative": {-1, 1}, "outside": {1, 6},
	} {
		sparse := &ir.Sparse{
			Values:  &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{2}}, Source: ir.Mem(floats(1, 2))},
			Indices: int64s([]int64{2}, indices...),
			Shape:   []int64{2, 3},
		}
		if b, err := readDense(t, sparse); err == nil {
			t.Errorf("%s: gave %v", name, b)
		}
	}
	good := &ir.Sparse{
		Values:  &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{2}}, Source: ir.Mem(floats(1, 2))},
		Indices: int64s([]int64{2, 2}, 0, 1, 1, 2),
		Shape:   []int64{2, 3},
	}
	got, err := readDense(t, good)
	if err != nil || !bytes.Equal(got, floats(0, 1, 0, 0, 0, 2)) {
		t.Errorf("coordinates gave %v, %v", got, err)
	}
}

func int64s(shape []int64, vs ...int64) *ir.Tensor {
	b, err := binary.Append(nil, binary.LittleEndian, vs)
	if err != nil {
		panic(err)
	}
	return &ir.Tensor{Spec: ir.Spec{DType: ir.Int64, Shape: shape}, Source: ir.Mem(b)}
}

func readDense(t *testing.T, s *ir.Sparse) ([]byte, error) {
	t.Helper()
	e := ir.NewEval(t.TempDir())
	defer e.Close()
	return e.ReadAll(context.Background(), Dense(s).Derive()[0])
}

// Each field of an attribute is in the ir as onnx.proto encodes it; lists are packed, or not.
func TestAttributesDecode(t *testing.T) {
	number := func(n num, v float32) message {
		return protowire.AppendFixed32(protowire.AppendTag(nil, n, protowire.Fixed32Type), math.Float32bits(v))
	}
	typed := func(t ir.AttrType) message { return message{}.varint(attrType, int64(t)) }
	for name, c := range map[string]struct {
		fields message
		want   ir.Attr
	}{
		"float":  {append(typed(ir.AttrFloat), number(attrF, -1.5)...), ir.Attr{Type: ir.AttrFloat, F: -1.5}},
		"int":    {typed(ir.AttrInt).varint(attrI, -7), ir.Attr{Type: ir.AttrInt, I: -7}},
		"string": {typed(ir.AttrString).text(attrS, "text"), ir.Attr{Type: ir.AttrString, S: "text"}},
		"floats": {slices.Concat(typed(ir.AttrFloats), number(attrFloats, 2), number(attrFloats, 3)),
			ir.Attr{Type: ir.AttrFloats, Floats: []float32{2, 3}}},
		"packed floats": {typed(ir.AttrFloats).bytes(attrFloats, floats(2, 3)),
			ir.Attr{Type: ir.AttrFloats, Floats: []float32{2, 3}}},
		"ints": {typed(ir.AttrInts).varint(attrInts, 300, -1),
			ir.Attr{Type: ir.AttrInts, Ints: []int64{300, -1}}},
		"packed ints": {typed(ir.AttrInts).bytes(attrInts, protowire.AppendVarint(protowire.AppendVarint(nil, 300), 5)),
			ir.Attr{Type: ir.AttrInts, Ints: []int64{300, 5}}},
		"strings": {typed(ir.AttrStrings).text(attrStrings, "a").text(attrStrings, ""),
			ir.Attr{Type: ir.AttrStrings, Strings: []string{"a", ""}}},
		"reference":        {typed(ir.AttrFloat).text(attrRef, "slope"), ir.Attr{Type: ir.AttrFloat, Ref: "slope"}},
		"type beyond byte": {message{}.varint(attrType, 256+int64(ir.AttrInt)).varint(attrI, 1), ir.Attr{I: 1}},
	} {
		m, err := decodeBytes(inAttribute(append(message{}.text(attrName, "a"), c.fields...)), t.TempDir())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got *ir.Attr
		for n := range m.Graph.Nodes() {
			got = n.Attr("a")
		}
		if c.want.Name = "a"; got == nil {
			t.Errorf("%s: no attribute", name)
		} else if diff := cmp.Diff(c.want, *got, cmpopts.IgnoreFields(ir.Attr{}, "Extra"),
			cmpopts.IgnoreUnexported(ir.Attr{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
