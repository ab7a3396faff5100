package distill

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/ir"
)

// encoder returns a transformer of layers of attention and of tanh, whose weights are the projection of the input, and
// for each layer those of queries, keys, values and outputs of attention and those of two layers of units. Its inputs
// are x, [N, 4, 3], and the mask, [N, 4].
func encoder(dt ir.DType, heads int64, weights ...[]float64) *ir.Model {
	m := ir.NewModel()
	m.IRVersion, m.Opsets = 9, []ir.Opset{{Version: 17}}
	g := m.Graph
	input := func(name string, shape ...int64) *ir.Value {
		v := g.AddValue(name)
		v.Type = &ir.Type{Elem: dt, Shape: []ir.Dim{{N: -1, Param: "N"}}}
		for _, n := range shape {
			v.Type.Shape = append(v.Type.Shape, ir.Dim{N: n})
		}
		g.Inputs = append(g.Inputs, v)
		return v
	}
	number := func(x float64) *ir.Value {
		return g.AddConst("c", &ir.Tensor{Spec: ir.Spec{DType: dt}, Source: payload(dt, x)})
	}
	ints := func(is ...int64) *ir.Value {
		return g.AddConst("i", &ir.Tensor{Spec: ir.Spec{DType: ir.Int64, Shape: []int64{int64(len(is))}},
			Source: ir.Ints(is...)})
	}
	op := func(typ string, in []*ir.Value, attrs ...*ir.Attr) *ir.Value { return g.Insert(nil, typ, in, attrs...) }
	width := int64(len(weights[0]) / 3)
	next := 0
	matrix := func(x *ir.Value) *ir.Value {
		shape := []int64{int64(len(weights[next])) / width, width}
		w := g.AddConst(fmt.Sprintf("w%d", next), &ir.Tensor{Spec: ir.Spec{DType: dt, Shape: shape},
			Source: payload(dt, weights[next]...)})
		next++
		return op("MatMul", []*ir.Value{x, w})
	}
	x, mask := input("x", 4, 3), input("mask", 4)
	bias := op("Unsqueeze", []*ir.Value{op("Mul", []*ir.Value{op("Sub", []*ir.Value{number(1), mask}), number(-10000)}),
		ints(1, 2)})
	h := matrix(x)
	for next < len(weights) {
		split := func(perm ...int64) *ir.Value {
			v := op("Reshape", []*ir.Value{matrix(h), ints(0, 4, heads, width/heads)})
			return op("Transpose", []*ir.Value{v}, ir.IntsAttr("perm", perm...))
		}
		q, k, v := split(0, 2, 1, 3), split(0, 2, 3, 1), split(0, 2, 1, 3)
		scores := op("Div", []*ir.Value{op("MatMul", []*ir.Value{q, k}), number(math.Sqrt(float64(width / heads)))})
		p := op("Softmax", []*ir.Value{op("Add", []*ir.Value{scores, bias})}, ir.IntAttr("axis", -1))
		y := op("Transpose", []*ir.Value{op("MatMul", []*ir.Value{p, v})}, ir.IntsAttr("perm", 0, 2, 1, 3))
		h = op("Add", []*ir.Value{h, matrix(op("Reshape", []*ir.Value{y, ints(0, 4, width)}))})
		h = op("Add", []*ir.Value{h, matrix(op("Tanh", []*ir.Value{matrix(h)}))})
	}
	h.Type = &ir.Type{Elem: dt, Shape: []ir.Dim{{N: -1, Param: "N"}, {N: 4}, {N: width}}}
	g.AddOutput(h)
	return m
}

func payload(dt ir.DType, x ...float64) ir.Mem {
	if dt == ir.Double {
		return ir.Mem(ir.ArrayOf(x, int64(len(x))).Data)
	}
	single := make([]float32, len(x))
	for i, v := range x {
		single[i] = float32(v)
	}
	return ir.Floats(single...)
}

// convolutions returns a network of two convolutions of 3×3, the second after MaxPool, and GlobalAveragePool. Its input
// is x, [N, 2, 6, 6].
func convolutions(dt ir.DType, weights ...[]float64) *ir.Model {
	m := ir.NewModel()
	m.IRVersion, m.Opsets = 9, []ir.Opset{{Version: 17}}
	g := m.Graph
	x := g.AddValue("x")
	x.Type = &ir.Type{Elem: dt, Shape: []ir.Dim{{N: -1, Param: "N"}, {N: 2}, {N: 6}, {N: 6}}}
	g.Inputs = append(g.Inputs, x)
	channels, y := int64(2), x
	for i, w := range weights {
		shape := []int64{int64(len(w)) / 9 / channels, channels, 3, 3}
		c := g.AddConst(fmt.Sprintf("w%d", i), &ir.Tensor{Spec: ir.Spec{DType: dt, Shape: shape}, Source: payload(dt, w...)})
		if i > 0 {
			y = g.Insert(nil, "MaxPool", []*ir.Value{y}, ir.IntsAttr("kernel_shape", 2, 2), ir.IntsAttr("strides", 2, 2))
		}
		y = g.Insert(nil, "Tanh", []*ir.Value{g.Insert(nil, "Conv", []*ir.Value{y, c}, ir.IntsAttr("pads", 1, 1, 1, 1))})
		channels = shape[0]
	}
	y = g.Insert(nil, "Flatten", []*ir.Value{g.Insert(nil, "GlobalAveragePool", []*ir.Value{y})})
	y.Type = &ir.Type{Elem: dt, Shape: []ir.Dim{{N: -1, Param: "N"}, {N: channels}}}
	g.AddOutput(y)
	return m
}

// recordedFeatures is testdata/features.json, of make_features.py.
type recordedFeatures struct {
	Student, Teacher, Projections [][]float64 // of transformers
	Losses                        []recordedLoss
	Small, Large, Kernels         [][]float64 // of convolutional networks
	ImageLosses                   []recordedLoss
}

type recordedLoss struct {
	Kind      string
	Loss      float64
	Gradients [][]float64
}

func readFeatures(t *testing.T) (r recordedFeatures) {
	t.Helper()
	b, err := os.ReadFile("testdata/features.json")
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestFeaturesEqualPyTorch: losses and gradients of features are those of PyTorch, of transformers of different depth,
// width and heads, and of convolutional networks of different width. The weights of the projections are recorded, too.
func TestFeaturesEqualPyTorch(t *testing.T) {
	r := readFeatures(t)
	for _, c := range r.Losses {
		t.Run("transformer "+c.Kind, func(t *testing.T) {
			c.compare(t, "features.npz", encoder(ir.Float, 2, r.Student...), encoder(ir.Float, 3, r.Teacher...),
				r.Student, r.Projections)
		})
	}
	for _, c := range r.ImageLosses {
		t.Run("convolutions "+c.Kind, func(t *testing.T) {
			c.compare(t, "images.npz", convolutions(ir.Float, r.Small...), convolutions(ir.Float, r.Large...),
				r.Small, r.Kernels)
		})
	}
}

// compare trains a step of gradient descent at the rate 1.
func (c recordedLoss) compare(t *testing.T, data string, student, teacher *ir.Model, weights, projections [][]float64) {
	e := ir.NewEval(t.TempDir())
	defer e.Close()
	o := parse(t, "data", "testdata/"+data, "validate", "0", "batch", "2", "steps", "1", "optimizer", "sgd", "momentum",
		"0", "lr", "1",
		"warmup", "0", "schedule", "constant", "loss", "none", "features", c.Kind, "feature-weight", "1")
	tr := newTrainer(student, e, 2, o)
	defer tr.close()
	if err := tr.prepare(t.Context(), []*ir.Model{teacher}); err != nil {
		t.Fatal(err)
	}
	for i, p := range projections {
		if w := tr.params.byName[fmt.Sprintf("projection.%d", i)]; w != nil {
			copy(w.array.Data, payload(ir.Float, p...))
		}
	}
	if err := tr.train(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := tr.state.History.Loss[0].Y; math.Abs(got-c.Loss) > 1e-6 {
		t.Errorf("loss %.8f, PyTorch %.8f", got, c.Loss)
	}
	for i, g := range c.Gradients {
		w := tr.params.byName[fmt.Sprintf("w%d", i)]
		for k, after := range ir.View[float32](w.array) {
			if got := weights[i][k] - float64(after); math.Abs(got-g[k]) > 1e-6*(1+math.Abs(g[k])) {
				t.Fatalf("gradient %d of w%d is %.8f, PyTorch %.8f", k, i, got, g[k])
			}
		}
	}
}

// TestFeatureGradients compares the gradients of the losses of features with central differences in float64.
func TestFeatureGradients(t *testing.T) {
	r := readFeatures(t)
	tokens := map[string]*ir.Array{"x": waves(2, 4, 3), "mask": ir.ArrayOf([]float64{1, 1, 1, 1, 1, 1, 1, 0}, 2, 4)}
	images := map[string]*ir.Array{"x": waves(2, 2, 6, 6)}
	for _, c := range []struct {
		kind             string
		student, teacher *ir.Model
		in               map[string]*ir.Array
	}{
		{hints, encoder(ir.Double, 2, r.Student...), encoder(ir.Double, 3, r.Teacher...), tokens},
		{attention, encoder(ir.Double, 2, r.Student...), encoder(ir.Double, 3, r.Teacher...), tokens},
		{relations, encoder(ir.Double, 2, r.Student...), encoder(ir.Double, 3, r.Teacher...), tokens},
		{hints, convolutions(ir.Double, r.Small...), convolutions(ir.Double, r.Large...), images},
		{attention, convolutions(ir.Double, r.Small...), convolutions(ir.Double, r.Large...), images},
	} {
		t.Run(c.kind, func(t *testing.T) {
			o, specs := parse(t, "data", "none", "features", c.kind), map[string]ir.Spec{}
			for name, a := range c.in {
				specs[name] = a.Spec()
			}
			fs, err := o.findFeatures(structureIn(t, c.student, specs), []*structure{structureIn(t, c.teacher, specs)})
			if err != nil {
				t.Fatal(err)
			}
			newGradientTest(t, o, c.student, fs, specs).compare(t, c.in)
		})
	}
}

// waves returns an array of numbers from -1 to 1.
func waves(shape ...int64) *ir.Array {
	a := ir.NewArray(ir.Double, shape...)
	for i := range ir.View[float64](a) {
		ir.View[float64](a)[i] = math.Sin(float64(7 * i))
	}
	return a
}

func structureIn(t *testing.T, m *ir.Model, specs map[string]ir.Spec) (s *structure) {
	t.Helper()
	find := func(tape *grad.Tape) error {
		s = structureOf(tape)
		return nil
	}
	if _, err := grad.New(t.Context(), m, grad.Options{Inputs: specs, Append: find, Bare: true}); err != nil {
		t.Fatal(err)
	}
	return s
}

// A gradientTest is a training step in float64 that has the losses and the gradients of all parameters as outputs.
type gradientTest struct {
	session *engine.Interpreter
	params  map[string]*ir.Array
	grads   map[string]string // names of gradients by those of parameters
	losses  []string
	targets map[string]*ir.Array
}

func newGradientTest(t *testing.T, o *settings, m *ir.Model, fs featureList, specs map[string]ir.Spec) *gradientTest {
	t.Helper()
	for _, f := range fs {
		if f.projection != nil {
			f.projection.tensor.DType, f.projection.tensor.Source = ir.Double, ir.Mem(waves(f.projection.tensor.Shape...).Data)
		}
	}
	tape, err := grad.New(t.Context(), m, grad.Options{Inputs: specs, Append: fs.ofStudent()})
	if err != nil {
		t.Fatal(err)
	}
	tape.Close()
	g := &gradientTest{params: map[string]*ir.Array{}, grads: map[string]string{}, targets: map[string]*ir.Array{}}
	scale := tape.Input("scale", ir.Float)
	g.targets[scale.Name] = ir.ArrayOf([]float32{1})
	seeds := map[*ir.Value]*ir.Value{}
	var outputs []*ir.Value
	for i, term := range fs.terms() {
		x := tape.Value(term.student)
		target := tape.Input(fmt.Sprintf("target.%d", i), ir.Double, tape.Shape(x)...)
		g.targets[target.Name] = waves(tape.Shape(x)...)
		out := tape.Own(losses[term.kind], 2, []*ir.Value{x, target, scale}, o.lossAttrs(term)...)
		outputs, seeds[x] = append(outputs, out[0]), out[1]
		g.losses = append(g.losses, out[0].Name)
	}
	if err := tape.Backward(seeds); err != nil {
		t.Fatal(err)
	}
	e := ir.NewEval(t.TempDir())
	defer e.Close()
	for _, p := range tape.Params {
		w := &ir.Array{DType: ir.Double, Shape: p.Tensor.Shape}
		if err := readTensor(t.Context(), e, p.Tensor, w); err != nil {
			t.Fatal(err)
		}
		g.params[p.Value.Name] = w
		if p.Grad != nil {
			g.grads[p.Value.Name] = p.Grad.Name
			outputs = append(outputs, p.Grad)
		}
	}
	tape.Graph().SetOutputs(outputs...)
	if g.session, err = engine.Open(t.Context(), tape.Model, engine.Options{Workers: 2}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.session.Close() })
	return g
}

func (g *gradientTest) run(t *testing.T, in map[string]*ir.Array) (loss float64, out map[string]*ir.Array) {
	t.Helper()
	args := map[string]*ir.Array{}
	for _, p := range g.session.Inputs() {
		for _, from := range []map[string]*ir.Array{in, g.params, g.targets} {
			if a := from[p.Name]; a != nil {
				args[p.Name] = a
			}
		}
	}
	out, err := g.session.Run(t.Context(), args, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range g.losses {
		loss += ir.View[float64](out[name])[0]
	}
	return loss, out
}

func (g *gradientTest) compare(t *testing.T, in map[string]*ir.Array) {
	t.Helper()
	_, out := g.run(t, in)
	const h = 1e-5
	for name, of := range g.grads {
		w, got := g.params[name], ir.View[float64](out[of])
		for i, was := range ir.View[float64](w) {
			at := func(x float64) float64 {
				ir.View[float64](w)[i] = x
				loss, _ := g.run(t, in)
				return loss
			}
			want := (at(was+h) - at(was-h)) / (2 * h)
			ir.View[float64](w)[i] = was
			if !(math.Abs(got[i]-want) <= 1e-7*(1+math.Abs(want))) {
				t.Fatalf("gradient %d of %s is %.9g, finite difference %.9g", i, name, got[i], want)
			}
		}
	}
	if len(g.grads) == 0 {
		t.Error("no parameter has a gradient")
	}
}
