package distill

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A fakeQuant is the fake quantization of QAT: training computes with the dequantized values of weights and
// activations, and gradients use the straight-through estimator (Jacob et al. 2018, arXiv:1712.05877, section 3). The
// quantization step that follows computes these values on a copy of the model, so that they are the ones that it
// finally stores.
type fakeQuant struct {
	step        pass.Options
	dryRun      bool                          // nothing will be trained
	weights     map[string]*fakeQuantWeight   // by the names of parameters
	activations map[edge]*fakeQuantActivation // with static scales
	dynamic     bool                          // activations are quantized by their range in each run
	optimizer   optimizer
	shared      bool // elements of weights are entries of codebooks, which are trained
}

// A fakeQuantWeight is the dequantized values of a weight.
type fakeQuantWeight struct {
	tensor *ir.Tensor // lazy tensor of the dequantized values
	array  *ir.Array  // its values
	source *parameter
}

// newFakeQuant returns the fake quantization for the method of --qat, nil without QAT.
func newFakeQuant(s *pass.Step, o *settings) (*fakeQuant, error) {
	method := o.QAT
	if method == "" {
		return nil, nil
	}
	for _, step := range s.Later {
		if step.Method().Name != method || step.Method().Stage != pass.Quantize {
			continue
		}
		if slices.ContainsFunc(pass.Values(step), func(o pass.Option) bool {
			return o.Name == "algo" && (o.Value == "gptq" || o.Value == "awq")
		}) {
			return nil, pass.OptionErrorf("--qat %s: gptq and awq are not supported, since they run the calibration data "+
				"for every change of the weights; use --algo rtn or hqq", method)
		}
		return &fakeQuant{
			step: step, dryRun: s.Env.DryRun, optimizer: o.chosenOptimizer(),
			weights: map[string]*fakeQuantWeight{}, activations: map[edge]*fakeQuantActivation{},
		}, nil
	}
	return nil, pass.OptionErrorf("--qat %s: no quantization step of that name follows this step; add it, with "+
		"its options", method)
}

// observe runs the quantization step on m, a copy of the trained model, and records how it quantizes weights and
// activations. params are the parameters by their names in m.
func (f *fakeQuant) observe(ctx context.Context, env *environment, m *ir.Model,
	params map[string]*parameter) (err error) {
	e := ir.NewEval(env.folder)
	defer func() { err = errors.Join(err, e.Close()) }()
	// With Precheck a weight that the method cannot represent is skipped now: a recipe that failed during training
	// would end it. Without trials the rule is that of the step that follows, so that it stores the trained values.
	s := &pass.Step{Model: m, Eval: e, Env: pass.Environment{Source: env.model, Workers: env.workers, Limits: env.limits,
		Precheck: !f.dryRun, DryRun: f.dryRun, NoTrials: true}}
	res, err := pass.Run(ctx, s.Model, s.Eval, s.Env, []pass.Options{f.step})
	if err != nil {
		return err
	}
	if err := f.observeWeights(ctx, s.Eval, res.Rows, params); err != nil {
		return err
	}
	return f.observeActivations(ctx, s)
}

// observeWeights records the lazy tensors of dequantized weights. A weight that was quantized before and no longer is,
// is kept in float.
func (f *fakeQuant) observeWeights(ctx context.Context, e *ir.Eval, rows []pass.Row,
	params map[string]*parameter) error {
	for _, w := range f.weights {
		// Not removed from the map: graphs that are open are fed its array.
		w.tensor = nil
	}
	for _, row := range rows {
		p := params[row.Tensor]
		if p == nil || row.Scope != "" || row.Status != pass.Changed || p.shared != nil {
			continue
		}
		// Codebooks are trained themselves, not through the straight-through estimator: k-means of each step would be slow,
		// and find other codebooks after training than those trained with.
		if row.Sharing != nil && isPayload(row.Before, p) {
			if err := f.tie(ctx, e, p, row); err != nil {
				return err
			}
			continue
		}
		tensor := dequantized(row)
		// Equal weights share a payload: the next observation separates them once they differ.
		if tensor == nil || row.SharedWith == "" && !dependsOn(tensor, p) || !isPayload(row.Before, p) {
			return fmt.Errorf("%s changes tensor %q by more than quantization, which QAT does not support; disable bias "+
				"correction and smoothing, and run fold-batchnorm first", row.Method, row.Tensor)
		}
		// The array is kept between observations for the same reason.
		if f.weights[p.name] == nil {
			f.weights[p.name] = &fakeQuantWeight{array: withoutData(p.array.Spec()), source: p}
		}
		f.weights[p.name].tensor = tensor
	}
	return nil
}

// tie makes the codebook of p's weight the trained array.
func (f *fakeQuant) tie(ctx context.Context, e *ir.Eval, p *parameter, row pass.Row) error {
	if p.mask != nil {
		return pass.OptionErrorf("--qat %s: movement pruning is not supported", row.Method)
	}
	f.shared = true
	return p.tie(ctx, e, row, f.optimizer, !f.dryRun)
}

// dequantized returns the dequantized tensor of a row, nil if the row has none.
func dequantized(row pass.Row) *ir.Tensor {
	if row.Restore == nil {
		return nil
	}
	var parts []*ir.Tensor
	for _, p := range row.After {
		parts = append(parts, p.Tensor)
	}
	return row.Restore(parts)
}

// isPayload reports whether the payload of t is p's array.
func isPayload(t *ir.Tensor, p *parameter) bool {
	data, ok := t.Source.(ir.Mem)
	return ok && len(data) > 0 && &data[0] == &p.array.Data[0]
}

// dependsOn reports whether t is computed from p's array.
func dependsOn(t *ir.Tensor, p *parameter) bool {
	lazy, ok := t.Source.(ir.Output)
	return isPayload(t, p) || ok && slices.ContainsFunc(lazy.Of.In, func(in *ir.Tensor) bool { return dependsOn(in, p) })
}

// quantizeWeights computes the dequantized values of the current weights. f may be nil.
func (f *fakeQuant) quantizeWeights(ctx context.Context, env *environment, params []*parameter) (err error) {
	if f == nil {
		return nil
	}
	e := ir.NewEval(env.folder)
	defer func() { err = errors.Join(err, e.Close()) }()
	var list []*fakeQuantWeight
	for _, p := range params {
		if w := f.weights[p.name]; w != nil {
			list = append(list, w)
		}
	}
	s := &pass.Step{Env: pass.Environment{Workers: env.workers}}
	return pass.Parallel(ctx, s.Env.Workers, len(list), func(ctx context.Context, i int) error {
		return list[i].quantize(ctx, e)
	})
}

func (w *fakeQuantWeight) quantize(ctx context.Context, e *ir.Eval) error {
	if w.array.Data == nil {
		zero(w.array)
	}
	if w.tensor == nil {
		// No longer quantized: the graph computes with the float weight, through the same input.
		copy(w.array.Data, w.source.array.Data)
		return nil
	}
	if err := readTensor(ctx, e, w.tensor, w.array); err != nil {
		// Not wrapped: *pass.Unfit would restart the pipeline, but the weight was valid when training began.
		return fmt.Errorf("fake quantization of weights: %v", err)
	}
	return nil
}

// options are those of the quantization step that the quantized values depend on. f may be nil.
func (f *fakeQuant) options() []pass.Option {
	if f == nil {
		return nil
	}
	return slices.DeleteFunc(pass.Values(f.step), func(o pass.Option) bool { return o.Name == "data" })
}

// bytes is the memory of the dequantized weights. f may be nil.
func (f *fakeQuant) bytes() (n int64) {
	if f == nil {
		return 0
	}
	for _, w := range f.weights {
		n += w.array.Bytes()
	}
	return n
}
