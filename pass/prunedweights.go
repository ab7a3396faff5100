package pass

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/mcompress/mcompress/internal/bounded"
	"github.com/mcompress/mcompress/ir"
)

// KeyPruned is the key of a model's metadata that has the names of the weights with pruned elements, as a JSON array.
// Zeros of other weights are values like any other, such as those of a head that is initialized with zeros.
const KeyPruned = "mcompress.pruned"

// PrunedWeights are the names of the weights with pruned elements, by the metadata of m.
func PrunedWeights(m *ir.Model) map[string]bool {
	all := map[string]bool{}
	for _, e := range m.Meta {
		var names []string
		if e.Key != KeyPruned || bounded.JSON([]byte(e.Value), &names) != nil {
			continue
		}
		for _, name := range names {
			all[name] = true
		}
	}
	return all
}

// recordPruned adds the weights that rows pruned to the metadata of m. A weight from which channels were removed has no
// pruned elements.
func recordPruned(m *ir.Model, rows []Row) error {
	all := PrunedWeights(m)
	before := len(all)
	for _, r := range rows {
		// Equal sizes: removed channels leave no zeros behind that a training would have to keep.
		if r.Status == Changed && slices.ContainsFunc(r.Notes, isPruned) && len(r.After) == 1 &&
			r.After[0].Elems() == r.Before.Elems() {
			all[r.Tensor] = true
		}
	}
	if len(all) == before {
		return nil
	}
	text, err := json.Marshal(slices.Sorted(maps.Keys(all)))
	if err != nil {
		return err
	}
	m.Meta = slices.DeleteFunc(slices.Clone(m.Meta), func(e ir.Entry) bool { return e.Key == KeyPruned })
	m.Meta = append(m.Meta, ir.Entry{Key: KeyPruned, Value: string(text)})
	return nil
}
