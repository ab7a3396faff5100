package memory

import (
	"fmt"
	"math"
)

// A Block is memory that one thing needs from step First to step Last of a run, both
// included. A value that takes over another one's memory, in place or as a view, is no
// block of its own: the block it shares lives until the last of them dies.
type Block struct {
	Name        string
	Kind        Kind
	Bytes       int64
	First, Last int
}

// A Kind says what a block is for. The order is that of stacks in plots, from the bottom.
type Kind uint8

// Kinds of blocks.
const (
	Weight     Kind = iota // what the model holds all the time
	State                  // what lives from one run to the next: moments of an optimizer, caches
	Gradient               // of a weight, or of a value on the way back
	Activation             // a value of the graph
	Scratch                // what a node needs while it runs
	kinds
)

// String is the kind's name.
func (k Kind) String() string {
	names := [kinds]string{"weight", "state", "gradient", "activation", "scratch"}
	if k >= kinds {
		return fmt.Sprintf("kind %d", uint8(k))
	}
	return names[k]
}

// MarshalText is the kind's name.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// check finds blocks that make no sense, and totals that do not fit an int64.
func check(blocks []Block) error {
	left := int64(math.MaxInt64)
	for _, b := range blocks {
		switch {
		case b.Kind >= kinds:
			return fmt.Errorf("memory: block %q: %v is not known", b.Name, b.Kind)
		case b.Bytes < 0:
			return fmt.Errorf("memory: block %q: %d bytes", b.Name, b.Bytes)
		case b.First < 0 || b.Last < b.First || b.Last == math.MaxInt:
			return fmt.Errorf("memory: block %q: lives from step %d to step %d", b.Name, b.First, b.Last)
		case b.Bytes > left-Align:
			return fmt.Errorf("memory: block %q: its %d bytes are more than can be counted together with the others", b.Name, b.Bytes)
		}
		left -= aligned(b.Bytes)
	}
	return nil
}

// aligned is the bytes of the arena that n bytes take.
func aligned(n int64) int64 { return (n + Align - 1) / Align * Align }
