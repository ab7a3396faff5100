package distill

import (
	"cmp"
	"math"

	"github.com/mcompress/mcompress/pass"
)

// A history is the curves of a training.
type history struct {
	Loss       []pass.Point // mean of the steps since the last point
	Validation []pass.Point // loss on the validation set
	Agreement  []pass.Point
	Metric     []pass.Point
	MetricName string
}

// A state is the progress of training. Its exported fields are stored in checkpoints.
type state struct {
	Step      int     // steps done
	First     int     // steps that were done by an earlier training, with rewound weights
	Total     int     // steps without early stopping; 0 until they are planned
	LR        float64 // learning rate
	Chosen    []pass.Setting
	Bad       int     // epochs in a row without improvement
	Best      float64 // score, and the loss with it
	BestLoss  float64
	BestAt    int  // step
	Averaged  bool // the best weights are a moving average
	Evaluated int  // last step after which the weights were evaluated
	LossScale float64
	Good      int     // steps in a row without overflow
	Sum       float64 // of losses since the last point
	Count     int
	Counted   []float64 // by target, of all steps: what losses are means over
	History   history
}

// initialLossScale is that of training with float16 activations.
const initialLossScale = 1 << 10

// init prepares a state that was not restored from a checkpoint.
func (s *state) init(float16 bool) {
	// 0 only in a new state: checkpoints have at least 1.
	if s.LossScale != 0 {
		return
	}
	s.LossScale, s.Best, s.BestLoss = 1, math.MaxFloat64, math.MaxFloat64
	if float16 {
		s.LossScale = initialLossScale
	}
}

// maxPoints is the maximum number of points of the loss curve.
const maxPoints = 120

// record counts a step.
func (s *state) record(loss float64, total int) {
	s.Step++
	s.Sum, s.Count = s.Sum+loss, s.Count+1
	// Means instead of every nth loss: a single batch is noise. The last point may be of fewer steps.
	if s.Count >= max(1, total/maxPoints) || s.Step == total {
		s.History.Loss = append(s.History.Loss, pass.Point{Step: s.Step, Y: s.Sum / float64(s.Count)})
		s.Sum, s.Count = 0, 0
	}
}

// count adds what targets count in a micro-batch.
func (s *state) count(counts []float64) {
	s.Counted = append(s.Counted, make([]float64, len(counts)-len(s.Counted))...)
	for k, n := range counts {
		s.Counted[k] += n
	}
}

// adjustLossScale halves the loss scale after an overflow of the gradients, which left the weights unchanged, and
// doubles it after 1000 steps without. squares is the sum of the gradients' squares.
func (s *state) adjustLossScale(squares float64, float16 bool) {
	if s.LossScale == 1 && !float16 {
		return
	}
	if math.IsNaN(squares) || math.IsInf(squares, 0) {
		s.LossScale, s.Good = max(1, s.LossScale/2), 0
		return
	}
	// Powers of two only: neither scaling a gradient nor dividing it again rounds it.
	if s.Good++; s.Good >= 1000 {
		s.LossScale, s.Good = min(s.LossScale*2, 1<<24), 0
	}
}

// recordEvaluation records an evaluation, of the weights or of their average. It reports whether it is the best one.
func (s *state) recordEvaluation(v evaluation, averaged bool) (best bool) {
	s.History.Validation = append(s.History.Validation, pass.Point{Step: s.Step, Y: v.loss})
	if !math.IsNaN(v.agreement) {
		s.History.Agreement = append(s.History.Agreement, pass.Point{Step: s.Step, Y: v.agreement})
	}
	if v.metric != nil && !math.IsNaN(v.metric.After) {
		s.History.MetricName = v.metric.Name
		s.History.Metric = append(s.History.Metric, pass.Point{Step: s.Step, Y: v.metric.After})
	}
	// Agreement has few values on a small validation set: of equal ones the lower loss is better.
	if cmp.Or(cmp.Compare(v.score(), s.Best), cmp.Compare(v.loss, s.BestLoss)) < 0 {
		s.Best, s.BestLoss, s.BestAt, s.Averaged, s.Bad = v.score(), v.loss, s.Step, averaged, 0
		return true
	}
	s.Bad++
	return false
}

// hasImproved reports whether training improved the model.
func (s *state) hasImproved() bool { return s.BestAt > s.First }

// stopsEarly reports whether training stops early, after patience epochs in a row without improvement.
func (s *state) stopsEarly(patience int) bool { return patience > 0 && s.Bad >= patience }
