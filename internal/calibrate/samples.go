package calibrate

import (
	"context"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// Samples calls take with the inputs of each run that Each would make, for layer-by-layer calibration. take owns the
// arrays. NaN and infinities are errors.
func (d *Data) Samples(ctx context.Context, s *pass.Step, m *ir.Model,
	take func(inputs map[string]*ir.Array) error) error {
	set, err := d.set(s, m)
	if err != nil {
		return err
	}
	defer set.Close()
	d.note(s, set)
	for b, err := range d.batches(ctx, s, m, set, false) {
		if err != nil {
			return err
		}
		if err := finite(b.Inputs); err != nil {
			return d.failed(set, b, err)
		}
		if err := take(b.Inputs); err != nil {
			return err
		}
	}
	return nil
}
