package onnx

import "testing"

func TestModuleOfMetadata(t *testing.T) {
	for text, want := range map[string]string{
		"['', 'm', 'm.encoder.layer.0.output.dense', 'linear_1']": "m.encoder.layer.0.output.dense",
		"['', 'add']": "",
		"['add']":     "",
		"no list":     "",
	} {
		if got := nameScope(text); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]string{
		": __main__.W/m: modeling_bert.BertModel/m.embeddings: BertEmbeddings/slice_1: aten.slice.Tensor": "m.embeddings",
		": __main__.W/add: aten.add.Tensor": "",
		"torch_nn":                          "",
		"a/b/c":                             "",
	} {
		if got := namespace(text); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}
