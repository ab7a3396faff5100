package onnx

import (
	"fmt"

	"github.com/mcompress/mcompress/ir"
)

// A protoGraph is a graph as it is in the file, its edges still names.
type protoGraph struct {
	name            string
	nodes           protoNodes
	inputs, outputs []protoInfo
	infos           []protoInfo
	params, results []string // a function's inputs and outputs
	tensors         []*ir.Tensor
	sparse          []protoSparse
	rest            extra
}

type protoInfo struct {
	name string
	typ  *ir.Type
	infoSource
}

// An infoSource is a ValueInfoProto as it is in the file.
type infoSource struct {
	raw  extra // the whole field
	bare extra // the fields of the message without documentation; nil if it has none
	doc  int64 // bytes of documentation
}

type protoSparse struct {
	tensor *ir.Tensor
	raw    extra
}

// Keeps reports whether t is written in the form in which it was read: a dense tensor that is computed from a sparse
// one is not stored.
func (s *sparseInit) Keeps(t *ir.Tensor) bool { return s.tensor == t }

// Keeps is that of a Constant node.
func (c *constNode) Keeps(t *ir.Tensor) bool { return c.tensor == t }

// A graphExtra is what writing a graph back needs: its value infos as they came,
// the places of lifted constants, and fields of no interest.
type graphExtra struct {
	inputs, outputs map[string]info // by name
	infos           []info
	lifted          []*constNode
	rest            extra
}

// An info is a ValueInfoProto. It is written back as it came as long as the value
// still has the type it gave.
type info struct {
	value *ir.Value
	typ   *ir.Type
	infoSource
}

// A constNode is the origin of a lifted Constant node: the node itself, and the
// node of the graph it followed.
type constNode struct {
	value  *ir.Value
	node   *ir.Node
	tensor *ir.Tensor
	after  *ir.Node
}

// A sparseInit is the origin of a sparse initializer.
type sparseInit struct {
	tensor *ir.Tensor
	raw    extra
}

// graph reads a GraphProto from its pieces; there is at least one.
func (d *decoder) graph(into *ir.Graph, pieces []field, outer *scope) error {
	g := &protoGraph{}
	err := d.eachOf(pieces, func(f field) error { return d.graphField(g, f) })
	if err != nil {
		return err
	}
	into.Name = g.name
	// A graph in this one is in a node's attribute, three messages further down.
	d.depth += 3
	defer func() { d.depth -= 3 }()
	return d.build(into, g, outer, pieces[0].at)
}

func (d *decoder) graphField(g *protoGraph, f field) error {
	switch f.num {
	case graphNode:
		return d.node(g, f)
	case graphName:
		return d.text(&g.name, &g.rest, f)
	case graphInitializer:
		t, err := d.tensor([]field{f})
		g.tensors = append(g.tensors, t)
		return err
	case graphSparse:
		return d.sparseInitializer(g, f)
	case graphInput:
		return d.info(&g.inputs, f)
	case graphOutput:
		return d.info(&g.outputs, f)
	case graphValueInfo:
		return d.info(&g.infos, f)
	case graphDoc, graphMeta:
		return d.addDoc(&g.rest, f)
	}
	return d.addField(&g.rest, f)
}

func (d *decoder) sparseInitializer(g *protoGraph, f field) error {
	_, t, err := d.sparse([]field{f})
	if err != nil {
		return err
	}
	s := protoSparse{tensor: t}
	g.sparse = append(g.sparse, s)
	return d.addField(&g.sparse[len(g.sparse)-1].raw, f)
}

func (d *decoder) info(to *[]protoInfo, f field) error {
	var i protoInfo
	var typ []field
	err := d.each(f.off, f.end, func(f field) (err error) {
		switch f.num {
		case infoName:
			i.name, err = d.string(f)
		case infoType:
			typ = append(typ, f)
		case infoDoc, infoMeta:
			i.doc += f.end - f.at
		}
		return err
	})
	if err != nil {
		return err
	}
	if i.typ, err = d.typ(typ); err != nil {
		return err
	}
	// Kept in both forms, as --strip-metadata is known only when the model is written. Most have no documentation.
	if i.doc > 0 {
		if err := d.bare(&i, f); err != nil {
			return err
		}
	}
	if err := d.addField(&i.raw, f); err != nil {
		return err
	}
	*to = append(*to, i)
	return nil
}

// bare sets the fields of i without documentation.
func (c *cursor) bare(i *protoInfo, f field) error {
	c.metadata += i.doc
	i.bare = extra{}
	return c.each(f.off, f.end, func(f field) error {
		if f.num == infoDoc || f.num == infoMeta {
			return nil
		}
		return c.addField(&i.bare, f)
	})
}

// typ reads a TypeProto; only tensor types are represented, others are nil.
func (d *decoder) typ(pieces []field) (*ir.Type, error) {
	var tensor, shape []field
	err := d.eachOf(pieces, func(f field) error {
		if f.num == typeTensor {
			tensor = append(tensor, f)
		}
		return nil
	})
	if err != nil || tensor == nil {
		return nil, err
	}
	t := &ir.Type{}
	err = d.eachOf(tensor, func(f field) error {
		switch f.num {
		case tensorElem:
			// A number above 0xff would become another type when it is cut to a byte.
			t.Elem = ir.DType(min(f.v, 0xff))
		case tensorShape:
			t.Shape = []ir.Dim{}
			shape = append(shape, f)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return t, d.shape(t, shape)
}

func (d *decoder) shape(t *ir.Type, pieces []field) error {
	return d.eachOf(pieces, func(f field) error {
		if f.num != shapeDim {
			return nil
		}
		if len(t.Shape) == ir.MaxRank {
			return d.fail(f.at, fmt.Sprintf("a shape has more than %d dimensions", ir.MaxRank))
		}
		dim := ir.Dim{N: -1}
		err := d.each(f.off, f.end, func(f field) (err error) {
			switch f.num {
			case dimValue:
				dim.N = int64(f.v)
			case dimParam:
				dim.Param, err = d.string(f)
			}
			return err
		})
		t.Shape = append(t.Shape, dim)
		return err
	})
}
