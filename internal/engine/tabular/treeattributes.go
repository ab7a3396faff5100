package tabular

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// trees are the operators whose nodes are given as parallel lists.
func trees() []op.Op {
	return []op.Op{
		{Type: "TreeEnsembleClassifier", Since: 1, Shape: classifierShape, Run: runClassifier,
			Prepare: prepare(newClassifier)},
		{Type: "TreeEnsembleRegressor", Since: 1, Shape: regressorShape, Run: runRegressor,
			Prepare: prepare(newRegressor)},
		{Type: "TreeEnsemble", Since: 5, Shape: ensembleShape, Run: runEnsemble, Prepare: prepare(newEnsemble)},
	}
}

// A nodeID is the identifier of a node in the lists.
type nodeID struct{ tree, node int64 }

// listed reads the trees from the lists nodes_*, and the votes of leaves from the lists with that prefix, whose targets
// are in ids.
func listed(n *op.Node, prefix, ids string, targets int) (*ensemble, error) {
	e := &ensemble{targets: targets, gather: sum}
	wide := false
	for _, name := range []string{"nodes_values", "base_values", prefix + "_weights"} {
		wide = wide || n.Array(name+"_as_tensor") != nil
	}
	e.narrow = !wide
	at, err := e.listNodes(n)
	if err != nil {
		return nil, err
	}
	if err := e.listVotes(n, at, prefix, ids); err != nil {
		return nil, err
	}
	if e.base, err = reals(n, "base_values"); err != nil {
		return nil, err
	}
	if e.after, err = transformOf(n.Text("post_transform", "NONE")); err != nil {
		return nil, err
	}
	return e, e.finish()
}

// reals is a list of floats, or the tensor attribute that replaces it.
func reals(n *op.Node, name string) ([]float64, error) {
	if a := n.Array(name + "_as_tensor"); a != nil {
		return elements(a)
	}
	list := n.Floats(name)
	out := make([]float64, len(list))
	for i, x := range list {
		out[i] = float64(x)
	}
	return out, nil
}

func elements(a *ir.Array) ([]float64, error) {
	if err := number.Check(a.DType); err != nil {
		return nil, err
	}
	out := make([]float64, a.Elems())
	number.Read(out, a, 0)
	return out, nil
}

// listNodes reads the nodes. The first one of each tree is its root.
func (e *ensemble) listNodes(n *op.Node) (map[nodeID]int32, error) {
	values, err := reals(n, "nodes_values")
	if err != nil {
		return nil, err
	}
	modes, missing := n.Texts("nodes_modes"), n.Ints("nodes_missing_value_tracks_true")
	lists := [][]int64{n.Ints("nodes_treeids"), n.Ints("nodes_nodeids"), n.Ints("nodes_featureids"),
		n.Ints("nodes_truenodeids"), n.Ints("nodes_falsenodeids")}
	count := len(modes)
	if len(missing) == 0 {
		missing = make([]int64, count)
	}
	for _, list := range append(lists, missing) {
		if len(list) != count || len(values) != count {
			return nil, errors.New("the lists nodes_* differ in length")
		}
	}
	at := make(map[nodeID]int32, count)
	seen := map[int64]bool{}
	for i := range count {
		tree := lists[0][i]
		if !seen[tree] {
			seen[tree], e.roots = true, append(e.roots, int32(i))
		}
		at[nodeID{tree, lists[1][i]}] = int32(i)
	}
	e.nodes = make([]node, count)
	for i, name := range modes {
		m, ok := modeNames[name]
		if !ok {
			return nil, fmt.Errorf("unknown node mode %q", name)
		}
		e.nodes[i] = node{value: values[i], mode: m, missingTrue: missing[i] != 0}
		if m == leaf {
			continue
		}
		if e.nodes[i].feature, err = index32(lists[2][i]); err != nil {
			return nil, err
		}
		for k, child := range []*int32{&e.nodes[i].yes, &e.nodes[i].no} {
			id := nodeID{lists[0][i], lists[3+k][i]}
			if *child, ok = at[id]; !ok {
				return nil, fmt.Errorf("node %d of tree %d does not exist", id.node, id.tree)
			}
		}
	}
	return at, nil
}

var modeNames = map[string]mode{
	"BRANCH_LEQ": branchLEQ, "BRANCH_LT": branchLT, "BRANCH_GTE": branchGTE, "BRANCH_GT": branchGT,
	"BRANCH_EQ": branchEQ, "BRANCH_NEQ": branchNEQ, "LEAF": leaf,
}

func index32(x int64) (int32, error) {
	if x < 0 || x >= 1<<31 {
		return 0, fmt.Errorf("index %d is out of range", x)
	}
	return int32(x), nil
}

// listVotes sorts the votes by leaf, those of one leaf in the order of the list.
func (e *ensemble) listVotes(n *op.Node, at map[nodeID]int32, prefix, ids string) error {
	weights, err := reals(n, prefix+"_weights")
	if err != nil {
		return err
	}
	treeIDs, nodeIDs, targets := n.Ints(prefix+"_treeids"), n.Ints(prefix+"_nodeids"), n.Ints(ids)
	count := len(weights)
	if len(treeIDs) != count || len(nodeIDs) != count || len(targets) != count {
		return fmt.Errorf("the lists %s_* differ in length", prefix)
	}
	leaves, order := make([]int32, count), make([]int, count)
	for i := range order {
		id, ok := nodeID{treeIDs[i], nodeIDs[i]}, false
		if leaves[i], ok = at[id]; !ok {
			return fmt.Errorf("vote of node %d of tree %d, which does not exist", id.node, id.tree)
		}
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(leaves[a]) - int(leaves[b]) })
	for k, i := range order {
		target, err := index32(targets[i])
		if err != nil {
			return err
		}
		e.votes = append(e.votes, vote{target, weights[i]})
		// The fields of an inner node are its children, so that votes for one are not counted.
		if l := &e.nodes[leaves[i]]; l.mode == leaf {
			if k == 0 || leaves[order[k-1]] != leaves[i] {
				l.yes = int32(k)
			}
			l.no = int32(k + 1)
		}
	}
	return nil
}

func newRegressor(n *op.Node) (*ensemble, error) {
	targets, err := index32(n.Int("n_targets", 0))
	if err != nil || targets < 1 || targets > 1<<20 {
		return nil, fmt.Errorf("%d targets", n.Int("n_targets", 0))
	}
	e, err := listed(n, "target", "target_ids", int(targets))
	if err != nil {
		return nil, err
	}
	names := []string{"AVERAGE", "SUM", "MIN", "MAX"}
	at := slices.Index(names, n.Text("aggregate_function", "SUM"))
	if at < 0 {
		return nil, fmt.Errorf("aggregate_function is %q, want one of %v", n.Text("aggregate_function", ""), names)
	}
	e.gather = aggregate(at)
	if len(e.base) != 0 && len(e.base) != e.targets {
		return nil, fmt.Errorf("%d base values for %d targets", len(e.base), e.targets)
	}
	return e, nil
}

func regressorShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	e, err := prepared(n, newRegressor)
	if err != nil {
		return nil, err
	}
	return e.regression(in, ir.Float)
}

func runRegressor(c *op.Call) error {
	e, err := prepared(c.Node, newRegressor)
	if err != nil {
		return err
	}
	return e.regress(c)
}
