package prune

import (
	"context"
	"math"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/prune/internal/coupling"
)

// The importances of channels.
const (
	byMagnitude = "magnitude"
	byInputs    = "wanda"
	byTaylor    = "taylor"
)

// channelImportance is the group of options about the importance of channels, heads and neurons.
type channelImportance struct {
	// Importance is magnitude, taylor, or, of heads and neurons, wanda; empty for magnitude.
	Importance string `flag:"importance" default:"magnitude" enum:"magnitude,wanda,taylor" usage:"'importance': magnitude (L1 norm of the weights that make a channel), or by calibration samples: taylor (first-order change of the outputs without it, by gradients), wanda (of heads and neurons only: L1 norm of the weights that read a channel, times the norm of the channel)"`
}

func checkImportance(importance string, k channelKind) error {
	switch importance {
	case "", byMagnitude, byTaylor:
		return nil
	case byInputs:
		if k == filters {
			return pass.OptionErrorf("--importance wanda is one of heads and neurons; channels have magnitude and taylor")
		}
		return nil
	}
	return pass.OptionErrorf("--importance %s is not magnitude, wanda or taylor", importance)
}

// importances are those of the classes of groups, and the work of the model if there is a target for it. Groups that
// have to stay get a reason.
func (o Channel) importances(ctx context.Context, step *pass.Step, plan *coupling.Plan,
	groups []*coupling.Group) (map[coupling.Channel]float64, *work, error) {
	for _, g := range groups {
		if kind := kindOf(g); g.Reason.None() && !o.removes.includes(kind) {
			g.Reason = pass.Reason{Code: pass.ChannelsKind, Detail: kind.methods()}
		}
		for _, s := range g.Sources {
			if g.Reason.None() && step.Select.Excludes(s.Value, pass.Consumers(s.Value)) {
				g.Reason = pass.Reason{Code: pass.ChannelsSelected, Detail: s.Value.Name}
			}
		}
	}
	worth := map[coupling.Channel]float64{}
	err := addNorms(ctx, step, groups, worth)
	if err != nil {
		return nil, nil, err
	}
	var t *taylor
	switch o.Importance {
	case byTaylor:
		clear(worth) // of the norms, only that they are finite counts
		t = newTaylor(step, plan, groups, worth)
		defer t.close()
	case byInputs:
		if err := o.byConsumers(ctx, step, plan, groups, worth); err != nil {
			return nil, nil, err
		}
	}
	if t == nil && o.TargetMACs == 0 {
		return worth, nil, nil
	}
	data := calibrate.NewData(o.Calibration, false)
	data.Step = math.MaxInt // gradients are those of whole samples
	if t == nil {
		data.MaxSamples = 1 // for its shapes
	}
	var w *work
	err = data.Samples(ctx, step, step.Model, func(in map[string]*ir.Array) (err error) {
		specs := map[string]ir.Spec{}
		for name, a := range in {
			specs[name] = a.Spec()
		}
		if w == nil && o.TargetMACs != 0 {
			if w, err = workOf(ctx, step.Model, specs, plan); err != nil {
				return err
			}
		}
		if t == nil {
			return nil
		}
		return t.add(ctx, in, specs)
	})
	if t == nil {
		normalize(groups, worth)
		return worth, w, err
	}
	for u, x := range worth {
		// Squares of changes were added over samples and outputs: the root is comparable with a sum of importances in a
		// group.
		worth[u] = math.Sqrt(x)
	}
	return worth, w, err
}

// removableClasses are the classes of groups that do not have to stay.
func removableClasses(groups []*coupling.Group) map[coupling.Channel]bool {
	classes := map[coupling.Channel]bool{}
	for _, g := range groups {
		for _, u := range g.Classes {
			classes[u] = g.Reason.None()
		}
	}
	return classes
}

// normalize divides importances by the mean of their group, as norms of different layers have no common unit.
func normalize(groups []*coupling.Group, worth map[coupling.Channel]float64) {
	for _, g := range groups {
		sum := 0.0
		for _, u := range g.Classes {
			sum += worth[u]
		}
		for _, u := range g.Classes {
			if sum > 0 {
				worth[u] *= float64(len(g.Classes)) / sum
			}
		}
	}
}
