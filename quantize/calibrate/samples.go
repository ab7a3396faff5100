package calibrate

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// Samples are the inputs of the runs that Each would make, all of them at once, for who goes through a model in parts.
func (d *Data) Samples(c *pass.Context, m *ir.Model) ([]map[string]*ir.Array, error) {
	set, err := d.set(c, m)
	if err != nil {
		return nil, err
	}
	defer set.Close()
	var samples []map[string]*ir.Array
	for b, err := range set.Batches(c, d.order(set)) {
		if err != nil {
			return nil, err
		}
		samples = append(samples, b.Inputs)
	}
	return samples, nil
}
