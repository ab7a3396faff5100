package pass

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Capability is something that a runtime can do, or does as fast as the float model, and that forms of weights need.
type Capability uint32

// The capabilities of runtimes. The table in docs/methods.md repeats Doc.
const (
	Integers Capability = 1 << iota // DynamicQuantizeLinear and MatMulInteger
	Dequantize4
	Cast4
	Cast2
	Fused8
	Fused4
	Fused2
	FusedLarge4
	NBits4
	NBits8
	NBits2
	FastNBits4
	GatherNBits
	GatherNBits2
	Gather16
	Padding
	Floats8
	BFloats16
	BFloat16Math
	Activations16
	Floats4
	QuantizedBias
	HalfGemm
	FastOpset19
	EmptyTensors
	SummedRecurrent
	ShiftedRecurrent
	lastCapability = ShiftedRecurrent
)

var capabilityDocs = map[Capability]string{
	Integers:         "DynamicQuantizeLinear and MatMulInteger",
	Dequantize4:      "DequantizeLinear of 4-bit integers",
	Cast4:            "Cast of 4-bit integers",
	Cast2:            "Cast of 2-bit integers",
	Fused8:           "fast products with 8-bit weights after DequantizeLinear",
	Fused4:           "fast products with 4-bit weights after DequantizeLinear",
	Fused2:           "fast products with 2-bit weights after DequantizeLinear",
	FusedLarge4:      "fast products with large 4-bit weights after DequantizeLinear",
	NBits4:           "com.microsoft.MatMulNBits with 4 bits",
	NBits8:           "com.microsoft.MatMulNBits with 8 bits",
	NBits2:           "com.microsoft.MatMulNBits with 2 bits",
	FastNBits4:       "fast products with com.microsoft.MatMulNBits with 4 bits",
	GatherNBits:      "com.microsoft.GatherBlockQuantized of bytes with 4 or 8 bits",
	GatherNBits2:     "com.microsoft.GatherBlockQuantized of bytes with 2 bits",
	Gather16:         "Gather in a table of 16-bit floats that is not widened",
	Padding:          "blocks that do not divide the rows of a weight",
	Floats8:          "Cast of 8-bit floats",
	BFloats16:        "Cast of bfloat16",
	BFloat16Math:     "products of bfloat16",
	Activations16:    "QuantizeLinear to 16 bits",
	Floats4:          "DequantizeLinear of 4-bit floats",
	QuantizedBias:    "Gemm with a quantized bias",
	HalfGemm:         "Gemm of float16",
	FastOpset19:      "opset 19 as fast as those before it",
	EmptyTensors:     "constants without elements",
	SummedRecurrent:  "recurrent weights from nodes with CumSum",
	ShiftedRecurrent: "recurrent weights with zero points in models with quantized activations",
}

// microsoft are the capabilities that need operators of MicrosoftDomain.
const microsoft = NBits4 | NBits8 | NBits2 | FastNBits4 | GatherNBits | GatherNBits2

// LargeWeight is the number of elements from which a float32 matrix is large: in ONNX Runtime from 1.20 on its products
// with 4-bit weights are at least as fast as float, for any number of rows of the activation; below they may take 1.2
// times as long.
const LargeWeight = 2 << 20

// String describes a single capability.
func (c Capability) String() string { return capabilityDocs[c] }

// Capabilities are all of them, in the order of documentation.
func Capabilities() []Capability {
	var all []Capability
	for c := Capability(1); c <= lastCapability; c <<= 1 {
		all = append(all, c)
	}
	return all
}

// A Runtime is a program that runs models, with its limits. A later version of ONNX Runtime has the facts of the last
// one before it.
type Runtime struct {
	Name     string     `json:"name"`
	Title    string     `json:"title"`
	Opset    int64      `json:"opset"`      // newest opset that it loads
	IR       int64      `json:"ir_version"` // newest IR version that it loads
	Untested string     `json:"untested,omitempty"`
	Can      Capability `json:"-"`
	Choices  []Choice   `json:"-"`
}

const (
	ort117 = Integers | NBits4 | FastNBits4 | Gather16 | Padding | Floats8 | BFloats16 | QuantizedBias | HalfGemm |
		EmptyTensors | SummedRecurrent | ShiftedRecurrent
	ort120 = ort117 | Activations16 | Dequantize4 | FusedLarge4
	ort122 = ort120 | NBits8
	ort123 = ort122 | Cast4 | GatherNBits
	ort124 = ort123 | Cast2 | NBits2
	ort126 = ort124 | Fused8 | Fused4 | FastOpset19
	ort131 = ort126 | Fused2 | GatherNBits2
)

const (
	noDevice  = "no device; limits as published"
	noRuntime = "limits as published"
)

// Runtimes are the runtimes that models are prepared for. docs/decisions/targets.md has the measurements.
var Runtimes = []Runtime{
	{Name: "ort-1.17", Title: "ONNX Runtime 1.17", Opset: 20, IR: 9, Can: ort117},
	{Name: "ort-1.20", Title: "ONNX Runtime 1.20", Opset: 21, IR: 10, Can: ort120},
	{Name: "ort-1.22", Title: "ONNX Runtime 1.22", Opset: 22, IR: 10, Can: ort122},
	{Name: "ort-1.23", Title: "ONNX Runtime 1.23", Opset: 23, IR: 11, Can: ort123},
	{Name: "ort-1.24", Title: "ONNX Runtime 1.24", Opset: 25, IR: 13, Can: ort124},
	{Name: "ort-1.26", Title: "ONNX Runtime 1.26", Opset: 26, IR: 13, Can: ort126},
	{Name: "ort-1.31", Title: "ONNX Runtime 1.31", Opset: 26, IR: 13, Can: ort131},
	{Name: "web", Title: "onnxruntime-web 1.30 (WASM)", Opset: 26, IR: 13,
		Can: ort124&^(FusedLarge4|FastNBits4) | FastOpset19},
	{Name: "openvino", Title: "OpenVINO 2026.4", Opset: 25, IR: 13,
		Can: Integers | Dequantize4 | Cast4 | Fused8 | Fused4 | FusedLarge4 | NBits4 | NBits8 | NBits2 | Floats8 | BFloats16 |
			BFloat16Math | Floats4 | QuantizedBias | HalfGemm | FastOpset19},
	{Name: "opencv", Title: "OpenCV 5.0", Opset: 25, IR: 13,
		Can: BFloats16 | Gather16 | Padding | SummedRecurrent | ShiftedRecurrent | HalfGemm | FastOpset19},
	{Name: "tract", Title: "tract 0.23", Opset: 25, IR: 13,
		Can: Integers | NBits4 | NBits2 | Gather16 | Padding | QuantizedBias | EmptyTensors | SummedRecurrent |
			ShiftedRecurrent | FastOpset19},
	{Name: "webgpu", Title: "onnxruntime-web (WebGPU)", Opset: 26, IR: 13, Can: ort124 | Fused4 | FastOpset19,
		Untested: noDevice},
	{Name: "genai", Title: "onnxruntime-genai 0.18", Opset: 26, IR: 13, Can: ort131, Untested: noRuntime,
		Choices: genaiChoices},
	{Name: "qnn", Title: "ONNX Runtime with QNN", Opset: 22, IR: 10,
		Can:      Padding | Activations16 | QuantizedBias | EmptyTensors | SummedRecurrent | HalfGemm | FastOpset19,
		Untested: noDevice, Choices: qnnChoices},
	{Name: "tensorrt", Title: "TensorRT 10", Opset: 22, IR: 10,
		Can: Dequantize4 | Fused8 | Fused4 | FusedLarge4 | Floats8 | BFloats16 | BFloat16Math | QuantizedBias | HalfGemm |
			FastOpset19, Untested: noDevice, Choices: tensorRTChoices},
	{Name: "embedded", Title: "the embedded engine", Opset: 26, IR: 13, Can: 2*lastCapability - 1},
}

// The reasons of the choices for runtimes.
const (
	nbitsNative = "onnxruntime-genai's own models have MatMulNBits at accuracy level 4, which has the fastest kernels"
	symmetricQ  = "TensorRT quantizes symmetrically, to int8"
	int4Blocks  = "TensorRT has 4-bit weights in symmetric blocks of 64 or 128"
	qnnUnsigned = "the HTP computes with uint8 activations"
)

// genaiChoices has the accuracy level first: it depends on whether the caller gave a form.
var genaiChoices = []Choice{
	{Method: "weight-int4", Option: "accuracy-level", Value: "4", Why: nbitsNative, Need: NBits4,
		Unless: []string{"form"}},
	{Method: "weight-int4", Option: "form", Value: "matmulnbits", Why: nbitsNative, Need: NBits4},
}

var qnnChoices = []Choice{{Method: "static-int8", Option: "activation-type", Value: "uint8", Why: qnnUnsigned}}

var tensorRTChoices = []Choice{
	{Method: "static-int8", Option: "weight-type", Value: "int8", Why: symmetricQ},
	{Method: "static-int8", Option: "activation-type", Value: "int8", Why: symmetricQ},
	{Method: "static-int8", Option: "activation-symmetric", Value: "true", Why: symmetricQ},
	{Method: "weight-int4", Option: "weight-type", Value: "int4", Why: int4Blocks},
	{Method: "weight-int4", Option: "symmetric", Value: "true", Why: int4Blocks},
	{Method: "weight-int4", Option: "block", Value: "128", Why: int4Blocks, Unless: []string{"per-channel"}},
}

// ortName is the name of a version of ONNX Runtime without its number.
const ortName = "ort-1."

// oldest is the first version of ONNX Runtime that results load in by default.
const oldest = 20

// minor is the minor version of ONNX Runtime that a name has; ok is false for other names.
func minor(name string) (n int, ok bool) {
	text, ok := strings.CutPrefix(name, ortName)
	n, err := strconv.Atoi(text)
	return n, ok && err == nil && strconv.Itoa(n) == text
}

// newest is the newest version of ONNX Runtime in the table.
func newest() Runtime {
	i := slices.IndexFunc(Runtimes, func(r Runtime) bool { return r.Name == "web" })
	return Runtimes[i-1]
}

// FindRuntime is the runtime of a name: one of the table, "ort" for the newest ONNX Runtime, or "ort-1.N".
func FindRuntime(name string) (*Runtime, bool) {
	if name == "ort" {
		r := newest()
		return &r, true
	}
	last, _ := minor(newest().Name)
	n, version := minor(name)
	var found *Runtime
	for _, r := range Runtimes {
		first, ok := minor(r.Name)
		if r.Name == name || version && ok && first <= n && n <= last {
			found = &r
		}
	}
	if found != nil && version {
		found.Name, found.Title = name, fmt.Sprintf("ONNX Runtime 1.%d", n)
	}
	return found, found != nil
}

// defaultRuntimes are those that results load in, not slower than float, without a target: all versions of ONNX Runtime
// from oldest on.
func defaultRuntimes() []Runtime {
	return slices.DeleteFunc(slices.Clone(Runtimes), func(r Runtime) bool {
		n, ok := minor(r.Name)
		return !ok || n < oldest
	})
}
