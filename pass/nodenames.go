package pass

import (
	"strconv"

	"github.com/mcompress/mcompress/ir"
)

// nameNodes makes the names of g's nodes distinct. An unnamed node has the name of its first output in some runtimes, so it is named
// where another node has that one.
func nameNodes(g *ir.Graph) {
	count := map[string]int{} // nodes of a name
	for n := range g.Nodes() {
		count[n.Name]++
	}
	free := func(stem string) string {
		for i := 2; ; i++ {
			if name := stem + "_" + strconv.Itoa(i); count[name] == 0 {
				count[name] = 1
				return name
			}
		}
	}
	seen := map[string]bool{}
	for n := range g.Nodes() {
		if n.Name == "" {
			if len(n.Outputs) > 0 && n.Outputs[0] != nil && count[n.Outputs[0].Name] > 0 {
				n.Name = free(n.Outputs[0].Name)
			}
			continue
		}
		if seen[n.Name] {
			n.Name = free(n.Name)
		}
		seen[n.Name] = true
	}
}
