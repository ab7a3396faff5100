package pass

// A Method is one way to compress a model. Methods are values: the command line
// lists them, and the list is all that adding one takes.
type Method struct {
	Name    string // its name in flags, recipes, reports and file names
	Command string // the command that offers it
	Doc     string // one line for help and documentation
	Stage   Stage
	Shrinks bool // its aim is a smaller file: a result that is not smaller is not written
	Repeats bool // a second run takes its share of what the first one left

	// New returns a pointer to the zero value of the method's option struct.
	New func() Options
}

// A Stage says where in a pipeline a method may stand: stages never go down.
type Stage uint8

// The stages in their order, with the reason why each stands behind the one before.
const (
	Prepare  Stage = iota // folds and rewrites that later methods look through
	Prune                 // chooses by magnitude, which quantization rounds away
	Train                 // needs float weights, and learns around the zeros that pruning made
	Quantize              // must see the zeros that pruning made, and keeps them
	Sparsify              // stores the zeros of final codes or values
)

var stageNames = [...]string{"prepare", "prune", "train", "quantize", "sparsify"}

func (s Stage) String() string { return stageNames[s] }
