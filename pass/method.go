package pass

// A Method is the static description of a compression method.
type Method struct {
	Name    string // its name in flags, recipes, reports and file names
	Command string // the command of which it is a method
	Doc     string // one line for help and documentation
	Stage   Stage
	Shrinks bool // the file size must decrease: otherwise no result is written
	Repeats bool // a second run applies its fraction to the rest of the first
	// Calibrates: by default it observes activations on calibration data, whose last bits depend on the CPU. Other
	// methods write bit-identical models on all machines.
	Calibrates bool

	// New returns a pointer to the zero value of the method's option struct.
	New func() Options
}

// A Stage is the position of a method in a pipeline: the stages of steps never decrease.
type Stage uint8

// The stages in order, each with the reason why it follows the previous one.
const (
	Prepare  Stage = iota // folds and rewrites that later methods depend on
	Prune                 // ranks by magnitude, which quantization rounds
	Train                 // needs float weights, and keeps the zeros of pruning
	Quantize              // represents the zeros of pruning exactly
	Sparsify              // removes the zeros of final values
)

var stageNames = [...]string{"prepare", "prune", "train", "quantize", "sparsify"}

func (s Stage) String() string { return stageNames[s] }
