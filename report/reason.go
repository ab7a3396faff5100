package report

import (
	"strings"

	"github.com/mcompress/mcompress/pass"
)

// A Reason is why a weight was skipped, or a note about it.
type Reason struct {
	Code     pass.Code `json:"code"`
	Operator string    `json:"operator,omitempty"` // of the node that it is about
	Node     string    `json:"node,omitempty"`     // its name, if it has one
	Detail   string    `json:"detail,omitempty"`   // figures and names
}

// A Note is a remark of a step about a weight.
type Note struct {
	Method string `json:"method"`
	Reason
}

// sentences are the texts of codes; {node} is the node of the reason. docs/reasons.md lists them.
var sentences = map[pass.Code]string{
	pass.NotSelected: "not selected by --only",
	pass.Deselected:  "excluded by --skip",
	pass.Small:       "below --min-size",
	pass.NotChosen:   "not chosen for this method by the search",

	pass.Unused:      "not used by any node",
	pass.GraphOutput: "used as a graph output",

	pass.Unsupported:      "not supported: weight of {node}",
	pass.Bias:             "bias of {node}, kept in float",
	pass.TwoConsts:        "{node} multiplies two constants",
	pass.Argument:         "argument of {node}, a function of the model, in which it is not a constant",
	pass.Ambiguous:        "two values have its name",
	pass.Shared:           "{node} needs the float weight",
	pass.View:             "not supported through {node}",
	pass.CallerAttribute:  "attribute of {node} set by the caller of its function",
	pass.SeveralConsumers: "several consumers",

	pass.NoLayer:        "not folded, no adjacent layer with a constant weight",
	pass.LayerSelected:  "adjacent layer not selected",
	pass.FoldOutput:     "not folded, output of {node} has other consumers",
	pass.FoldChannels:   "not folded, channels other than those of {node}",
	pass.FoldPadding:    "not folded, {node} pads with zeros",
	pass.FoldTraining:   "not folded, {node} is in training mode",
	pass.FoldParameters: "not folded, parameters of {node} not supported",

	pass.ChannelsOperator: "channels not pruned, not followed through {node}",
	pass.ChannelsAxis:     "channels not pruned, axis not supported at {node}",
	pass.ChannelsUnknown:  "channels not pruned, unknown at {node}",
	pass.ChannelsConstant: "channels not pruned, constant of {node} not supported",
	pass.ChannelsShared:   "channels not pruned, other use at {node}",
	pass.ChannelsOutput:   "channels of a graph output",
	pass.ChannelsSubgraph: "channels not pruned, used in a subgraph by {node}",
	pass.ChannelsSelected: "channels shared with a weight that is not selected",
	pass.ChannelsInput:    "channels of a graph input",
	pass.ChannelsKind:     "channels of another kind",
	pass.NoWeight:         "not a weight",
	pass.DType:            "data type not supported",
	pass.Opset:            "opset not supported",
	pass.Shape:            "shape not supported",

	pass.Larger:     "would become larger",
	pass.FileLarger: "the file would not become smaller",
	pass.NotFinite:  "values not finite",
	pass.Already:    "already quantized",
	pass.Identical:  "the same in both models",

	pass.Overridable:      "graph input, replaceable by callers",
	pass.Embedding:        "embedding of {node}, pruned with --embeddings",
	pass.StoredSparse:     "already stored sparse",
	pass.StoredDense:      "already stored dense",
	pass.NoSparseForm:     "no smaller sparse form",
	pass.RoundsToZero:     "--amount rounds to 0",
	pass.ChannelsTarget:   "channels kept, the target is reached without",
	pass.ChannelsLarger:   "channels kept, others of their group are smaller",
	pass.NotRepresented:   "values not representable",
	pass.NoScale:          "no scale of normal float size",
	pass.NotConverged:     "eigenvalues do not converge",
	pass.LayerKept:        "weight of a kept layer, or of no repeated layer",
	pass.NoRepeatedLayers: "no repeated layers",
	pass.AlreadyFactored:  "already one of two factors",
	pass.NotScaled:        "inputs of products not scaled by their producers",

	pass.Equalized:     "channels equalized with the adjacent layers",
	pass.Smoothed:      "channels scaled by SmoothQuant",
	pass.AbsorbedScale: "divided by the scale of its consumers' weights",
	pass.FoldedIn:      "scaled by an operator folded into its layer",
	pass.FoldedAway:    "folded into the adjacent layer",
	pass.BiasCorrected: "mean quantization error of the weight subtracted",
	pass.Balanced:      "channels balanced already",
	pass.NoGain:        "no gain",
	pass.NotImproved:   "not improved by training, kept as before",
	pass.NotObserved:   "no calibration sample computes its input",
	pass.Inputs:        "not adapted to its inputs, as calibration gives no statistics of them",
	pass.Channels:      "channels cannot be scaled at {node}",

	pass.Pruned:               "pruned",
	pass.LayerRemoved:         "weight of a removed layer",
	pass.Factored:             "two factors",
	pass.SparseForm:           "sparsity",
	pass.Expanded:             "expanded to a dense weight",
	pass.FloatRange:           "{node} computed in float32 for its range",
	pass.FloatPrecision:       "{node} computed in float32 for its precision",
	pass.FloatTypes:           "{node} computed in float32, the only data type of the operator",
	pass.FloatOperator:        "{node} computed in float32, not an operator of ONNX",
	pass.FloatFunction:        "{node} computed in float32 in a function",
	pass.FloatQuantized:       "{node} computed with quantized values",
	pass.FloatSelected:        "{node} computed in float32 by selection",
	pass.FloatWeight:          "{node} computed in float, values of a weight not representable",
	pass.FloatNotFinite:       "{node} computed in float, NaN or infinities",
	pass.FloatActivation:      "{node} computed in float32, activations out of range",
	pass.FloatNotObserved:     "{node} computed in float, activation not observed",
	pass.FloatNoScale:         "{node} computed in float, no scale for an activation",
	pass.FloatSQNR:            "{node} computed in float, low activation SQNR",
	pass.NoKernel:             "no kernel in ONNX Runtime",
	pass.Clamped:              "values clamped to the range of the data type",
	pass.DeadChannels:         "channels or blocks too small for a scale, stored as zeros",
	pass.RangesUnknown:        "activation ranges not measured; use --data",
	pass.ActivationRange:      "largest activation",
	pass.ActivationOutOfRange: "activation out of range, kept in float32",
	pass.Symmetric:            "symmetric, zero points not supported by its consumers",
	pass.Unsigned:             "uint8, left operand of a product or weight of several products",
	pass.GPTQConsumers:        "round to nearest, several products",
	pass.GPTQLayout:           "round to nearest, layout not supported by GPTQ",
	pass.AWQUnscaled:          "AWQ scaled no weight, the result is that of --algo rtn",
	pass.NearestChosen:        "round to nearest, chosen by the output SQNR on random inputs",
	pass.GPTQScope:            "round to nearest, in a subgraph or function",
	pass.GPTQInputs:           "round to nearest because of its inputs",
	pass.FloatZeroPoints:      "float zero points, dequantized in every run",
	pass.StoredTwice:          "stored twice at run time, as the lookup requires one byte per value",
	pass.DenseAtRunTime:       "dense at run time",

	pass.IRRaised:       "IR version raised, initializers are no longer graph inputs",
	pass.IRLowered:      "IR version lowered for the target",
	pass.OpsetNotRaised: "opset not raised because of {node}",
	pass.OpsetRaised:    "opset raised",
	pass.WasInput:       "no longer a graph input, as callers cannot replace it",

	pass.SlowerThanFloat:   "slower than float",
	pass.RandomCalibration: "calibrated on random inputs; use --data for real ones",
	pass.ChannelsMoved:     "axes of images transposed",

	pass.Unmatched: "no tensor of the result matches it",
}

func reasonOf(r pass.Reason) Reason { return Reason{r.Code, r.Operator, r.Node, r.Detail} }

// None reports whether there is no reason.
func (r Reason) None() bool { return r == Reason{} }

// String is the sentence with node and detail; empty for no reason.
func (r Reason) String() string {
	text := strings.ReplaceAll(sentences[r.Code], "{node}", strings.TrimSpace(r.Operator+" "+r.Node))
	if r.Detail == "" {
		return text
	}
	return text + ": " + r.Detail
}

// General is r without the name of the node and figures, which differ by weight; reasons with equal results are of one
// kind. A limit of sizes and a data type are the same for many weights.
func (r Reason) General() Reason {
	g := Reason{Code: r.Code, Operator: r.Operator}
	if r.Code == pass.Small || r.Code == pass.DType {
		g.Detail = r.Detail
	}
	return g
}

// Remarks are the notes of all steps as text, each once.
func (w Weight) Remarks() string {
	var texts []string
	for _, n := range w.Notes {
		text := n.String()
		if len(w.Methods) > 1 || len(w.Methods) == 1 && n.Method != w.Methods[0] {
			text = n.Method + ": " + text
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}

// remarks are those of one row.
func (r Row) remarks() string {
	texts := make([]string, len(r.Notes))
	for i, n := range r.Notes {
		texts[i] = n.String()
	}
	return strings.Join(texts, "; ")
}

// Why is the reason of the row, or the notes about its change, as text.
func (r Row) Why() string {
	if !r.Reason.None() {
		return r.Reason.String()
	}
	return r.remarks()
}

// explain sets the reason why no step changed a weight, and the notes of the steps.
func (c *chain) explain(w *Weight, o *root) {
	for _, i := range o.all {
		r := c.rows[i]
		reason := reasonOf(r.Reason)
		switch {
		case reason.None() || reason == w.Reason:
		case !w.Changed && w.Reason.None():
			w.Reason = reason
		default:
			w.note(r.Method, reason)
		}
		for _, n := range r.Notes {
			w.note(r.Method, reasonOf(n))
		}
	}
}

// note adds a note unless it is there already.
func (w *Weight) note(method string, r Reason) {
	for _, n := range w.Notes {
		if n.Reason == r {
			return
		}
	}
	w.Notes = append(w.Notes, Note{method, r})
}

// Why is the reason of a row of a pass, or the notes about its change, as text.
func Why(r pass.Row) string {
	row := Row{Reason: reasonOf(r.Reason)}
	for _, n := range r.Notes {
		row.Notes = append(row.Notes, reasonOf(n))
	}
	return row.Why()
}
