package opset

// A rewrite turns a draft of the version before into one of the version it is listed
// for. It returns a reason where it cannot.
type rewrite func(*draft) error

// A rule is what one or more operators need at one version. Versions without a rule
// need nothing: they add types, or attributes and inputs whose defaults keep the
// meaning. Every version whose schema breaks with the one before has a rule, and so
// have those that changed their meaning alone.
type rule struct {
	to  int64
	ops []string
	do  rewrite
	why string // where do is nil: why nothing has to be done
}

var (
	arithmetic = []string{"Add", "Sub", "Mul", "Div"}
	compared   = []string{"And", "Or", "Xor", "Equal", "Greater", "Less", "Pow"}
	coerced    = []string{"Softmax", "LogSoftmax", "Hardmax"}
	recurrents = []string{"RNN", "GRU", "LSTM"}
	reductions = []string{"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
		"ReduceMin", "ReduceProd", "ReduceSumSquare"}
	inPlace = []string{
		"Abs", "Add", "Sub", "Mul", "Div", "BatchNormalization", "Ceil", "Clip", "Dropout", "Elu", "Exp", "Floor",
		"HardSigmoid", "InstanceNormalization", "LeakyRelu", "Log", "Max", "Mean", "Min", "Neg", "PRelu", "Reciprocal",
		"Relu", "Selu", "Sigmoid", "Sqrt", "Sum", "Tanh",
	}
)

// rules are in the order of their versions. An operator may have several at one
// version; they apply in this order.
var rules = []rule{
	{to: 2, ops: []string{"GlobalLpPool", "LpPool"}, do: wholeP},
	{to: 2, ops: []string{"Pad"}, do: renameAttr("paddings", "pads")},
	{to: 2, ops: []string{"Split"}, do: noSplitInput},
	{to: 3, ops: []string{"GRU"}, why: "the misspelled default of direction was never valid; outputs became optional"},
	{to: 4, ops: []string{"Concat"}, do: explicitAxis},
	{to: 5, ops: []string{"Reshape"}, do: reshapeInput},
	{to: 6, ops: inPlace, do: dropAttr("consumed_inputs")},
	{to: 6, ops: []string{"Selu"}, do: seluDefaults},
	{to: 6, ops: []string{"Cast"}, do: castNumber},
	{to: 6, ops: []string{"Tile"}, do: refuse("tiles and axis were two inputs")},
	{to: 7, ops: arithmetic, do: numpyBroadcast},
	{to: 7, ops: compared, do: numpyBroadcast},
	{to: 7, ops: []string{"Gemm"}, do: dropAttr("broadcast")},
	{to: 7, ops: []string{"PRelu"}, do: slopeByChannel},
	{to: 7, ops: []string{"BatchNormalization", "Dropout"}, do: inferenceOnly},
	{to: 7, ops: recurrents, do: dropAttr("output_sequence")},
	{to: 7, ops: []string{"Upsample"}, do: upsampleScales},
	{to: 9, ops: []string{"BatchNormalization"}, do: spatialOnly},
	{to: 9, ops: []string{"Scan"}, do: refuse("its batch axis and sequence lengths are gone")},
	{to: 9, ops: []string{"Upsample"}, do: scalesInput},
	{to: 10, ops: []string{"Dropout"}, do: noMask},
	{to: 10, ops: []string{"Slice"}, do: sliceInputs},
	{to: 10, ops: []string{"TopK"}, do: topKInput},
	{to: 10, ops: []string{"Upsample"}, do: toResize},
	{to: 11, ops: []string{"Clip"}, do: clipInputs},
	{to: 11, ops: []string{"Pad"}, do: padInputs},
	{to: 11, ops: []string{"Resize"}, do: resizeInputs},
	{to: 11, ops: []string{"Scatter"}, do: renameOp("ScatterElements")},
	{to: 12, ops: []string{"Dropout"}, do: dropoutRatio},
	{to: 12, ops: []string{"Dropout"}, do: noMask},
	{to: 13, ops: coerced, do: uncoerce},
	{to: 13, ops: []string{"Erf"}, do: floatOnly},
	{to: 13, ops: []string{"ReduceSum", "Squeeze", "Unsqueeze"}, do: axesInput},
	{to: 13, ops: []string{"Resize"}, do: oneOfScalesSizes},
	{to: 13, ops: []string{"Resize"}, do: halfPixel},
	{to: 13, ops: []string{"Split"}, do: splitInput},
	{to: 14, ops: []string{"BatchNormalization"}, do: oneOutput},
	{to: 16, ops: []string{"RoiAlign"}, do: roiUnshifted},
	{to: 18, ops: reductions, do: axesInput},
	{to: 18, ops: []string{"Split"}, do: splitCount},
	{to: 20, ops: []string{"DFT"}, do: dftAxis},
	{to: 20, ops: []string{"GridSample"}, do: gridModes},
	{to: 21, ops: []string{"GroupNormalization"}, do: perChannel},
	{to: 22, ops: []string{"AveragePool", "MaxPool"}, do: windowsInside},
	{to: 28, ops: []string{"ReduceLogSum", "ReduceLogSumExp"}, do: floatOnly},
}

// index makes rules a table; several of one step run one after another.
func index(rules []rule) map[step]rewrite {
	table := map[step]rewrite{}
	for _, r := range rules {
		if r.do == nil {
			continue
		}
		for _, op := range r.ops {
			at := step{op, r.to}
			table[at] = then(table[at], r.do)
		}
	}
	return table
}

func then(first, second rewrite) rewrite {
	if first == nil {
		return second
	}
	return func(d *draft) error {
		if err := first(d); err != nil {
			return err
		}
		return second(d)
	}
}

func refuse(why string) rewrite {
	return func(*draft) error { return reason(why) }
}

func renameOp(op string) rewrite {
	return func(d *draft) error {
		d.rename(op)
		return nil
	}
}

func dropAttr(name string) rewrite {
	return func(d *draft) error {
		d.drop(name)
		return nil
	}
}

// renameAttr keeps the value, and a function's parameter as well.
func renameAttr(from, to string) rewrite {
	return func(d *draft) error {
		i := d.index(from)
		if i < 0 {
			return nil
		}
		a := *d.attrs[i]
		a.Name, a.Extra = to, nil
		d.drop(from)
		d.set(&a)
		return nil
	}
}
