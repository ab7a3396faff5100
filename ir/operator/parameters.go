package operator

// param is an input with a role and no axes.
func param(index int, r Role) Input { return Input{Index: index, Role: r} }

// quantized is in with its scales, zero points and the like at other inputs.
func quantized(in Input, params ...int) Input {
	in.Quantized, in.Params = true, params
	return in
}

func leftMatrix(index int) Input  { return Input{Index: index, Role: Matrix, axes: left} }
func rightMatrix(index int) Input { return Input{Index: index, Role: Matrix, axes: right} }
func filters(index int) Input     { return Input{Index: index, Role: Filter, axes: filter} }
func gates(index int) Input       { return Input{Index: index, Role: Gates, axes: lastSummed} }
func experts(index int) Input     { return Input{Index: index, Role: Matrix, axes: lastSummed} }
func rows(index int) Input        { return Input{Index: index, Role: Table, axes: table} }

// gateColumns are gates as the columns of a matrix, those of com.microsoft's DynamicQuantizeLSTM.
func gateColumns(index int) Input { return Input{Index: index, Role: Gates, axes: right} }

// parameters are the inputs that hold parameters, by operator: the operator's type in ai.onnx, else domain and type.
// Sources: docs/Operators.md of ONNX, docs/ContribOperators.md of ONNX Runtime. SimplifiedLayerNormalization is
// ONNX Runtime's although models import it from ai.onnx.
var parameters = map[string][]Input{
	"Conv":          {filters(1), param(2, Bias)},
	"ConvTranspose": {{Index: 1, Role: Filter, axes: transposedFilter}, param(2, Bias)},
	"DeformConv":    {filters(1), param(3, Bias)},
	"Gather":        {rows(0)},
	"Gemm":          {leftMatrix(0), rightMatrix(1), param(2, Bias)},
	"GRU":           {gates(1), gates(2), param(3, Bias)},
	"LSTM":          {gates(1), gates(2), param(3, Bias), param(7, Slope)},
	"MatMul":        {leftMatrix(0), rightMatrix(1)},
	"RNN":           {gates(1), gates(2), param(3, Bias)},

	"BatchNormalization":           {param(1, Gain), param(2, Shift), param(3, Statistic), param(4, Statistic)},
	"GroupNormalization":           {param(1, Gain), param(2, Shift)},
	"InstanceNormalization":        {param(1, Gain), param(2, Shift)},
	"LayerNormalization":           {param(1, Gain), param(2, Shift)},
	"RMSNormalization":             {param(1, Gain)},
	"SimplifiedLayerNormalization": {param(1, Gain)},
	"PRelu":                        {param(1, Slope)},

	"ConvInteger":      {quantized(filters(1), 3)},
	"DequantizeLinear": {quantized(param(0, Data), 1, 2)},
	"MatMulInteger":    {quantized(leftMatrix(0), 2), quantized(rightMatrix(1), 3)},
	"QLinearConv":      {quantized(filters(3), 4, 5), param(8, Bias)},
	"QLinearMatMul":    {quantized(leftMatrix(0), 1, 2), quantized(rightMatrix(3), 4, 5)},
	"QuantizeLinear":   {param(1, Setting), param(2, Setting)},

	"Clip":            {param(1, Setting), param(2, Setting)},
	"ConstantOfShape": {param(0, Setting)},
	"Dropout":         {param(1, Setting)},
	"OneHot":          {param(2, Setting)},
	"Pad":             {param(2, Setting)},
	"Pow":             {param(1, Setting)},
	"Range":           {param(0, Setting), param(1, Setting), param(2, Setting)},
	"Resize":          {param(1, Setting), param(2, Setting)},
	"Upsample":        {param(1, Setting)},

	"mcompress.BatchNormTrain":     {param(1, Gain), param(2, Shift), param(3, Statistic), param(4, Statistic)},
	"mcompress.BatchNormPoolTrain": {param(1, Gain), param(2, Shift), param(3, Statistic), param(4, Statistic)},

	"com.microsoft.Attention":        {rightMatrix(1), param(2, Bias)},
	"com.microsoft.BiasGelu":         {param(1, InputBias)},
	"com.microsoft.DequantizeLinear": {quantized(param(0, Data), 1, 2)},
	"com.microsoft.DynamicQuantizeLSTM": {quantized(gateColumns(1), 8, 9), quantized(gateColumns(2), 10, 11),
		param(3, Bias), param(7, Slope)},
	"com.microsoft.DynamicQuantizeMatMul":   {quantized(rightMatrix(1), 2, 3), param(4, Bias)},
	"com.microsoft.EmbedLayerNormalization": {rows(2), rows(3), rows(4), param(5, Gain), param(6, Shift)},
	"com.microsoft.FastGelu":                {param(1, InputBias)},
	"com.microsoft.FusedConv":               {filters(1), param(2, Bias)},
	"com.microsoft.FusedGemm":               {leftMatrix(0), rightMatrix(1), param(2, Bias)},
	"com.microsoft.FusedMatMul":             {leftMatrix(0), rightMatrix(1)},
	"com.microsoft.GatherBlockQuantized":    {quantized(rows(0), 2, 3)},
	"com.microsoft.MatMulBnb4":              {quantized(param(1, Matrix), 2)},
	"com.microsoft.MatMulIntegerToFloat": {quantized(leftMatrix(0), 2, 4), quantized(rightMatrix(1), 3, 5),
		param(6, Bias)},
	"com.microsoft.MatMulNBits": {quantized(Input{Index: 1, Role: Matrix, axes: blocks}, 2, 3, 4),
		param(5, Bias)},
	"com.microsoft.MoE": {experts(2), param(3, Bias), experts(4), param(5, Bias), experts(6),
		param(7, Bias)},
	"com.microsoft.QAttention": {quantized(rightMatrix(1), 4, 7), param(2, Bias)},
	"com.microsoft.QEmbedLayerNormalization": {quantized(rows(2), 8, 13), quantized(rows(3), 9, 14),
		quantized(rows(4), 10, 15), quantized(param(5, Gain), 11, 16), quantized(param(6, Shift), 12, 17)},
	"com.microsoft.QGemm": {quantized(leftMatrix(0), 1, 2), quantized(rightMatrix(3), 4, 5),
		param(6, Bias)},
	"com.microsoft.QMoE": {quantized(experts(2), 3, 11, 15), param(4, Bias),
		quantized(experts(5), 6, 12, 16), param(7, Bias), quantized(experts(8), 9, 13), param(10, Bias)},
	"com.microsoft.QuantizeLinear":                   {param(1, Setting), param(2, Setting)},
	"com.microsoft.SimplifiedLayerNormalization":     {param(1, Gain)},
	"com.microsoft.SkipLayerNormalization":           {param(2, Gain), param(3, Shift), param(4, InputBias)},
	"com.microsoft.SkipSimplifiedLayerNormalization": {param(2, Gain), param(3, InputBias)},
}

// indexing are the operators whose inputs hold positions along one axis of another input.
var indexing = map[string][]Indexing{
	"Gather":          {{Indices: 1, Table: 0}},
	"GatherElements":  {{Indices: 1, Table: 0}},
	"ScatterElements": {{Indices: 1, Table: 0}},

	"com.microsoft.EmbedLayerNormalization":  {{Indices: 0, Table: 2}, {Indices: 1, Table: 4}, {Indices: 8, Table: 3}},
	"com.microsoft.GatherBlockQuantized":     {{Indices: 1, Table: 0}},
	"com.microsoft.QEmbedLayerNormalization": {{Indices: 0, Table: 2}, {Indices: 1, Table: 4}},
}

// states are the caches of past keys and values, with the outputs of the present ones.
var states = map[string][]State{
	"Attention":                         {{Input: 4, Output: 1, Axis: 2}, {Input: 5, Output: 2, Axis: 2}},
	"com.microsoft.Attention":           {{Input: 4, Output: 1, Axis: 3}},
	"com.microsoft.GroupQueryAttention": {{Input: 3, Output: 1, Axis: 2}, {Input: 4, Output: 2, Axis: 2}},
	"com.microsoft.MultiHeadAttention":  {{Input: 6, Output: 1, Axis: 2}, {Input: 7, Output: 2, Axis: 2}},
}

// attentionInputs are the inputs of attention operators besides queries, keys, values and caches.
var attentionInputs = map[string]struct {
	masks, rotary  []int
	total, lengths int
}{
	"Attention":                         {masks: []int{3}},
	"com.microsoft.GroupQueryAttention": {masks: []int{10}, rotary: []int{7, 8}, total: 6, lengths: 5},
	"com.microsoft.MultiHeadAttention":  {masks: []int{4, 5}},
}

// sums are the normalizations of sums. Outputs without use may be absent.
var sums = map[string]*Sum{
	"com.microsoft.EmbedLayerNormalization":          {Output: 2, Normalization: "LayerNormalization"},
	"com.microsoft.SkipLayerNormalization":           {Output: 3, Normalization: "LayerNormalization"},
	"com.microsoft.SkipSimplifiedLayerNormalization": {Output: 3, Normalization: "SimplifiedLayerNormalization"},
}
