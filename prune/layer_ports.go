package prune

import (
	"regexp"
	"slices"
	"strconv"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A series is the names of corresponding inputs, or outputs, of successive layers: past_key_values.0.key,
// past_key_values.1.key, ….
type series struct {
	prefix, suffix string
	first, step    int // the number of the first layer, and from layer to layer
}

var digits = regexp.MustCompile(`[0-9]+`)

// newSeries returns the series of names, which differ in one number that grows by the same step.
func newSeries(names []string) (series, bool) {
	for _, at := range digits.FindAllStringIndex(names[0], -1) {
		s := series{prefix: names[0][:at[0]], suffix: names[0][at[1]:]}
		first, ok := s.number(names[0])
		second, also := s.number(names[1])
		s.first, s.step = first, second-first
		if ok && also && s.step > 0 && s.has(names) {
			return s, true
		}
	}
	return series{}, false
}

// has reports whether names are those of the layers, in order.
func (s series) has(names []string) bool {
	for layer, name := range names {
		if name != s.name(layer) {
			return false
		}
	}
	return true
}

// name is that of the given layer.
func (s series) name(layer int) string {
	return s.prefix + strconv.Itoa(s.first+layer*s.step) + s.suffix
}

// number is the number in a name of the series, of its layers or of others.
func (s series) number(name string) (int, bool) {
	if len(name) <= len(s.prefix)+len(s.suffix) || name[:len(s.prefix)] != s.prefix ||
		name[len(name)-len(s.suffix):] != s.suffix {
		return 0, false
	}
	text := name[len(s.prefix) : len(name)-len(s.suffix)]
	n, err := strconv.Atoi(text)
	return n, err == nil && strconv.Itoa(n) == text
}

// A port is an input or output that each layer has, such as the past keys.
type port struct {
	series
	values []*ir.Value // by layer
}

// ports are those of r's layers, which list returns for one; ok is false if layers differ in their number or names are
// no series.
func (r repetition) ports(list func(segment) []*ir.Value) (ports []port, ok bool) {
	values := make([][]*ir.Value, len(r))
	for i, layer := range r {
		if values[i] = list(layer); len(values[i]) != len(values[0]) {
			return nil, false
		}
	}
	for k := range values[0] {
		p := port{values: make([]*ir.Value, len(r))}
		names := make([]string, len(r))
		for i := range r {
			p.values[i], names[i] = values[i][k], values[i][k].Name
		}
		if p.series, ok = newSeries(names); !ok {
			return nil, false
		}
		ports = append(ports, p)
	}
	return ports, true
}

// inputPorts are the graph inputs of a layer.
func inputPorts(layer segment) []*ir.Value { return layer.inputs }

// outputPorts are the graph outputs that a layer makes, without the one that the next layer reads.
func outputPorts(layer segment) []*ir.Value {
	var vs []*ir.Value
	for _, n := range layer.nodes {
		for _, v := range n.Outputs {
			if n != layer.last && isGraphOutput(v) {
				vs = append(vs, v)
			}
		}
	}
	return vs
}

// hasNumbers reports whether the layers' inputs and outputs of the graph have numbers, so that callers know those that
// stay.
func (r repetition) hasNumbers() bool {
	_, inputs := r.ports(inputPorts)
	_, outputs := r.ports(outputPorts)
	return inputs && outputs
}

// removal describes the removal of layers that are not kept.
func (r repetition) removal(kept []int) pass.RemovedLayers {
	inputs, _ := r.ports(inputPorts)
	outputs, _ := r.ports(outputPorts)
	g, all, first, step := r[0].last.Graph(), len(r), 0, 1
	for i, p := range slices.Concat(inputs, outputs) {
		if i == 0 {
			first = p.first
		}
		first, step = min(first, p.first), p.step
	}
	first -= first % step // of a layer that consists of several, one of which has ports
	removed := pass.RemovedLayers{Cached: len(inputs)+len(outputs) > 0}
	for _, p := range slices.Concat(inputs, outputs) {
		for _, v := range slices.Concat(g.Inputs, g.Outputs) {
			if n, ok := p.number(v.Name); ok {
				// Ports of layers outside of the repetition count, too: the configuration has the number of all layers.
				all = max(all, n+1)
			}
		}
	}
	removed.Layers = max(all, first+step*len(r))
	for i := range r {
		for n := range step {
			if !slices.Contains(kept, i) {
				removed.Removed = append(removed.Removed, first+i*step+n)
			}
		}
	}
	return removed
}

// renumber lets the kept layers have the inputs and outputs of the first ones, and removes the other ones. Those of
// layers after the repetition have lower numbers then.
func (r repetition) renumber(kept []int) {
	g := r[0].last.Graph()
	inputs, _ := r.ports(inputPorts)
	outputs, _ := r.ports(outputPorts)
	for _, p := range inputs {
		for to, from := range kept {
			r[from].replace(p.values[from], p.values[to])
		}
		for _, v := range p.values[len(kept):] {
			v.ReplaceUses(p.values[len(kept)-1]) // nodes outside of layers read its shape
			g.RemoveInput(v)
		}
		p.lowerNumbers(g.Inputs, len(kept))
	}
	for _, p := range outputs {
		g.SetOutputs(p.keptOutputs(g.Outputs, kept)...)
		for to, from := range kept {
			p.values[from].Name = p.name(to)
		}
		p.lowerNumbers(g.Outputs, len(kept))
	}
}

// keptOutputs are the outputs of a graph with those of kept layers in the places of the first ones, without the others.
func (p port) keptOutputs(outputs []*ir.Value, kept []int) []*ir.Value {
	var list []*ir.Value
	for _, v := range outputs {
		layer := slices.Index(p.values, v)
		switch {
		case layer < 0:
			list = append(list, v)
		case layer < len(kept):
			list = append(list, p.values[kept[layer]])
		}
	}
	return list
}

// replace makes the nodes of the layer read to in place of from.
func (s segment) replace(from, to *ir.Value) {
	for _, n := range s.nodes {
		for i, v := range n.Inputs() {
			if v == from {
				n.SetInput(i, to)
			}
		}
	}
}

// lowerNumbers lowers the numbers of values after the layers of the series, of which so many are kept.
func (p port) lowerNumbers(values []*ir.Value, kept int) {
	for _, v := range values {
		if n, ok := p.number(v.Name); ok && n > p.first+(len(p.values)-1)*p.step {
			v.Name = p.prefix + strconv.Itoa(n-(len(p.values)-kept)*p.step) + p.suffix
		}
	}
}
