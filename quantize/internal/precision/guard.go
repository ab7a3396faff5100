package precision

// guarded are the operators that stay float32, with the reason. Many others have no float16 in their signature, or
// only for some inputs: Resize's scales, NonMaxSuppression, DynamicQuantizeLinear.
var guarded = func() map[string]string {
	all := map[string]string{}
	for why, ops := range map[string][]string{
		"powers and sums leave float16's range":                {"Pow", "ReduceSum", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceProd", "CumProd", "LpNormalization", "LpPool", "GlobalLpPool", "MeanVarianceNormalization", "LRN", "Det"},
		"exponentials leave float16's range":                   {"Exp", "ReduceLogSum", "ReduceLogSumExp", "Sinh", "Cosh"},
		"running sums lose what is added":                      {"CumSum"},
		"its state accumulates rounding errors":                {"LSTM", "GRU", "RNN"},
		"angles need more than eleven bits":                    {"Sin", "Cos", "Tan"},
		"coordinates need more than eleven bits":               {"RoiAlign", "MaxRoiPool", "GridSample", "AffineGrid", "Range", "DeformConv", "ImageDecoder"},
		"spectra span more than float16's range":               {"DFT", "STFT", "MelWeightMatrix", "BlackmanWindow", "HammingWindow", "HannWindow"},
		"ONNX Runtime makes no float16 without a narrow input": {"EyeLike", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial"},
		"its subgraph or sequence keeps its types":             {"SequenceMap", "Scan", "Optional", "OptionalGetElement", "OptionalHasElement"},
	} {
		for _, op := range ops {
			all[op] = why
		}
	}
	return all
}()

// coded are the operators that quantize or dequantize.
var coded = map[string]bool{"QuantizeLinear": true, "DequantizeLinear": true, "QLinearConv": true, "QLinearMatMul": true}

const isCoded = "it is quantized already"

// heavy are the operators that compute in the narrow type for any input types; all others follow their inputs.
var heavy = map[string]bool{
	"Attention": true, "CausalConvWithState": true, "Conv": true, "ConvTranspose": true, "DeformConv": true, "Einsum": true, "FlexAttention": true,
	"Gemm": true, "LinearAttention": true, "MatMul": true,
}

// smallFactor is the maximum number of elements of a constant whose product with exact integers, such as positions or sizes,
// stays float32: frequencies of rotary embeddings.
const smallFactor = 1024
