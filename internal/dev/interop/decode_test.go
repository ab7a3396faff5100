package interop

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/owulveryck/onnx-go"
	"gonum.org/v1/gonum/graph"
	"gonum.org/v1/gonum/graph/simple"
	"gorgonia.org/tensor"
)

// describe decodes the model at path by onnx-go and writes what onnx-go has understood,
// a line for each operator and each named value. The weights are in it as digests.
func describe(out io.Writer, path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	b := &backend{WeightedDirectedGraph: simple.NewWeightedDirectedGraph(0, -1), out: out}
	m := onnx.NewModel(b)
	if err := m.UnmarshalBinary(data); err != nil {
		return err
	}
	fmt.Fprintln(out, "inputs", b.names(m.Input), "outputs", b.names(m.Output))
	for _, v := range b.values {
		fmt.Fprintln(out, "value", v.GetName(), digest(v.tensor))
	}
	return nil
}

// A backend is what onnx-go builds the graph in. Its own simple backend takes no
// tensors, so that weights would not be decoded there.
type backend struct {
	*simple.WeightedDirectedGraph
	values []*value // in the order in which onnx-go meets them
	out    io.Writer
}

// A value is a node of onnx-go's graph, which has values for nodes.
type value struct {
	graph.Node
	name   string
	tensor tensor.Tensor // nil for what is no weight
}

func (b *backend) NewNode() graph.Node {
	v := &value{Node: b.WeightedDirectedGraph.NewNode()}
	b.values = append(b.values, v)
	return v
}

func (b *backend) ApplyOperation(op onnx.Operation, outputs ...graph.Node) error {
	for _, o := range outputs {
		fmt.Fprintln(b.out, "operator", op.Name, o.(*value).name, "from", b.inputs(o))
	}
	for _, name := range slices.Sorted(maps.Keys(op.Attributes)) {
		fmt.Fprintln(b.out, "attribute", name, digest(op.Attributes[name]))
	}
	return nil
}

// inputs are the names of an operator's inputs with their positions, the weights of
// onnx-go's edges.
func (b *backend) inputs(output graph.Node) []string {
	var names []string
	for _, to := range graph.NodesOf(b.From(output.ID())) {
		at, _ := b.Weight(output.ID(), to.ID())
		names = append(names, fmt.Sprint(at, " ", to.(*value).name))
	}
	slices.Sort(names)
	return names
}

func (b *backend) names(ids []int64) []string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = b.Node(id).(*value).name
	}
	return names
}

func (v *value) SetName(name string)             { v.name = name }
func (v *value) GetName() string                 { return v.name }
func (v *value) SetTensor(t tensor.Tensor) error { v.tensor = t; return nil }
func (v *value) GetTensor() tensor.Tensor        { return v.tensor }

// digest is x as short text; of a tensor it is type, shape and a digest of its elements.
func digest(x any) string {
	t, ok := x.(tensor.Tensor)
	if !ok || t == nil {
		return fmt.Sprintf("%v", x)
	}
	elements, err := binary.Append(nil, binary.LittleEndian, t.Data())
	if err != nil { // a type without a fixed size, as int and string
		elements = fmt.Append(nil, t.Data())
	}
	return fmt.Sprintf("%v%v %x", t.Dtype(), t.Shape(), sha256.Sum256(elements))
}
