package tabular

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// An ensemble is trees whose leaves vote for targets.
type ensemble struct {
	nodes   []node
	votes   []vote
	sets    [][]float64 // sets, for nodes that test membership
	roots   []int32
	targets int
	base    []float64 // per target, or empty
	reach   int       // number of features that the nodes read: one more than the last index
	simple  bool      // every comparison is <=, and NaN takes the false branch
	narrow  bool      // sums are rounded to float32
	gather  aggregate
	after   transform
}

// A node compares a feature with a value and selects a child. For a leaf, true and false are the range of its votes.
type node struct {
	value       float64
	feature     int32
	yes, no     int32
	mode        mode
	missingTrue bool // NaN takes the true branch
}

// A vote is a leaf's contribution to a target.
type vote struct {
	target int32
	weight float64
}

// A mode is the comparison of a node, numbered as in TreeEnsemble's attribute.
type mode uint8

const (
	branchLEQ mode = iota
	branchLT
	branchGTE
	branchGT
	branchEQ
	branchNEQ
	branchMember
	leaf
)

// An aggregate is the way in which votes for one target are combined, numbered as in TreeEnsemble's attribute.
type aggregate int

const (
	average aggregate = iota
	sum
	minimum
	maximum
)

// finish checks that each inner node has one parent, so that every traversal ends, and precomputes data for fast
// traversals.
func (e *ensemble) finish() error {
	seen := make([]bool, len(e.nodes))
	open := append([]int32(nil), e.roots...)
	e.simple = true
	for len(open) > 0 {
		i := open[len(open)-1]
		open = open[:len(open)-1]
		if i < 0 || int(i) >= len(e.nodes) {
			return fmt.Errorf("node %d of the trees does not exist", i)
		}
		n := e.nodes[i]
		// A leaf may have several parents: it ends a traversal in any case.
		if n.mode == leaf {
			continue
		}
		if seen[i] {
			return fmt.Errorf("node %d of the trees has two parents", i)
		}
		seen[i] = true
		if n.feature < 0 {
			return fmt.Errorf("node %d of the trees has feature %d", i, n.feature)
		}
		e.reach = max(e.reach, int(n.feature)+1)
		e.simple = e.simple && n.mode == branchLEQ && !n.missingTrue
		open = append(open, n.yes, n.no)
	}
	for _, v := range e.votes {
		if v.target < 0 || int(v.target) >= e.targets {
			return fmt.Errorf("a leaf votes for target %d of %d", v.target, e.targets)
		}
	}
	return nil
}

// leafOf descends from a root to a leaf.
func (e *ensemble) leafOf(root int32, row []float64) node {
	n := &e.nodes[root]
	if e.simple {
		// A loop of its own for the usual trees, without the switch over modes.
		for n.mode != leaf {
			if row[n.feature] <= n.value {
				n = &e.nodes[n.yes]
			} else {
				n = &e.nodes[n.no]
			}
		}
		return *n
	}
	for n.mode != leaf {
		if e.holds(n, row[n.feature]) {
			n = &e.nodes[n.yes]
		} else {
			n = &e.nodes[n.no]
		}
	}
	return *n
}

func (e *ensemble) holds(n *node, x float64) bool {
	if n.missingTrue && math.IsNaN(x) {
		return true
	}
	switch n.mode {
	case branchLEQ:
		return x <= n.value
	case branchLT:
		return x < n.value
	case branchGTE:
		return x >= n.value
	case branchGT:
		return x > n.value
	case branchEQ:
		return x == n.value
	case branchNEQ:
		return x != n.value
	}
	for _, member := range e.sets[int(n.value)] {
		if x == member {
			return true
		}
	}
	return false
}

// score combines the votes of all trees for a row. voted marks the targets with votes.
func (e *ensemble) score(row, scores []float64, voted []bool) {
	clear(scores)
	clear(voted)
	for _, root := range e.roots {
		l := e.leafOf(root, row)
		for _, v := range e.votes[l.yes:l.no] {
			scores[v.target] = e.combine(scores[v.target], v.weight, voted[v.target])
			voted[v.target] = true
		}
	}
	if e.gather == average {
		for i := range scores {
			scores[i] = e.rounded(scores[i] / float64(len(e.roots)))
		}
	}
}

func (e *ensemble) combine(score, weight float64, voted bool) float64 {
	switch {
	case !voted:
		return weight
	case e.gather == minimum:
		return min(score, weight)
	case e.gather == maximum:
		return max(score, weight)
	}
	return e.rounded(score + weight)
}

func (e *ensemble) rounded(x float64) float64 {
	if e.narrow {
		return float64(float32(x))
	}
	return x
}

// each calls f with the scores of every row of input X. f's arguments are valid until it returns.
func (e *ensemble) each(c *op.Call, f func(row int, scores []float64, voted []bool)) error {
	x, rows, features, err := table(c.In)
	if err != nil {
		return err
	}
	if features < e.reach {
		return fmt.Errorf("X is %s, the trees read feature %d", x, e.reach-1)
	}
	const grain = 2048 // minimum number of traversals per task
	c.Pool.Rows(rows, max(1, grain/max(1, len(e.roots))), func(from, to int) {
		row, scores, voted := make([]float64, features), make([]float64, e.targets), make([]bool, e.targets)
		for i := from; i < to; i++ {
			number.Read(row, x, i*features)
			e.score(row, scores, voted)
			f(i, scores, voted)
		}
	})
	return nil
}

// regress writes the scores, with the base values and after the transform.
func (e *ensemble) regress(c *op.Call) error {
	return e.each(c, func(i int, scores []float64, _ []bool) {
		for k, b := range e.base {
			scores[k] = e.rounded(scores[k] + b)
		}
		e.after.apply(scores)
		number.Write(c.Out[0], i*e.targets, scores)
	})
}

// regression is the type of regress's output.
func (e *ensemble) regression(in []*ir.Array, dt ir.DType) ([]ir.Spec, error) {
	_, rows, _, err := table(in)
	if err != nil {
		return nil, err
	}
	return op.One(dt, int64(rows), int64(e.targets))
}
