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
	Unsupported      Code = "unsupported"
	Bias             Code = "bias"
	Embedding        Code = "embedding"
	TwoConsts        Code = "two-constants"
	Argument         Code = "function-argument"
	Ambiguous        Code = "ambiguous-name"
	View             Code = "view"
	CallerAttribute  Code = "caller-attribute"
	SeveralConsumers Code = "several-consumers"
	Shared           Code = "other-consumer"
	Overridable      Code = "graph-input"
	DType            Code = "data-type"
	Opset            Code = "opset"
	Shape            Code = "shape"
	NotFinite        Code = "not-finite"
	NotRepresented   Code = "not-representable"
	NoScale          Code = "no-scale"
	NotConverged     Code = "not-converged"
	Already          Code = "already-quantized"
	StoredSparse     Code = "stored-sparse"
	StoredDense      Code = "stored-dense"
)

// Codes of weights and models that a method does not improve.
const (
	Larger           Code = "larger"
	FileLarger       Code = "file-larger"
	NoSparseForm     Code = "no-sparse-form"
	RoundsToZero     Code = "rounds-to-zero"
	ChannelsLarger   Code = "channels-larger"
	ChannelsTarget   Code = "channels-target"
	LayerKept        Code = "layer-kept"
	NoRepeatedLayers Code = "no-repeated-layers"
	AlreadyFactored  Code = "already-factored"
	NotScaled        Code = "not-scaled"
	Channels         Code = "channels"
	Balanced         Code = "balanced"
	NoGain           Code = "no-gain"
	NotObserved      Code = "not-observed"
	Inputs           Code = "inputs"
	NotImproved      Code = "not-improved"
)

// Codes of normalizations and layers that are not folded or scaled.
const (
	NoLayer        Code = "no-layer"
	LayerSelected  Code = "layer-not-selected"
	FoldOutput     Code = "fold-output"
	FoldChannels   Code = "fold-channels"
	FoldPadding    Code = "fold-padding"
	FoldTraining   Code = "fold-training"
	FoldParameters Code = "fold-parameters"
)

// Codes of channels that are not pruned.
const (
	ChannelsOperator Code = "channels-operator"
	ChannelsAxis     Code = "channels-axis"
	ChannelsUnknown  Code = "channels-unknown"
	ChannelsConstant Code = "channels-constant"
	ChannelsShared   Code = "channels-shared"
	ChannelsOutput   Code = "channels-output"
	ChannelsSubgraph Code = "channels-subgraph"
	ChannelsSelected Code = "channels-not-selected"
	ChannelsInput    Code = "channels-input"
	ChannelsKind     Code = "channels-kind"
)

// Codes of changes.
const (
	Pruned        Code = "pruned"
	LayerRemoved  Code = "layer-removed"
	Factored      Code = "factored"
	SparseForm    Code = "sparse-form"
	Expanded      Code = "expanded"
	Equalized     Code = "equalized"
	Smoothed      Code = "smoothed"
	AbsorbedScale Code = "absorbed-scale"
	FoldedIn      Code = "folded-in"
	FoldedAway    Code = "folded-away"
	BiasCorrected Code = "bias-corrected"
	Clamped       Code = "clamped"
	DeadChannels  Code = "dead-channels"
	Symmetric     Code = "symmetric"
	Unsigned      Code = "uint8"
	GPTQConsumers Code = "gptq-consumers"
	GPTQLayout    Code = "gptq-layout"
	GPTQScope     Code = "gptq-scope"
	GPTQInputs    Code = "gptq-inputs"
	AWQUnscaled   Code = "awq-unscaled"
	NearestChosen Code = "nearest-chosen"
	WasInput      Code = "was-graph-input"
)

// Codes of nodes that are computed in float32.
const (
	FloatRange       Code = "float-range"
	FloatPrecision   Code = "float-precision"
	FloatTypes       Code = "float-types"
	FloatOperator    Code = "float-operator"
	FloatFunction    Code = "float-function"
	FloatQuantized   Code = "float-quantized"
	FloatSelected    Code = "float-selected"
	FloatWeight      Code = "float-weight"
	FloatNotFinite   Code = "float-not-finite"
	FloatActivation  Code = "float-activation"
	FloatNotObserved Code = "float-not-observed"
	FloatNoScale     Code = "float-no-scale"
	FloatSQNR        Code = "float-sqnr"
)

// Codes of run time and of the model.
const (
	NoKernel             Code = "no-kernel"
	FloatZeroPoints      Code = "float-zero-points"
	StoredTwice          Code = "stored-twice"
	DenseAtRunTime       Code = "dense-at-run-time"
	RandomCalibration    Code = "random-calibration"
	ChannelsMoved        Code = "channels-moved"
	SlowerThanFloat      Code = "slower-than-float"
	RangesUnknown        Code = "ranges-unknown"
	ActivationRange      Code = "activation-range"
	ActivationOutOfRange Code = "activation-out-of-range"
	IRRaised             Code = "ir-version-raised"
	IRLowered            Code = "ir-version-lowered"
	OpsetRaised          Code = "opset-raised"
	OpsetNotRaised       Code = "opset-not-raised"
)

// Codes of the comparison of two files without a ledger.
const (
	Identical Code = "unchanged"
	Unmatched Code = "unmatched"
)
