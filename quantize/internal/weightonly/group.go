package weightonly

import (
	"context"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// groupPlans groups plans of equal weights with the same encoding.
func groupPlans(ctx context.Context, s *pass.Step, plans []*plan) ([][]*plan, error) {
	bases := make([]*ir.Value, len(plans))
	for i, p := range plans {
		bases[i] = p.Base
	}
	first, err := pass.Duplicates(ctx, s.Eval, s.Env.Workers, bases)
	if err != nil {
		return nil, err
	}
	var groups [][]*plan
	by := map[*ir.Value]int{} // the group of a first value's plan
	for _, p := range plans {
		i, ok := by[first[p.Base]]
		// Only with the first: equal weights that need another encoding are stored on their own.
		if ok && groups[i][0].sameEncoding(p) {
			groups[i] = append(groups[i], p)
			continue
		}
		if !ok {
			by[first[p.Base]] = len(groups)
		}
		groups = append(groups, []*plan{p})
	}
	return groups, nil
}

// scope is the graph that holds the quantized weight: for products theirs.
func (p *plan) scope() *ir.Graph {
	switch p.form.Name {
	case pass.Dequantize.Name, pass.NBits.Name, pass.WideNBits.Name, pass.CastProduct.Name:
		return p.Consumers[0].Node.Graph()
	}
	return p.Base.Graph()
}

// sameEncoding reports whether q's consumers can read p's quantized weight.
func (p *plan) sameEncoding(q *plan) bool {
	return p.form == q.form && p.scope() == q.scope() && p.encoding.Same(q.encoding)
}
