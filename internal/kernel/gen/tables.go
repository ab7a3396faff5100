package main

import (
	"encoding/binary"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// tables are the read-only data of several functions.
type tables struct{ packOrder, compact, expand Mem }

func newTables() tables {
	return tables{
		packOrder: words("packOrder", 0, 4, 1, 5, 2, 6, 3, 7),
		compact:   compactTable(),
		expand:    expandTable(),
	}
}

func words(name string, v ...uint32) Mem {
	m := GLOBL(name, RODATA|NOPTR)
	for i, w := range v {
		DATA(i*4, U32(w))
	}
	return m
}

// compactTable has for every 8-bit mask the indices of its set bits, a byte each.
func compactTable() Mem {
	return maskTable("compactIndex", func(row *[8]byte, bit, rank int) { row[rank] = byte(bit) }, 0)
}

// expandNothing in expandTable marks a clear bit: negative, and so is its double as a byte, for which PSHUFB writes
// zeros.
const expandNothing = 0xc0

// expandTable has for every 8-bit mask the rank of each bit among the set ones, a byte each.
func expandTable() Mem {
	return maskTable("expandIndex", func(row *[8]byte, bit, rank int) { row[bit] = byte(rank) }, expandNothing)
}

// maskTable has eight bytes for every mask: fill, and what set writes for every set bit.
func maskTable(name string, set func(row *[8]byte, bit, rank int), fill byte) Mem {
	var w []uint32
	for mask := range 256 {
		row, rank := [8]byte{fill, fill, fill, fill, fill, fill, fill, fill}, 0
		for bit := range 8 {
			if mask>>bit&1 == 1 {
				set(&row, bit, rank)
				rank++
			}
		}
		w = append(w, binary.LittleEndian.Uint32(row[:]), binary.LittleEndian.Uint32(row[4:]))
	}
	return words(name, w...)
}
