package ir

// ReplaceBy replaces n's only output by v: v has its consumers, the name
// and the type, so that outputs and layers keep their names, and n is removed.
func (n *Node) ReplaceBy(v *Value) {
	old := n.Outputs[0]
	name := old.Name
	old.ReplaceUses(v) // which renames v if old was a graph output
	if v.Name != name && !v.IsInput() {
		v.Name, old.Name = name, v.Name
	}
	v.Type = old.Type
	n.Remove()
}
