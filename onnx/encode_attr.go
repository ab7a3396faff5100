package onnx

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/mcompress/mcompress/ir"
)

func (e *encoder) attr(a *ir.Attr) *rope {
	r := &rope{}
	r.optional(attrName, a.Name)
	if a.Type != 0 {
		r.varint(attrType, uint64(a.Type))
	}
	if a.Tensor != nil {
		r.message(attrT, e.tensor(a.Tensor, a.Tensor.Name))
	}
	for _, t := range a.Tensors {
		r.message(attrTensors, e.tensor(t, t.Name))
	}
	if a.Graph != nil {
		r.message(attrG, e.graph(a.Graph))
	}
	for _, g := range a.Graphs {
		r.message(attrGraphs, e.graph(g))
	}
	if a.Extra != nil { // read from a file: scalars ride along
		e.extra(r, a.Extra)
		return r
	}
	e.scalar(r, a)
	return r
}

// scalar writes the value of an attribute that a pass made.
func (e *encoder) scalar(r *rope, a *ir.Attr) {
	switch a.Type {
	case ir.AttrFloat:
		r.fixed32(attrF, math.Float32bits(a.F))
	case ir.AttrInt:
		r.varint(attrI, uint64(a.I))
	case ir.AttrString:
		r.text(attrS, a.S)
	case ir.AttrFloats:
		for _, f := range a.Floats {
			r.fixed32(attrFloats, math.Float32bits(f))
		}
	case ir.AttrInts:
		for _, i := range a.Ints {
			r.varint(attrInts, uint64(i))
		}
	case ir.AttrStrings:
		for _, s := range a.Strings {
			r.text(attrStrings, s)
		}
	case ir.AttrSparse:
		r.message(attrSparse, e.sparse(a.Sparse))
	}
	if a.Ref != "" {
		// Not optional: an empty reference would be an attribute with a value.
		r.lit(protowire.AppendString(protowire.AppendTag(nil, attrRef, protowire.BytesType), a.Ref))
	}
}

// sparse keeps both tensors in the model file: readers take external data of dense
// tensors only.
func (*encoder) sparse(s *ir.Sparse) *rope {
	inline := &encoder{}
	r := &rope{}
	r.message(sparseValues, inline.tensor(s.Values, s.Values.Name))
	r.message(sparseIndices, inline.tensor(s.Indices, s.Indices.Name))
	for _, d := range s.Shape {
		r.varint(sparseDims, uint64(d))
	}
	return r
}
