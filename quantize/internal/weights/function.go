package weights

import (
	"github.com/mcompress/mcompress/ir"
)

// CallsFunction reports whether n calls one of m's own functions.
func CallsFunction(m *ir.Model, n *ir.Node) bool {
	for _, f := range m.Functions {
		if f.ID == n.Op || ir.DefaultDomain(f.ID.Domain) && f.ID.Overload == n.Op.Overload && n.Op.Is(f.ID.Type) {
			return true
		}
	}
	return false
}
