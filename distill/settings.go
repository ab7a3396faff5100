package distill

import (
	"fmt"

	"github.com/mcompress/mcompress/pass"
)

// settings are the options of a training run. Those that were not given are set when the data and the model are known:
// batch by chooseBatch, the others by resolve and by the trials of learning rates.
type settings struct {
	FineTune
	options FineTune // the options without those that were chosen
	method  string
	alpha   float64        // --alpha; negative for automatic
	itself  bool           // the model would be its own teacher
	choices []pass.Setting // options that were not given, in the order of choice

	prunes   bool            // the step prunes the model, too
	pruned   map[string]bool // weights that the step pruned
	rewind   *rewinding      // nil if weights are not rewound
	movement importance      // of the weights that movement pruning prunes; nil for other methods
}

func newSettings(o FineTune, method string, alpha float64) *settings {
	s := &settings{FineTune: o, options: o, method: method, alpha: valueOr(o.Alpha, alpha)}
	if s.Reinit != nil {
		s.BatchStatistics = true
	}
	return s
}

// Limits of options that were not given.
const (
	defaultBatch   = 32
	stepsPerEpoch  = 8    // the batch size is halved until an epoch has this number of steps
	defaultEpochs  = 3    // at least
	usefulSteps    = 300  // epochs are added until there are this number of steps
	maxEpochs      = 100  // that are chosen
	patienceEpochs = 3    // at least
	decoupledDecay = 0.01 // of adamw, the default of PyTorch
)

// largestBatch is the limit of --accumulate.
func largestBatch(batch int) float64 {
	if batch == 0 {
		return defaultBatch
	}
	return float64(batch)
}

// chooseBatch sets the batch size for a number of training samples: a multiple of unit.
func (s *settings) chooseBatch(samples, unit int) {
	if s.Batch > 0 {
		return
	}
	s.Batch = defaultBatch
	for s.Batch > unit && samples/s.Batch < stepsPerEpoch {
		s.Batch /= 2
	}
	s.Batch = max(unit, s.Batch/unit*unit)
	s.choose("batch", s.Batch, fmt.Sprintf("%d training samples", samples))
}

// resolve sets the remaining options for a number of steps per epoch.
func (s *settings) resolve(perEpoch int) {
	if s.Epochs == 0 && s.Steps == 0 && s.Time == 0 {
		s.Epochs = min(max(defaultEpochs, (usefulSteps+perEpoch-1)/perEpoch), maxEpochs)
		s.choose("epochs", s.Epochs, fmt.Sprintf("%d steps per epoch", perEpoch))
	}
	if s.WeightDecay == nil {
		decay := s.chosenOptimizer().decay
		s.WeightDecay = &decay
	}
}

// resolvePatience sets the patience for a number of steps.
func (s *settings) resolvePatience(steps, perEpoch int) {
	if s.Patience != nil {
		return
	}
	patience := 0
	if *s.Validate > 0 {
		patience = max(patienceEpochs, steps/perEpoch/3)
	}
	s.Patience = &patience
}

// choose records the value that was chosen for an option, and why.
func (s *settings) choose(option string, value any, why string) {
	s.choices = append(s.choices, pass.Setting{Option: option, Value: fmt.Sprint(value), Why: why})
}
