package onnx

import (
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/mcompress/mcompress/internal/bounded"
	"github.com/mcompress/mcompress/ir"
)

// A decoder turns a ModelProto into an ir.Model.
type decoder struct {
	cursor
	folder *folder
	inputs []*ir.Value       // of the node that is built
	words  map[string]string // names of operators, domains and attributes

	functions *bounded.Budget
}

func (d *decoder) decode() (*ir.Model, error) {
	m := ir.NewModel()
	x := &modelExtra{}
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
		case modelTraining:
			return d.training(x, f)
		}
		return d.addField(&x.rest, f)
	})
	if err != nil {
		return nil, err
	}
	if len(graph) == 0 {
		return nil, d.fail(0, "the model has no graph")
	}
	m.Extra = x
	// After all fields, as a writer may split the graph into several of them, which are one message.
	if err := d.graph(m.Graph, graph, nil); err != nil {
		return nil, err
	}
	for _, f := range functions {
		if err := d.function(m, f); err != nil {
			return nil, err
		}
	}
	// Here, and not by passes: all that walk calls recursively rely on it.
	if err := m.VerifyCalls(); err != nil {
		return nil, d.fail(0, err.Error())
	}
	return m, nil
}

// A modelExtra has the fields of a ModelProto that the ir does not represent.
type modelExtra struct {
	rest     extra
	training []*training
}

// A training is a TrainingInfoProto. Passes do not read it, but its tensors move with
// the model. Its graphs name values of the main graph; the names are all they need.
type training struct {
	init, algorithm *ir.Graph // nil where absent
	rest            extra
}

func (d *decoder) training(x *modelExtra, f field) error {
	t := &training{}
	var init, algorithm []field
	err := d.each(f.off, f.end, func(f field) error {
		switch f.num {
		case trainingInit:
			init = append(init, f)
			return nil
		case trainingAlgorithm:
			algorithm = append(algorithm, f)
			return nil
		}
		return d.addField(&t.rest, f)
	})
	if err != nil {
		return err
	}
	x.training = append(x.training, t)
	if t.init, err = d.detached(init); err != nil {
		return err
	}
	t.algorithm, err = d.detached(algorithm)
	return err
}

// detached reads a graph that is no part of the model that runs; nil if there is none.
func (d *decoder) detached(pieces []field) (*ir.Graph, error) {
	if len(pieces) == 0 {
		return nil, nil
	}
	g := ir.NewModel().Graph
	return g, d.graph(g, pieces, nil)
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
		return d.addField(&x, f)
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
		return d.addField(&x, f)
	})
	e.Extra = x
	return e, err
}

// A functionExtra has the fields of a FunctionProto without its body.
type functionExtra struct {
	defaults []*ir.Attr // of the attributes that a call may leave out
	rest     extra
}

// functionBytes is the memory of a function without nodes, of which a file has three bytes.
const functionBytes = 1 << 10

func (d *decoder) function(m *ir.Model, f field) error {
	if d.functions == nil {
		d.functions = bounded.NewBudget()
	}
	if err := d.functions.Take(functionBytes); err != nil {
		return d.fail(f.at, "functions: "+err.Error())
	}
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
		case functionDefault:
			return d.functionDefault(&fx, f)
		case functionDoc, functionMeta:
			return d.addDoc(&fx.rest, f)
		}
		return d.addField(&fx.rest, f)
	})
	if err != nil {
		return err
	}
	fn := m.AddFunction(id)
	fn.Opsets, fn.Extra = opsets, &fx
	d.enter((*functionLabel)(fn))
	defer d.leave()
	return d.build(fn.Body, g, nil, f.at)
}

// A functionLabel names a function in errors.
type functionLabel ir.Function

func (f *functionLabel) String() string { return "function " + strconv.Quote(f.ID.String()) }

func (d *decoder) functionDefault(fx *functionExtra, f field) error {
	p := &protoNode{node: &ir.Node{}}
	if err := d.attr(p, f); err != nil {
		return err
	}
	for _, sub := range p.subs() {
		g, err := d.detached(sub.pieces)
		if err != nil {
			return err
		}
		sub.attach(g)
	}
	fx.defaults = append(fx.defaults, p.node.Attrs...)
	return nil
}

// maxWords bounds the words that are kept to be shared: real models have some hundred of them.
const maxWords = 1 << 12

// word is text of a field that has few values, each of which is in memory once.
func (d *decoder) word(s *string, x *extra, f field) error {
	const long = 64
	if f.len() == 0 || f.len() > long || f.typ != protowire.BytesType {
		return d.text(s, x, f)
	}
	b, err := d.within(f.off, f.end)
	if err != nil {
		return err
	}
	if known, ok := d.words[string(b)]; ok {
		*s = known
		return nil
	}
	*s = string(b)
	if len(d.words) < maxWords {
		if d.words == nil {
			d.words = map[string]string{}
		}
		d.words[*s] = *s
	}
	return nil
}

func (d *decoder) names(to *[]string, f field) error {
	s, err := d.string(f)
	*to = append(*to, s)
	return err
}
