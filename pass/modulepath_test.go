package pass

import (
	"testing"

	"github.com/mcompress/mcompress/ir"
)

func TestModulePathFollowsFromMetadataOrNames(t *testing.T) {
	for _, c := range []struct {
		tensor string
		node   ir.Node
		want   string
	}{
		{"val_53", ir.Node{Name: "node_linear", Module: "m.encoder.layer.0.query"}, "m.encoder.layer.0.query"},
		{"m.encoder.layer.0.query.bias", ir.Node{Name: "node_add"}, "m.encoder.layer.0.query"},
		{"onnx::MatMul_71", ir.Node{Name: "/encoder/layer.0/query/MatMul"}, "encoder.layer.0.query"},
		{"onnx::Gemm_7", ir.Node{Name: "/actor/latent_pi/latent_pi.0/Gemm"}, "actor.latent_pi.0"},
		{"model/dense_1/MatMul/ReadVariableOp:0", ir.Node{Name: "model/dense_1/MatMul"}, "model.dense_1"},
		{"const_fold_opt__54", ir.Node{Name: "model/activation/Relu;model/dense/BiasAdd"}, ""},
		{"W0", ir.Node{}, ""},
		{"/tok/Constant_output_0", ir.Node{Name: "MatMul_3"}, ""},
	} {
		if got := ModulePath(&ir.Value{Name: c.tensor}, []*ir.Node{&c.node}); got != c.want {
			t.Errorf("%s of %s: got %q, want %q", c.tensor, c.node.Name, got, c.want)
		}
	}
}
