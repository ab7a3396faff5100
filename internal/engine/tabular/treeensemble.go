package tabular

import (
	"errors"
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// newEnsemble reads the form of version 5, where nodes and leaves are numbered separately. Here leaves are stored after
// the nodes.
func newEnsemble(n *op.Node) (*ensemble, error) {
	e := &ensemble{gather: aggregate(n.Int("aggregate_function", int64(sum))),
		after: transform(n.Int("post_transform", 0))}
	if e.gather < average || e.gather > maximum || e.after < none || e.after > probit {
		return nil, fmt.Errorf("unknown aggregate_function %d or post_transform %d", e.gather, e.after)
	}
	targets, err := index32(n.Int("n_targets", 0))
	if err != nil || targets < 1 || targets > 1<<20 {
		return nil, fmt.Errorf("%d targets", n.Int("n_targets", 0))
	}
	e.targets = int(targets)
	if err := e.arrayNodes(n); err != nil {
		return nil, err
	}
	if err := e.arrayLeaves(n); err != nil {
		return nil, err
	}
	return e, e.finish()
}

func tensorAttribute(n *op.Node, name string) ([]float64, error) {
	a := n.Array(name)
	if a == nil {
		return nil, fmt.Errorf("attribute %s is missing", name)
	}
	return elements(a)
}

func (e *ensemble) arrayNodes(n *op.Node) error {
	splits, err := tensorAttribute(n, "nodes_splits")
	if err != nil {
		return err
	}
	modes, err := tensorAttribute(n, "nodes_modes")
	if err != nil {
		return err
	}
	if err := e.members(n); err != nil {
		return err
	}
	e.narrow = n.Array("nodes_splits").DType != ir.Double
	features, missing := n.Ints("nodes_featureids"), n.Ints("nodes_missing_value_tracks_true")
	count := len(splits)
	if len(missing) == 0 {
		missing = make([]int64, count)
	}
	if len(modes) != count || len(features) != count || len(missing) != count {
		return errors.New("the lists nodes_* differ in length")
	}
	e.nodes = make([]node, count)
	set := 0
	for i, m := range modes {
		// The mode becomes an index of a table.
		if !(m >= 0 && m <= float64(branchMember)) { // also for NaN
			return fmt.Errorf("unknown node mode %v", m)
		}
		e.nodes[i] = node{value: splits[i], mode: mode(m), missingTrue: missing[i] != 0}
		if e.nodes[i].feature, err = index32(features[i]); err != nil {
			return err
		}
		if e.nodes[i].mode == branchMember {
			e.nodes[i].value = float64(set)
			set++
		}
	}
	if set > len(e.sets) {
		return fmt.Errorf("%d nodes test membership, %d sets are given", set, len(e.sets))
	}
	return e.children(n)
}

// members reads the sets, which are separated by NaN.
func (e *ensemble) members(n *op.Node) error {
	if n.Array("membership_values") == nil {
		return nil
	}
	values, err := elements(n.Array("membership_values"))
	if err != nil {
		return err
	}
	var set []float64
	for _, x := range values {
		if math.IsNaN(x) {
			e.sets, set = append(e.sets, set), nil
		} else {
			set = append(set, x)
		}
	}
	if len(set) > 0 {
		e.sets = append(e.sets, set)
	}
	return nil
}

func (e *ensemble) children(n *op.Node) error {
	count := len(e.nodes)
	ids := [][]int64{n.Ints("nodes_truenodeids"), n.Ints("nodes_falsenodeids")}
	leafs := [][]int64{n.Ints("nodes_trueleafs"), n.Ints("nodes_falseleafs")}
	for side := range ids {
		if len(ids[side]) != count || len(leafs[side]) != count {
			return errors.New("the lists nodes_* differ in length")
		}
	}
	for i := range e.nodes {
		for side, child := range []*int32{&e.nodes[i].yes, &e.nodes[i].no} {
			at := ids[side][i]
			if leafs[side][i] != 0 {
				// Leaves follow the nodes in one list.
				at += int64(count)
			} else if at >= int64(count) {
				return fmt.Errorf("node %d is out of range for %d nodes", at, count)
			}
			var err error
			if *child, err = index32(at); err != nil {
				return err
			}
		}
	}
	for _, root := range n.Ints("tree_roots") {
		at, err := index32(root)
		if err != nil || int(at) >= count {
			return fmt.Errorf("tree root %d is out of range for %d nodes", root, count)
		}
		e.roots = append(e.roots, at)
	}
	return nil
}

// arrayLeaves adds the leaves, each with one vote.
func (e *ensemble) arrayLeaves(n *op.Node) error {
	weights, err := tensorAttribute(n, "leaf_weights")
	if err != nil {
		return err
	}
	targets := n.Ints("leaf_targetids")
	if len(targets) != len(weights) {
		return errors.New("the lists leaf_* differ in length")
	}
	for i, w := range weights {
		target, err := index32(targets[i])
		if err != nil {
			return err
		}
		e.votes = append(e.votes, vote{target, w})
		e.nodes = append(e.nodes, node{mode: leaf, yes: int32(i), no: int32(i + 1)})
	}
	return nil
}

func ensembleShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	e, err := prepared(n, newEnsemble)
	if err != nil {
		return nil, err
	}
	x, err := op.Tensor(in, 0, "X")
	if err != nil {
		return nil, err
	}
	if !x.DType.IsFloat() {
		return nil, fmt.Errorf("X is %s, want floats", x)
	}
	return e.regression(in, x.DType)
}

func runEnsemble(c *op.Call) error {
	e, err := prepared(c.Node, newEnsemble)
	if err != nil {
		return err
	}
	return e.regress(c)
}
