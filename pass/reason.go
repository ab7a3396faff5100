package pass

// A Reason is why a weight was skipped, or a note about it, as data. Package report makes sentences of reasons.
type Reason struct {
	Code   Code
	Node   string // the node that it is about, as Labels names it
	Detail string // figures and names, such as "64 bytes → 80 bytes"
}

// A Code is the kind of a reason.
type Code string

// The codes. Package report has the sentence of each, and docs/report-schema.json lists them.
const (
	// The selection excludes the weight.
	NotSelected Code = "not-selected" // --only
	Deselected  Code = "deselected"   // --skip
	Small       Code = "small"        // --min-size
	NotChosen   Code = "not-chosen"   // a search chose the methods, and not this one for the weight

	// Nothing uses the weight as one.
	Unused      Code = "unused"
	GraphOutput Code = "graph-output"

	// The method does not support the use of the weight.
	Unsupported Code = "unsupported" // Node is its consumer, Detail the input
	Bias        Code = "bias"        // of Node, kept in float
	TwoConsts   Code = "two-constants"
	Argument    Code = "function-argument" // of Node, which calls a function of the model
	Ambiguous   Code = "ambiguous-name"
	Shared      Code = "other-consumer" // Node needs the float weight
	NoWeight    Code = "no-weight"      // its data type is Detail
	DType       Code = "data-type"
	Opset       Code = "opset"
	Shape       Code = "shape"

	// The method does not help, or the values of the weight rule it out.
	Larger     Code = "larger"      // it would grow
	FileLarger Code = "file-larger" // the file would not become smaller
	NotFinite  Code = "not-finite"
	Already    Code = "already-quantized"
	Identical  Code = "unchanged" // the same in both models

	// The form of the weight, the model or the options rule it out.
	Overridable    Code = "graph-input"       // callers may replace it
	Embedding      Code = "embedding"         // of Node
	StoredSparse   Code = "stored-sparse"     // in a sparse form already
	StoredDense    Code = "stored-dense"      // in no sparse form
	NoSparseForm   Code = "no-sparse-form"    // no sparse form is smaller
	RoundsToZero   Code = "rounds-to-zero"    // of --amount
	NotRepresented Code = "not-representable" // by the scales or the range of the data type
	ChannelsKept   Code = "channels-kept"     // all of them
	BlockKept      Code = "block-kept"        // or the weight is in no block
	NotFactored    Code = "not-factored"      // into two factors
	NotFolded      Code = "not-folded"        // Node, a normalization
	NotScaled      Code = "not-scaled"        // no inputs of products can be scaled

	// Channels of layers that are scaled, folded or corrected.
	Equalized     Code = "equalized"
	Smoothed      Code = "smoothed"
	AbsorbedScale Code = "absorbed-scale" // the inverse of the scale of its consumers' inputs
	FoldedIn      Code = "folded-in"      // scaled by an operator folded into its layer
	FoldedAway    Code = "folded-away"
	BiasCorrected Code = "bias-corrected"
	Balanced      Code = "balanced"
	NoGain        Code = "no-gain"
	NotObserved   Code = "not-observed" // no calibration sample computes its input
	Channels      Code = "channels"     // Node, a consumer of its channels, does not allow scaling them

	// The result.
	Pruned               Code = "pruned" // elements, channels or N:M groups
	BlockRemoved         Code = "block-removed"
	Factored             Code = "factored"
	SparseForm           Code = "sparse-form"       // the smallest
	Expanded             Code = "expanded"          // from a sparse form
	ComputedInFloat      Code = "computed-in-float" // Node, or several
	NoKernel             Code = "no-kernel"         // for the data type
	Clamped              Code = "clamped"
	RangesUnknown        Code = "ranges-unknown"   // of activations
	ActivationRange      Code = "activation-range" // the largest
	ActivationOutOfRange Code = "activation-out-of-range"
	Symmetric            Code = "symmetric"
	Unsigned             Code = "uint8"
	RoundToNearest       Code = "round-to-nearest"
	FloatZeroPoints      Code = "float-zero-points"
	StoredTwice          Code = "stored-twice"
	DenseAtRunTime       Code = "dense-at-run-time"

	// Notes on changed weights and on the model.
	IRRaised          Code = "ir-version-raised"
	OpsetRaised       Code = "opset-raised"
	WasInput          Code = "was-graph-input"
	RandomCalibration Code = "random-calibration"
	Unmatched         Code = "unmatched" // two files of unknown history

	// Other is a reason whose text is its Detail.
	Other Code = "other"
)

// Codes are all codes.
func Codes() []Code {
	return []Code{
		NotSelected, Deselected, Small, NotChosen,
		Unused, GraphOutput,
		Unsupported, Bias, TwoConsts, Argument, Ambiguous, Shared, NoWeight, DType, Opset, Shape,
		Larger, FileLarger, NotFinite, Already, Identical,
		Overridable, Embedding, StoredSparse, StoredDense, NoSparseForm, RoundsToZero, NotRepresented, ChannelsKept, BlockKept, NotFactored, NotFolded, NotScaled,
		Equalized, Smoothed, AbsorbedScale, FoldedIn, FoldedAway, BiasCorrected, Balanced, NoGain, NotObserved, Channels,
		Pruned, BlockRemoved, Factored, SparseForm, Expanded, ComputedInFloat, NoKernel, Clamped, RangesUnknown, ActivationRange, ActivationOutOfRange, Symmetric, Unsigned, RoundToNearest, FloatZeroPoints, StoredTwice, DenseAtRunTime,
		IRRaised, OpsetRaised, WasInput, RandomCalibration, Unmatched,
		Other,
	}
}

// None reports whether there is no reason.
func (r Reason) None() bool { return r == Reason{} }

// Notes are the given reasons without empty ones.
func Notes(reasons ...Reason) []Reason {
	var notes []Reason
	for _, r := range reasons {
		if !r.None() {
			notes = append(notes, r)
		}
	}
	return notes
}
