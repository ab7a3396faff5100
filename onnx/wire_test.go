package onnx

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/mcompress/mcompress/ir"
)

// A message is an encoded protobuf message that a test puts together by hand.
type message []byte

func (m message) bytes(n num, b []byte) message {
	return protowire.AppendBytes(protowire.AppendTag(m, n, protowire.BytesType), b)
}

func (m message) text(n num, s string) message { return m.bytes(n, []byte(s)) }

func (m message) varint(n num, vs ...int64) message {
	for _, v := range vs {
		m = protowire.AppendVarint(protowire.AppendTag(m, n, protowire.VarintType), uint64(v))
	}
	return m
}

// modelOf is a model of the default domain's opset 21 with this graph.
func modelOf(graph message) []byte {
	opset := message{}.text(opsetDomain, "").varint(opsetVersion, 21)
	return message{}.varint(modelIRVersion, 10).bytes(modelOpset, opset).bytes(modelGraph, graph)
}

// withTensor is a model of one initializer that an Identity reads.
func withTensor(tensors ...message) []byte {
	g := message{}.bytes(graphNode, nodeOf("Identity", []string{"w"}, []string{"y"})).text(graphName, "g")
	for _, t := range tensors {
		g = g.bytes(graphInitializer, t)
	}
	return modelOf(g.bytes(graphOutput, message{}.text(infoName, "y")))
}

func nodeOf(op string, in, out []string, attrs ...message) message {
	var m message
	for _, s := range in {
		m = m.text(nodeInput, s)
	}
	for _, s := range out {
		m = m.text(nodeOutput, s)
	}
	m = m.text(nodeOp, op)
	for _, a := range attrs {
		m = m.bytes(nodeAttribute, a)
	}
	return m
}

// tensorOf is the head of a tensor called w; its payload follows.
func tensorOf(dt ir.DType, dims ...int64) message {
	return message{}.varint(tensorDims, dims...).varint(tensorType, int64(dt)).text(tensorName, "w")
}

// externalOf is a float tensor of n elements with these entries of external_data.
func externalOf(n int64, entries ...string) message {
	t := tensorOf(ir.Float, n)
	for i := 0; i < len(entries); i += 2 {
		t = t.bytes(tensorExternal, message{}.text(entryKey, entries[i]).text(entryValue, entries[i+1]))
	}
	return t.varint(tensorLocation, 1)
}

func floats(vs ...float32) []byte {
	b, err := binary.Append(nil, binary.LittleEndian, vs)
	if err != nil {
		panic(err)
	}
	return b
}

// decodeBytes is Open for a model in memory whose folder is empty.
func decodeBytes(b []byte, folderPath string) (*ir.Model, error) {
	d := &decoder{
		cursor: cursor{src: &source{ReaderAt: bytes.NewReader(b), path: "model.onnx", size: int64(len(b))}},
		folder: &folder{path: filepath.Join(folderPath, "model.onnx")},
	}
	m, err := d.decode()
	if cerr := d.folder.close(); err == nil {
		err = cerr
	}
	return m, err
}

func writeModel(t testing.TB, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
