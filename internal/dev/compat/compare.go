package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/x448/float16"

	"github.com/mcompress/mcompress/internal/dev/conform"
)

// maxSQNR replaces infinity, which JSON cannot express.
const maxSQNR = 200

// sqnr is the lowest SQNR of the outputs in decibels. Outputs are matched by name, else by position: some runtimes
// rename them or add others.
func sqnr(want, got []conform.Array) (float64, error) {
	low := float64(maxSQNR)
	for i, w := range want {
		at := slices.IndexFunc(got, func(a conform.Array) bool { return a.Name == w.Name })
		if at < 0 {
			at = i
		}
		if at >= len(got) {
			return 0, fmt.Errorf("%d outputs, not %d", len(got), len(want))
		}
		g := got[at]
		d, err := decibels(w, g)
		if err != nil {
			return 0, fmt.Errorf("output %q: %w", w.Name, err)
		}
		low = min(low, d)
	}
	return low, nil
}

func decibels(want, got conform.Array) (float64, error) {
	a, err := values(want)
	if err != nil {
		return 0, err
	}
	b, err := values(got)
	if err != nil {
		return 0, err
	}
	if len(a) != len(b) {
		return 0, fmt.Errorf("shape %v, not %v", got.Shape, want.Shape)
	}
	var signal, noise float64
	for i := range a {
		signal += a[i] * a[i]
		noise += (a[i] - b[i]) * (a[i] - b[i])
	}
	switch d := 10 * math.Log10(signal/noise); {
	case noise == 0:
		return maxSQNR, nil
	case math.IsNaN(d) || d < -maxSQNR:
		return -maxSQNR, nil
	default:
		return min(math.Round(d*10)/10, maxSQNR), nil
	}
}

// elements are the readers of NumPy's types, with their sizes.
var elements = map[string]struct {
	size int
	read func([]byte) float64
}{
	"bool":    {1, func(b []byte) float64 { return float64(b[0]) }},
	"uint8":   {1, func(b []byte) float64 { return float64(b[0]) }},
	"int8":    {1, func(b []byte) float64 { return float64(int8(b[0])) }},
	"float16": {2, func(b []byte) float64 { return float64(float16.Frombits(binary.LittleEndian.Uint16(b)).Float32()) }},
	"int32":   {4, func(b []byte) float64 { return float64(int32(binary.LittleEndian.Uint32(b))) }},
	"float32": {4, func(b []byte) float64 { return float64(math.Float32frombits(binary.LittleEndian.Uint32(b))) }},
	"int64":   {8, func(b []byte) float64 { return float64(int64(binary.LittleEndian.Uint64(b))) }},
	"float64": {8, func(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) }},
}

func values(a conform.Array) ([]float64, error) {
	e, ok := elements[a.DType]
	if !ok {
		return nil, fmt.Errorf("unsupported type %s", a.DType)
	}
	v := make([]float64, len(a.Data)/e.size)
	for i := range v {
		v[i] = e.read(a.Data[i*e.size:])
	}
	return v, nil
}
