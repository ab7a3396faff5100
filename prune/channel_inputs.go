package prune

import (
	"context"
	"math"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/internal/calibrate/hessian"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/prune/internal/coupling"
)

// byConsumers replaces the importances of the classes of groups by those of the linear layers that read them: the L1
// norm of the weights that read a channel, times the L2 norm that it has in calibration samples (An et al. 2024,
// arXiv:2312.11983).
func (o Channel) byConsumers(ctx context.Context, s *pass.Step, plan *coupling.Plan, groups []*coupling.Group,
	worth map[coupling.Channel]float64) error {
	if s.Env.DryRun { // sizes do not depend on values
		return nil
	}
	ranked := removableClasses(groups)
	var consumers []coupling.Source
	inputs := map[string]*inputNorms{}
	var names []string
	for _, c := range plan.Consumers() {
		if !operator.Of(c.Node).Product() || !ranked[c.Channels[0]] {
			continue
		}
		consumers = append(consumers, c)
		if v := c.Node.Input(0); inputs[v.Name] == nil {
			inputs[v.Name], names = &inputNorms{squares: make([]float64, len(c.Channels))}, append(names, v.Name)
		}
	}
	rows, err := normsOf(ctx, s, consumers)
	if err != nil || len(names) == 0 {
		return err
	}
	data := calibrate.NewData(o.Calibration, false)
	err = data.Each(ctx, s, s.Model, names, func(name string, a *ir.Array) error {
		if x, ok := hessian.Rows(a, len(inputs[name].squares)); ok {
			inputs[name].Add(x)
		}
		return nil
	})
	clear(worth)
	for _, c := range consumers {
		for j, u := range c.Channels {
			worth[u] += rows[c.Value].sums[j] * math.Sqrt(inputs[c.Node.Input(0).Name].squares[j])
		}
	}
	return err
}
