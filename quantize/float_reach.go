package quantize

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A reach is how far values between nodes go while the model runs over samples.
type reach struct {
	t      *narrowType
	values []*ir.Value          // of the main graph
	most   map[*ir.Value]uint32 // bits of the largest magnitude
	masked map[*ir.Value]bool   // may hold what stands for infinity
}

// nearEnd is the part of the range that samples may reach: others go somewhat further.
const nearEnd = 0.5

// measure finds the values that come near the end of the type's range or go beyond it. They stay float32, and so do the
// nodes around them.
func (x *conversion) measure() error {
	switch {
	case x.data == nil: // the range is that of float32
		return nil
	case x.data.Path == "":
		x.c.Note("", fmt.Sprintf("only weights were held against %s's range, ±%g: give --data for the values between nodes", x.dt, x.largest))
		return nil
	case x.c.DryRun:
		return nil
	}
	r := &reach{t: x.narrowType, most: map[*ir.Value]uint32{}, masked: x.masked()}
	if err := r.run(x.c, x.data); err != nil {
		return err
	}
	x.reach = r
	r.report(x.c)
	return nil
}

// run looks at all values of the main graph.
func (r *reach) run(c *pass.Context, d *calibrate.Data) error {
	named := map[string]*ir.Value{}
	var names []string
	for v := range c.Model.Values() {
		if v.Graph() == c.Model.Graph && v.Const == nil && !v.Ambiguous && v.Name != "" && named[v.Name] == nil {
			named[v.Name] = v
			names, r.values = append(names, v.Name), append(r.values, v)
		}
	}
	return d.Each(c, c.Model, names, func(name string, a *ir.Array) error {
		if a.Kind == ir.Dense && a.DType == ir.Float {
			v := named[name]
			r.most[v] = max(r.most[v], r.largest(v, ir.View[float32](a)))
		}
		return nil
	})
}

// largest is the bits of the largest finite magnitude, in masks of what does not stand for infinity.
func (r *reach) largest(v *ir.Value, x []float32) uint32 {
	end := uint32(infBits)
	if r.masked[v] {
		end = asInfinity
	}
	most := kernel.AbsMaxBits(x)
	if most < end {
		return most
	}
	most = 0
	for _, e := range x {
		if b := math.Float32bits(e) &^ (1 << 31); b < end {
			most = max(most, b)
		}
	}
	return most
}

// far is why v stays float32, or "".
func (r *reach) far(v *ir.Value) string {
	if r == nil || math.Float32frombits(r.most[v]) < nearEnd*r.t.largest {
		return ""
	}
	return fmt.Sprintf("values that they read or make come near the end of %s's range, or go beyond it", r.t.dt)
}

// report says which values go too far, or else which goes furthest.
func (r *reach) report(c *pass.Context) {
	var furthest *ir.Value
	for _, v := range r.values {
		if r.far(v) != "" {
			c.Note(v.Name, r.of(v)+": it stays float32")
		}
		if furthest == nil || r.most[v] > r.most[furthest] {
			furthest = v
		}
	}
	if furthest != nil && r.far(furthest) == "" {
		c.Note(furthest.Name, r.of(furthest)+": no value between nodes goes further")
	}
}

func (r *reach) of(v *ir.Value) string {
	return fmt.Sprintf("it reaches %g on the samples, and %s ends at %g", math.Float32frombits(r.most[v]), r.t.dt, r.t.largest)
}

// hands are the operators that hand elements on, whatever they do with others.
var hands = map[string]bool{
	"Cast": true, "Concat": true, "Flatten": true, "Gather": true, "Identity": true, "Neg": true, "Reshape": true, "Slice": true, "Split": true,
	"Squeeze": true, "Tile": true, "Transpose": true, "Trilu": true, "Unsqueeze": true,
}

// masked are the values that constants which stand for infinity go into, up to the next operator that takes them as such.
func (x *conversion) masked() map[*ir.Value]bool {
	masked := map[*ir.Value]bool{}
	var follow func(v *ir.Value)
	follow = func(v *ir.Value) {
		for _, u := range v.Uses() {
			if u.Node == nil || !ir.DefaultDomain(u.Node.Op.Domain) || !takesFill[u.Node.Op.Type] && !hands[u.Node.Op.Type] {
				continue
			}
			for _, y := range u.Node.Outputs {
				if y != nil && !masked[y] {
					masked[y] = true
					follow(y)
				}
			}
		}
	}
	for v := range x.fills {
		follow(v)
	}
	return masked
}
