package prune

import (
	"context"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/internal/calibrate/hessian"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/prune/internal/coupling"
)

// The importances of heads and neurons.
const (
	byMagnitude = "magnitude"
	byInputs    = "wanda"
)

// Importance is the group of options about the importance of heads and neurons.
type Importance struct {
	// Importance is magnitude (L1 norm of the weights that make a head or neuron) or wanda (of those that read it, times the L2 norm that each
	// input has in calibration samples; An et al. 2024, arXiv:2312.11983); empty for magnitude.
	Importance string `flag:"importance" default:"magnitude" usage:"importance, 'magnitude|wanda': the L1 norm of the weights that make a head or neuron, or of those that read it times the norm of each input in calibration samples"`
	pass.Calibration
}

func (o Importance) check() error {
	if !slices.Contains([]string{"", byMagnitude, byInputs}, o.Importance) {
		return pass.OptionErrorf("--importance %s is not magnitude or wanda", o.Importance)
	}
	return nil
}

// scores are the importances of the classes of channels that linear layers read, nil for magnitude.
func (o Importance) scores(ctx context.Context, s *pass.Step, plan *coupling.Plan, groups []*coupling.Group) (map[coupling.Channel]float64, error) {
	if o.Importance != byInputs || s.Env.DryRun { // sizes do not depend on values
		return nil, nil
	}
	scored := map[coupling.Channel]float64{}
	for _, g := range groups {
		for _, u := range g.Classes {
			scored[u] = 0
		}
	}
	consumers, norms := &coupling.Group{}, map[string]*inputNorms{}
	var names []string
	for _, c := range plan.Consumers {
		c.Channels = plan.Roots(c.Channels)
		if _, ok := scored[c.Channels[0]]; !ok {
			continue
		}
		consumers.Sources = append(consumers.Sources, c)
		if v := c.Node.Input(0); norms[v.Name] == nil {
			norms[v.Name], names = &inputNorms{squares: make([]float64, len(c.Channels))}, append(names, v.Name)
		}
	}
	rows, err := importances(ctx, s, []*coupling.Group{consumers})
	if err != nil || len(names) == 0 {
		return nil, err
	}
	data := calibrate.NewData(o.Calibration, false)
	err = data.Each(ctx, s, s.Model, names, func(name string, a *ir.Array) error {
		if x, ok := hessian.Rows(a, len(norms[name].squares)); ok {
			norms[name].Add(x)
		}
		return nil
	})
	for _, c := range consumers.Sources {
		for j, u := range c.Channels {
			scored[u] += rows[c.Value].sums[j] * math.Sqrt(norms[c.Node.Input(0).Name].squares[j])
		}
	}
	return scored, err
}
