package operator

// Precision is how an operator behaves in float16 and bfloat16, as in lists of automatic mixed precision (autocast).
type Precision uint8

// The classes. Those after LowPrecision require float32.
const (
	InputPrecision Precision = iota // works in the type of its inputs
	LowPrecision                    // sums of products, which runtimes accumulate in float32: 16 bits are enough
	Powers                          // powers, and sums of them, exceed the range of float16
	Exponentials                    // exceed the range of float16
	RunningSums                     // small terms are lost in a large sum
	RecurrentState                  // rounding errors accumulate from step to step
	Angles                          // of large arguments need more than 11 bits
	Coordinates                     // need more than 11 bits
	Spectra                         // span more than the range of float16
)

// RequiresFloat32 reports whether 16 bits are not enough.
func (p Precision) RequiresFloat32() bool { return p > LowPrecision }

var precisions = map[Precision][]string{
	LowPrecision: {
		"Attention", "CausalConvWithState", "Conv", "ConvTranspose", "Einsum", "Gemm", "LinearAttention", "MatMul",
		"com.microsoft.Attention", "com.microsoft.FusedConv", "com.microsoft.FusedGemm", "com.microsoft.FusedMatMul",
		"com.microsoft.GroupQueryAttention", "com.microsoft.MoE", "com.microsoft.MultiHeadAttention",
	},
	Powers: {
		"CumProd", "Det", "GlobalLpPool", "LRN", "LpNormalization", "LpPool", "MeanVarianceNormalization", "Pow", "ReduceL1",
		"ReduceL2", "ReduceProd", "ReduceSum", "ReduceSumSquare",
	},
	Exponentials:   {"Cosh", "Exp", "ReduceLogSum", "ReduceLogSumExp", "Sinh"},
	RunningSums:    {"CumSum"},
	RecurrentState: {"GRU", "LSTM", "RNN"},
	Angles:         {"Cos", "Sin", "Tan"},
	Coordinates:    {"AffineGrid", "DeformConv", "GridSample", "ImageDecoder", "MaxRoiPool", "Range", "RoiAlign"},
	Spectra:        {"BlackmanWindow", "DFT", "HammingWindow", "HannWindow", "MelWeightMatrix", "STFT"},
}
