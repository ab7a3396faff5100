package memory

import (
	"fmt"
	"math"
)

// A Block is memory that is used from step First to step Last of a run, both included. A value that reuses another
// one's memory, in place or as a view, is not a separate block: the shared block is live until the last of them.
type Block struct {
	Name        string
	Kind        Kind
	Bytes       int64
	First, Last int
}

// A Kind is the use of a block. The order is that of stacks in plots, from the bottom.
type Kind uint8

// Kinds of blocks.
const (
	Weight     Kind = iota // of the model
	State                  // persistent between runs: optimizer states, caches
	Gradient               // of a weight, or of a value in the backward pass
	Activation             // a value of the graph
	Recomputed             // an activation that is computed again in the backward pass
	Scratch                // temporary memory of a node
	kinds
)

// String returns the kind's name.
func (k Kind) String() string {
	names := [kinds]string{"weight", "state", "gradient", "activation", "recomputed", "scratch"}
	if k >= kinds {
		return fmt.Sprintf("kind %d", uint8(k))
	}
	return names[k]
}

// MarshalText returns the kind's name.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// checkBlocks reports invalid blocks, and totals that overflow an int64.
func checkBlocks(blocks []Block) error {
	left := int64(math.MaxInt64)
	for _, b := range blocks {
		switch {
		case b.Kind >= kinds:
			return fmt.Errorf("memory: block %q: unknown %v", b.Name, b.Kind)
		case b.Bytes < 0:
			return fmt.Errorf("memory: block %q: %d bytes", b.Name, b.Bytes)
		case b.First < 0 || b.Last < b.First || b.Last == math.MaxInt:
			return fmt.Errorf("memory: block %q: lives from step %d to step %d", b.Name, b.First, b.Last)
		// The sum is checked before it is computed: sizes come from shapes of a file, and the planner adds them
		// without further checks.
		case b.Bytes > left-Align:
			return fmt.Errorf("memory: block %q: its %d bytes are more than can be counted together with the others",
				b.Name, b.Bytes)
		}
		left -= aligned(b.Bytes)
	}
	return nil
}

// aligned rounds n up to a multiple of Align.
func aligned(n int64) int64 { return (n + Align - 1) / Align * Align }
