package onnx

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
)

// messageOf is the message of a prefix in fields.go.
var messageOf = map[string]string{
	"model": "ModelProto", "opset": "OperatorSetIdProto", "entry": "StringStringEntryProto",
	"training": "TrainingInfoProto", "graph": "GraphProto", "function": "FunctionProto", "node": "NodeProto",
	"attr": "AttributeProto", "tensor": "TensorProto", "sparse": "SparseTensorProto", "info": "ValueInfoProto",
	"type": "TypeProto", "shape": "TensorShapeProto", "dim": "TensorShapeProto.Dimension",
}

// fieldOf names the fields that the constants abbreviate.
var fieldOf = map[string]string{
	"modelOpset": "opset_import", "modelMeta": "metadata_props", "nodeMeta": "metadata_props",
	"graphMeta": "metadata_props", "functionMeta": "metadata_props", "tensorMeta": "metadata_props",
	"infoMeta": "metadata_props",
	"nodeDoc":  "doc_string", "graphDoc": "doc_string", "functionDoc": "doc_string", "tensorDoc": "doc_string",
	"infoDoc": "doc_string", "modelTraining": "training_info",
	"trainingInit": "initialization", "graphSparse": "sparse_initializer",
	"functionOpset": "opset_import", "functionInfo": "value_info", "functionDefault": "attribute_proto",
	"nodeOp": "op_type", "attrRef": "ref_attr_name", "attrSparse": "sparse_tensor", "attrSparses": "sparse_tensors",
	"tensorType": "data_type", "tensorFloats": "float_data", "tensorInt32s": "int32_data", "tensorStrings": "string_data",
	"tensorInt64s": "int64_data", "tensorRaw": "raw_data", "tensorDoubles": "double_data", "tensorUint64s": "uint64_data",
	"tensorExternal": "external_data", "tensorLocation": "data_location", "typeTensor": "tensor_type",
	"tensorElem": "elem_type", "tensorShape": "shape", "dimValue": "dim_value", "dimParam": "dim_param",
	"attrDoc": "doc_string", "attrTypeProto": "tp", "attrTypeProtos": "type_protos",
	"modelIRVersion": "ir_version", "graphValueInfo": "value_info",
}

func TestFieldNumbersAreONNXs(t *testing.T) {
	schema, err := conform.Start(t).Schema()
	if err != nil {
		t.Fatal(err)
	}
	for name, number := range fieldConstants(t) {
		message, field := described(name)
		want, ok := schema[message][field]
		if !ok {
			t.Errorf("%s: %s has no field %q", name, message, field)
		} else if number != want {
			t.Errorf("%s = %d, but %s.%s is %d", name, number, message, field, want)
		}
	}
}

// described is the message and field of a constant of fields.go.
func described(name string) (message, field string) {
	end := strings.IndexFunc(name, func(r rune) bool { return r >= 'A' && r <= 'Z' })
	message, field = messageOf[name[:end]], strings.ToLower(name[end:])
	if name == "tensorElem" || name == "tensorShape" {
		message = "TypeProto.Tensor"
	}
	if f, ok := fieldOf[name]; ok {
		field = f
	}
	return message, field
}

// fieldConstants reads fields.go, so that no constant escapes the comparison.
func fieldConstants(t *testing.T) map[string]int {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "fields.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			k, err := strconv.Atoi(v.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			found[v.Names[0].Name] = k
		}
		return true
	})
	if len(found) == 0 {
		t.Fatal("no constants in fields.go")
	}
	return found
}

func TestElementTypesAreONNXs(t *testing.T) {
	types, err := conform.Start(t).ElementTypes()
	if err != nil {
		t.Fatal(err)
	}
	for name, number := range types {
		if got := ir.DType(number).String(); got != strings.ToLower(name) {
			t.Errorf("element type %d is %q, in ONNX %q", number, got, name)
		}
	}
	if beyond := ir.DType(len(types)); beyond.Known() {
		t.Errorf("element type %d (%s) is not ONNX's", beyond, beyond)
	}
}
