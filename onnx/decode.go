package onnx

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/mcompress/mcompress/ir"
)

// A decoder turns a ModelProto into an ir.Model.
type decoder struct {
	cursor
	folder *folder
}

func (d *decoder) decode() (*ir.Model, error) {
	m := ir.NewModel()
	var x extra
	var graph, functions []field
	err := d.each(0, d.src.size, func(f field) error {
		switch f.num {
		case modelIRVersion:
			m.IRVersion = int64(f.v)
			return d.want(f, protowire.VarintType)
		case modelGraph:
			graph = append(graph, f)
			return d.want(f, protowire.BytesType)
		case modelFunctions:
			functions = append(functions, f)
			return d.want(f, protowire.BytesType)
		case modelOpset:
			o, err := d.opset(f)
			m.Opsets = append(m.Opsets, o)
			return err
		case modelMeta:
			e, err := d.entry(f)
			m.Meta = append(m.Meta, e)
			return err
		}
		return d.add(&x, f)
	})
	if err != nil {
		return nil, err
	}
	if len(graph) != 1 {
		return nil, d.fail(0, fmt.Sprintf("a model has one graph, this file has %d", len(graph)))
	}
	m.Extra = x
	if err := d.graph(m.Graph, graph[0], nil); err != nil {
		return nil, err
	}
	for _, f := range functions {
		if err := d.function(m, f); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (d *decoder) opset(f field) (ir.Opset, error) {
	var o ir.Opset
	var x extra
	err := d.each(f.off, f.end, func(f field) error {
		switch f.num {
		case opsetDomain:
			return d.text(&o.Domain, &x, f)
		case opsetVersion:
			o.Version = int64(f.v)
			return d.want(f, protowire.VarintType)
		}
		return d.add(&x, f)
	})
	o.Extra = x
	return o, err
}

func (d *decoder) entry(f field) (ir.Entry, error) {
	var e ir.Entry
	var x extra
	err := d.each(f.off, f.end, func(f field) error {
		switch f.num {
		case entryKey:
			return d.text(&e.Key, &x, f)
		case entryValue:
			return d.text(&e.Value, &x, f)
		}
		return d.add(&x, f)
	})
	e.Extra = x
	return e, err
}

// A functionExtra is what a FunctionProto holds beside its body.
type functionExtra struct{ rest extra }

func (d *decoder) function(m *ir.Model, f field) error {
	var id ir.OpID
	var fx functionExtra
	var opsets []ir.Opset
	g := &protoGraph{}
	err := d.each(f.off, f.end, func(f field) error {
		switch f.num {
		case functionName:
			return d.text(&id.Type, &fx.rest, f)
		case functionDomain:
			return d.text(&id.Domain, &fx.rest, f)
		case functionOverload:
			return d.text(&id.Overload, &fx.rest, f)
		case functionInput:
			return d.names(&g.params, f)
		case functionOutput:
			return d.names(&g.results, f)
		case functionNode:
			return d.node(g, f)
		case functionInfo:
			return d.info(&g.infos, f)
		case functionOpset:
			o, err := d.opset(f)
			opsets = append(opsets, o)
			return err
		}
		return d.add(&fx.rest, f)
	})
	if err != nil {
		return err
	}
	fn := m.AddFunction(id)
	fn.Opsets, fn.Extra = opsets, &fx
	defer d.in(quote("function", id.String()))()
	return d.build(fn.Body, g, nil, f.at)
}

func (d *decoder) names(to *[]string, f field) error {
	s, err := d.string(f)
	*to = append(*to, s)
	return err
}
