package grad

import (
	"slices"
	"sync"

	"github.com/mcompress/mcompress/ir"
)

// A Rule says how gradients pass through one operator.
type Rule struct {
	Domain, Type string // the domain is empty for ONNX's own

	// Forward, where set, puts nodes that keep what Backward reads in n's place, and removes n.
	// Shapes are known; the new nodes' types must be told to the tape, as Tape.Typed does.
	Forward func(t *Tape, n *ir.Node) error

	// Backward gives the gradient of each of n's inputs, nil for those that have none or
	// need none, from the gradients of its outputs, of which at least one is not nil. A nil Backward says that no
	// gradient passes: the result does not depend on the inputs, or jumps.
	Backward gradient
}

type gradient = func(t *Tape, n *ir.Node, dy []*ir.Value) ([]*ir.Value, error)

// families is the list of rules: one line a family.
var families = [][]Rule{
	batchNorms,
	convolutions,
	elementwise,
	functions,
	linear,
	movement,
	pools,
	indexed,
	reductions,
	normalizations,
	attentions,
	seededDropout,
	straightThrough,
	still,
}

type ruleKey struct{ domain, typ string }

var table = sync.OnceValue(func() map[ruleKey]*Rule {
	rules := map[ruleKey]*Rule{}
	for _, family := range families {
		for _, r := range family {
			rules[ruleKey{r.Domain, r.Type}] = &r
		}
	}
	return rules
})

// lookup is the rule for id, nil if there is none.
func lookup(id ir.OpID) *Rule {
	domain := id.Domain
	if ir.DefaultDomain(domain) || domain == newest {
		domain = ""
	}
	return table()[ruleKey{domain, id.Type}]
}

// still are operators through which no gradient passes.
var still = func() []Rule {
	var rules []Rule
	for _, typ := range slices.Concat(comparisons, counts) {
		rules = append(rules, Rule{Type: typ})
	}
	return rules
}()

var (
	comparisons = []string{"And", "Equal", "Greater", "GreaterOrEqual", "IsInf", "IsNaN", "Less", "LessOrEqual", "Not", "Or", "Xor"}
	counts      = []string{"ArgMax", "ArgMin", "Ceil", "ConstantOfShape", "EyeLike", "Floor", "NonZero", "OneHot", "Range", "Round", "Shape", "Sign", "Size"}
)
