package prune

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/grad"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/prune/internal/coupling"
)

// A work is the multiply-accumulates of the products with constants that have channels, for one sample.
type work struct {
	products []*productWork
	sides    map[coupling.Channel][]productSide
}

// A productWork is that of one node: it is proportional to the channels that are left on both sides.
type productWork struct {
	all       float64
	size      [2]int // channels that it makes and reads, 1 where they are not followed
	remaining [2]int
}

// A productSide is one channel of a product.
type productSide struct {
	product *productWork
	side    int
}

func (p *productWork) remainingWork(gone [2]int) float64 {
	f := p.all
	for i := range gone {
		f *= float64(p.remaining[i]-gone[i]) / float64(p.size[i])
	}
	return f
}

// workOf counts the work on inputs of these types.
func workOf(ctx context.Context, m *ir.Model, specs map[string]ir.Spec, plan *coupling.Plan) (*work, error) {
	tape, err := grad.New(ctx, m, grad.Options{Inputs: specs, Train: func(string) bool { return false }, Bare: true})
	if err != nil {
		return nil, fmt.Errorf("--target-macs: %w", err)
	}
	w, of := &work{sides: map[coupling.Channel][]productSide{}}, map[*ir.Node]*productWork{}
	for side, list := range [2][]coupling.Source{plan.Sources(), plan.Consumers()} {
		for _, s := range list {
			p := of[s.Node]
			if p == nil {
				p = &productWork{all: macs(tape, s, side == 1), size: [2]int{1, 1}, remaining: [2]int{1, 1}}
				of[s.Node], w.products = p, append(w.products, p)
			}
			p.size[side], p.remaining[side] = len(s.Channels), len(s.Channels)
			for _, u := range s.Channels {
				w.sides[u] = append(w.sides[u], productSide{p, side})
			}
		}
	}
	return w, nil
}

// macs is the number of multiply-accumulates of s's node: each element of the constant has one for each place of a
// convolution's outputs, or for each row of inputs. It is 0 in subgraphs and functions, whose shapes depend on their
// calls.
func macs(tape *grad.Tape, s coupling.Source, reads bool) float64 {
	if s.Value.Graph() != s.Value.Graph().Model().Graph {
		return 0
	}
	places, each := s.Node.Outputs[0], s.Shape[0]
	if !s.Node.Op.Is("Conv") {
		if places = s.Node.Input(0); pass.Trace(places) != nil {
			places = s.Node.Input(1)
		}
		switch {
		case reads:
			each = s.Shape[s.Axis]
		case !s.Node.Op.Is("ConvTranspose"):
			each = s.Shape[1-s.Axis]
		}
	}
	v := tape.Value(places.Name)
	if v == nil {
		return 0
	}
	return float64(s.Value.Const.Elems()) * float64(product(tape.Shape(v))) / float64(each)
}

// total is the work that is left.
func (w *work) total() (sum float64) {
	for _, p := range w.products {
		sum += p.remainingWork([2]int{})
	}
	return sum
}

// eachProduct calls do for the products of classes, with the numbers of their channels on both sides.
func (w *work) eachProduct(classes []coupling.Channel, do func(p *productWork, gone [2]int)) {
	var order []*productWork
	gone := map[*productWork]*[2]int{}
	for _, u := range classes {
		for _, s := range w.sides[u] {
			if gone[s.product] == nil {
				gone[s.product] = &[2]int{}
				order = append(order, s.product)
			}
			gone[s.product][s.side]++
		}
	}
	for _, p := range order {
		do(p, *gone[p])
	}
}

// savings is the work that removing classes saves.
func (w *work) savings(classes []coupling.Channel) (sum float64) {
	w.eachProduct(classes, func(p *productWork, gone [2]int) {
		sum += p.remainingWork([2]int{}) - p.remainingWork(gone)
	})
	return sum
}

func (w *work) remove(classes []coupling.Channel) {
	w.eachProduct(classes, func(p *productWork, gone [2]int) {
		for i, n := range gone {
			p.remaining[i] -= n
		}
	})
}

// A unit is the next classes of a group to remove: those of least importance.
type unit struct {
	group   int
	classes []coupling.Channel
	sum     float64 // importances of the classes of the group that are removed
	loss    float64 // of the units up to this one, less that of those before
	price   float64 // loss per multiply-accumulate saved, when it was computed; savings only decrease
	rest    []coupling.Channel
	stay    int // further classes of the group, which are the last ones of an axis
}

// A queue has the next unit of each group, the cheapest first.
type queue []*unit

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(q[i].price, q[j].price), cmp.Compare(q[i].group, q[j].group)) < 0
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(*unit)) }
func (q *queue) Pop() any {
	u := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return u
}

// chooseWithin marks classes of all groups that are pruned: those of least importance per multiply-accumulate that they
// save, until at most a fraction of the work is left. Groups with a reason keep all.
func (o Channel) chooseWithin(w *work, groups []*coupling.Group, worth map[coupling.Channel]float64, left *leftChannels,
	pruned map[coupling.Channel]bool) error {
	whole := w.total()
	if o.before != nil {
		if *o.before == 0 {
			*o.before = whole
		}
		whole = *o.before
	}
	var q queue
	push := func(u *unit) {
		if o.takeUnit(groups[u.group], u, worth, left) {
			u.price = u.loss / w.savings(u.classes)
			heap.Push(&q, u)
		}
	}
	for i, g := range groups {
		if g.Reason.None() {
			push(&unit{group: i, rest: byWorth(g.Classes, worth)})
		}
	}
	for w.total() > o.TargetMACs*whole {
		if q.Len() == 0 {
			return fmt.Errorf("--target-macs %v: %.3f are left with one channel of each group that can be pruned", o.TargetMACs,
				w.total()/whole)
		}
		u := heap.Pop(&q).(*unit)
		// Savings only decrease while channels are removed, so that prices only rise: the first unit whose price is up
		// to date is the cheapest.
		if price := u.loss / w.savings(u.classes); price > u.price {
			u.price = price
			heap.Push(&q, u)
			continue
		}
		if !left.loseAll(u.classes) { // since take, another group has lost the other classes of an axis
			u.rest = slices.Concat(u.classes, u.rest)
			for _, c := range u.classes {
				u.sum -= worth[c]
			}
			push(u)
			continue
		}
		w.remove(u.classes)
		for _, c := range u.classes {
			pruned[c] = true
		}
		push(u)
	}
	return nil
}

// takeUnit sets the next classes of u; false if the rest has to stay. What is left is a multiple of --round
// channels. The changes of outputs by the classes of a group may add up, so that its loss is the square of the sum
// of their importances.
func (o Channel) takeUnit(g *coupling.Group, u *unit, worth map[coupling.Channel]float64, left *leftChannels) bool {
	n := u.stay + len(u.rest)
	stay := n - 1
	for stay > 0 && stay*g.Each%o.Round != 0 {
		stay--
	}
	if stay <= 0 {
		return false
	}
	u.classes = nil
	for len(u.classes) < n-stay {
		if len(u.rest) == 0 {
			left.restore(u.classes)
			return false
		}
		if c := u.rest[0]; left.lose(c) {
			u.classes = append(u.classes, c)
		} else {
			u.stay++
		}
		u.rest = u.rest[1:]
	}
	left.restore(u.classes) // until they are removed
	before := u.sum
	for _, c := range u.classes {
		u.sum += worth[c]
	}
	u.loss = u.sum*u.sum - before*before
	return true
}
