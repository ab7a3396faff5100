package quant

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// expertOps are ONNX Runtime's mixtures of experts: each token is processed by the k experts with the largest router
// scores, and their outputs are added, weighted by the softmax of the scores.
func expertOps() []op.Op {
	return []op.Op{
		{Domain: microsoft, Type: "MoE", Since: 1, Shape: expertShape, Work: expertWork, Run: runExperts},
		{Domain: microsoft, Type: "QMoE", Since: 1, Shape: expertShape, Prepare: prepareExperts,
			States: []any{[3][]*kernel.Quantized{}}, Work: expertWork, Run: runExperts},
	}
}

// Inputs of both operators, and QMoE's weights that replace the probabilities of the router.
const (
	tokensIn, routerIn = 0, 1
	routerWeights      = 14
)

// Layers of an expert: FC1, FC2, and FC3, whose output multiplies that of FC1.
const (
	enter = iota
	leave
	gate
)

// layerInputs are the inputs of the layers of QMoE and MoE.
var layerInputs = map[bool][3]struct{ weight, scale, bias, zero int }{
	true:  {{2, 3, 4, 11}, {5, 6, 7, 12}, {8, 9, 10, 13}},
	false: {{2, -1, 3, -1}, {4, -1, 5, -1}, {6, -1, 7, -1}},
}

// experts is one node: its attributes and layers.
type experts struct {
	quantized     bool
	count, k      int
	hidden, inner int // sizes of a token, and between the layers
	normalize     bool
	activation    string
	interleaved   bool // gates and values alternate in the output of FC1
	alpha, beta   float32
	limit         float32
	layers        [3]*expertLayer // FC3 may be nil
}

// fused reports whether FC1 computes gates and values.
func (x *experts) fused() bool { return x.activation == "swiglu" && x.layers[gate] == nil }

// expertsOf reads attributes and layers.
func expertsOf(n *op.Node, in []*ir.Array) (*experts, error) {
	x := &experts{
		quantized: n.ID.Type == "QMoE", k: int(n.Int("k", 1)), activation: n.Text("activation_type", "relu"),
		interleaved: n.Int("swiglu_fusion", 0) == 1,
		alpha:       n.Float("activation_alpha", 1), beta: n.Float("activation_beta", 0),
		limit:     n.Float("swiglu_limit", float32(math.Inf(1))),
		normalize: n.Bool("normalize_routing_weights", false),
	}
	if err := x.supported(n); err != nil {
		return nil, err
	}
	for i := range x.layers {
		var err error
		if x.layers[i], err = layerOf(n, in, x.quantized, i); err != nil {
			return nil, err
		}
	}
	leaves := x.layers[leave]
	x.count, x.hidden, x.inner = leaves.count, leaves.n, leaves.k
	return x, x.checkLayers(n.Int("swiglu_fusion", 0))
}

func (x *experts) supported(n *op.Node) error {
	switch x.activation {
	case "relu", "gelu", "silu", "swiglu", "identity":
	default:
		return fmt.Errorf("attribute activation_type is %q, want relu, gelu, silu, swiglu or identity", x.activation)
	}
	if n.Bool("use_sparse_mixer", false) {
		return fmt.Errorf("attribute use_sparse_mixer is not supported")
	}
	if kind := n.Text("quant_type", "int"); kind != "int" {
		return fmt.Errorf("attribute quant_type is %q: only int is supported", kind)
	}
	if n.Int("weights_prepacked", 0) > 0 {
		return fmt.Errorf("attribute weights_prepacked is set: the layout depends on the device")
	}
	return nil
}

// checkLayers compares the sizes of the layers.
func (x *experts) checkLayers(fusion int64) error {
	rows := x.inner
	if x.fused() {
		if fusion != 1 && fusion != 2 {
			return fmt.Errorf("attribute swiglu_fusion is %d without input fc3_experts_weights, want 1 or 2", fusion)
		}
		rows *= 2
	}
	for i, l := range x.layers {
		switch {
		case l == nil || i == leave:
		case l.count != x.count || l.n != rows || l.k != x.hidden:
			return fmt.Errorf("input fc%d_experts_weights is %s, want %d experts of %d×%d", i+1, l.weight, x.count,
				rows, x.hidden)
		}
	}
	if x.k < 1 || x.k > x.count {
		return fmt.Errorf("attribute k is %d for %d experts", x.k, x.count)
	}
	return nil
}

func expertShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := expertsOf(n, in)
	if err != nil {
		return nil, err
	}
	if err := requireInputs(in, input{tokensIn, "input"}, input{routerIn, "router_probs"}); err != nil {
		return nil, err
	}
	t, router := in[tokensIn], in[routerIn]
	rank := len(t.Shape)
	if t.Kind != ir.Dense || !t.DType.IsFloat() || t.DType == ir.Double || rank != 2 && rank != 3 ||
		t.Shape[rank-1] != int64(x.hidden) {
		return nil, fmt.Errorf("input input is %s, want floats with rows of %d", t, x.hidden)
	}
	scores := []*ir.Array{router}
	if x.quantized {
		scores = append(scores, op.Opt(in, routerWeights))
	}
	want := ir.Spec{DType: t.DType, Shape: []int64{op.Product(t.Shape[:rank-1]), int64(x.count)}}
	for _, a := range scores {
		if a != nil && a.Spec().String() != want.String() {
			return nil, fmt.Errorf("scores of experts are %s, want %s", a, want)
		}
	}
	return []ir.Spec{t.Spec()}, x.checkTypes(t.DType)
}

// checkTypes compares the types of weights and biases with that of the tokens.
func (x *experts) checkTypes(dt ir.DType) error {
	for _, l := range x.layers {
		switch {
		case l == nil:
		case !x.quantized && l.weight.DType != dt:
			return fmt.Errorf("weights of experts are %s for input %s", l.weight, dt)
		case l.bias != nil && l.bias.DType != dt:
			return fmt.Errorf("bias of experts is %s for input %s", l.bias, dt)
		}
	}
	return nil
}
