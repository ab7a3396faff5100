package pass

// A Code is the kind of a reason. Groups describes each one, package report has its text.
type Code string

// Codes of weights that the selection excludes, and of constants that no node uses as a weight.
const (
	NotSelected Code = "not-selected"
	Deselected  Code = "deselected"
	Small       Code = "small"
	NotChosen   Code = "not-chosen"
	Unused      Code = "unused"
	GraphOutput Code = "graph-output"
	NoWeight    Code = "no-weight"
)

// Codes of weights whose use, form or values a method does not support.
const (
	Unsupported    Code = "unsupported"
	Bias           Code = "bias"
	Embedding      Code = "embedding"
	TwoConsts      Code = "two-constants"
	Argument       Code = "function-argument"
	Ambiguous      Code = "ambiguous-name"
	Shared         Code = "other-consumer"
	Overridable    Code = "graph-input"
	DType          Code = "data-type"
	Opset          Code = "opset"
	Shape          Code = "shape"
	NotFinite      Code = "not-finite"
	NotRepresented Code = "not-representable"
	Already        Code = "already-quantized"
	StoredSparse   Code = "stored-sparse"
	StoredDense    Code = "stored-dense"
)

// Codes of weights and models that a method does not improve.
const (
	Larger       Code = "larger"
	FileLarger   Code = "file-larger"
	NoSparseForm Code = "no-sparse-form"
	RoundsToZero Code = "rounds-to-zero"
	ChannelsKept Code = "channels-kept"
	BlockKept    Code = "block-kept"
	NotFactored  Code = "not-factored"
	NotFolded    Code = "not-folded"
	NotScaled    Code = "not-scaled"
	Channels     Code = "channels"
	Balanced     Code = "balanced"
	NoGain       Code = "no-gain"
	NotObserved  Code = "not-observed"
)

// Codes of changes.
const (
	Pruned         Code = "pruned"
	BlockRemoved   Code = "block-removed"
	Factored       Code = "factored"
	SparseForm     Code = "sparse-form"
	Expanded       Code = "expanded"
	Equalized      Code = "equalized"
	Smoothed       Code = "smoothed"
	AbsorbedScale  Code = "absorbed-scale"
	FoldedIn       Code = "folded-in"
	FoldedAway     Code = "folded-away"
	BiasCorrected  Code = "bias-corrected"
	Clamped        Code = "clamped"
	Symmetric      Code = "symmetric"
	Unsigned       Code = "uint8"
	RoundToNearest Code = "round-to-nearest"
	WasInput       Code = "was-graph-input"
)

// Codes of run time and of computation in float.
const (
	ComputedInFloat      Code = "computed-in-float"
	NoKernel             Code = "no-kernel"
	FloatZeroPoints      Code = "float-zero-points"
	StoredTwice          Code = "stored-twice"
	DenseAtRunTime       Code = "dense-at-run-time"
	RandomCalibration    Code = "random-calibration"
	RangesUnknown        Code = "ranges-unknown"
	ActivationRange      Code = "activation-range"
	ActivationOutOfRange Code = "activation-out-of-range"
	IRRaised             Code = "ir-version-raised"
	OpsetRaised          Code = "opset-raised"
)

// Codes of the comparison of two files without a ledger.
const (
	Identical Code = "unchanged"
	Unmatched Code = "unmatched"
)
