package job

import (
	"context"
	"fmt"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/internal/verify"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
)

// budget is the memory budget of the process that steps have; 0 for none.
func budget(steps []pass.Options) (least int64) {
	for _, s := range steps {
		if o, ok := s.(pass.Budgeted); ok && o.Budget() > 0 && (least == 0 || o.Budget() < least) {
			least = o.Budget()
		}
	}
	return least
}

// boundMemory limits the memory of the process to the budget of the steps.
func (o *Options) boundMemory() (restore func(), err error) {
	n := budget(o.Steps)
	if n == 0 {
		return func() {}, nil
	}
	if o.Verify != nil && !o.Verify.Backend.Embedded() {
		return nil, pass.OptionErrorf("--memory-budget is of the whole process, and the memory of ONNX Runtime cannot be " +
			"planned: verify with the embedded engine, or skip verification")
	}
	return memory.Bound(n, 0), nil
}

// minimumMemory is the least memory of verification besides the program, with the weights of the result, which are
// in memory.
func (r *run) minimumMemory(ctx context.Context) (int64, error) {
	if r.Verify == nil {
		return 0, nil
	}
	v, before := *r.Verify, r.source
	for _, f := range r.others {
		if f.Path == r.referencePath() && !SameFile(f.Path, r.Input) {
			v.teacher, before = true, f
		}
	}
	all, err := v.settings(ctx, before, r.work)
	if err != nil || len(all) == 0 {
		return 0, nil // reported by the verification
	}
	return all[len(all)-1].bytes + weightBytes(r.work.Model), nil
}

// A verificationSetting is how a verification uses memory.
type verificationSetting struct {
	batch     int
	layers    bool
	bytes     int64 // of a verification with one worker thread, besides the program
	bytesWith func(workers int) (int64, error)
}

// fitBudget returns the verification that fits into the rest of a memory budget: with smaller batches, without layers,
// and with fewer worker threads. Only the number of the latter depends on v's.
func (v Verification) fitBudget(ctx context.Context, a, b *onnx.File, budget int64) (Verification, error) {
	all, err := v.settings(ctx, a, b)
	if err != nil || len(all) == 0 {
		return v, nil // reported by the verification
	}
	nodes := a.Model.Graph.NodeCount() + b.Model.Graph.NodeCount()
	free := budget - memory.ProgramSize(nodes) - weightBytes(b.Model)
	for i, s := range all {
		// The last setting, which needs least, is tried even if it does not fit: the run reports what it lacks.
		if s.bytes > free && i < len(all)-1 {
			continue
		}
		v.Data.Batch, v.Layers, v.Data.Options.Workers = s.batch, s.layers, 1
		for ; v.Backend.Workers > 1; v.Backend.Workers-- {
			n, err := s.bytesWith(v.Backend.Workers)
			if err == nil && n+memory.Threads(v.Backend.Workers) <= free {
				break
			}
		}
		break
	}
	return v, nil
}

// settings returns the settings of a verification, in the order of their memory.
func (v Verification) settings(ctx context.Context, a, b *onnx.File) ([]verificationSetting, error) {
	common, err := verify.CommonValues(ctx, a.Model, b.Model)
	if err != nil {
		return nil, err
	}
	v.Data.Options.Workers = 1
	set, err := v.data().Open(v.sampleModel(a, b), 1)
	if err != nil {
		return nil, err
	}
	defer set.Close()
	var all []verificationSetting
	for n := max(1, v.Data.Batch); n > 0; n /= 2 {
		v.Data.Batch = n
		specs, err := v.data().firstSpecs(ctx, v.sampleModel(a, b))
		if err != nil {
			return nil, err
		}
		for _, layers := range []bool{true, false} {
			// Smaller batches come before a comparison without layers, which is the last setting.
			if layers && (!v.Layers || v.teacher) || !layers && v.Layers && n > 1 {
				continue
			}
			s := verificationSetting{batch: n, layers: layers, bytesWith: func(workers int) (int64, error) {
				o := engine.Options{Workers: workers}
				if layers {
					// Values that a session keeps live until its end.
					o.Keep = common.Names
				}
				return v.memoryOf(ctx, a.Model, b.Model, specs, o, set)
			}}
			if s.bytes, err = s.bytesWith(1); err != nil {
				return nil, fmt.Errorf("batch of %d: %w", n, err)
			}
			all = append(all, s)
		}
	}
	return all, nil
}

// prepackBound bounds the memory of constants that operators prepack: of the 9 weights of a 3×3 kernel Winograd's
// transform makes 16.
func prepackBound(constants int64) int64 { return constants * 16 / 9 }

// memoryOf is the memory of both sessions, with that of the data.
func (v Verification) memoryOf(ctx context.Context, a, b *ir.Model, in map[string]ir.Spec, o engine.Options,
	set *dataset.Set) (int64, error) {
	first, err := v.planWith(ctx, a, in, o)
	if err != nil {
		return 0, err
	}
	second, err := v.planWith(ctx, b, in, o)
	if err != nil {
		return 0, err
	}
	outputs := first.outputs + second.outputs
	arrays := prepackBound(first.constants+second.constants) + first.arena + second.arena + outputs +
		// With one worker at most one batch is read ahead of the one that is run.
		2*set.BatchBytes(v.Data.Batch) + set.Resident()
	if o.Keep != nil {
		arrays += min(verify.EarlyBytes, first.computed)
	}
	return arrays + memory.Headroom(arrays, outputs+set.Transient(v.Data.Batch)), nil
}
