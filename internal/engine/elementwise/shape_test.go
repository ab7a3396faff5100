package elementwise

import (
	"bytes"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/ir"
)

func TestInvalidShapes(t *testing.T) {
	f, i := ir.NewArray(ir.Float, 2, 3), ir.NewArray(ir.Int32, 2, 3)
	for _, c := range []struct {
		op      string
		version int64
		in      []*ir.Array
		attrs   []*ir.Attr
		want    string
	}{
		{"Add", 14, arrays(f, i), nil, "input B is int32[2,3], want float"},
		{"Add", 14, arrays(f, ir.NewArray(ir.Float, 2)), nil, "do not broadcast"},
		{"Add", 14, arrays(f), nil, "input B is missing"},
		{"Add", 14, arrays(ir.NewArray(ir.String, 2), ir.NewArray(ir.String, 2)), nil, "not supported"},
		{"And", 7, arrays(f, f), nil, "not supported"},
		{"Mod", 13, arrays(f, f), nil, "fmod must be 1"},
		{"BitShift", 11, arrays(i, i), nil, "attribute direction"},
		{"PRelu", 9, arrays(ir.NewArray(ir.Float, 3), f), nil, "does not broadcast"},
		{"Gelu", 20, arrays(f), []*ir.Attr{ir.StringAttr("approximate", "sine")}, "attribute approximate"},
		{"Where", 9, arrays(f, f, f), nil, "input condition"},
		{"Clip", 13, arrays(f, f), nil, "input min is float[2,3], want a scalar"},
		{"Clip", 13, arrays(f), []*ir.Attr{ir.FloatAttr("min", -1)}, "attribute min"},
		{"Cast", 13, arrays(f), nil, "attribute to is 0"},
		{"Cast", 13, arrays(f), []*ir.Attr{ir.IntAttr("to", 257)}, "attribute to is 257"},
		{"BitCast", 26, arrays(f), []*ir.Attr{ir.IntAttr("to", int64(ir.Double))}, "width"},
		{"Sum", 8, arrays(f, nil), nil, "input data_1 is missing"},
		{"Pow", 7, arrays(ir.NewArray(ir.Uint8, 1), f), nil, "input X"},
	} {
		_, err := optest.Run(Ops(), optest.Case{Type: c.op, Version: c.version, In: c.in, Attrs: c.attrs})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %v: error %v, want one with %q", c.op, c.in, err, c.want)
		}
	}
}

// Results depend neither on the number of workers nor on in-place computation.
func TestWorkersAndInPlaceAreBitIdentical(t *testing.T) {
	x := cast(t, optest.Array(append(samples(), make([]float64, 60000)...)...), ir.Float)
	x.Shape = []int64{x.Shape[0] / 3, 3}
	x.Data = x.Data[:x.Bytes()]
	for _, c := range []optest.Case{
		{Type: "Mul", Version: 14, In: arrays(x, optest.Array[float32](1, 2, 3))},
		{Type: "Add", Version: 14, In: arrays(x, x)},
		{Type: "Sum", Version: 13, In: arrays(x, x, x)},
		{Type: "Tanh", Version: 13, In: arrays(x)},
		{Type: "Gelu", Version: 20, In: arrays(x)},
		{Type: "Elu", Version: 6, In: arrays(x)},
		{Type: "Pow", Version: 15, In: arrays(x, optest.Scalar[int64](3))},
		{Type: "Cast", Version: 13, In: arrays(x), Attrs: []*ir.Attr{ir.IntAttr("to", int64(ir.Int32))}},
		{Type: "Clip", Version: 13, In: arrays(x, optest.Scalar[float32](0))},
	} {
		want, err := optest.Run(Ops(), c)
		if err != nil {
			t.Fatal(err)
		}
		for _, variant := range []struct{ workers, inPlace int }{{2, 0}, {5, 0}, {3, 1}} {
			v := c
			v.In = append(arrays(), c.In...)
			v.In[0] = c.In[0].Clone()
			v.Workers, v.InPlace = variant.workers, variant.inPlace
			got, err := optest.Run(Ops(), v)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got[0].Data, want[0].Data) {
				t.Errorf("%s with %+v differs", c.Type, variant)
			}
		}
	}
}
