package onnx

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
)

// Bad input is one line of a *FormatError that names the file, the offset and, where
// there is one, the tensor; it takes memory in proportion to the file and no more.

var badTensors = []struct {
	name   string
	tensor message
	want   string
}{
	{"negative dim", tensorOf(ir.Float, -1, 2).bytes(tensorRaw, make([]byte, 8)), "negative"},
	{"huge dim", tensorOf(ir.Float, math.MaxInt64).bytes(tensorRaw, make([]byte, 8)), "too many elements"},
	{"dims whose product wraps", tensorOf(ir.Float, 1<<32, 1<<32).bytes(tensorRaw, nil), "too many elements"},
	{"a huge shape over no data", tensorOf(ir.Float, 1<<40), "no data"},
	{"a huge shape over a few typed items", tensorOf(ir.Int32, 1<<40).varint(tensorInt32s, 1, 2, 3), "list items"},
	{"raw_data too short", tensorOf(ir.Float, 4).bytes(tensorRaw, make([]byte, 15)), "15 bytes"},
	{"raw_data too long", tensorOf(ir.Int4, 3).bytes(tensorRaw, make([]byte, 3)), "3 bytes"},
	{"too few typed items", tensorOf(ir.Int32, 4).varint(tensorInt32s, 1000, 1000, 1000), "3 items"},
	{"too many typed items", tensorOf(ir.Int32, 1).varint(tensorInt32s, 1, 2), "more items"},
	{"too many floats", tensorOf(ir.Float, 1).bytes(tensorFloats, floats(1, 2)), "more items"},
	{"a typed field of another type", tensorOf(ir.Float, 1).varint(tensorInt64s, 1), "another type"},
	{"payload twice", tensorOf(ir.Float, 1).bytes(tensorFloats, floats(1)).bytes(tensorRaw, floats(1)), "twice"},
	{"raw_data twice", tensorOf(ir.Float, 1).bytes(tensorRaw, floats(1)).bytes(tensorRaw, floats(1)), "twice"},
	{"no type", tensorOf(ir.Undefined, 1).bytes(tensorRaw, floats(1)), "not known"},
	{"a type that does not exist", tensorOf(99, 1).bytes(tensorRaw, floats(1)), "not known"},
	{"a type beyond a byte", tensorOf(ir.Float).varint(tensorType, 257), "not known"},
	{"strings as raw_data", tensorOf(ir.String, 1).bytes(tensorRaw, floats(1)), "strings"},
	{"raw_data of another wire type", tensorOf(ir.Float, 1).varint(tensorRaw, 1), "wire type"},
	{"dims of another wire type", message{}.text(tensorName, "w").bytes(tensorDims, []byte{0xff}), "list of integers"},
	{"no elements, and a dimension that no tensor can have", tensorOf(ir.Float, 0, math.MaxInt64).bytes(tensorRaw, nil),
		"too many elements"},
	{"more dimensions than any tensor has", tensorOf(ir.Float, make([]int64, 65)...).bytes(tensorRaw, nil),
		"65 dimensions"},
	{"external, and no file", externalOf(1), "names no file"},
	{"no location", externalOf(1, "offset", "0"), "location"},
	{"empty location", externalOf(1, "location", ""), "location"},
	{"parent folder", externalOf(1, "location", "../w.bin"), "inside"},
	{"parent folder on the way", externalOf(1, "location", "a/../../w.bin"), "inside"},
	{"absolute path", externalOf(1, "location", "/etc/passwd"), "inside"},
	{"the folder itself", externalOf(1, "location", "."), "regular file"},
	{"a file that is missing", externalOf(1, "location", "nowhere.bin"), "missing"},
	{"a name with a zero byte", externalOf(1, "location", "a\x00b"), "external data"},
	{"negative offset", externalOf(1, "location", "w.bin", "offset", "-4"), "offset"},
	{"negative length", externalOf(1, "location", "w.bin", "length", "-4"), "length"},
	{"offset that is not a number", externalOf(1, "location", "w.bin", "offset", "0x10"), "offset"},
	{"offset beyond 64 bits", externalOf(1, "location", "w.bin", "offset", "99999999999999999999"), "offset"},
	{"another length than the shape's", externalOf(1, "location", "w.bin", "length", "8"), "length 8"},
	{"strings outside", tensorOf(ir.String, 1).bytes(tensorExternal,
		message{}.text(entryKey, "location").text(entryValue, "w.bin")).varint(tensorLocation, 1), "strings"},
}

func TestBadTensorsAreRefused(t *testing.T) {
	for _, tt := range badTensors {
		t.Run(tt.name, func(t *testing.T) {
			b := withTensor(tt.tensor)
			refuses(t, b, tt.want)
			// The same inside of a Constant node, in a branch, in a function.
			constant := nodeOf("Constant", nil, []string{"w"}, message{}.text(attrName, "value").bytes(attrT, tt.tensor))
			branch := message{}.text(attrName, "then_branch").bytes(attrG, message{}.bytes(graphInitializer, tt.tensor))
			function := message{}.text(functionName, "F").bytes(functionNode, constant)
			refuses(t, modelOf(message{}.bytes(graphNode, constant)), tt.want)
			refuses(t, modelOf(message{}.bytes(graphNode, nodeOf("If", nil, nil, branch))), tt.want)
			refuses(t, message(modelOf(message{})).bytes(modelFunctions, function), tt.want)
		})
	}
}

var badModels = []struct {
	name  string
	model []byte
	want  string
}{
	{"nothing", nil, "no graph"},
	{"text", []byte("this is a text, not a model"), ""},
	{"a tag of field 0", []byte{0x02, 0x00}, "protobuf"},
	{"an end of a group that never began", []byte{0x0c}, "protobuf"},
	{"a group that does not end", protowire.AppendTag(modelOf(nil), 999, protowire.StartGroupType), "does not end"},
	{"graph of another wire type", message{}.varint(modelGraph, 1), "wire type"},
	{"a length beyond the file", protowire.AppendVarint(protowire.AppendTag(nil, modelGraph, protowire.BytesType),
		math.MaxInt64), "beyond"},
	{"a length beyond 63 bits", protowire.AppendVarint(protowire.AppendTag(nil, modelGraph, protowire.BytesType),
		math.MaxUint64), "beyond"},
	{"a length beyond its message",
		modelOf(message{}.bytes(graphNode,
			protowire.AppendVarint(protowire.AppendTag(nil, nodeName, protowire.BytesType), 1<<30))), "beyond"},
	{"a varint of eleven bytes", append(message{0x08}, bytes.Repeat([]byte{0xff}, 11)...), "protobuf"},
	{"a name of 2 MiB", modelOf(message{}.bytes(graphNode, message{}.bytes(nodeName, make([]byte, 2<<20)))), "longer"},
	{"two inputs of a name",
		modelOf(message{}.bytes(graphInput, message{}.text(infoName, "x")).bytes(graphInput, message{}.text(infoName, "x"))),
		`"x"`},
	{"two parameters of a name", message(modelOf(nil)).bytes(modelFunctions,
		message{}.text(functionName, "F").text(functionInput, "a").text(functionInput, "a")), `"a"`},
	{"two initializers of a name", withTensor(tensorOf(ir.Float, 1).bytes(tensorRaw, floats(1)),
		tensorOf(ir.Float, 1).bytes(tensorRaw, floats(1))), `"w"`},
	{"a node that reads its output", modelOf(message{}.bytes(graphNode, nodeOf("Relu", []string{"a"}, []string{"a"}))),
		`its nodes form a cycle: "Relu(a)" → "Relu(a)"`},
	{"nodes that read each other's outputs", modelOf(cycle()),
		`graph "g": its nodes form a cycle: "Relu(a)" → "Tanh(b)" → "Relu(a)"`},
	{"a cycle through a subgraph",
		modelOf(message{}.bytes(graphNode, nodeOf("Relu", []string{"b"}, []string{"a"})).bytes(graphNode, ifOf("b", message{}.
			bytes(graphNode, nodeOf("Tanh", []string{"a"}, []string{"c"})).bytes(graphOutput, message{}.text(infoName, "c"))))),
		`its nodes form a cycle: "Relu(a)" → "If(b)" → "Relu(a)"`},
	{"a cycle in a subgraph", modelOf(message{}.bytes(graphNode, ifOf("y", cycle()))), "its nodes form a cycle"},
	{"a cycle in a function", message(modelOf(nil)).bytes(modelFunctions,
		append(message{}.text(functionName, "F"), functionNodes(cycle())...)),
		`function "F": graph "F": its nodes form a cycle`},
	{"a function that calls itself", message(modelOf(nil)).bytes(modelFunctions,
		message{}.text(functionName, "F").bytes(functionNode, nodeOf("F", nil, nil))),
		`function "F" calls itself: "F" → "F"`},
	{"functions that call each other", message(modelOf(nil)).bytes(modelFunctions,
		message{}.text(functionName, "F").bytes(functionNode, nodeOf("G", nil, nil))).
		bytes(modelFunctions, message{}.text(functionName, "G").bytes(functionNode, nodeOf("F", nil, nil))),
		`"F" → "G" → "F"`},
	{"functions that expand to 2^30 nodes", doubling(30), "expand to more than"},
	{"functions nested deeper than 64", doubling(65), "nested deeper"},
	{"a value of more dimensions than any tensor has",
		modelOf(message{}.bytes(graphInput, infoOf("x", make([]int64, 65)...))), "more than 64 dimensions"},
	{"a sparse tensor of 4 TiB", modelOf(message{}.bytes(graphSparse, sparseOf(1<<40))), "expands to 4398046511104 bytes"},
	{"a sparse tensor of external values",
		modelOf(message{}.bytes(graphSparse, sparseParts(externalOf(1, "location", "model.onnx", "length", "4"), oneIndex))),
		"external data"},
	{"a sparse tensor of external indices",
		modelOf(message{}.bytes(graphSparse, sparseParts(oneValue, tensorOf(ir.Int64, 1).
			bytes(tensorExternal, message{}.text(entryKey, "location").text(entryValue, "model.onnx")).
			bytes(tensorExternal, message{}.text(entryKey, "length").text(entryValue, "8")).varint(tensorLocation, 1)))),
		"external data"},
	{"graphs in graphs", nestedGraphs(35), "nested"},
	{"many graphs in graphs", nestedGraphs(5000), "nested"},
	{"groups in groups", append(bytes.Repeat(protowire.AppendTag(nil, 999, protowire.StartGroupType), 5000),
		modelOf(nil)...), "nested"},
}

// cycle is a graph of two nodes that read each other's outputs.
func cycle() message {
	return message{}.text(graphName, "g").bytes(graphNode, nodeOf("Relu", []string{"b"}, []string{"a"})).bytes(graphNode,
		nodeOf("Tanh", []string{"a"}, []string{"b"}))
}

// functionNodes are the nodes of a graph as those of a function.
func functionNodes(graph message) (nodes message) {
	for b := []byte(graph); len(b) > 0; {
		n, _, k := protowire.ConsumeTag(b)
		v, l := protowire.ConsumeBytes(b[k:])
		if n == graphNode {
			nodes = nodes.bytes(functionNode, v)
		}
		b = b[k+l:]
	}
	return nodes
}

// ifOf is an If node of one branch.
func ifOf(out string, branch message) message {
	return nodeOf("If", nil, []string{out}, message{}.text(attrName, "then_branch").bytes(attrG, branch))
}

// doubling is a model of n functions, each of which calls the next twice.
func doubling(n int) []byte {
	m := message(modelOf(message{}.bytes(graphNode, nodeOf("f0", nil, nil))))
	for i := range n {
		call := nodeOf(fmt.Sprintf("f%d", i+1), nil, nil)
		m = m.bytes(modelFunctions, message{}.text(functionName, fmt.Sprintf("f%d", i)).bytes(functionNode,
			call).bytes(functionNode, call))
	}
	return m
}

// infoOf is a value of float elements and this shape.
func infoOf(name string, dims ...int64) message {
	var shape message
	for _, d := range dims {
		shape = shape.bytes(shapeDim, message{}.varint(dimValue, d))
	}
	tensor := message{}.varint(tensorElem, int64(ir.Float)).bytes(tensorShape, shape)
	return message{}.text(infoName, name).bytes(infoType, message{}.bytes(typeTensor, tensor))
}

// sparseOf is a sparse tensor of n elements, one of which is stored.
func sparseOf(n int64) message {
	return sparseParts(oneValue, oneIndex).varint(sparseDims, n)
}

var (
	oneValue = tensorOf(ir.Float, 1).bytes(tensorRaw, floats(1))
	oneIndex = tensorOf(ir.Int64, 1).bytes(tensorRaw, make([]byte, 8))
)

func sparseParts(values, indices message) message {
	return message{}.bytes(sparseValues, values).bytes(sparseIndices, indices)
}

// nestedGraphs is a model of n branches, each in the one before.
func nestedGraphs(n int) []byte {
	g := message{}
	for range n {
		g = message{}.bytes(graphNode, nodeOf("If", nil, nil, message{}.text(attrName, "then_branch").bytes(attrG, g)))
	}
	return modelOf(g)
}

func TestGraphsNestAsDeepAsProtobufAllows(t *testing.T) {
	w := conform.Start(t)
	for n := range 35 {
		path := writeModel(t, nestedGraphs(n))
		_, err := Open(path)
		if err != nil && w.Parses(path) == nil {
			t.Fatalf("ONNX parses %d graphs in each other, Open returns %v", n, err)
		}
	}
}

func TestBadModelsAreRefused(t *testing.T) {
	for _, tt := range badModels {
		t.Run(tt.name, func(t *testing.T) { refuses(t, tt.model, tt.want) })
	}
}

// inside are models that hold a message of each kind.
var inside = map[string]func(b message) []byte{
	"model":        func(b message) []byte { return append(modelOf(nil), b...) },
	"operator set": func(b message) []byte { return message(modelOf(nil)).bytes(modelOpset, b) },
	"metadata":     func(b message) []byte { return message(modelOf(nil)).bytes(modelMeta, b) },
	"training":     func(b message) []byte { return message(modelOf(nil)).bytes(modelTraining, b) },
	"initialization": func(b message) []byte {
		return message(modelOf(nil)).bytes(modelTraining, message{}.bytes(trainingInit, b))
	},
	"algorithm": func(b message) []byte {
		return message(modelOf(nil)).bytes(modelTraining, message{}.bytes(trainingAlgorithm, b))
	},
	"graph":              modelOfGraph,
	"node":               inNode,
	"attribute":          inAttribute,
	"graph of attribute": func(b message) []byte { return inAttribute(message{}.text(attrName, "a").bytes(attrG, b)) },
	"graphs": func(b message) []byte {
		return inAttribute(message{}.text(attrName, "a").bytes(attrGraphs, b))
	},
	"tensor":         func(b message) []byte { return inAttribute(message{}.text(attrName, "a").bytes(attrT, b)) },
	"tensors":        func(b message) []byte { return inAttribute(message{}.text(attrName, "a").bytes(attrTensors, b)) },
	"sparse tensor":  func(b message) []byte { return inAttribute(message{}.text(attrName, "a").bytes(attrSparse, b)) },
	"sparse tensors": func(b message) []byte { return inAttribute(message{}.text(attrName, "a").bytes(attrSparses, b)) },
	"initializer": func(b message) []byte {
		return modelOf(message{}.bytes(graphInitializer, append(tensorOf(ir.Float, 0), b...)))
	},
	"external data": func(b message) []byte {
		return modelOf(message{}.bytes(graphInitializer,
			tensorOf(ir.Float, 1).bytes(tensorExternal, b).varint(tensorLocation, 1)))
	},
	"sparse initializer": func(b message) []byte {
		return modelOf(message{}.bytes(graphSparse, append(sparseOf(4), b...)))
	},
	"values": func(b message) []byte { return modelOf(message{}.bytes(graphSparse, message{}.bytes(sparseValues, b))) },
	"indices": func(b message) []byte {
		return modelOf(message{}.bytes(graphSparse, append(sparseOf(4), message{}.bytes(sparseIndices, b)...)))
	},
	"input":  inInput,
	"output": func(b message) []byte { return modelOf(message{}.bytes(graphOutput, b)) },
	"value": func(b message) []byte {
		return modelOf(message{}.bytes(graphValueInfo, append(message{}.text(infoName, "v"), b...)))
	},
	"type":        func(b message) []byte { return inInput(message{}.text(infoName, "x").bytes(infoType, b)) },
	"tensor type": inTensorType,
	"shape":       func(b message) []byte { return inTensorType(message{}.varint(tensorElem, 1).bytes(tensorShape, b)) },
	"dimension": func(b message) []byte {
		return inTensorType(message{}.varint(tensorElem, 1).bytes(tensorShape, message{}.bytes(shapeDim, b)))
	},
	"function":          inFunction,
	"node of function":  func(b message) []byte { return inFunction(message{}.bytes(functionNode, b)) },
	"opset of function": func(b message) []byte { return inFunction(message{}.bytes(functionOpset, b)) },
	"value of function": func(b message) []byte {
		return inFunction(message{}.bytes(functionInfo, append(message{}.text(infoName, "v"), b...)))
	},
	"default of function": func(b message) []byte {
		return inFunction(message{}.bytes(functionDefault, append(message{}.text(attrName, "a"), b...)))
	},
}

func modelOfGraph(b message) []byte { return modelOf(b) }

func inNode(b message) []byte {
	return modelOf(message{}.bytes(graphNode, append(message{}.text(nodeOp, "Op"), b...)))
}

func inAttribute(b message) []byte { return inNode(message{}.bytes(nodeAttribute, b)) }

func inInput(b message) []byte { return modelOf(message{}.bytes(graphInput, b)) }

func inTensorType(b message) []byte {
	return inInput(message{}.text(infoName, "x").bytes(infoType, message{}.bytes(typeTensor, b)))
}

func inFunction(b message) []byte {
	return message(modelOf(nil)).bytes(modelFunctions, append(message{}.text(functionName, "F"), b...))
}

// A message of any kind, and at any depth, is refused if its bytes are no fields.
func TestMalformedMessagesAreRefused(t *testing.T) {
	for name, of := range inside {
		// a tag of field 0, a text beyond the end, half a tag
		for _, b := range []message{{0x02, 0x00}, {0x0a, 0x05, 'a'}, {0x80}} {
			_, err := decodeBytes(of(b), t.TempDir())
			if fe := (*FormatError)(nil); !errors.As(err, &fe) {
				t.Errorf("%s of bytes % x: %v", name, []byte(b), err)
			}
		}
	}
}

// A model that becomes shorter after its size was read is refused: no byte of it has another source than the file.
func TestModelThatShrinks(t *testing.T) {
	b := message{}.varint(modelIRVersion, 10).bytes(modelGraph, message{}.text(graphName, "g")).
		bytes(modelOpset, message{}.text(opsetDomain, "").varint(opsetVersion, 21))
	for n := range b {
		f, err := Read(bytes.NewReader(b[:n]), int64(len(b)), "model")
		if fe := (*FormatError)(nil); !errors.As(err, &fe) {
			t.Errorf("%d of %d bytes: %v", n, len(b), err)
		}
		if err == nil {
			t.Errorf("opset %d", f.Model.Opsets[0].Version)
			f.Close()
		}
	}
}

func TestSharedMalformedModels(t *testing.T) {
	for _, path := range conform.ModelsBelow(t, filepath.Join(conform.Shared(t), "fixtures", "malformed")) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			boundedMemory(t, int64(len(b)), func() {
				f, err := Open(path)
				if err != nil {
					formatError(t, err, path, "")
					return
				}
				f.Close()
			})
		})
	}
}

// refuses opens a model and requires a FormatError with want.
func refuses(t *testing.T, model []byte, want string) {
	t.Helper()
	path := writeModel(t, model)
	boundedMemory(t, int64(len(model)), func() {
		f, err := Open(path)
		if err == nil {
			f.Close()
			t.Fatal("Open took it")
		}
		formatError(t, err, path, want)
	})
}

func formatError(t *testing.T, err error, path, want string) {
	t.Helper()
	var fe *FormatError
	if !errors.As(err, &fe) {
		t.Fatalf("%T is no FormatError: %v", err, err)
	}
	oneLine(t, err)
	if !strings.HasPrefix(err.Error(), path+": offset ") {
		t.Errorf("%q does not begin with file and offset", err)
	}
	if !strings.Contains(err.Error(), want) {
		t.Errorf("%q does not say %q", err, want)
	}
}

// A model may take a window to read through and, for its skeleton, so many times its
// size: an empty node is two bytes in the file and a few hundred in memory.
const (
	fixedMemory   = 512 << 10
	memoryPerByte = 300
)

// bounded reports a do that allocates more than a file of the given size may take.
func boundedMemory(t *testing.T, size int64, do func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	if got, most := after.TotalAlloc-before.TotalAlloc, uint64(fixedMemory+memoryPerByte*size); got > most {
		t.Errorf("%d bytes were allocated for a file of %d, at most %d may be", got, size, most)
	}
}

func TestTensorErrorsNameTheTensor(t *testing.T) {
	_, err := Open(writeModel(t, withTensor(tensorOf(ir.Float, 4).bytes(tensorRaw, nil))))
	if err == nil || !strings.Contains(err.Error(), `tensor "w": `) {
		t.Errorf("got %v, want the tensor's name", err)
	}
}

// Every truncation is refused, unless the file happens to end between two fields.
func TestTruncatedModels(t *testing.T) {
	for _, path := range conform.Fixtures(t) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for n := 0; n < len(b); n += 1 + len(b)/500 {
			m, err := decodeBytes(b[:n], filepath.Dir(path))
			var fe *FormatError
			if err == nil && m.Graph != nil {
				continue
			}
			if !errors.As(err, &fe) {
				t.Errorf("%s cut at %d: %v", filepath.Base(path), n, err)
			}
		}
	}
}

func TestPathsThatAreNoFiles(t *testing.T) {
	for _, path := range []string{t.TempDir(), filepath.Join(t.TempDir(), "none.onnx")} {
		f, err := Open(path)
		if err == nil {
			f.Close()
			t.Fatalf("%s: opened", path)
		}
		oneLine(t, err)
		if !strings.HasPrefix(err.Error(), path+": ") {
			t.Errorf("%q does not name %s", err, path)
		}
	}
}

// A node costs little more than its place in the graph, and an empty function is charged for what it takes.
func TestMemoryOfNodesAndFunctions(t *testing.T) {
	const count = 100_000
	node, function := string(message{}.bytes(graphNode, nil)), string(message{}.bytes(modelFunctions, nil))
	model := message{}.bytes(modelGraph, message(strings.Repeat(node, count)))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	m, err := decodeBytes(model, "")
	runtime.ReadMemStats(&after)
	if err != nil || m.Graph.NodeCount() != count {
		t.Fatal(err)
	}
	if each := (after.TotalAlloc - before.TotalAlloc) / count; each > 300 {
		t.Errorf("%d bytes are allocated for each node", each)
	}
	_, err = decodeBytes(append(message{}.bytes(modelGraph, nil), strings.Repeat(function, 10*count)...), "")
	var format *FormatError
	if !errors.As(err, &format) || !strings.Contains(err.Error(), "functions: ") {
		t.Errorf("a million functions: got %v", err)
	}
}

// Inputs of a node may come after its outputs.
func TestEdgesInAnyOrder(t *testing.T) {
	node := message{}.text(nodeInput, "a").text(nodeOutput, "y").text(nodeInput, "b").text(nodeOutput, "z").text(nodeInput, "c")
	m, err := decodeBytes(message{}.bytes(modelGraph, message{}.bytes(graphNode, node)), "")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, v := range slices.Concat(m.Graph.First().Inputs(), m.Graph.First().Outputs) {
		names = append(names, v.Name)
	}
	if got := strings.Join(names, " "); got != "a b c y z" {
		t.Errorf("got %s", got)
	}
}
