package onnx

import "google.golang.org/protobuf/encoding/protowire"

type num = protowire.Number

// Field numbers of onnx.proto, message by message: those that the ir represents.
// A field that is not listed is carried along as bytes. A test compares this table
// with ONNX's own descriptor.
const (
	modelIRVersion num = 1
	modelGraph     num = 7
	modelOpset     num = 8
	modelMeta      num = 14
	modelTraining  num = 20
	modelFunctions num = 25

	trainingInit      num = 1
	trainingAlgorithm num = 2

	opsetDomain  num = 1
	opsetVersion num = 2

	entryKey   num = 1
	entryValue num = 2

	graphNode        num = 1
	graphName        num = 2
	graphInitializer num = 5
	graphInput       num = 11
	graphOutput      num = 12
	graphValueInfo   num = 13
	graphSparse      num = 15
	graphDoc         num = 10
	graphMeta        num = 16

	functionName     num = 1
	functionInput    num = 4
	functionOutput   num = 5
	functionNode     num = 7
	functionOpset    num = 9
	functionDomain   num = 10
	functionInfo     num = 12
	functionDefault  num = 11
	functionOverload num = 13
	functionDoc      num = 8
	functionMeta     num = 14

	nodeInput     num = 1
	nodeOutput    num = 2
	nodeName      num = 3
	nodeOp        num = 4
	nodeAttribute num = 5
	nodeDomain    num = 7
	nodeOverload  num = 8
	nodeMeta      num = 9
	nodeDoc       num = 6

	attrName       num = 1
	attrF          num = 2
	attrI          num = 3
	attrS          num = 4
	attrT          num = 5
	attrG          num = 6
	attrFloats     num = 7
	attrInts       num = 8
	attrStrings    num = 9
	attrTensors    num = 10
	attrGraphs     num = 11
	attrDoc        num = 13
	attrTypeProto  num = 14
	attrTypeProtos num = 15
	attrType       num = 20
	attrRef        num = 21
	attrSparse     num = 22
	attrSparses    num = 23

	tensorDims     num = 1
	tensorType     num = 2
	tensorFloats   num = 4
	tensorInt32s   num = 5
	tensorStrings  num = 6
	tensorInt64s   num = 7
	tensorName     num = 8
	tensorRaw      num = 9
	tensorDoubles  num = 10
	tensorUint64s  num = 11
	tensorExternal num = 13
	tensorLocation num = 14
	tensorDoc      num = 12
	tensorMeta     num = 16

	sparseValues  num = 1
	sparseIndices num = 2
	sparseDims    num = 3

	infoName num = 1
	infoType num = 2
	infoDoc  num = 3
	infoMeta num = 4

	typeTensor  num = 1
	tensorElem  num = 1
	tensorShape num = 2
	shapeDim    num = 1
	dimValue    num = 1
	dimParam    num = 2
)
