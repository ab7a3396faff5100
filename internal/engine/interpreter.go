package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// An Interpreter is the embedded backend.
type Interpreter struct {
	prog     *program
	pool     *op.Pool
	eval     *ir.Eval
	account  *op.Account
	opt      Options
	inputs   []op.Port
	outputs  []op.Port
	weights  int64        // bytes of constants and of operators' prepacked weights
	streamed int64        // bytes of constants that are read for each run
	loaded   int64        // bytes in the account after loading
	shared   *sharedState // nil if no other session shares values with this one
	recycled recyclePool  // memory for results
}

// Open prepares m for runs and reads its weights. The files of m stay in use until Close. An operator that the engine
// does not implement is an *Unsupported error, returned before any weight is read.
func Open(ctx context.Context, m *ir.Model, o Options) (*Interpreter, error) {
	o.Limits = o.Limits.Resolved()
	e := &Interpreter{pool: op.NewPool(o.Workers), eval: ir.NewEval(""), opt: o, inputs: ports(given(m.Graph)),
		outputs: ports(m.Graph.Outputs)}
	e.account = op.NewAccount(o.Limits.Memory, e.Free)
	if err := e.load(ctx, m); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

func (e *Interpreter) load(ctx context.Context, m *ir.Model) (err error) {
	defer ir.Guard(&err) // a graph that no rule expected
	c := &compiler{ctx: ctx, model: m, opt: e.opt, eval: e.eval, account: e.account, keep: map[string]bool{},
		consts: map[*ir.Tensor]*constant{}}
	for _, name := range e.opt.Keep {
		c.keep[name] = true
	}
	// The compiler refuses unsupported operators, so that this error comes before any weight is read.
	if e.prog, err = c.main(); err != nil {
		return err
	}
	l := &loader{ctx: ctx, eval: e.eval, pool: e.pool, account: e.account, planOnly: e.opt.PlanOnly,
		budget: e.opt.Limits.Weights, store: e.opt.Store}
	// Results of constant folding count against the weight limit: a small file can fold to gigabytes.
	if l.budget == 0 {
		l.budget = math.MaxInt64 // the account bounds it
	}
	// Before the first constant is read: those of the baseline are shared instead (sharedConstant).
	if e.opt.Baseline != nil {
		l.baseline = e.opt.Baseline.shared
	}
	// Before weights are read, so that a damaged store costs little: the caller opens the model again without it.
	if err := l.store.open(e.pool); err != nil {
		return err
	}
	// Fusions look for factors, axes and shapes as constants, and exporters compute them by nodes. Large results have
	// to wait: a fusion may keep a weight in a smaller form than the folded one.
	if err := e.prog.each(l.foldSmall); err != nil {
		return err
	}
	// Before uses are counted, as fusions remove and add consumers; before operators prepack weights, which another
	// operator would pack otherwise.
	if !e.opt.NoFusion {
		if err := e.prog.each(fuse); err != nil {
			return err
		}
	}
	// After fusion, which can move consumers of a weight behind the step that updates it.
	e.prog.scheduleWrites()
	// The digests need the data of small constants, which are released below, and the final operators.
	if e.opt.Identity != nil {
		e.recordShared(c.consts)
		l.shared = e.shared
	}
	// Before uses are counted: steps that only compute what the baseline has are removed, and their weights must not be
	// read.
	if l.baseline != nil && e.shared != nil {
		e.reuseValues(l.baseline)
	}
	// No step is added or removed by pattern any more. Each later release of a constant is against these counts.
	if err := e.prog.each((*program).count); err != nil {
		return err
	}
	// All programs must be counted first: subgraphs use constants of the enclosing graph.
	if err := e.prog.each(l.freeUnused); err != nil {
		return err
	}
	// Needs the counts, as a table that only Gather reads is cheaper to stream. Must precede folding: steps on a
	// streamed constant are not folded, nor is it prepacked.
	e.streamed = chooseStreamed(c.consts, e.opt.Limits.Weights)
	// The store identifies constants by program and slot, so programs are numbered when no more slots are added by
	// fusions.
	if err := e.prog.each(l.start); err != nil {
		return err
	}
	// The pass that reads the weights. Small constants, fusions, counts and streaming are settled, so each is read once
	// and released as soon as it is packed.
	if err := e.prog.each(l.foldAndPrepare); err != nil {
		return err
	}
	// After prepacking: which layouts a convolution supports follows from the form of its packed weights (grouped
	// sparse ones need channels first).
	if err := e.prog.each(l.storeChannelsLast); err != nil {
		return err
	}
	// A plan needs types, and no data.
	if e.opt.PlanOnly {
		return nil
	}
	// Only what steps use unpacked is left: reading it earlier would hold it beside the weights that are being packed.
	if err := e.prog.each(l.readRest); err != nil {
		return err
	}
	// All constants that runs use have their data now. A store that was read is compared with the program that it was
	// loaded into.
	if err := l.store.finish(e.prog); err != nil {
		return err
	}
	e.weights = l.prepared + e.prog.heldBytes()
	e.loaded = e.account.Held()
	// Last, as it gives names to slots of steps that remained.
	if e.shared != nil {
		e.exportShared()
	}
	return nil
}

// heldBytes is the number of bytes of constants in memory.
func (p *program) heldBytes() int64 {
	seen := map[*constant]bool{}
	bytes := int64(0)
	_ = p.each(func(p *program) error {
		for _, s := range p.slots {
			if s.constant != nil && !seen[s.constant] {
				seen[s.constant] = true
				bytes += int64(len(s.constant.array.Data))
				if s.constant.packed != nil {
					bytes += s.constant.packed.Bytes()
				}
			}
		}
		return nil
	})
	return bytes
}

func ports(vs []*ir.Value) []op.Port {
	var ps []op.Port
	for _, v := range vs {
		ps = append(ps, op.Port{Name: v.Name, Type: v.Type})
	}
	return ps
}

// given lists g's inputs without those that have initializers.
func given(g *ir.Graph) []*ir.Value {
	return slices.DeleteFunc(slices.Clone(g.Inputs), func(v *ir.Value) bool { return v.Initializer() != nil })
}

// Inputs are the model's inputs without those that have initializers.
func (e *Interpreter) Inputs() []op.Port { return e.inputs }

// Outputs are the model's outputs.
func (e *Interpreter) Outputs() []op.Port { return e.outputs }

// Weights is the number of bytes of weights in memory, and of those that are read for each run.
func (e *Interpreter) Weights() (held, streamed int64) { return e.weights, e.streamed }

// Observe sets the profiler of later runs. It must not be called while one runs.
func (e *Interpreter) Observe(p Profiler) { e.opt.Profile = p }

// SetWorkers sets the number of worker threads of later runs. It must not be called while one runs.
func (e *Interpreter) SetWorkers(n int) {
	// Scratch memory in the plans is for each worker, so that plans of another number are invalid.
	e.Free()
	e.pool.Close()
	e.pool = op.NewPool(n)
	_ = e.prog.each(func(p *program) error {
		p.plans.entries = nil
		return nil
	})
}

// A Memory is the memory that a session has, in bytes.
type Memory struct {
	Weights int64 // constants, and the weights that operators prepacked
	Idle    int64 // arenas that are kept for later runs, of at most four plans of each graph, and recycled results
	Running int64 // arenas and other values of runs; 0 between runs
}

// Memory returns the memory that the session has now.
func (e *Interpreter) Memory() Memory {
	m := Memory{Weights: e.weights, Idle: e.recycled.idle()}
	_ = e.prog.each(func(p *program) error {
		// Subgraphs have plans and arenas of their own.
		m.Idle += p.plans.idle()
		return nil
	})
	m.Running = e.account.Held() - e.loaded - m.Idle
	return m
}

// Free releases the memory that earlier runs left for later ones.
func (e *Interpreter) Free() {
	e.recycled.free(e.account)
	if e.prog == nil {
		return
	}
	_ = e.prog.each(func(p *program) error {
		p.plans.free(e.account)
		return nil
	})
}

// Close stops the worker threads and removes temporary files.
func (e *Interpreter) Close() error {
	e.pool.Close()
	return errors.Join(e.eval.Close(), e.opt.Store.close())
}

// Run computes the values named by fetch, or all outputs.
func (e *Interpreter) Run(ctx context.Context, in map[string]*ir.Array, fetch []string) (map[string]*ir.Array, error) {
	if len(fetch) == 0 {
		for _, o := range e.outputs {
			fetch = append(fetch, o.Name)
		}
	}
	got, err := e.compute(ctx, in, fetch, nil)
	if err != nil {
		return nil, err
	}
	out := map[string]*ir.Array{}
	for _, name := range fetch {
		a := got[e.prog.names[name]]
		if a == nil {
			return nil, fmt.Errorf("value %q was not computed", name)
		}
		out[name] = a
	}
	return out, nil
}

// Watch is Run without copies: it passes each value to visit when it is computed, in that order. An array is valid
// until visit returns; the run continues with changes that visit makes to it.
func (e *Interpreter) Watch(ctx context.Context, in map[string]*ir.Array, fetch []string,
	visit func(name string, a *ir.Array) error) error {
	names := map[int][]string{}
	for _, name := range fetch {
		if i, ok := e.prog.names[name]; ok {
			names[i] = append(names[i], name)
		}
	}
	_, err := e.compute(ctx, in, fetch, func(slot int, a *ir.Array) error {
		for _, name := range names[slot] {
			if err := visit(name, a); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

// compute runs the program. It returns copies of the named slots, or the slots that watch was called for.
func (e *Interpreter) compute(ctx context.Context, in map[string]*ir.Array, fetch []string,
	watch func(int, *ir.Array) error) (map[int]*ir.Array, error) {
	if e.opt.PlanOnly {
		return nil, errors.New("the model was opened with PlanOnly: its weights are not loaded")
	}
	args, err := e.arguments(in)
	if err != nil {
		return nil, err
	}
	slots := map[int]bool{}
	for _, name := range fetch {
		i, ok := e.prog.names[name]
		if !ok {
			return nil, fmt.Errorf("value %q is neither an output nor a kept value", name)
		}
		slots[i] = true
	}
	r := &execution{ctx: ctx, pool: e.pool, eval: e.eval, account: e.account, recycled: &e.recycled,
		arena: e.opt.Arena, profile: e.opt.Profile, maxSteps: e.opt.Limits.Steps, watch: watch, direct: watch == nil}
	defer func() { e.account.Release(r.copied) }()
	// The whole run: values are in the arena until they are copied for the caller.
	defer e.opt.Arena.lock()()
	return e.prog.exec(r, args, slots)
}

// arguments orders the inputs and checks them against the model's declaration.
func (e *Interpreter) arguments(in map[string]*ir.Array) ([]*ir.Array, error) {
	for name := range in {
		if !slices.ContainsFunc(e.inputs, func(p op.Port) bool { return p.Name == name }) {
			return nil, fmt.Errorf("unknown input %q; the model's inputs are %s", name, names(e.inputs))
		}
	}
	args := make([]*ir.Array, len(e.inputs))
	for i, p := range e.inputs {
		a := in[p.Name]
		if a == nil {
			return nil, fmt.Errorf("input %q is missing", p.Name)
		}
		if err := fits(p, a); err != nil {
			return nil, fmt.Errorf("input %q: %w", p.Name, err)
		}
		args[i] = a
	}
	return args, nil
}

func names(ps []op.Port) string {
	var out []string
	for _, p := range ps {
		out = append(out, fmt.Sprintf("%q", p.Name))
	}
	return strings.Join(out, ", ")
}

// fits checks an input's data, and its type against the declaration.
func fits(p op.Port, a *ir.Array) error {
	if a.Kind != ir.Dense {
		return nil
	}
	if err := op.Valid(a.Spec()); err != nil {
		return err
	}
	if int64(len(a.Data)) != a.Bytes() || a.DType == ir.String && int64(len(a.Text)) != a.Elems() {
		return fmt.Errorf("%d bytes for %s", len(a.Data), a)
	}
	return declared(p, a)
}

// declared checks an input's type against the declaration. A symbolic dimension may have different sizes in different
// inputs: ONNX Runtime only warns of such models, and runs them.
func declared(p op.Port, a *ir.Array) error {
	if p.Type == nil {
		return nil
	}
	if p.Type.Elem != ir.Undefined && p.Type.Elem != a.DType {
		return fmt.Errorf("type is %s, the model declares %s", a.DType, p.Type.Elem)
	}
	if p.Type.Shape == nil {
		return nil
	}
	if len(p.Type.Shape) != len(a.Shape) {
		return fmt.Errorf("shape is %v, the model declares rank %d", a.Shape, len(p.Type.Shape))
	}
	for k, d := range p.Type.Shape {
		if d.Known() && d.N != a.Shape[k] {
			return fmt.Errorf("axis %d has size %d, the model declares %d", k, a.Shape[k], d.N)
		}
	}
	return nil
}

// An execution is the state that one call of Run shares among programs.
type execution struct {
	ctx      context.Context
	pool     *op.Pool
	eval     *ir.Eval
	account  *op.Account
	recycled *recyclePool
	arena    *Arena
	profile  Profiler
	maxSteps int64 // 0 for no limit
	steps    int64 // so far
	// steps write fetched values into arrays of the caller, where no other value has their memory
	direct bool
	copied int64                             // bytes of fetched values
	watch  func(slot int, a *ir.Array) error // called with fetched values instead of copying them; may be nil
}

// allocate returns an array of a's type that the caller of the run gets, computed by step s. Its memory is recycled if
// possible.
func (r *execution) allocate(s *step, a *ir.Array) (*ir.Array, error) {
	n := a.Bytes()
	data, size := r.recycled.take(n)
	if data == nil {
		if err := r.account.Take(size); err != nil {
			return nil, s.wrap(err)
		}
		data = ir.AlignedBytes(size)
	}
	r.copied += int64(len(data))
	return &ir.Array{DType: a.DType, Shape: slices.Clone(a.Shape), Data: data[:n]}, nil
}

// fetched handles a fetched value of step s, nil if it is no result of a step: it copies the value, or calls watch.
func (r *execution) fetched(s *step, slot int, a *ir.Array) (*ir.Array, error) {
	if r.watch != nil {
		return a, r.watch(slot, a)
	}
	n := op.Held(a)
	if err := r.account.Take(n); err != nil && s != nil {
		return nil, s.wrap(err)
	} else if err != nil {
		return nil, err
	}
	r.copied += n
	return a.Clone(), nil
}

// keptPlans is the number of plans that a program keeps for later runs with the same types.
const keptPlans = 4
