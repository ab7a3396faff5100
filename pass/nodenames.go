package pass

import (
	"strconv"

	"github.com/mcompress/mcompress/ir"
)

// nameNodes makes the names of g's nodes distinct. Some runtimes name an unnamed node by its first output, so such a
// node is named where another one has that name.
func nameNodes(g *ir.Graph) {
	count := map[string]int{} // nodes of a name
	for n := range g.Nodes() {
		count[n.Name]++
	}
	last := map[string]int{} // by stem, the last number tried
	free := func(stem string) string {
		// On from the last number of the stem: from 2 on for each node, a million nodes of one name took quadratic time.
		for last[stem] = max(last[stem], 1); ; {
			last[stem]++
			if name := stem + "_" + strconv.Itoa(last[stem]); count[name] == 0 {
				count[name] = 1
				return name
			}
		}
	}
	seen := map[string]bool{}
	for n := range g.Nodes() {
		if n.Name == "" {
			// tract names an unnamed node by its first output, and then refuses the graph for the two equal names.
			if len(n.Outputs) > 0 && n.Outputs[0] != nil && count[n.Outputs[0].Name] > 0 {
				n.Name = free(n.Outputs[0].Name)
			}
			continue
		}
		// The first node of a name keeps it, as patterns of users name it.
		if seen[n.Name] {
			n.Name = free(n.Name)
		}
		seen[n.Name] = true
	}
}
