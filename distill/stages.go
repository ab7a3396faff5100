package distill

import (
	"github.com/mcompress/mcompress/pass"
)

// Stages returns the steps of distillation in two stages, each with the epochs or steps of o: the first one trains on
// intermediate values alone, by default on hidden states and attention, the second one on the outputs (Jiao et al.,
// TinyBERT, 2020, arXiv:1909.10351, section 4.1). The checkpoint of the first one has the suffix .stage1.
func Stages(o Distill) []pass.Options {
	first, second := o, o
	first.Loss, first.Alpha = noLoss, nil
	if first.Save != "" {
		first.Save += ".stage1"
	}
	// Reinit in the second stage would discard the weights of the first one.
	second.Features, second.Match, second.Reinit = nil, nil, nil
	second.BatchStatistics = o.BatchStatistics || o.Reinit != nil
	return []pass.Options{&first, &second}
}
