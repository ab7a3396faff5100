package conv

import "math"

// A resizedAxis is the resizing of one axis.
type resizedAxis struct {
	in, out    int
	scale      float32
	start, end float32 // of the region, as fractions of the axis
}

// transforms map output position o to an input coordinate, by coordinate_transformation_mode, in float32 like ONNX
// Runtime. wanted is the output's length before it was rounded down.
var transforms = map[string]func(l resizedAxis, o, wanted float32) float32{
	"half_pixel":           func(l resizedAxis, o, _ float32) float32 { return (o+0.5)/l.scale - 0.5 },
	"asymmetric":           func(l resizedAxis, o, _ float32) float32 { return o / l.scale },
	"tf_half_pixel_for_nn": func(l resizedAxis, o, _ float32) float32 { return (o + 0.5) / l.scale },
	"pytorch_half_pixel": func(l resizedAxis, o, _ float32) float32 {
		if l.out <= 1 {
			return 0
		}
		return (o+0.5)/l.scale - 0.5
	},
	"half_pixel_symmetric": func(l resizedAxis, o, wanted float32) float32 {
		offset := float32(l.in) / 2 * (1 - float32(l.out)/wanted)
		return offset + (o+0.5)/l.scale - 0.5
	},
	"align_corners": func(l resizedAxis, o, wanted float32) float32 {
		if l.out <= 1 {
			return 0
		}
		return o * float32(l.in-1) / (wanted - 1)
	},
	"tf_crop_and_resize": func(l resizedAxis, o, wanted float32) float32 {
		top := float32(l.in - 1)
		if l.out <= 1 {
			return 0.5 * (l.start + l.end) * top
		}
		return l.start*top + o*(l.end-l.start)*top/(wanted-1)
	},
}

// coordinate is the input coordinate of output o.
func (r *resizePlan) coordinate(l resizedAxis, o int) float32 {
	return transforms[r.transform](l, float32(o), l.scale*float32(l.in))
}

// outside reports whether tf_crop_and_resize uses extrapolation_value at p.
func (r *resizePlan) outside(l resizedAxis, p float32) bool {
	return r.roi != nil && (p < 0 || p > float32(l.in-1))
}

// axis is the resizing of axis i.
func (r *resizePlan) axis(i int, in int64) resizedAxis {
	l := resizedAxis{in: int(in), out: int(r.out[i]), scale: r.scale[i], end: 1}
	if r.roi != nil {
		l.start, l.end = r.roi[i], r.roi[len(r.out)+i]
	}
	return l
}

// isUnchanged reports whether the axis is unchanged.
func (l resizedAxis) isUnchanged() bool {
	return l.in == l.out && l.scale == 1 && l.start == 0 && l.end == 1
}

// nearestModes round input coordinates to integers.
var nearestModes = map[string]func(p float64, shrinks bool) float64{
	"round_prefer_floor": func(p float64, _ bool) float64 { return math.Ceil(p - 0.5) },
	"round_prefer_ceil":  func(p float64, _ bool) float64 { return math.Floor(p + 0.5) },
	"floor":              func(p float64, _ bool) float64 { return math.Floor(p) },
	"ceil":               func(p float64, _ bool) float64 { return math.Ceil(p) },
	"simple": func(p float64, shrinks bool) float64 {
		if shrinks {
			return math.Ceil(p)
		}
		return math.Floor(p)
	},
}

// nearestPositions are the input positions of the outputs, -1 outside of the region.
func (r *resizePlan) nearestPositions(l resizedAxis) []int32 {
	round := nearestModes[r.nearest]
	places := make([]int32, l.out)
	for o := range places {
		p := r.coordinate(l, o)
		if r.outside(l, p) {
			places[o] = -1
			continue
		}
		places[o] = int32(min(max(round(float64(p), l.scale < 1), 0), float64(l.in-1)))
	}
	return places
}

// A filter is the interpolation weights of each output position: n input positions each, clamped to the input.
type filter struct {
	resizedAxis
	n       int
	at      []int32
	weight  []float64
	outside []bool // nil if none is
}

// filter computes the weights of an axis.
func (r *resizePlan) filter(l resizedAxis) *filter {
	curve, reach := triangle, float64(1)
	if r.mode == "cubic" {
		a := float64(r.a)
		curve, reach = func(x float64) float64 { return keys(x, a) }, 2
	}
	squeeze := 1.0
	// Downsampling stretches the kernel by 1/scale, so that all elements that an output covers have weights;
	// upsampling leaves it (PIL's and the specification's antialias).
	if r.antialias {
		squeeze = min(float64(l.scale), 1)
	}
	first := int(math.Floor(-reach/squeeze)) + 1
	f := &filter{resizedAxis: l, n: 2 - 2*first}
	f.at, f.weight = make([]int32, l.out*f.n), make([]float64, l.out*f.n)
	for o := range l.out {
		p := r.coordinate(l, o)
		if r.outside(l, p) {
			if f.outside == nil {
				f.outside = make([]bool, l.out)
			}
			f.outside[o] = true
		}
		f.weigh(o, p, first, squeeze, curve, r.exclude)
	}
	return f
}

// weigh sets the weights of output o, whose centre is p. They are normalized to sum 1 if they were stretched for
// antialiasing, or if outside positions are excluded.
func (f *filter) weigh(o int, p float32, first int, squeeze float64, curve func(float64) float64, exclude bool) {
	base := math.Floor(float64(p))
	if !(math.Abs(base) < most) {
		base = 0 // NaN scales
	}
	ratio := float64(p) - base
	weights := make([]float64, f.n)
	sum := 0.0
	for i := range weights {
		at := int(base) + first + i
		v := curve(squeeze * (float64(first+i) - ratio))
		if exclude && (at < 0 || at >= f.in) {
			v = 0
		}
		weights[i] = v
		sum += v
		f.at[o*f.n+i] = int32(min(max(at, 0), f.in-1))
	}
	// Unstretched weights of all positions sum to 1 by themselves: dividing by a rounded sum would change them.
	if squeeze == 1 && !exclude || sum == 0 {
		sum = 1
	}
	for i, v := range weights {
		f.weight[o*f.n+i] = v / sum
	}
}

// triangle is linear interpolation's kernel.
func triangle(x float64) float64 { return max(1-math.Abs(x), 0) }

// keys is the kernel of cubic convolution (Keys, "Cubic Convolution Interpolation for Digital Image Processing", 1981,
// equation 4).
func keys(x, a float64) float64 {
	x = math.Abs(x)
	switch {
	case x <= 1:
		return ((a+2)*x-(a+3))*x*x + 1
	case x < 2:
		return ((a*x-5*a)*x+8*a)*x - 4*a
	}
	return 0
}
