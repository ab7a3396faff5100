package quantize

import (
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/solve"
)

// solve rounds those of plans that are matrices on the right of products, where the options ask for samples to be looked at.
func (o *blockOptions) solve(c *pass.Context, plans []*plan) error {
	if o == nil || o.algo != "gptq" || c.DryRun { // sizes do not depend on codes
		return nil
	}
	var ls []*linear
	of := map[*linear]*plan{}
	for _, p := range plans {
		l, why := p.linear()
		if why != "" {
			p.note("rounded to the nearest codes: " + why)
			continue
		}
		ls, of[l] = append(ls, l), p
	}
	if len(ls) == 0 {
		return nil
	}
	left, err := o.gptq.solve(c, ls)
	if err != nil {
		return err
	}
	for _, l := range ls {
		if why := left[l]; why != "" {
			of[l].note("rounded to the nearest codes: " + why)
			continue
		}
		of[l].cd.b.by = l.rounder()
	}
	return nil
}

// linear is the matrix that p stores, or the reason why it is none that samples say something about.
func (p *plan) linear() (*linear, string) {
	var product *site
	for _, s := range p.sites {
		switch {
		case s.side == gather:
		case product != nil:
			return nil, "several products read it"
		default:
			product = s
		}
	}
	switch b := p.cd.b; {
	case product == nil || p.form.Name != pass.Dequantize.Name && p.form.Name != pass.NBits.Name:
		return nil, "it is not the matrix of one product"
	case !b.standing() && !b.padded:
		return nil, "its codes are stored for lookups"
	default:
		return &linear{weight: p.base, node: product.node, k: int(b.rows), n: int(b.cols), lying: b.lying, grid: b.grid}, ""
	}
}

// rounder gives out what solve left.
func (l *linear) rounder() rounder {
	return rounder{whole: true, round: func(c *solve.Codes, _ []float32) error {
		codes, err := l.load()
		if err == nil {
			*c = *codes
		}
		return err
	}}
}
