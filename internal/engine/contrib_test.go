package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/engine/ort"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// A contribCase is one node of com.microsoft: its attributes, and its inputs by name. An empty name is an absent input.
type contribCase struct {
	op, attrs string
	names     []string
	in        map[string]*ir.Array
	cast      map[string]int // element types that ONNX's text has no arrays of: the input is cast to them
	unused    []string       // further outputs of the node, which are not compared
	// with which it is an operator of ONNX that later opsets dropped; 0 for those of com.microsoft
	opset int64
	out   ir.DType // of the output, if that is not the type of the scales or else of the first input
}

// text is the model, whose inputs are all given at run time.
func (c contribCase) text() string {
	var params, casts, args []string
	for _, name := range c.names {
		if name == "" {
			args = append(args, `""`)
			continue
		}
		a := c.in[name]
		params = append(params, fmt.Sprintf("%s[%s] %s", a.DType,
			strings.Trim(strings.Join(strings.Fields(fmt.Sprint(a.Shape)), ","), "[]"), name))
		if to, ok := c.cast[name]; ok {
			casts = append(casts, fmt.Sprintf("%s_cast = Cast<to = %d>(%s)", name, to, name))
			name += "_cast"
		}
		args = append(args, name)
	}
	out := c.in[c.names[0]].DType
	if s := c.in["scales"]; s != nil {
		out = s.DType
	}
	if c.out != 0 {
		out = c.out
	}
	attrs := ""
	if c.attrs != "" {
		attrs = "<" + c.attrs + ">"
	}
	for len(args) > 0 && args[len(args)-1] == `""` {
		args = args[:len(args)-1]
	}
	name, opset := "com.microsoft."+c.op, int64(21)
	if c.opset != 0 {
		name, opset = c.op, c.opset
	}
	return fmt.Sprintf(`<ir_version: 10, opset_import: ["" : %d, "com.microsoft" : 1]> g (%s) => (%s y) { %s %s = `+
		`%s%s(%s) }`,
		opset, strings.Join(params, ", "), out, strings.Join(casts, " "),
		strings.Join(append([]string{"y"}, c.unused...), ", "), name, attrs, strings.Join(args, ", "))
}

// agrees compares the engine with ONNX Runtime.
func (c contribCase) agrees(t *testing.T, lib *ort.Library, part float64) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := conform.Start(t).ParseText(c.text(), path); err != nil {
		t.Fatalf("%s: %v", c.text(), err)
	}
	s, err := ort.Open(lib, path, ort.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	want, err := s.Run(context.Background(), c.in, nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	e, err := engine.Open(context.Background(), f.Model, engine.Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	got, err := e.Run(context.Background(), c.in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := within(part, want["y"], got["y"]); err != nil {
		t.Errorf("%s: %v", c.text(), err)
	}
}

// drawn are random numbers: of type uint8 and int8 any, else around 0, or from 0.1 to 1 if they are scales.
func drawn(r *rand.Rand, dt ir.DType, scales bool, shape ...int64) *ir.Array {
	a := ir.NewArray(dt, shape...)
	if dt == ir.Uint8 || dt == ir.Int8 {
		for i := range a.Data {
			a.Data[i] = byte(r.Uint32())
		}
		return a
	}
	x := make([]float32, a.Elems())
	for i := range x {
		if x[i] = float32(r.NormFloat64()); scales {
			x[i] = 0.1 + 0.9*r.Float32()
		}
	}
	if dt == ir.Float16 {
		kernel.F16FromF32(ir.View[uint16](a), x)
	} else {
		copy(ir.View[float32](a), x)
	}
	return a
}

// few are random integers from low to high.
func few(r *rand.Rand, dt ir.DType, low, high int, shape ...int64) *ir.Array {
	a := ir.NewArray(dt, shape...)
	for i := range a.Data {
		a.Data[i] = byte(low + r.IntN(high-low+1))
	}
	return a
}

func ortLibrary(t *testing.T) *ort.Library {
	t.Helper()
	lib, err := ort.Load(conform.ORTLibrary(t))
	if err != nil {
		t.Fatal(err)
	}
	return lib
}

// lookups have indices from both ends, and out of range.
func lookups() *ir.Array { return ir.ArrayOf([]int64{0, 3, -1, 6, -7, 40, -9, 3}, 2, 4) }

func TestPackedGatherBlockQuantizedAgreesWithONNXRuntime(t *testing.T) {
	lib, r := ortLibrary(t), rand.New(rand.NewPCG(1, 1))
	names := []string{"data", "indices", "scales", "zero_points"}
	for _, bits := range []int64{2, 4, 8} {
		for _, block := range []int64{16, 32} {
			for _, dt := range []ir.DType{ir.Float, ir.Float16} {
				blocks := (48 + block - 1) / block
				c := contribCase{op: "GatherBlockQuantized", names: names[:3],
					attrs: fmt.Sprintf("bits = %d, block_size = %d", bits, block), in: map[string]*ir.Array{
						"data": drawn(r, ir.Uint8, false, 7, 48*bits/8), "indices": lookups(),
						"scales": drawn(r, dt, true, 7, blocks),
					}}
				c.agrees(t, lib, 0)
				c.names, c.in["zero_points"] = names, drawn(r, ir.Uint8, false, 7, (blocks*bits+7)/8)
				c.agrees(t, lib, 0)
			}
		}
	}
}

func TestGatherBlockQuantizedOfAnyAxisAgreesWithONNXRuntime(t *testing.T) {
	lib, r := ortLibrary(t), rand.New(rand.NewPCG(2, 1))
	names := []string{"data", "indices", "scales", "zero_points"}
	for _, axes := range [][2]int{{0, 1}, {0, 2}, {1, 0}, {1, 2}, {2, 1}, {2, -1}, {-3, -2}} {
		for to, low := range map[int]int{21: 0, 22: -8} { // uint4 and int4
			from := ir.Uint8
			if low < 0 {
				from = ir.Int8
			}
			scales := []int64{19, 18, 17}
			at := (axes[1] + 3) % 3
			scales[at] = 2
			c := contribCase{op: "GatherBlockQuantized", names: names[:3],
				cast:  map[string]int{"data": to, "zero_points": to},
				attrs: fmt.Sprintf("block_size = 16, gather_axis = %d, quantize_axis = %d", axes[0], axes[1]),
				in: map[string]*ir.Array{
					"data": few(r, from, low, low+15, 19, 18, 17), "indices": lookups(),
					"scales": drawn(r, ir.Float, true, scales...),
				}}
			c.agrees(t, lib, 0)
			c.names, c.in["zero_points"] = names, few(r, from, low, low+15, scales...)
			c.agrees(t, lib, 0)
		}
	}
}

func TestGatherBlockQuantizedOfSmallFloatsAgreesWithONNXRuntime(t *testing.T) {
	lib, r := ortLibrary(t), rand.New(rand.NewPCG(3, 1))
	for _, to := range []int{17, 18, 19, 20} {
		for _, scales := range [][]int64{{7, 1}, {1, 1}} {
			c := contribCase{op: "GatherBlockQuantized", names: []string{"data", "indices", "scales"},
				attrs: "block_size = 0", cast: map[string]int{"data": to}, in: map[string]*ir.Array{
					"data": drawn(r, ir.Float, false, 7, 21), "indices": lookups(),
					"scales": drawn(r, ir.Float, true, scales...),
				}}
			c.agrees(t, lib, 0)
		}
	}
}

// moe is a mixture of 4 experts for 9 tokens of 32 elements, and 48 elements between the layers.
func moe(r *rand.Rand, dt ir.DType, attrs string, fused bool) contribCase {
	rows := int64(48)
	if fused {
		rows *= 2
	}
	return contribCase{op: "MoE", attrs: attrs, names: []string{"x", "router", "w1", "b1", "w2", "b2"},
		in: map[string]*ir.Array{
			"x": drawn(r, dt, false, 3, 3, 32), "router": drawn(r, dt, false, 9, 4),
			"w1": drawn(r, dt, true, 4, rows, 32), "b1": drawn(r, dt, false, 4, rows),
			"w2": drawn(r, dt, false, 4, 32, 48), "b2": drawn(r, dt, false, 4, 32),
		}}
}

func TestMoEAgreesWithONNXRuntime(t *testing.T) {
	lib, r := ortLibrary(t), rand.New(rand.NewPCG(4, 1))
	for dt, part := range map[ir.DType]float64{ir.Float: 1e-5, ir.Float16: 5e-3} {
		for _, normalize := range []int{0, 1} {
			if dt == ir.Float16 && normalize == 0 {
				continue // with k = 4 of 4 experts normalization changes nothing, but it does in ONNX Runtime 1.31.1
			}
			common := fmt.Sprintf("normalize_routing_weights = %d", normalize)
			moe(r, dt, common, false).agrees(t, lib, part)
			for _, activation := range []string{"relu", "gelu", "silu", "identity"} {
				moe(r, dt, fmt.Sprintf(`k = 2, activation_type = "%s", %s`, activation, common), false).agrees(t, lib,
					part)
			}
			for _, more := range []string{"", ", activation_alpha = 1.702, activation_beta = 1.0",
				", swiglu_limit = 0.7"} {
				moe(r, dt, `k = 3, activation_type = "swiglu", swiglu_fusion = 1, `+common+more, true).agrees(t, lib,
					part)
			}
		}
	}
	c := moe(r, ir.Float, "k = 2", false)
	c.names[3], c.names[5] = "", ""
	delete(c.in, "b1")
	delete(c.in, "b2")
	clear(c.in["router"].Data) // equal scores
	c.agrees(t, lib, 1e-5)
}

func TestQMoEAgreesWithONNXRuntime(t *testing.T) {
	lib, r := ortLibrary(t), rand.New(rand.NewPCG(5, 1))
	for _, bits := range []int64{2, 4, 8} {
		for _, block := range []int64{0, 16} {
			for _, zero := range []bool{false, true} {
				// some of its kernels quantize activations to 8 bits
				qmoe(r, ir.Float, bits, block, zero).agrees(t, lib, 1e-2)
				if bits < 8 { // float16 overflows with 8 bits
					qmoe(r, ir.Float16, bits, block, zero).agrees(t, lib, 1e-2)
				}
			}
		}
	}
	own := qmoe(r, ir.Float, 4, 0, false)
	own.in["weights"] = drawn(r, ir.Float, true, 9, 4)
	own.names = append(own.names[:8], "", "", "", "", "", "", "weights")
	own.agrees(t, lib, 1e-4)
	own.attrs += ", normalize_routing_weights = 1"
	own.agrees(t, lib, 1e-4)
}

// qmoe is moe with quantized weights, in blocks if block is not 0.
func qmoe(r *rand.Rand, dt ir.DType, bits, block int64, zero bool) contribCase {
	scales := func(outputs, inputs int64) []int64 {
		if block == 0 {
			return []int64{4, outputs}
		}
		return []int64{4, outputs, inputs / block}
	}
	packed := func(shape []int64) []int64 {
		last := len(shape) - 1
		return append(shape[:last:last], (shape[last]*bits+7)/8)
	}
	c := moe(r, dt, fmt.Sprintf(`k = 2, activation_type = "swiglu", swiglu_fusion = 1, expert_weight_bits = %d`,
		bits), true)
	if block != 0 {
		c.attrs += fmt.Sprintf(", block_size = %d", block)
	}
	c.op, c.names = "QMoE", []string{"x", "router", "w1", "s1", "b1", "w2", "s2", "b2"}
	c.in["w1"], c.in["w2"] = drawn(r, ir.Uint8, false, 4, 96, 32*bits/8), drawn(r, ir.Uint8, false, 4, 32, 48*bits/8)
	s1, s2 := scales(96, 32), scales(32, 48)
	c.in["s1"], c.in["s2"] = small(drawn(r, ir.Float, true, s1...), dt), small(drawn(r, ir.Float, true, s2...), dt)
	if zero {
		c.names = append(c.names, "", "", "", "z1", "z2")
		c.in["z1"], c.in["z2"] = drawn(r, ir.Uint8, false, packed(s1)...), drawn(r, ir.Uint8, false, packed(s2)...)
	}
	return c
}

// small is a/32 of type dt, Float or Float16.
func small(a *ir.Array, dt ir.DType) *ir.Array {
	x := ir.View[float32](a)
	for i := range x {
		x[i] /= 32
	}
	if dt == ir.Float {
		return a
	}
	half := ir.NewArray(dt, a.Shape...)
	kernel.F16FromF32(ir.View[uint16](half), x)
	return half
}

// A sliding cache of GroupQueryAttention, of the window's size and larger, before and after it is full.
func TestSlidingWindowCacheAgreesWithONNXRuntime(t *testing.T) {
	lib, r := ortLibrary(t), rand.New(rand.NewPCG(6, 1))
	for _, capacity := range []int64{4, 6} {
		for total := int32(1); total < 14; total++ {
			for _, queries := range []int64{1, 3, int64(total)} {
				if queries > int64(total) {
					continue
				}
				c := contribCase{op: "GroupQueryAttention",
					attrs:  "num_heads = 4, kv_num_heads = 2, local_window_size = 4, do_rotary = 1, sliding_window_cache = 1",
					unused: []string{"present_key", "present_value"},
					names: []string{"q", "k", "v", "past_key", "past_value", "lengths", "total", "cos", "sin", "",
						"bias"}, in: map[string]*ir.Array{
						"q": drawn(r, ir.Float, false, 1, queries, 64),
						"k": drawn(r, ir.Float, false, 1, queries, 32), "v": drawn(r, ir.Float, false, 1, queries, 32),
						"past_key":   drawn(r, ir.Float, false, 1, 2, capacity, 16),
						"past_value": drawn(r, ir.Float, false, 1, 2, capacity, 16),
						"lengths":    ir.ArrayOf([]int32{total - 1}, 1), "total": ir.ArrayOf([]int32{total}, 1),
						"cos": drawn(r, ir.Float, false, 16, 8), "sin": drawn(r, ir.Float, false, 16, 8),
						"bias": drawn(r, ir.Float, false, 1, 4, queries, int64(total)),
					}}
				c.agrees(t, lib, 1e-5)
			}
		}
	}
}

// Caches of int8 with one scale, or one for each channel, before and after the first token, with new values beyond
// their range.
func TestQuantizedCacheAgreesWithONNXRuntime(t *testing.T) {
	lib, r := ortLibrary(t), rand.New(rand.NewPCG(6, 2))
	for _, kind := range []string{"PER_TENSOR", "PER_CHANNEL"} {
		for _, past := range []int64{0, 1, 5} {
			for _, queries := range []int64{1, 3} {
				scale := func() *ir.Array {
					a := ir.ArrayOf([]float32{0.02}, 1)
					if kind == "PER_CHANNEL" {
						a = drawn(r, ir.Float, true, 1, 2, 1, 16)
						for i := range ir.View[float32](a) {
							ir.View[float32](a)[i] = 0.01 + 0.02*ir.View[float32](a)[i]
						}
					}
					return a
				}
				c := contribCase{op: "GroupQueryAttention",
					attrs: fmt.Sprintf("num_heads = 4, kv_num_heads = 2, k_quant_type = %q, v_quant_type = %q, "+
						"kv_cache_bit_width = 8", kind, kind),
					unused: []string{"present_key", "present_value"},
					names: []string{"q", "k", "v", "past_key", "past_value", "lengths", "total", "", "", "", "", "",
						"k_scale", "v_scale"}, in: map[string]*ir.Array{
						"q": drawn(r, ir.Float, false, 1, queries, 64),
						"k": drawn(r, ir.Float, false, 1, queries, 32), "v": drawn(r, ir.Float, false, 1, queries, 32),
						"past_key":   few(r, ir.Int8, -128, 127, 1, 2, past, 16),
						"past_value": few(r, ir.Int8, -128, 127, 1, 2, past, 16),
						"lengths":    ir.ArrayOf([]int32{int32(past+queries) - 1}, 1),
						"total":      ir.ArrayOf([]int32{int32(past + queries)}, 1),
						"k_scale":    scale(), "v_scale": scale(),
					}}
				c.agrees(t, lib, 1e-5)
			}
		}
	}
}

// The layers of DynamicQuantizeLSTM agree with ONNX Runtime, which also quantizes the input and each state by the range
// of all elements. A state halfway between two codes may be the other one.
func TestDynamicQuantizeLSTMAgreesWithONNXRuntime(t *testing.T) {
	lib, r := ortLibrary(t), rand.New(rand.NewPCG(8, 1))
	const steps, batch, input, hidden = 6, 2, 12, 8
	for _, direction := range []string{"forward", "reverse", "bidirectional"} {
		for _, dt := range []ir.DType{ir.Uint8, ir.Int8} {
			for _, columns := range []bool{false, true} {
				d := int64(1)
				if direction == "bidirectional" {
					d = 2
				}
				scales := []int64{d}
				if columns {
					scales = append(scales, 4*hidden)
				}
				scale := func() *ir.Array {
					a := drawn(r, ir.Float, true, scales...)
					for i := range ir.View[float32](a) {
						ir.View[float32](a)[i] *= 0.005
					}
					return a
				}
				zero := func() *ir.Array { // ONNX Runtime has none per column
					a := ir.NewArray(dt, scales...)
					if !columns {
						a = few(r, dt, 3, 90, scales...)
					}
					return a
				}
				// int8 of 7 bits: the sums of others saturate in it on x86 without VNNI
				weight := func(shape ...int64) *ir.Array {
					if dt == ir.Uint8 {
						return few(r, dt, 0, 255, shape...)
					}
					return few(r, dt, -64, 63, shape...)
				}
				c := contribCase{
					op: "DynamicQuantizeLSTM", attrs: fmt.Sprintf("hidden_size = %d, direction = %q", hidden,
						direction),
					names: []string{"x", "w", "r", "b", "", "h", "c", "", "ws", "wz", "rs", "rz"},
					in: map[string]*ir.Array{
						"x": drawn(r, ir.Float, false, steps, batch, input), "w": weight(d, input, 4*hidden),
						"r": weight(d, hidden, 4*hidden),
						"b": drawn(r, ir.Float, false, d, 8*hidden), "h": drawn(r, ir.Float, false, d, batch, hidden),
						"c":  drawn(r, ir.Float, false, d, batch, hidden),
						"ws": scale(), "wz": zero(), "rs": scale(), "rz": zero(),
					},
				}
				c.agrees(t, lib, 5e-3)
			}
		}
	}
}
