package calibrate

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// Samples hands take the inputs of the runs that Each would make, for who goes through a model in parts. They are take's to
// keep. What is no number in them is an error.
func (d *Data) Samples(c *pass.Context, m *ir.Model, take func(inputs map[string]*ir.Array) error) error {
	set, err := d.set(c, m)
	if err != nil {
		return err
	}
	defer set.Close()
	d.noteMadeUp(c)
	for b, err := range d.batches(c, m, set) {
		if err != nil {
			return err
		}
		if err := finite(b.Inputs); err != nil {
			return d.failed(b, err)
		}
		if err := take(b.Inputs); err != nil {
			return err
		}
	}
	return nil
}
