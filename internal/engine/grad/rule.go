package grad

import (
	"sync"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// A rule is the gradient of one operator.
type rule struct {
	Domain, Type string // the domain is empty for ONNX's own

	// Forward, if set, replaces n by nodes that store the values that Backward consumes, and removes n. Shapes are
	// known; the types of new nodes are set by Tape.SetType.
	Forward func(t *Tape, n *ir.Node) error

	// Backward returns the gradient of each of n's inputs, nil for those that have none or need none, from the
	// gradients of its outputs, of which at least one is not nil. Without Backward no gradient passes: the result does
	// not depend on the inputs, or is piecewise constant.
	Backward gradient
}

type gradient = func(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error)

// families is the list of rules: one line per family.
var families = [][]rule{
	batchNorms,
	convolutions,
	elementwise,
	functions,
	linear,
	movement,
	pools,
	indexRules,
	recurrents,
	reductions,
	rotaries,
	normalizations,
	attentions,
	seededDropout,
	straightThrough,
	sharedWeight,
}

type ruleKey struct{ domain, typ string }

var table = sync.OnceValue(func() map[ruleKey]*rule {
	rules := map[ruleKey]*rule{}
	for _, family := range families {
		for _, r := range family {
			rules[ruleKey{r.Domain, r.Type}] = &r
		}
	}
	return rules
})

// lookup returns the rule for id, nil if there is none.
func lookup(id ir.OpID) *rule {
	if operator.Lookup(id).ZeroGradient {
		return &rule{Type: id.Type}
	}
	domain := id.Domain
	if ir.DefaultDomain(domain) || domain == newest {
		domain = ""
	}
	return table()[ruleKey{domain, id.Type}]
}
